//! What was typed after `pptc`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use ppt_codegen::Language;

const USAGE: &str = "pptc [OPTIONS] FILE.frame…\n       pptc fmt [--check] FILE.frame…";

const EXAMPLES: &str = "\
Examples:
  pptc example.frame                   write example.h and example.c
  pptc a.frame b.frame -o generated    write all files into one folder
  pptc --emit cpp,rust example.frame   write example.hpp, example.cpp and example.rs
  pptc --check *.frame                 only say what is wrong
  pptc --print layout example.frame    show where each byte of a frame goes
  pptc fmt *.frame                     format them";

/// Compiles frame files into the C, C++, Rust or Python code that writes their frames.
#[derive(Parser)]
#[command(name = "pptc", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true, override_usage = USAGE)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Frame files.
    #[arg(required = true, value_name = "FILE.frame")]
    pub(crate) files: Vec<PathBuf>,
    /// Folder of the generated files [default: beside each frame file].
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Languages to write, instead of those that the file's `emit` names.
    #[arg(long, value_delimiter = ',', value_name = "LANGUAGE", ignore_case = true)]
    pub(crate) emit: Vec<Emit>,
    /// Only report what is wrong.
    #[arg(long)]
    pub(crate) check: bool,
    /// Fail where there are warnings, and write nothing for such a file. Hints are no warnings.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print what the file means, instead of writing anything.
    #[arg(long, value_name = "WHAT")]
    pub(crate) print: Option<Print>,
    /// Also write a rule for make(1), as a compiler's -MF does.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "print"])]
    pub(crate) depfile: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Format frame files. (A frame file called `fmt` is `./fmt`.)
    Fmt(Fmt),
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Emit {
    C,
    #[value(alias = "c++")]
    Cpp,
    Rust,
    Python,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Print {
    /// Where each field lies, what is padding, and what the order saves.
    Layout,
    /// The schema as JSON.
    Schema,
}

impl From<Emit> for Language {
    fn from(emit: Emit) -> Self {
        match emit {
            Emit::C => Language::C,
            Emit::Cpp => Language::Cpp,
            Emit::Rust => Language::Rust,
            Emit::Python => Language::Python,
        }
    }
}

/// What was typed after `fmt`.
#[derive(clap::Args)]
pub(crate) struct Fmt {
    /// Frame files; `-` reads standard input and writes standard output.
    #[arg(required = true, value_name = "FILE.frame")]
    pub(crate) files: Vec<PathBuf>,
    /// Write nothing: name the files that would change, and exit with 1 if there are any.
    #[arg(long)]
    pub(crate) check: bool,
}
