//! `ppt man FOLDER`: writes the man pages of `ppt`, of its commands and of `pptc`.
//!
//! A page has the text of `--help`, and sections of its own.

#[path = "../../packaging/page.rs"]
mod page;

use std::fs;
use std::io;

use clap::CommandFactory;
use ppt_text::exit::ExitStatus;

use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::{args, pptc_args};

/// Sections of its own for each page; a subcommand without any has those of `ppt`.
const SECTIONS: [(&str, &str); 8] = [
    ("ppt", include_str!("../../packaging/man/ppt.roff")),
    ("ppt-attach", include_str!("../../packaging/man/ppt-attach.roff")),
    ("ppt-detach", include_str!("../../packaging/man/ppt-detach.roff")),
    ("ppt-doctor", include_str!("../../packaging/man/ppt-doctor.roff")),
    ("ppt-dump", include_str!("../../packaging/man/ppt-dump.roff")),
    ("ppt-info", include_str!("../../packaging/man/ppt-info.roff")),
    ("ppt-list", include_str!("../../packaging/man/ppt-list.roff")),
    ("pptc", include_str!("../../packaging/man/pptc.roff")),
];

/// Exit status of `ppt compare`, before the other sections.
const NOT_JUDGED: &str =
    ".TP\n.B 3\nA gate cannot be judged, or nothing can be compared.\n.SH SEE ALSO";

pub(crate) fn run(args: &args::Man) -> CommandResult {
    let failed = |path: &std::path::Path, error: io::Error| {
        Failure::failed(Code::CannotWrite, format!("cannot write {}: {error}", path.display()))
    };
    for page in pages().map_err(|error| failed(&args.folder, error))? {
        let path = args.folder.join(page.file);
        fs::write(&path, page.text).map_err(|error| failed(&path, error))?;
    }
    Ok(ExitStatus::DONE)
}

struct Page {
    file: String,
    text: Vec<u8>,
}

fn pages() -> io::Result<Vec<Page>> {
    let mut ppt = args::Args::command();
    ppt.build();
    let mut pages = Vec::new();
    for word in
        ppt.get_subcommands().filter(|word| word.get_name() != "help" && !word.is_hide_set())
    {
        pages.push(page_of(word.clone(), &format!("ppt-{}", word.get_name()), "ppt")?);
    }
    pages.push(page_of(ppt, "ppt", "ppt")?);
    pages.push(page_of(pptc_args::Args::command(), "pptc", "pptc")?);
    Ok(pages)
}

fn page_of(command: clap::Command, name: &str, program: &str) -> io::Result<Page> {
    let own = SECTIONS.iter().find(|(page, _)| *page == name);
    let sections = own.map_or(include_str!("../../packaging/man/other.roff"), |(_, text)| text);
    let sections = match name {
        "ppt-compare" => sections.replace(".SH SEE ALSO", NOT_JUDGED),
        _ => sections.to_owned(),
    };
    let text = page::page(command, name, program, &sections)?;
    Ok(Page { file: format!("{name}.1"), text })
}
