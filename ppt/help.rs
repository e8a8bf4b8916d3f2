//! `ppt --help`: the commands, by the question that each answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::CommandFactory;
#[cfg(feature = "answers")]
use clap::error::ErrorKind;
#[cfg(feature = "answers")]
use ppt_text::exit::ExitStatus;

use crate::args::Args;
use crate::code::Code;
#[cfg(feature = "answers")]
use crate::usage;

/// The questions, and the commands that answer them.
const QUESTIONS: [(&str, &[&str]); 9] = [
    ("What does it do now?", &["top", "list"]),
    ("Record it", &["attach", "run", "with", "enable", "disable", "trigger", "detach"]),
    ("What happened?", &["stat", "info", "dump", "sql", "view", "report", "plot"]),
    ("Why was it slow?", &["why", "graph"]),
    ("What if?", &["whatif", "fit", "model"]),
    ("Is it slower than before?", &["compare"]),
    ("What happened over several hosts?", &["sync", "lab"]),
    ("What do other tools say?", &["export", "import"]),
    ("Where do I begin, and what went wrong?", &["demo", "doctor", "explain", "completion", "man"]),
];

/// The commands of several hosts; the feature `hosts` has them.
const HOSTS: [&str; 2] = ["sync", "lab"];

const EXAMPLES: &str = "\
Examples:
  ppt demo slow                        a slow request and its cause, in 10 s
  ppt attach 4711 -d 10s               capture ten seconds into out.bin
  sudo ppt attach 4711 --kernel sched,syscalls    and what the kernel did
  sudo ppt attach 4711 --stacks        and in which functions it ran
  ppt stat out.bin                     how often, and how long
  ppt why out.bin                      what the slowest waited for
  ppt view out.bin                     a timeline in the browser
  ppt report out.bin -o report.html    all of it, as a page to send";

/// The command line of `ppt`, with this help.
pub(crate) fn command() -> clap::Command {
    let command = Args::command();
    let (commands, examples) = (commands(&command), examples(&command));
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}\nOptions:\n{{options}}\n\n{examples}\n\
         `ppt COMMAND --help` has the options of a command.\n"
    ))
}

/// The commands below their questions.
fn commands(command: &clap::Command) -> String {
    let mut text = String::new();
    for (question, names) in QUESTIONS {
        let known: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if !known.is_empty() {
            let _ = writeln!(text, "{question}");
        }
        for command in known {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<12}{about}", command.get_name());
        }
    }
    let codes: BTreeSet<&str> = names().filter_map(|name| left_out_of(command, name)).collect();
    for code in codes {
        let _ = writeln!(text, "\nThis ppt was built without some commands: `ppt explain {code}`");
    }
    text
}

/// The examples with commands that this ppt has.
fn examples(command: &clap::Command) -> String {
    let is_known = |line: &&str| {
        let word = line.split_once("ppt ").and_then(|(_, rest)| rest.split(' ').next());
        word.is_none_or(|word| command.find_subcommand(word).is_some())
    };
    EXAMPLES.lines().filter(is_known).fold(String::new(), |text, line| text + line + "\n")
}

/// Prints what is wrong with the arguments of a command, as clap does.
#[cfg(feature = "answers")]
pub(crate) fn wrong(name: &str, kind: ErrorKind, text: &str) -> ExitStatus {
    let mut command = Args::command();
    command.build();
    let command = command.find_subcommand_mut(name).expect("a command of ours");
    usage::print(&command.error(kind, text));
    ExitStatus::USAGE
}

/// The names of all commands, also of those that this ppt was built without.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    QUESTIONS.iter().flat_map(|(_, names)| *names).copied()
}

/// The code of the message about a command that this ppt was built without.
pub(crate) fn left_out(name: &str) -> Option<&'static str> {
    left_out_of(&Args::command(), name)
}

fn left_out_of(command: &clap::Command, name: &str) -> Option<&'static str> {
    let is_listed = QUESTIONS.iter().any(|(_, names)| names.contains(&name));
    let code = if HOSTS.contains(&name) { Code::NoLabProgram } else { Code::NoAnalysis };
    (is_listed && command.find_subcommand(name).is_none()).then_some(code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_answers_one_question() {
        let command = Args::command();
        let own = command.get_subcommands().filter(|command| !command.is_hide_set());
        let own: BTreeSet<_> = own.map(clap::Command::get_name).collect();
        let listed: Vec<_> = QUESTIONS.iter().flat_map(|(_, names)| *names).copied().collect();
        let distinct: BTreeSet<_> = listed.iter().copied().collect();
        assert_eq!(listed.len(), distinct.len(), "{listed:?}");
        let missing: Vec<_> =
            distinct.difference(&own).filter(|name| left_out(name).is_none()).collect();
        assert!(own.is_subset(&distinct) && missing.is_empty(), "{own:?} {missing:?}");
    }

    #[test]
    fn commands_that_are_left_out_are_explained_and_lines_fit_a_terminal() {
        let full = commands(&Args::command());
        let is_complete = cfg!(all(feature = "answers", feature = "hosts"));
        assert_eq!(full.contains("built without"), !is_complete, "{full}");
        let recorder = Args::command().mut_subcommands(|command| {
            let is_left_out = ["stat", "lab"].contains(&command.get_name());
            if is_left_out { command.name("renamed") } else { command }
        });
        let text = commands(&recorder);
        assert!(text.contains("`ppt explain no-analysis`"), "{text}");
        assert!(text.contains("`ppt explain no-lab-program`"), "{text}");
        for line in full.lines().chain(EXAMPLES.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert_eq!(examples(&Args::command()).contains("ppt stat"), cfg!(feature = "answers"));
        assert!(
            full.lines().all(|line| line.trim().len() > 12 || !line.starts_with("  ")),
            "{full}"
        );
    }
}
