//! The commands that other programs do.

use std::ffi::OsStr;

/// Programs beside ppt that do some of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartnerProgram {
    /// Answers questions about captures; has a query engine.
    Analysis,
    /// Experiments over several hosts.
    Lab,
}

impl PartnerProgram {
    /// The name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PartnerProgram::Analysis => "ppt-analysis",
            PartnerProgram::Lab => "ppt-lab",
        }
    }

    /// The commands of the program, each with a description.
    pub(crate) fn commands(self) -> &'static [(&'static str, &'static str)] {
        match self {
            PartnerProgram::Analysis => &ANALYSES,
            PartnerProgram::Lab => &EXPERIMENTS,
        }
    }
}

/// Commands of other programs, and what each does.
pub(crate) fn others() -> impl Iterator<Item = (&'static str, &'static str, PartnerProgram)> {
    let commands = |program: PartnerProgram| {
        program.commands().iter().map(move |(word, about)| (*word, *about, program))
    };
    commands(PartnerProgram::Analysis).chain(commands(PartnerProgram::Lab))
}

/// The program that does a command.
pub(crate) fn program(word: &OsStr) -> Option<PartnerProgram> {
    others().find(|(known, ..)| word == *known).map(|(.., program)| program)
}

const EXPERIMENTS: [(&str, &str); 2] = [
    ("sync", "Read how the clocks of other hosts go"),
    ("lab", "Run an experiment over several hosts from one file"),
];

const ANALYSES: [(&str, &str); 13] = [
    ("stat", "Count frames; show percentiles of intervals and fields"),
    ("why", "Show where the slowest intervals spent their time, with --kernel"),
    ("graph", "Show which points lead to which, and where the time goes"),
    ("whatif", "Predict what a faster part would be worth"),
    ("sql", "Answer SQL queries over captures"),
    ("export", "Turn captures into files that other programs open"),
    ("report", "Write a page for the browser"),
    ("view", "Show a timeline in the browser, also of a running program"),
    ("plot", "Draw the answer to an SQL query"),
    ("import", "Turn CSV or pcap files of other tools into a capture"),
    ("fit", "Calibrate a formula: how a cost grows, with a verdict"),
    ("model", "Compute what resources a load takes, and where they run out"),
    ("compare", "Compare two sets of runs"),
];
