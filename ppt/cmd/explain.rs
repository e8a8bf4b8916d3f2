//! `ppt explain CODE`: prints the meaning of a message, its cause, and what to do.
//!
//! ```text
//! $ ppt attach 4711
//! ppt: process 4711 is traced by process 4720 (gdb); …
//!   more: ppt explain traced
//! $ ppt explain traced
//! ```
//!
//! The text comes from `docs/troubleshooting.md`. That page has a heading `### CODE` for each
//! message; the line below it is the summary.

use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::stdout;

const PAGE: &str = include_str!("../../docs/troubleshooting.md");

/// A section of the page, about one message.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) code: &'static str,
    text: &'static str,
}

impl Section {
    /// The summary.
    pub(crate) fn summary(self) -> &'static str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// All sections of the page.
pub(crate) fn sections() -> impl Iterator<Item = Section> {
    PAGE.split("\n### ").skip(1).filter_map(|part| {
        let (code, text) = part.split_once('\n')?;
        let end = text.find("\n## ").unwrap_or(text.len());
        Some(Section { code, text: text[..end].trim() })
    })
}

pub(crate) fn run(args: &args::Explain) -> CommandResult {
    let text = match &args.code {
        None => list(),
        Some(typed) => match section(typed) {
            Some(section) => format!("{}\n", section.text),
            None => return Err(Failure::usage(Code::NoSuchMessage, unknown(typed))),
        },
    };
    stdout::plain(&text).map_err(Failure::stdout)?;
    Ok(ExitStatus::DONE)
}

/// The section of a code. The code may be spelled as in other outputs (`no_ring`, `NO RING`).
fn section(typed: &str) -> Option<Section> {
    let code = typed.trim().to_lowercase().replace(['_', ' '], "-");
    sections().find(|section| section.code == code)
}

fn unknown(typed: &str) -> String {
    let meant = match ppt_text::nearest(typed, sections().map(|section| section.code)) {
        Some(code) => format!("did you mean `{code}`?"),
        None => "`ppt explain` lists them".to_owned(),
    };
    format!(
        "there is no message called `{}`: {meant}\n  the messages of pptc, whose names are in \
         brackets, are complete as printed",
        ppt_agent::escaped(typed)
    )
}

fn list() -> String {
    let width = sections().map(|section| section.code.len()).max().unwrap_or(0);
    sections().map(|section| format!("{:width$}  {}\n", section.code, section.summary())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ppt_agent::AgentError;
    use ppt_dump::DumpError;
    use ppt_kernel::KernelError;
    use ppt_listener::{Cause, ListenerError};
    use ppt_output::OutputError;
    use strum::VariantNames;

    use super::*;

    /// The names of all messages of ppt.
    fn codes() -> BTreeSet<String> {
        let ours = Code::VARIANTS.iter().copied().chain(OutputError::codes());
        let theirs = AgentError::codes().chain(ListenerError::codes()).chain(DumpError::codes());
        let theirs = theirs.chain(KernelError::codes()).chain(crate::metrics::ADDRESS_CODES);
        ours.chain(theirs).map(String::from).chain(Cause::doc_codes()).collect()
    }

    #[test]
    fn every_message_has_a_section_and_every_section_a_message() {
        // The messages of answers and of several hosts have tests of their own.
        let theirs = ["Questions to captures", "Several hosts"].map(|title| {
            let (_, rest) = PAGE.split_once(&format!("\n## {title}\n")).unwrap();
            rest.split("\n## ").next().unwrap()
        });
        let theirs = theirs.concat();
        let is_theirs = |code: &str| theirs.contains(&format!("\n### {code}\n"));
        let explained = sections().map(|section| section.code).filter(|text| !is_theirs(text));
        let explained: Vec<_> = explained.map(str::to_owned).collect();
        // Some messages are of both.
        let codes: BTreeSet<_> = codes().into_iter().filter(|code| !is_theirs(code)).collect();
        let missing: Vec<_> = codes.iter().filter(|code| !explained.contains(code)).collect();
        assert!(missing.is_empty(), "not in docs/troubleshooting.md: {missing:?}");
        let stale: Vec<_> = explained.iter().filter(|text| !codes.contains(*text)).collect();
        assert!(stale.is_empty(), "nothing says so any more: {stale:?}");
        assert_eq!(explained.len(), codes.len(), "a section is there twice");
    }

    #[test]
    fn every_section_sums_up_quotes_and_helps() {
        for section in sections() {
            let (code, text) = (section.code, section.text);
            assert!(section.summary().ends_with('.'), "{code}: {}", section.summary());
            assert!(text.contains("\n> "), "{code}: what does one see?");
            assert!(text.contains("\n**What to do:** "), "{code}: what helps?");
            assert!(
                text.lines().all(|line| line.starts_with('>') || line.chars().count() <= 104),
                "{code}"
            );
        }
    }

    #[test]
    fn codes_are_found_as_they_are_spelt_elsewhere() {
        for typed in ["no-ring", "no_ring", "No ring"] {
            assert_eq!(section(typed).unwrap().code, "no-ring");
        }
        assert!(unknown("tracd").contains("did you mean `traced`?"));
        assert!(unknown("zzz").contains("`ppt explain` lists them"));
    }
}
