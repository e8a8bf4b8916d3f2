//! Diagnostics: a message about a place in a frame file.

use std::ops::Range;

use crate::language::Language;
use crate::mistake::{Mistake, Severity};

/// A range of bytes of the source.
pub type Span = Range<usize>;

/// One message about one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name of the rule, such as `unknown-type`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The mistake, in one line.
    pub message: String,
    /// The place in the file.
    pub span: Span,
    /// The text under the carets.
    pub label: String,
    /// Advice on what to do, if there is any.
    pub help: Option<String>,
    /// Other relevant places.
    pub notes: Vec<DiagnosticNote>,
}

/// Another relevant place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosticNote {
    /// The place in the file.
    pub span: Span,
    /// The text under the dashes.
    pub label: String,
}

/// Collects what the stages find.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticSink {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    unsaid: usize,
    /// Codes of warnings that the file does not want.
    allowed: Vec<&'static str>,
    /// The languages that are generated: a name must be free in each of them.
    languages: Vec<Language>,
}

impl DiagnosticSink {
    /// Nobody reads more, and a hostile file has no end of mistakes.
    const MOST: usize = 100;

    /// Warnings and hints of this code are passed over from now on.
    pub fn allow(&mut self, code: &'static str) {
        self.allowed.push(code);
    }

    /// From now on, names must be free in these languages.
    pub fn generate_for(&mut self, languages: Vec<Language>) {
        self.languages = languages;
    }

    /// The languages in which names must be free.
    pub fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// Takes down a mistake.
    pub fn report(&mut self, span: Span, mistake: Mistake) {
        self.report_with(span, mistake, []);
    }

    /// Takes down a mistake that concerns other places too.
    pub fn report_with(
        &mut self,
        span: Span,
        mistake: Mistake,
        notes: impl IntoIterator<Item = DiagnosticNote>,
    ) {
        let severity = mistake.severity();
        if severity != Severity::Error && self.allowed.contains(&mistake.code()) {
            return;
        }
        self.errors += usize::from(severity == Severity::Error);
        if self.is_full() {
            self.unsaid += 1;
            return;
        }
        let wording = mistake.wording();
        self.diagnostics.push(Diagnostic {
            code: mistake.code(),
            severity,
            message: wording.message,
            span,
            label: wording.label,
            help: wording.help,
            notes: notes.into_iter().collect(),
        });
    }

    /// Counts an error that is not worth finding words for.
    pub fn pass_over(&mut self) {
        self.errors += 1;
        self.unsaid += 1;
    }

    /// Whether further mistakes are only counted: no need to look for suggestions.
    pub fn is_full(&self) -> bool {
        self.diagnostics.len() >= Self::MOST
    }

    /// Whether anything so far is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Everything, in the order of the file.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        if self.unsaid > 0 {
            let place = self.diagnostics.last().map_or(0..0, |last| last.span.clone());
            let (unsaid, errors) = (self.unsaid, self.errors > 0);
            self.diagnostics.truncate(Self::MOST);
            self.unsaid = 0;
            let mistake = Mistake::Unsaid { count: unsaid, errors };
            let wording = mistake.wording();
            self.diagnostics.push(Diagnostic {
                code: mistake.code(),
                severity: mistake.severity(),
                message: wording.message,
                span: place,
                label: wording.label,
                help: wording.help,
                notes: Vec::new(),
            });
        }
        self.diagnostics
    }
}
