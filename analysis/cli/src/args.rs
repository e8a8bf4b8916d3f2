//! The command line, as typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

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
pub(crate) use top::Top;
pub(crate) use view::ViewArgs;
pub(crate) use whatif::WhatIf;
pub(crate) use why::WhyArgs;

/// Ask captures: statistics, SQL, other people's formats. `ppt` finds this program by its words:
/// `ppt stat` is `ppt-analysis stat`.
#[derive(Debug, Parser)]
#[command(name = "ppt-analysis", bin_name = "ppt", override_usage = "ppt-analysis <COMMAND>")]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say how often, how long, how much: of each kind of frame and each of its fields.
    #[command(after_help = examples::STAT)]
    Stat(Stat),
    /// Say where the slowest intervals spent their time: running, waiting, for what, and for whom.
    #[command(after_help = examples::WHY)]
    #[command(mut_arg("captures", |captures| captures.help(examples::WHY_CAPTURES)))]
    Why(WhyArgs),
    /// Show which points lead to which, and where the time goes on the paths between two of them.
    Graph(Graph),
    /// Predict the effect of a faster part: the captured run is timed again.
    #[command(name = "whatif", after_help = examples::WHAT_IF)]
    WhatIf(WhatIf),
    /// Answer SQL queries over captures.
    #[command(after_help = examples::SQL)]
    #[command(mut_arg("captures", |captures| captures.help(examples::SQL_CAPTURES)))]
    Sql(Sql),
    /// Turn captures into files that other programs open.
    #[command(after_help = examples::EXPORT)]
    Export(Export),
    /// Make a page of captures: one file with everything, for any browser.
    Report(Report),
    /// Show captures as a page with a timeline, on this machine, until Ctrl-C.
    #[command(after_help = examples::VIEW)]
    View(ViewArgs),
    /// Draw the answer to a query, or the stacks of threads, as SVG.
    #[command(after_help = examples::PLOT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::PLOT_CAPTURES)))]
    Plot(Plot),
    /// Turn what another tool recorded, CSV or pcap, into a capture.
    Import(Import),
    /// Calibrate a formula: how a cost grows, with intervals, a verdict and a prediction.
    #[command(after_help = examples::FIT)]
    #[command(mut_arg("captures", |captures| captures.help(examples::FIT_CAPTURES)))]
    Fit(Fit),
    /// Say what resources take at a load, and at which load they run out.
    Model(ModelArgs),
    /// Hold two sets of runs against each other; fail if something became too slow.
    Compare(Compare),
    /// Show rates, percentiles and losses of a capture while it is written.
    // `ppt` has this word itself, and its page.
    #[command(hide = true)]
    Top(Top),
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man {
        /// A folder that exists.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

impl Command {
    /// Whether the command reads captures and answers a question, which may take any time and memory.
    pub(crate) fn is_question(&self) -> bool {
        !matches!(self, Command::Man { .. } | Command::View(_))
    }

    /// Whether the command continues until captures end, and finishes its work when it is asked to
    /// stop.
    pub(crate) fn follows(&self) -> bool {
        matches!(self, Command::Export(args) if args.follow.follow)
    }

    /// The value of `--memory`.
    pub(crate) fn memory(&self) -> Option<usize> {
        match self {
            Command::Stat(args) => args.captures.memory,
            Command::Why(args) => args.captures.memory,
            Command::Graph(args) => args.memory,
            Command::WhatIf(args) => args.captures.memory,
            Command::Sql(args) => args.captures.memory,
            Command::Export(args) => args.captures.memory,
            Command::Report(args) => args.captures.memory,
            Command::View(args) => args.memory,
            Command::Plot(args) => args.captures.memory,
            Command::Fit(args) => args.captures.memory,
            Command::Model(args) => args.captures.memory,
            Command::Compare(args) => args.captures.memory,
            Command::Import(_) | Command::Top(_) | Command::Man { .. } => None,
        }
    }
}
