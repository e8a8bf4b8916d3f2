//! Renders diagnostics as text for people: the line, carets below the span, and advice.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use ppt_text::{escaped, masked_in_place};

use crate::diagnostic::{Diagnostic, DiagnosticNote, SourceRange};
use crate::mistake::Severity;

/// Most bytes of source shown with one diagnostic, because lines may have any length.
const MAX_SHOWN: usize = 16 << 10;
/// Bytes shown before and after a span in a line that is too long to be shown.
const AROUND: usize = 60;

/// The text for a terminal: each diagnostic with its line and carets below the span. `color` adds
/// ANSI escapes.
pub fn render(diagnostics: &[Diagnostic], file_name: &str, source: &str, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let file_name = escaped(file_name);
    // A carriage return at the end of a line is not shown; the offsets stay the same. The renderer
    // draws ASCII controls.
    let source = masked_in_place(&source.replace("\r\n", " \n"), |char| char.is_ascii());
    let lines = LineStarts::from_source(&source);
    let texts = diagnostics.iter().map(|diagnostic| {
        let picture = Picture { diagnostic, file_name: &file_name, lines: &lines };
        renderer.render(&[picture.group()]).replace(" \n", "\n") + "\n"
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// One diagnostic with its source.
struct Picture<'a> {
    diagnostic: &'a Diagnostic,
    file_name: &'a str,
    lines: &'a LineStarts<'a>,
}

type SourceMark<'a> = (AnnotationKind, &'a SourceRange, &'a str);

impl<'a> Picture<'a> {
    fn group(&self) -> Group<'a> {
        let Diagnostic { severity, code, message, span, label, help, notes } = self.diagnostic;
        let level = match severity {
            Severity::Hint => Level::NOTE.with_name("hint"),
            Severity::Warning => Level::WARNING,
            Severity::Error => Level::ERROR,
        };
        let title = level.primary_title(message.as_str()).id(*code);
        let primary: SourceMark<'a> = (AnnotationKind::Primary, span, label);
        let note =
            |note: &'a DiagnosticNote| (AnnotationKind::Context, &note.span, note.label.as_str());
        let (near, far): (Vec<&DiagnosticNote>, Vec<&DiagnosticNote>) =
            notes.iter().partition(|note| self.fits(&[primary, (primary.0, &note.span, "")]));
        let mut group = if self.fits(&[primary]) {
            let marks: Vec<SourceMark<'a>> = near.into_iter().map(note).chain([primary]).collect();
            title.element(self.snippet(&marks))
        } else {
            let (origin, snippet) = self.excerpt();
            title.element(origin).element(snippet)
        };
        for mark in far.into_iter().map(note).filter(|mark| self.fits(&[*mark])) {
            group = group.element(self.snippet(&[mark]));
        }
        match help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    /// Whether the lines from the first to the last of these spans can be shown together. Only
    /// these lines are passed on, so that a hundred diagnostics do not scan a long file a hundred
    /// times.
    fn fits(&self, marks: &[SourceMark<'_>]) -> bool {
        self.window(marks).0.len() <= MAX_SHOWN
    }

    /// The complete lines of these spans, and the number of the first line.
    fn window(&self, marks: &[SourceMark<'_>]) -> (SourceRange, usize) {
        let first = marks.iter().map(|mark| self.lines.number(mark.1.start)).min().unwrap_or(0);
        let last = marks.iter().map(|mark| self.lines.number(mark.1.end)).max().unwrap_or(0);
        (self.lines.start(first)..self.lines.end(last), first)
    }

    fn snippet(&self, marks: &[SourceMark<'a>]) -> Snippet<'a, Annotation<'a>> {
        let (window, first) = self.window(marks);
        Snippet::source(&self.lines.source[window.clone()])
            .path(self.file_name)
            .line_start(first + 1)
            .annotations(marks.iter().map(|mark| annotation(*mark, &window)))
    }

    /// The text around the span, if the line is too long to be shown.
    fn excerpt(&self) -> (Origin<'a>, Snippet<'a, Annotation<'a>>) {
        let Diagnostic { span, label, .. } = self.diagnostic;
        let source = self.lines.source;
        let line = self.lines.number(span.start);
        let (start, end) = (self.lines.start(line), self.lines.end(line));
        let from = char_start(source, span.start.saturating_sub(AROUND).max(start));
        let to = char_start(source, span.start.saturating_add(AROUND).min(end));
        let window = from..to.max(from);
        let column = source[start..span.start.clamp(start, end)].chars().count() + 1;
        let origin = Origin::path(self.file_name).line(line + 1).char_column(column);
        let mark = annotation((AnnotationKind::Primary, span, label), &window);
        (origin, Snippet::source(&source[window]).line_start(line + 1).annotation(mark))
    }
}

fn annotation<'a>((kind, span, label): SourceMark<'a>, window: &SourceRange) -> Annotation<'a> {
    let start = span.start.clamp(window.start, window.end) - window.start;
    let end = span.end.clamp(window.start, window.end) - window.start;
    kind.span(start..end).label(label)
}

/// The start of the character that contains the byte `at`.
fn char_start(source: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

/// The offsets of the lines of a text.
struct LineStarts<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    fn from_source(source: &'a str) -> LineStarts<'a> {
        let after = source.match_indices('\n').map(|(at, _)| at + 1);
        LineStarts { source, starts: std::iter::once(0).chain(after).collect() }
    }

    /// Number of the line with that byte, from 0.
    fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    fn start(&self, number: usize) -> usize {
        self.starts[number]
    }

    fn end(&self, number: usize) -> usize {
        self.starts.get(number + 1).map_or(self.source.len(), |next| next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(span: SourceRange, notes: Vec<DiagnosticNote>) -> Diagnostic {
        Diagnostic {
            code: "code",
            severity: Severity::Error,
            message: "message".to_owned(),
            span,
            label: "here".to_owned(),
            help: Some("help".to_owned()),
            notes,
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let source = format!("short\n{}x{}", "ä".repeat(50_000), "ö".repeat(50_000));
        let at = source.find('x').unwrap();
        let text = render(&[diagnostic(at..at + 1, Vec::new())], "f", &source, false);
        assert!(text.contains("f:2:50001\n"), "{text}");
        assert!(text.len() < 1000, "{text}");
    }

    #[test]
    fn far_notes_stand_apart() {
        let source = format!("first\n{}last", "line\n".repeat(10_000));
        let note = DiagnosticNote { span: 0..5, label: "there".to_owned() };
        let at = source.len() - 4;
        let text = render(&[diagnostic(at..at + 4, vec![note])], "f", &source, false);
        assert!(
            text.contains("there") && text.contains("f:1:1") && text.contains("f:10002:1"),
            "{text}"
        );
    }

    #[test]
    fn places_outside_the_source_do_no_harm() {
        for (start, end) in [(0, 0), (1, 1), (0, 100), (100, 200)] {
            let text = render(&[diagnostic(start..end, Vec::new())], "f\n", "x", true);
            assert!(text.contains("message"));
        }
        assert!(render(&[diagnostic(0..0, Vec::new())], "f", "", false).contains("message"));
    }
}
