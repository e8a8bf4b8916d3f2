//! `ppt --help`: the commands of `ppt`, `ppt-analysis` and `ppt-lab`, by the question that each answers.

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::args::{self, Args, PartnerProgram};
use crate::cmd::other;

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

/// A command of `ppt` that also needs `ppt-analysis`.
const SHARED: &str = "top";

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
    let commands = commands(&command, other::is_installed);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}\nOptions:\n{{options}}\n\n{EXAMPLES}\n\n\
         `ppt COMMAND --help` has the options of a command.\n"
    ))
}

/// The mark of the commands that need `program` if it is not installed, and the code of the message that
/// helps.
fn mark(program: PartnerProgram) -> (char, &'static str) {
    match program {
        PartnerProgram::Analysis => ('*', "no-analysis"),
        PartnerProgram::Lab => ('+', "no-lab-program"),
    }
}

/// The commands below their questions. Those of a program that is not installed are marked.
fn commands(command: &clap::Command, is_installed: impl Fn(PartnerProgram) -> bool) -> String {
    let missing: Vec<_> = [PartnerProgram::Analysis, PartnerProgram::Lab]
        .into_iter()
        .filter(|program| !is_installed(*program))
        .collect();
    let mut text = String::new();
    for (question, names) in QUESTIONS {
        let _ = writeln!(text, "{question}");
        for name in names {
            let shared = (*name == SHARED).then_some(PartnerProgram::Analysis);
            let program = shared.or_else(|| args::program(name.as_ref()));
            let program = program.filter(|program| missing.contains(program));
            let mark = program.map_or(String::new(), |program| mark(program).0.to_string());
            let about = about(command, name);
            let _ = writeln!(text, "  {:<12}{about}", format!("{name}{mark}"));
        }
    }
    for (number, program) in missing.into_iter().enumerate() {
        let ((mark, code), name) = (mark(program), program.name());
        let blank = if number == 0 { "\n" } else { "" };
        let _ = writeln!(
            text,
            "{blank}{mark} needs {name}, which is not installed: `ppt explain {code}`"
        );
    }
    text
}

fn about(command: &clap::Command, name: &str) -> String {
    let own = command.find_subcommand(name).and_then(clap::Command::get_about);
    let own = own.map(ToString::to_string);
    own.or(about_of_others(name).map(str::to_owned)).unwrap_or_default()
}

fn about_of_others(name: &str) -> Option<&'static str> {
    args::others().find(|(word, ..)| *word == name).map(|(_, about, _)| about)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_answers_one_question() {
        let command = Args::command();
        let own = command.get_subcommands().filter(|command| !command.is_hide_set());
        let own = own.map(|command| command.get_name().to_owned());
        let all: BTreeSet<_> =
            own.chain(args::others().map(|(word, ..)| word.to_owned())).collect();
        let listed: Vec<_> = QUESTIONS.iter().flat_map(|(_, names)| *names).collect();
        assert_eq!(listed.len(), all.len(), "{listed:?}");
        assert!(listed.iter().all(|name| all.contains(**name)), "{listed:?}");
    }

    #[test]
    fn missing_programs_are_marked_and_lines_fit_a_terminal() {
        let command = Args::command();
        let (with, without) = (commands(&command, |_| true), commands(&command, |_| false));
        assert!(!with.contains(['*', '+']) && !with.contains("not installed"), "{with}");
        let starred = without.lines().filter(|line| line.starts_with("  ") && line.contains("* "));
        assert_eq!(starred.count(), PartnerProgram::Analysis.commands().len() + 1, "{without}");
        let marked = without.lines().filter(|line| line.starts_with("  ") && line.contains("+ "));
        assert_eq!(marked.count(), PartnerProgram::Lab.commands().len(), "{without}");
        assert!(without.contains("+ needs ppt-lab, which is not installed"), "{without}");
        assert!(without.contains("* needs ppt-analysis, which is not installed"), "{without}");
        for line in without.lines().chain(EXAMPLES.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for name in QUESTIONS.iter().flat_map(|(_, names)| *names) {
            assert!(!about(&command, name).is_empty(), "{name}");
        }
    }
}
