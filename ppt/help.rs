//! `ppt --help`: the commands of `ppt` and of `ppt-analysis`, by the question that each answers.

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::args::{ANALYSES, Args};
use crate::cmd::other;

/// The questions, and the commands that answer them.
const QUESTIONS: [(&str, &[&str]); 9] = [
    ("What does it do now?", &["top", "list"]),
    ("Record it", &["attach", "run", "enable", "disable", "trigger", "detach"]),
    ("What happened?", &["stat", "info", "dump", "sql", "report", "plot"]),
    ("Why was it slow?", &["why", "graph"]),
    ("What if?", &["whatif", "fit", "model"]),
    ("Is it slower than before?", &["compare"]),
    ("What happened over several hosts?", &["sync", "lab"]),
    ("What do other tools say?", &["export", "import"]),
    ("Where do I begin, and what went wrong?", &["demo", "doctor", "explain", "completion", "man"]),
];

/// Done by `ppt-analysis`, though it is a word of `ppt`.
const SHARED: &str = "top";

const EXAMPLES: &str = "\
Examples:
  ppt demo slow                        a slow request and its cause, in 10 s
  ppt attach 4711 -d 10s               capture ten seconds into out.bin
  sudo ppt attach 4711 --kernel sched,syscalls    and what the kernel did
  ppt stat out.bin                     how often, and how long
  ppt why out.bin                      what the slowest waited for
  ppt report out.bin -o report.html    all of it, as a page";

/// The command line of `ppt`, with this help.
pub(crate) fn command() -> clap::Command {
    let command = Args::command();
    let commands = commands(&command, other::can_ask());
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}\nOptions:\n{{options}}\n\n{EXAMPLES}\n\n\
         `ppt COMMAND --help` has the options of a command.\n"
    ))
}

/// The commands below their questions. A star marks those that need `ppt-analysis` if that is missing.
fn commands(command: &clap::Command, can_ask: bool) -> String {
    let mut text = String::new();
    for (question, names) in QUESTIONS {
        let _ = writeln!(text, "{question}");
        for name in names {
            let needs_analysis = *name == SHARED || about_of_analysis(name).is_some();
            let star = if needs_analysis && !can_ask { "*" } else { "" };
            let about = about(command, name);
            let _ = writeln!(text, "  {:<12}{about}", format!("{name}{star}"));
        }
    }
    if !can_ask {
        text += "\n* needs ppt-analysis, which is not installed: `ppt explain no-analysis`\n";
    }
    text
}

fn about(command: &clap::Command, name: &str) -> String {
    let own = command.find_subcommand(name).and_then(clap::Command::get_about);
    let own = own.map(ToString::to_string);
    own.or(about_of_analysis(name).map(str::to_owned)).unwrap_or_default()
}

fn about_of_analysis(name: &str) -> Option<&'static str> {
    ANALYSES.iter().find(|(word, _)| *word == name).map(|(_, about)| *about)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_answers_one_question() {
        let command = Args::command();
        let own = command.get_subcommands().map(|it| it.get_name().to_owned());
        let all: BTreeSet<_> = own.chain(ANALYSES.map(|(word, _)| word.to_owned())).collect();
        let listed: Vec<_> = QUESTIONS.iter().flat_map(|(_, names)| *names).collect();
        assert_eq!(listed.len(), all.len(), "{listed:?}");
        assert!(listed.iter().all(|name| all.contains(**name)), "{listed:?}");
    }

    #[test]
    fn missing_analyses_are_marked_and_lines_fit_a_terminal() {
        let command = Args::command();
        let (with, without) = (commands(&command, true), commands(&command, false));
        assert!(!with.contains('*') && !with.contains("not installed"), "{with}");
        let starred = without.lines().filter(|line| line.starts_with("  ") && line.contains("* "));
        assert_eq!(starred.count(), ANALYSES.len() + 1, "{without}");
        assert!(without.contains("* needs ppt-analysis, which is not installed"), "{without}");
        for line in without.lines().chain(EXAMPLES.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for name in QUESTIONS.iter().flat_map(|(_, names)| *names) {
            assert!(!about(&command, name).is_empty(), "{name}");
        }
    }
}
