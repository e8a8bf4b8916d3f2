//! `pptc example.frame`: frame files in, source code out.
//!
//! ```text
//! $ pptc example.frame
//! $ ls
//! example.c  example.frame  example.h
//! ```

mod exit;
mod fmt;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use ppt_codegen::{Compiled, Language};

const USAGE: &str = "pptc [OPTIONS] FILE.frame…\n       pptc fmt [--check] FILE.frame…";

const EXAMPLES: &str = "\
Examples:
  pptc example.frame                   write example.h and example.c
  pptc a.frame b.frame -o generated    write all files into one folder
  pptc --emit cpp,rust example.frame   write example.hpp, example.cpp and example.rs
  pptc --check *.frame                 only say what is wrong
  pptc --print layout example.frame    show where each byte of a frame goes
  pptc fmt *.frame                     format them";

/// Compiles frame files into the C, C++ or Rust code that writes their frames.
#[derive(Parser)]
#[command(name = "pptc", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true, override_usage = USAGE)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Frame files.
    #[arg(required = true, value_name = "FILE.frame")]
    files: Vec<PathBuf>,
    /// Folder of the generated files [default: beside each frame file].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Languages to write, instead of those that the file's `emit` names.
    #[arg(long, value_delimiter = ',', value_name = "LANGUAGE")]
    emit: Vec<Emit>,
    /// Only report what is wrong.
    #[arg(long)]
    check: bool,
    /// Print what the file means, instead of writing anything.
    #[arg(long, value_name = "WHAT")]
    print: Option<Print>,
    /// Also write a rule for make(1), as a compiler's -MF does.
    #[arg(long, value_name = "PATH")]
    depfile: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Format frame files. (A frame file called `fmt` is `./fmt`.)
    Fmt(fmt::Args),
}

#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    C,
    Cpp,
    Rust,
}

#[derive(Clone, Copy, ValueEnum)]
enum Print {
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
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Command::Fmt(args)) = &args.command {
        return fmt::run(args);
    }
    let mut rules = String::new();
    let mut failed = false;
    for file in &args.files {
        match compile(&args, file) {
            Ok(rule) => rules += &rule,
            Err(message) => {
                anstream::eprintln!("{}", message.trim_end());
                failed = true;
            }
        }
    }
    if failed {
        return exit::FAILED;
    }
    let written = args.depfile.as_ref().map(|path| (path, std::fs::write(path, rules)));
    if let Some((path, Err(error))) = written {
        eprintln!("pptc: cannot write {}: {error}", path.display());
        return exit::FAILED;
    }
    exit::DONE
}

/// Compiles one file; returns its rule for make.
fn compile(args: &Args, file: &Path) -> Result<String, String> {
    let source =
        read(file).map_err(|error| format!("pptc: cannot read {}: {error}", file.display()))?;
    let name = file.to_string_lossy();
    let frames = ppt_codegen::parse(&source, &name).map_err(|failure| failure.render(true))?;
    anstream::eprint!("{}", frames.render_warnings(true));
    if let Some(what) = args.print {
        let text = print(&frames, what);
        return match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
            _ => Ok(String::new()),
        };
    }
    let languages: Vec<Language> = args.emit.iter().map(|&it| it.into()).collect();
    let outputs = ppt_codegen::generate(&frames, &name, &languages)
        .map_err(|error| format!("pptc: {}: {error}", file.display()))?;
    if args.check {
        return Ok(String::new());
    }
    let beside = file.parent().unwrap_or(Path::new(""));
    let folder = args.output.as_deref().unwrap_or(beside);
    let paths =
        ppt_codegen::write_outputs(folder, &outputs).map_err(|error| format!("pptc: {error}"))?;
    Ok(ppt_codegen::depfile(&paths, file))
}

/// Reads a frame file: no more of it than one can be long.
pub(crate) fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let limit = ppt_codegen::MAX_SOURCE_BYTES as u64 + 1;
    std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn print(frames: &Compiled, what: Print) -> String {
    match what {
        Print::Schema => frames.schema.to_json() + "\n",
        Print::Layout => frames
            .schema
            .frames
            .iter()
            .map(|frame| ppt_codegen::Layout::of(&frames.schema, frame).draw(&frames.schema, frame))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}
