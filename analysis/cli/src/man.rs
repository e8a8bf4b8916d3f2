//! The man pages, which `packaging/` installs.

#[path = "../../../packaging/page.rs"]
mod page;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args;
use crate::failure::Failure;

/// Sections that only man pages have.
const SECTIONS: &str = include_str!("../../../packaging/man/other.roff");

/// Exit status of `ppt compare`, before the other sections.
const NOT_JUDGED: &str =
    ".TP\n.B 3\nA gate cannot be judged, or nothing can be compared.\n.SH SEE ALSO";

/// Writes the page of `ppt-analysis`, and one for each command.
pub(crate) fn write(folder: &Path) -> Result<ExitCode, Failure> {
    let put = |name: &str, page: io::Result<Vec<u8>>| {
        let path = folder.join(format!("{name}.1"));
        let written = page.and_then(|page| fs::write(&path, page));
        written.map_err(Failure::writing(&path.display().to_string()))
    };
    let mut all = args::Args::command();
    all.build();
    for word in all
        .get_subcommands()
        .filter(|command| command.get_name() != "help" && !command.is_hide_set())
    {
        let name = format!("ppt-{}", word.get_name());
        let command = word.clone().bin_name(format!("ppt {}", word.get_name()));
        let sections = match word.get_name() {
            "compare" => SECTIONS.replace(".SH SEE ALSO", NOT_JUDGED),
            _ => SECTIONS.to_owned(),
        };
        put(
            &name,
            page::page(command.display_name(name.clone()), &name, "ppt-analysis", &sections),
        )?;
    }
    put("ppt-analysis", page::page(all, "ppt-analysis", "ppt-analysis", SECTIONS))?;
    Ok(ExitCode::SUCCESS)
}
