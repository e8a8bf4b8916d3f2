//! Compiles the bytes of a file into a schema or diagnostics.

use std::fmt::{self, Debug, Display};
use std::path::Path;

use crate::check::{Checked, Declarations, check, check_edges};
use crate::diagnostic::{Diagnostic, DiagnosticSink, SourceRange};
use crate::edge::Edge;
use crate::language::Language;
use crate::mistake::{BufferMistake, FileMistake, NameKind, NameMistake, Severity};
use crate::parse::{self, parse};
use crate::render::render;
use crate::schema::{MAX_JSON_BYTES, Schema};
use crate::text::DecodedText;

/// Most bytes of a frame file. No useful file is this large, and pptc can check any content of this
/// size quickly.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// The result of compiling a frame file.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The checked schema, fields in declared order and placed.
    pub schema: Schema,
    /// The languages of the file's `emit` lines, in order, each once. Empty without such a line.
    pub emit: Vec<Language>,
    /// The package of `option package "…";`, for languages that have packages.
    pub package: Option<String>,
    /// Warnings and hints.
    pub warnings: Vec<Diagnostic>,
    /// The languages in which the names are free.
    languages: Vec<Language>,
    file: SourceText,
    places: Declarations,
}

/// A declaration of a frame file, by its index in the lists of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// The buffer.
    Buffer,
    /// An enum.
    Enum(usize),
    /// A value of an enum.
    Value(usize, usize),
    /// A frame.
    Frame(usize),
    /// A field of a frame.
    Field(usize, usize),
    /// A counter or a histogram.
    Metric(usize),
}

/// A frame file with errors.
///
/// `Display` and `Debug` both show the plain text of the diagnostics, so that the `unwrap()` of a
/// build script reads well.
#[derive(Clone)]
pub struct CompileFailure {
    /// All diagnostics, warnings included, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    file: SourceText,
}

/// The source text and its name, for rendering.
#[derive(Debug, Clone)]
struct SourceText {
    name: String,
    text: String,
}

/// Compiles a frame file. `file_name` appears in diagnostics. Its stem names the buffer, unless the
/// file does. Names must be free in the languages of the file's `emit` lines, or else in C.
///
/// # Errors
/// All mistakes in the file that one run can find.
pub fn compile(source: &[u8], file_name: &str) -> Result<Compiled, CompileFailure> {
    compile_for(source, file_name, &[])
}

/// Compiles a frame file like [`compile`], but for `languages` instead of those of the file, unless
/// `languages` is empty.
///
/// # Errors
/// All mistakes in the file that one run can find.
pub fn compile_for(
    source: &[u8],
    file_name: &str,
    languages: &[Language],
) -> Result<Compiled, CompileFailure> {
    let mut sink = DiagnosticSink::default();
    let text = decode(source, &mut sink);
    let checked = if sink.has_errors() {
        None
    } else {
        let text = DecodedText::new(&text, &mut sink);
        let file = parse(&text, &mut sink);
        check(&file, &stem(file_name), languages, &mut sink)
    };
    let checked = checked.filter(|checked| fits(&checked.schema, &mut sink));
    let has_errors = sink.has_errors();
    let diagnostics = sink.finish();
    let file = SourceText { name: file_name.to_owned(), text };
    match checked {
        Some(Checked { schema, emit, package, languages, places }) if !has_errors => {
            Ok(Compiled { schema, emit, package, warnings: diagnostics, languages, file, places })
        }
        _ => Err(CompileFailure { diagnostics, file }),
    }
}

/// Parses a file that contains only edge lines and comments. These edges replace those of frame
/// files.
///
/// # Errors
/// All mistakes in the file that one run can find.
pub fn parse_edges(source: &[u8], file_name: &str) -> Result<Vec<Edge>, CompileFailure> {
    let mut sink = DiagnosticSink::default();
    let text = decode(source, &mut sink);
    let mut edges = Vec::new();
    if !sink.has_errors() {
        let text = DecodedText::new(&text, &mut sink);
        let file = parse::parse_edges(&text, &mut sink);
        edges = check_edges(&file, &mut sink);
    }
    if sink.has_errors() {
        Err(CompileFailure::new(sink.finish(), file_name, text))
    } else {
        Ok(edges)
    }
}

/// The text without a byte order mark. Invalid text is reported, and then the rest is ignored.
pub(crate) fn decode(source: &[u8], sink: &mut DiagnosticSink) -> String {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    if source.len() > MAX_SOURCE_BYTES {
        let mistake = FileMistake::SourceTooLong { most: MAX_SOURCE_BYTES };
        sink.report(0..0, mistake);
        // The first line helps to identify the file.
        let head = &source[..source.len().min(80)];
        return String::from_utf8_lossy(head).lines().next().unwrap_or_default().to_owned();
    }
    let text = String::from_utf8_lossy(source).into_owned();
    if let Err(error) = std::str::from_utf8(source) {
        // Up to here both texts are the same.
        let at = error.valid_up_to();
        let mistake = FileMistake::NotUtf8 { byte: source[at] };
        sink.report(at..at + char::REPLACEMENT_CHARACTER.len_utf8(), mistake);
    } else if let Some(at) = text.find('\0') {
        sink.report(at..at + 1, FileMistake::Nul);
    }
    text
}

fn stem(file_name: &str) -> String {
    Path::new(file_name)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Checks that readers would accept the schema.
fn fits(schema: &Schema, sink: &mut DiagnosticSink) -> bool {
    let bytes = schema.to_json().len();
    if bytes > MAX_JSON_BYTES {
        sink.report(0..0, FileMistake::SchemaTooLong { bytes, most: MAX_JSON_BYTES });
    }
    bytes <= MAX_JSON_BYTES
}

impl Compiled {
    /// The warnings and hints as text; empty if there are none.
    pub fn render_warnings(&self, color: bool) -> String {
        render(&self.warnings, &self.file.name, &self.file.text, color)
    }

    /// Whether the names are also free in `language`.
    ///
    /// # Errors
    /// The names that are not free.
    pub fn names_are_free_in(&self, language: Language) -> Result<(), CompileFailure> {
        if self.languages.contains(&language) {
            return Ok(());
        }
        compile_for(self.file.text.as_bytes(), &self.file.name, &[language]).map(|_| ())
    }

    /// Returns the failure of an output in `language`, which uses the names of `declared` itself.
    pub fn taken(&self, declared: &[Declared], language: Language) -> CompileFailure {
        let mut sink = DiagnosticSink::default();
        for &it in declared {
            let (kind, name, place) = self.declaration(it);
            let language = language.word();
            let mistake = NameMistake::TakenName { kind, name, language };
            match place {
                Some(place) => sink.report(place, mistake),
                None => {
                    let why = mistake.wording().message;
                    sink.report(0..0, BufferMistake::StemIsNotAllowed { why });
                }
            }
        }
        CompileFailure { diagnostics: sink.finish(), file: self.file.clone() }
    }

    /// Returns the kind, the name and the span of a declaration. There is no span if the buffer is
    /// named after the file.
    fn declaration(&self, declared: Declared) -> (NameKind, String, Option<SourceRange>) {
        let Schema { buffer, enums, frames, .. } = &self.schema;
        let at = &self.places;
        let (kind, name, place) = match declared {
            Declared::Buffer => return (NameKind::Buffer, buffer.clone(), at.buffer.clone()),
            Declared::Metric(i) => {
                let metric = self.schema.metrics().swap_remove(i);
                let histogram = metric.shape.is_histogram();
                let kind = if histogram { NameKind::Histogram } else { NameKind::Counter };
                return (kind, metric.name, Some(at.metrics[i].clone()));
            }
            Declared::Enum(i) => (NameKind::Enum, &enums[i].name, &at.enums[i].0),
            Declared::Value(i, v) => (NameKind::Value, &enums[i].values[v].0, &at.enums[i].1[v]),
            Declared::Frame(i) => (NameKind::Frame, &frames[i].name, &at.frames[i].0),
            Declared::Field(i, f) => {
                (NameKind::Field, &frames[i].fields[f].name, &at.frames[i].1[f])
            }
        };
        (kind, name.clone(), Some(place.clone()))
    }
}

impl CompileFailure {
    /// The mistakes in a file with this decoded text.
    pub(crate) fn new(
        diagnostics: Vec<Diagnostic>,
        file_name: &str,
        text: String,
    ) -> CompileFailure {
        CompileFailure { diagnostics, file: SourceText { name: file_name.to_owned(), text } }
    }

    /// The diagnostics as text.
    pub fn render(&self, color: bool) -> String {
        render(&self.diagnostics, &self.file.name, &self.file.text, color)
    }

    /// The number of errors among the diagnostics.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|one| one.severity == Severity::Error).count()
    }
}

impl Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl Debug for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for CompileFailure {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::Policy;

    #[test]
    fn what_the_file_says_beside_the_schema() {
        let compiled = compile(b"emit Rust, C++\nemit C; frame f { int a; }", "a/b.c.frame");
        let failure = compiled.unwrap_err();
        assert!(failure.to_string().contains("add `buffer b_c;`"), "{failure}");

        let compiled = compile(b"emit Rust, C++\nemit C; frame f { int a; }", "a/b.frame").unwrap();
        assert_eq!(compiled.emit, [Language::Rust, Language::Cpp, Language::C]);
        assert_eq!(compiled.schema.buffer, "b");
        assert_eq!(compiled.render_warnings(false), "");
        assert_eq!(compile(b"frame f { int a; }", "b").unwrap().emit, []);
    }

    #[test]
    fn files_of_edges() {
        let text =
            b"\xef\xbb\xbf// slower today\nedge a -> b.c within 1.5s nearest;;\n/* */ edge c -> c;";
        let edge = |from: &str, to: &str, within, policy| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            within,
            policy,
        };
        let edges = parse_edges(text, "slow.edges").unwrap();
        let first = edge("a", "b.c", Some(1_500_000_000), Policy::Nearest);
        assert_eq!(edges, [first, edge("c", "c", None, Policy::All)]);
        assert_eq!(parse_edges(b"", "none").unwrap(), []);

        let failure =
            parse_edges(b"edge a -> b;\nframe f { int x; }\nedge a -> b fifo;\nedge c", "x");
        let text = failure.unwrap_err().to_string();
        for line in [
            "error[syntax]: expected an edge, found `frame`\n --> x:2:1",
            "error[edge-twice]: the edge `a -> b` says two things\n --> x:3:1",
            "error[syntax]: expected `->`, found the end of the file\n --> x:4:7",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(parse_edges(b"edge a -> b;\0", "x").is_err());
    }

    #[test]
    fn the_hash_does_not_change_with_what_it_leaves_out() {
        let hash = |source: &str| compile(source.as_bytes(), "b.frame").unwrap().schema.hash();
        let plain = hash("frame f { int a; }");
        assert_eq!(
            hash("buffer b 4; option tag x \"y\"; /// d\nframe f @group(g) { int a; }"),
            plain
        );
        assert_ne!(hash("frame f { int a @unit(\"B\"); }"), plain);
        assert_ne!(hash("frame f { u32 a; }"), plain);
    }
}
