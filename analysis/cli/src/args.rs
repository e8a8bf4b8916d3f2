//! The command line, as typed.

use clap::Subcommand;

mod captures;
mod examples;
mod export;
mod graph;
mod import;
mod models;
mod output;
mod plot;
mod report;
mod sql;
mod stat;
mod top;
mod values;
mod view;
mod whatif;
mod why;

pub use captures::local;
pub(crate) use captures::{Captures, is_address};
pub(crate) use export::{Export, ExportFormat, Time};
pub(crate) use graph::{Drawing, Graph};
pub(crate) use import::Import;
pub(crate) use models::{Compare, Fit, ModelArgs};
pub(crate) use output::{OutputArgs, TextOrJson};
pub(crate) use plot::Plot;
pub(crate) use report::Report;
pub(crate) use sql::Sql;
pub(crate) use stat::Stat;
pub use top::TopOptions;
pub use view::ViewArgs;
pub(crate) use whatif::WhatIf;
pub(crate) use why::WhyArgs;

/// A command that reads captures and answers, which may take any time and memory.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Count frames; show percentiles of intervals and fields.
    #[command(after_help = examples::STAT)]
    Stat(Stat),
    /// Show where the slowest intervals spent their time, with --kernel.
    #[command(after_help = examples::WHY)]
    #[command(mut_arg("captures", |captures| captures.help(examples::WHY_CAPTURES)))]
    Why(WhyArgs),
    /// Show which points lead to which, and where the time goes.
    Graph(Graph),
    /// Predict what a faster part would be worth.
    #[command(name = "whatif", after_help = examples::WHAT_IF)]
    WhatIf(WhatIf),
    /// Answer SQL queries over captures.
    #[command(after_help = examples::SQL)]
    #[command(mut_arg("captures", |captures| captures.help(examples::SQL_CAPTURES)))]
    Sql(Sql),
    /// Turn captures into files that other programs open.
    #[command(after_help = examples::EXPORT)]
    Export(Export),
    /// Write a page for the browser: one file with everything.
    Report(Report),
    /// Draw the answer to an SQL query, or the stacks of threads.
    #[command(after_help = examples::PLOT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::PLOT_CAPTURES)))]
    Plot(Plot),
    /// Turn CSV or pcap files of other tools into a capture.
    Import(Import),
    /// Calibrate a formula: how a cost grows, with a verdict.
    #[command(after_help = examples::FIT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::FIT_CAPTURES)))]
    Fit(Fit),
    /// Compute what resources a load takes, and where they run out.
    Model(ModelArgs),
    /// Compare two sets of runs; fail if something became too slow.
    Compare(Compare),
}

impl Question {
    /// Whether the command continues until captures end, and finishes its work when it is asked to
    /// stop.
    pub(crate) fn follows(&self) -> bool {
        matches!(self, Question::Export(args) if args.follow.follow)
    }

    /// The value of `--memory`.
    pub(crate) fn memory(&self) -> Option<usize> {
        match self {
            Question::Stat(args) => args.captures.memory,
            Question::Why(args) => args.captures.memory,
            Question::Graph(args) => args.memory,
            Question::WhatIf(args) => args.captures.memory,
            Question::Sql(args) => args.captures.memory,
            Question::Export(args) => args.captures.memory,
            Question::Report(args) => args.captures.memory,
            Question::Plot(args) => args.captures.memory,
            Question::Fit(args) => args.captures.memory,
            Question::Model(args) => args.captures.memory,
            Question::Compare(args) => args.captures.memory,
            Question::Import(_) => None,
        }
    }
}
