//! Compiles frame files: reads them, reports their mistakes, and prints or writes the result.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ppt_codegen::{Compiled, Diagnostic, GenerateError, GeneratedFile, Language, Severity};
use ppt_text::exit::ExitStatus;
use ppt_text::{escaped, escaped_lines};

use crate::{Args, Print, stdout};

pub(crate) fn run(args: &Args) -> ExitStatus {
    let (rules, tally, sources) = (String::new(), Tally::default(), HashMap::new());
    let mut run = TextRun { args, rules, tally, sources, printed: false };
    let mut failed = false;
    for file in &args.files {
        if let Err(message) = run.translate(file) {
            anstream::eprint!("{message}");
            failed = true;
        }
    }
    run.tally.print(args.deny_warnings);
    if failed {
        return ExitStatus::FAILED;
    }
    let written = args.depfile.as_ref().map(|path| (path, fs::write(path, run.rules)));
    if let Some((path, Err(error))) = written {
        eprintln!("pptc: cannot write {}: {error}", shown(path));
        return ExitStatus::FAILED;
    }
    ExitStatus::DONE
}

/// A path for people, escaped.
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}

/// Reads a frame file, up to one byte more than the longest valid one has.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("pptc: cannot read {}: {error}\n", shown(file));
    if fs::metadata(file).map_err(failed)?.is_dir() {
        let file = shown(file);
        return Err(format!("pptc: {file} is a folder: name the frame files in it\n"));
    }
    let mut bytes = Vec::new();
    let limit = ppt_codegen::MAX_SOURCE_BYTES as u64 + 1;
    let opened = fs::File::open(file).map_err(failed)?;
    opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The type of a file next to which no output can be written: a pipe, a socket or a device.
pub(crate) fn special(file: &Path) -> Option<&'static str> {
    let kind = fs::metadata(file).ok()?.file_type();
    match () {
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        () => None,
    }
}

/// The number of diagnostics.
#[derive(Default)]
struct Tally {
    errors: usize,
    warnings: usize,
    hints: usize,
}

impl Tally {
    fn count(&mut self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            *match diagnostic.severity {
                Severity::Error => &mut self.errors,
                Severity::Warning => &mut self.warnings,
                Severity::Hint => &mut self.hints,
            } += 1;
        }
    }

    /// Prints the closing line, if there were diagnostics.
    fn print(&self, denied: bool) {
        let counts = [(self.errors, "error"), (self.warnings, "warning"), (self.hints, "hint")];
        let words: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        if !words.is_empty() {
            let denied = denied && self.warnings > 0;
            let denied = if denied { " (warnings are denied)" } else { "" };
            eprintln!("pptc: {}{denied}", words.join(", "));
        }
    }
}

struct TextRun<'a> {
    args: &'a Args,
    /// The rule for make(1).
    rules: String,
    tally: Tally,
    /// Each output, and the frame file that it comes from.
    sources: HashMap<PathBuf, PathBuf>,
    /// Whether a layout was printed. An empty line separates it from the next.
    printed: bool,
}

impl TextRun<'_> {
    /// Compiles one file. An error is the text for stderr, with its line ends.
    fn translate(&mut self, file: &Path) -> Result<(), String> {
        let writes = !self.args.check && self.args.print.is_none();
        if let Some(kind) = special(file).filter(|_| writes) {
            let file = shown(file);
            return Err(format!(
                "pptc: {file} is {kind}: generated files are named after a frame file\n"
            ));
        }
        if file.as_os_str() == "-" {
            let why = "standard input has no name for the generated files";
            return Err(format!("pptc: {why} (a file called - is ./-)\n"));
        }
        let source = read(file)?;
        let name = file.to_string_lossy();
        let languages: Vec<Language> = self.args.emit.iter().map(|emit| emit.0).collect();
        let frames = match ppt_codegen::parse_for(&source, &name, &languages) {
            Ok(frames) => frames,
            Err(failure) => {
                self.tally.count(&failure.diagnostics);
                return Err(failure.render(true));
            }
        };
        self.tally.count(&frames.warnings);
        anstream::eprint!("{}", frames.render_warnings(true));
        let denied = |diagnostic: &Diagnostic| {
            diagnostic.severity == Severity::Warning && self.args.deny_warnings
        };
        if frames.warnings.iter().any(denied) {
            return Err(String::new());
        }
        if let Some(what) = self.args.print {
            let gap = std::mem::replace(&mut self.printed, true);
            return print(&frames, what, gap)
                .map_err(|error| format!("pptc: cannot write standard output: {error}\n"));
        }
        let outputs = match ppt_codegen::generate(&frames, &name, &languages) {
            Ok(outputs) => outputs,
            Err(GenerateError::Names(failure)) => {
                self.tally.count(&failure.diagnostics);
                return Err(failure.render(true));
            }
            Err(error) => {
                return Err(format!(
                    "pptc: {}: {}\n",
                    shown(file),
                    escaped_lines(&error.to_string())
                ));
            }
        };
        if self.args.check {
            return Ok(());
        }
        let beside = file.parent().unwrap_or(Path::new(""));
        let folder = self.args.output.as_deref().unwrap_or(beside);
        self.claim(file, folder, &outputs)?;
        let paths = ppt_codegen::write_outputs(folder, &outputs)
            .map_err(|error| format!("pptc: {}\n", escaped_lines(&error.to_string())))?;
        self.rules += &ppt_codegen::depfile(&paths, file);
        Ok(())
    }

    /// Refuses an output that would replace a frame file or another file's output.
    fn claim(
        &mut self,
        file: &Path,
        folder: &Path,
        outputs: &[GeneratedFile],
    ) -> Result<(), String> {
        let source = absolute(file);
        for output in outputs {
            let path = folder.join(&output.name);
            let place = absolute(folder).join(&output.name);
            if place == source {
                let file = shown(file);
                return Err(format!(
                    "pptc: {file} would be overwritten by the generated file; rename it to {}\n",
                    shown(&Path::new(&output.name).with_extension("frame"))
                ));
            }
            let first = self.sources.entry(place).or_insert_with(|| file.to_owned());
            if absolute(first) != source {
                return Err(format!(
                    "pptc: {} and {} would both generate {}; rename one of them, or write to \
                     different folders\n",
                    shown(first),
                    shown(file),
                    shown(&path)
                ));
            }
        }
        Ok(())
    }
}

/// The absolute path, with links resolved as far as it exists.
fn absolute(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let with_links = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    fs::canonicalize(path).unwrap_or_else(|_| with_links())
}

fn print(frames: &Compiled, what: Print, gap: bool) -> io::Result<()> {
    match what {
        Print::Schema => stdout::plain(&format!("{}\n", frames.schema.to_json())),
        Print::Layout => {
            let gap = if gap { "\n" } else { "" };
            stdout::styled(&format!("{gap}{}", ppt_codegen::draw(&frames.schema, true)))
        }
    }
}
