//! The man pages. `packaging/` installs the files that this module writes.

#[path = "../../../packaging/page.rs"]
mod page;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Args;
use crate::failure::LabFailure;

/// Sections that only man pages have.
const SECTIONS: &str = include_str!("../../../packaging/man/other.roff");

/// Writes a page for each command. The page of `ppt lab` also serves `ppt-lab`.
pub(crate) fn write(folder: &Path) -> Result<ExitCode, LabFailure> {
    let mut all = Args::command();
    all.build();
    for word in
        all.get_subcommands().filter(|word| word.get_name() != "help" && !word.is_hide_set())
    {
        let name = format!("ppt-{}", word.get_name());
        let command = word.clone().bin_name(format!("ppt {}", word.get_name()));
        let page = page::page(command.display_name(name.clone()), &name, "ppt-lab", SECTIONS);
        let path = folder.join(format!("{name}.1"));
        let written = page.and_then(|page| fs::write(&path, page));
        written.map_err(|error| LabFailure::Write(path.display().to_string(), error))?;
    }
    Ok(ExitCode::SUCCESS)
}
