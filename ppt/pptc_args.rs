//! The command line of `pptc`.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Parser, Subcommand, ValueEnum};
use ppt_codegen::Language;

const USAGE: &str = "pptc [OPTIONS] FILE.frame…\n       pptc fmt [--check] FILE.frame…\n       \
                     pptc functions [--min TIME] [-o DIR] | --cflags[=COMPILER]";

const EXAMPLES: &str = "\
Examples:
  pptc example.frame                   write example.h and example.c
  pptc a.frame b.frame -o generated    write all files into one folder
  pptc --emit cpp,rust example.frame   write example.hpp, example.cpp and example.rs
  pptc --check *.frame                 only report errors
  pptc --print layout example.frame    show the place of each byte of a frame
  pptc fmt *.frame                     format frame files";

/// Compile frame files into C, C++, Rust, Python, Java, Node or Go code that writes their frames.
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
    /// Languages to generate, instead of those of the file's `emit`.
    #[arg(long, value_delimiter = ',', value_name = "LANGUAGE", ignore_case = true)]
    pub(crate) emit: Vec<Emit>,
    /// Only check the files; write nothing.
    #[arg(long)]
    pub(crate) check: bool,
    /// Treat warnings as errors: write nothing for a file with warnings. Hints are no warnings.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print this instead of writing files.
    #[arg(long, value_name = "WHAT")]
    pub(crate) print: Option<Print>,
    /// Also write a rule for make(1), like a compiler's -MF.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "print"])]
    pub(crate) depfile: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Format frame files. (A frame file called `fmt` is `./fmt`.)
    Fmt(Fmt),
    /// Write the code by which a C or C++ program shows each call of its functions.
    Functions(Functions),
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Print {
    /// The place of each field, the padding, and the bytes that the order saves.
    Layout,
    /// The schema as JSON.
    Schema,
}

/// A language that ppt writes, as it is typed.
#[derive(Clone, Copy)]
pub(crate) struct Emit(pub(crate) Language);

impl ValueEnum for Emit {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Emit>> =
            LazyLock::new(|| Language::ALL.iter().map(|&language| Emit(language)).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (option, word) = (self.0.option(), self.0.word());
        let value = PossibleValue::new(option);
        Some(if option.eq_ignore_ascii_case(word) { value } else { value.alias(word) })
    }
}

/// The arguments of `pptc fmt`.
#[derive(clap::Args)]
pub(crate) struct Fmt {
    /// Frame files; `-` reads standard input and writes standard output.
    #[arg(required = true, value_name = "FILE.frame")]
    pub(crate) files: Vec<PathBuf>,
    /// Write nothing; print the files that would change, and exit with 1 if there are any.
    #[arg(long)]
    pub(crate) check: bool,
}

const FUNCTIONS_EXAMPLES: &str = "\
Examples:
  pptc functions                       write ppt_functions.h and ppt_functions.c
  cc -O2 $(pptc functions --cflags) server.c ppt_functions.c -o server
  clang -O2 $(pptc functions --cflags=clang) server.c ppt_functions.c -o server";

/// The arguments of `pptc functions`.
#[derive(clap::Args)]
#[command(after_help = FUNCTIONS_EXAMPLES)]
pub(crate) struct Functions {
    /// Print the flags to compile the program with, and write nothing.
    #[arg(long, value_name = "COMPILER", num_args = 0..=1, require_equals = true,
        default_missing_value = "gcc")]
    pub(crate) cflags: Option<FunctionCompiler>,
    /// Folder of the two files [default: this one].
    #[arg(short, long, value_name = "DIR", conflicts_with = "cflags")]
    pub(crate) output: Option<PathBuf>,
    /// Shorter calls are frames `brief`, which `ppt attach --except brief` leaves out.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration,
        default_value = "1us", conflicts_with = "cflags")]
    pub(crate) min: Duration,
}

/// A compiler whose flags `pptc functions` knows.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FunctionCompiler {
    Gcc,
    Clang,
}
