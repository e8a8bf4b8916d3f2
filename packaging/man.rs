//! Man pages: what `--help` says, and the sections that only a page has, which are in `man/`.

use clap::CommandFactory;

use crate::page::page;
use crate::{Result, args, pptc_args};

/// Sections of its own for each page; a subcommand without any has those of `ppt`.
const SECTIONS: [(&str, &str); 8] = [
    ("ppt", include_str!("man/ppt.roff")),
    ("ppt-attach", include_str!("man/ppt-attach.roff")),
    ("ppt-detach", include_str!("man/ppt-detach.roff")),
    ("ppt-doctor", include_str!("man/ppt-doctor.roff")),
    ("ppt-dump", include_str!("man/ppt-dump.roff")),
    ("ppt-info", include_str!("man/ppt-info.roff")),
    ("ppt-list", include_str!("man/ppt-list.roff")),
    ("pptc", include_str!("man/pptc.roff")),
];

/// Name and text of each page.
pub(crate) fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut ppt = args::Args::command();
    ppt.build();
    let words = ppt.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set());
    let mut pages = Vec::new();
    for word in words {
        pages.push(of(word.clone(), &format!("ppt-{}", word.get_name()), "ppt")?);
    }
    pages.push(of(ppt, "ppt", "ppt")?);
    pages.push(of(pptc_args::Args::command(), "pptc", "pptc")?);
    Ok(pages)
}

fn of(command: clap::Command, name: &str, program: &str) -> Result<(String, Vec<u8>)> {
    let own = SECTIONS.iter().find(|it| it.0 == name);
    let sections = own.map_or(include_str!("man/other.roff"), |it| it.1);
    Ok((format!("{name}.1"), page(command, name, program, sections)?))
}
