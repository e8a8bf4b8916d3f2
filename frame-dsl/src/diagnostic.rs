//! Diagnostics: messages about parts of a frame file.

use std::ops::Range;

use crate::language::Language;
use crate::mistake::{FileMistake, Mistake, Severity};

/// A range of bytes of the source.
pub type SourceRange = Range<usize>;

/// One message about one span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name of the rule, such as `unknown-type`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The mistake, in one line.
    pub message: String,
    /// The span in the file.
    pub span: SourceRange,
    /// The text under the carets.
    pub label: String,
    /// Advice on what to do, if there is any.
    pub help: Option<String>,
    /// Other relevant spans.
    pub notes: Vec<DiagnosticNote>,
}

/// Another relevant span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosticNote {
    /// The span in the file.
    pub span: SourceRange,
    /// The text under the dashes.
    pub label: String,
}

/// Collects the findings of the stages.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticSink {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    unsaid: usize,
    /// Codes of warnings that the file suppresses.
    allowed: Vec<&'static str>,
    /// The languages that are generated: a name must be free in each of them.
    languages: Vec<Language>,
}

impl DiagnosticSink {
    /// Limit of stored diagnostics: more are not useful, and a hostile file has any number of
    /// mistakes.
    const MAX_STORED: usize = 100;

    /// Suppresses warnings and hints with this code from now on.
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

    /// Records a mistake.
    pub fn report(&mut self, span: SourceRange, mistake: impl Into<Mistake>) {
        self.report_with(span, mistake, []);
    }

    /// Records a mistake that also concerns other spans.
    pub fn report_with(
        &mut self,
        span: SourceRange,
        mistake: impl Into<Mistake>,
        notes: impl IntoIterator<Item = DiagnosticNote>,
    ) {
        let mistake = mistake.into();
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

    /// Counts an error without a message.
    pub fn pass_over(&mut self) {
        self.errors += 1;
        self.unsaid += 1;
    }

    /// Whether further mistakes are only counted, so that suggestions are not needed.
    pub fn is_full(&self) -> bool {
        self.diagnostics.len() >= Self::MAX_STORED
    }

    /// Whether an error has been recorded.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All diagnostics, in the order of the file.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        if self.unsaid > 0 {
            let place = self.diagnostics.last().map_or(0..0, |last| last.span.clone());
            let (unsaid, errors) = (self.unsaid, self.errors > 0);
            self.diagnostics.truncate(Self::MAX_STORED);
            self.unsaid = 0;
            let mistake = Mistake::from(FileMistake::Unsaid { count: unsaid, errors });
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
