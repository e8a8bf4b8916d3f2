//! `ppt report CAPTURE… -o report.html`: a page about captures, for any browser.

use std::io::Write;

use ppt_report::{Facts, PageRequest};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::{answer, open, question_settings, run};

/// Bytes of values without `--memory`.
const VALUES: usize = 256 << 20;

pub(crate) fn run(args: &args::Report) -> Result<ExitStatus, AnswerError> {
    open::check_name(&args.to.output, "HTML")?;
    open::not_on_terminal(&args.to.output, "a page")?;
    let views = match &args.sql {
        None => None,
        Some(file) => Some(super::input::read_text(file)?),
    };
    let engine = open::engine(&args.captures)?;
    ppt_signals::end_work();
    let output =
        open::output_distinct_from(&args.to.output, args.to.force, &engine, args.sql.as_deref())?;
    let runtime = run::runtime(engine.threads())?;
    let memory = question_settings::memory(args.captures.memory).of_values(VALUES);
    let request = PageRequest { command: command(), views, memory };
    let work = async { Ok(Facts::gather(&engine, &request).await?) };
    let facts = runtime.block_on(run::question(engine.set().watch(), work))?;
    let page = ppt_report::page(&facts);
    answer::publish(output, |out| out.write_all(page.as_bytes()))?;
    Ok(open::report_faults(&engine))
}

/// The command line, quoted for a shell.
pub(super) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("ppt".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_command() {
        assert_eq!(quoted("out.bin"), "out.bin");
        assert_eq!(quoted("run*/a b.bin"), "'run*/a b.bin'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
