//! Why a command failed.

use std::io;
use std::path::Path;

use ppt_delivery::DeliveryError;
use ppt_import::ImportError;
use ppt_live::CaptureError;
use ppt_models::{
    CompareError, FitError, FormulaError, GateError, GateMistake, PlanError, PredictError,
    ResourceError, TableError, carets,
};
use ppt_output::OutputError;
use ppt_query::QueryError;
use ppt_query::whatif::ExperimentRefusal;
use ppt_query::whatif::retime::RetimeRefusal;
use ppt_report::ReportError;
use ppt_text::exit::ExitStatus;
use ppt_view_server::ServeError;

use crate::{panicked, question_settings, scratch};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The engine has no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The output cannot be made.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The files of a growing capture cannot be delivered.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// The page cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The view cannot be shown.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The input cannot become a capture.
    #[error("{0}: {1}")]
    Import(String, #[source] ImportError),
    /// A frame file with errors: its name, and the errors.
    #[error("{1}{0}: the frame file has errors")]
    FrameFile(String, String),
    /// A file is no capture.
    #[error("{0}: {1}")]
    Capture(String, #[source] CaptureError),
    /// A growing capture could not be read.
    #[error("{0}: {1}")]
    Watch(String, String),
    /// An error in a model, a formula or a gate.
    #[error("{text}")]
    Model {
        /// Its code for `ppt explain`.
        code: &'static str,
        /// What is wrong.
        text: String,
        /// Whether the command line is.
        usage: bool,
    },
    /// Nothing can be compared, so no change is shown and none is ruled out.
    #[error("{0}")]
    Unjudged(String),
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    /// A file could not be written.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    /// A system call failed.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// A panic: message and place.
    #[error("a bug ended the question: {0}; please report it, with the command line")]
    Bug(String),
    /// A column of a batch would take more bytes than its offsets can count.
    #[error(
        "a step of the question would hold more than 2 GiB of text at once, more than the engine can: \
         make the texts shorter, or ask for fewer rows"
    )]
    TextTooLong,
}

impl AnswerError {
    /// The output `name` could not be written.
    pub(crate) fn writing(name: &str) -> impl Fn(io::Error) -> AnswerError + '_ {
        |error| AnswerError::Write(name.to_owned(), error)
    }

    /// A spreadsheet needs CSV, but another format was chosen.
    pub(crate) fn not_for_spreadsheets() -> AnswerError {
        let text = "--for-spreadsheet writes CSV; leave --format out, or choose csv";
        AnswerError::model("not-for-spreadsheets", true, text.to_owned())
    }

    /// The work panicked.
    pub(crate) fn of_panic() -> AnswerError {
        let message = panicked::first().unwrap_or_else(|| "a panic".to_owned());
        if message.contains("offset overflow") {
            AnswerError::TextTooLong
        } else {
            AnswerError::Bug(message)
        }
    }

    fn model(code: &'static str, usage: bool, text: String) -> AnswerError {
        AnswerError::Model { code, text, usage }
    }

    /// A formula cannot be parsed.
    pub(crate) fn formula(error: &FormulaError, text: &str) -> AnswerError {
        AnswerError::model("formula", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A formula cannot be fitted.
    pub(crate) fn fit(error: &FitError, text: &str) -> AnswerError {
        let drawn = error.span().map(|span| format!("\n{}", carets(text, &span)));
        let usage = matches!(error, FitError::NoColumn { .. } | FitError::Level { .. });
        AnswerError::model("no-fit", usage, format!("{error}{}", drawn.unwrap_or_default()))
    }

    /// A component of a model cannot be fitted.
    pub(crate) fn component(name: &str, error: &FitError, text: &str) -> AnswerError {
        let usage = matches!(error, FitError::NoColumn { .. });
        AnswerError::model("no-fit", usage, format!("{name}: {text}: {error}"))
    }

    /// A file is not a model.
    pub(crate) fn plan(path: &Path, error: &PlanError) -> AnswerError {
        let drawn = match error {
            PlanError::Formula { text, error, .. } => format!("\n{}", error.drawn(text)),
            _ => String::new(),
        };
        AnswerError::model("model-file", true, format!("{}: {error}{drawn}", path.display()))
    }

    /// Rows do not form a table of numbers.
    pub(crate) fn table(error: TableError) -> AnswerError {
        AnswerError::model("no-fit", true, error.to_string())
    }

    /// A point cannot be predicted.
    pub(crate) fn predict(error: &PredictError) -> AnswerError {
        AnswerError::model("no-prediction", true, error.to_string())
    }

    /// A run cannot be replayed credibly.
    pub(crate) fn no_retiming(error: RetimeRefusal) -> AnswerError {
        AnswerError::model("no-retiming", false, error.to_string())
    }

    /// The replayed run lacks a requested interval or metric.
    pub(crate) fn bad_whatif_question(error: impl std::fmt::Display) -> AnswerError {
        AnswerError::model("no-retiming", true, error.to_string())
    }

    /// An experiment with a running program shows nothing.
    pub(crate) fn no_experiment(refusal: &ExperimentRefusal) -> AnswerError {
        AnswerError::model("no-experiment", false, refusal.to_string())
    }

    /// Components cannot be added up to a resource.
    pub(crate) fn resource(error: &ResourceError) -> AnswerError {
        AnswerError::model("no-prediction", true, error.to_string())
    }

    /// A gate cannot be parsed.
    pub(crate) fn gate(error: &GateError, text: &str) -> AnswerError {
        AnswerError::model("gate", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A gate names a field that was not compared.
    pub(crate) fn no_field(error: &GateError) -> AnswerError {
        AnswerError::model("gate", true, error.to_string())
    }

    /// `--field` names a field that no capture has.
    pub(crate) fn no_such_field(name: &str, there: &[String]) -> AnswerError {
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        AnswerError::model("gate", true, GateMistake::no_field(name, &there).to_string())
    }

    /// Both sides have common fields, but none of them can be compared.
    pub(crate) fn unjudged(text: String) -> AnswerError {
        AnswerError::Unjudged(text)
    }

    /// A field cannot be compared.
    pub(crate) fn compare(field: &str, error: &CompareError) -> AnswerError {
        AnswerError::model("no-comparison", false, format!("{field}: {error}"))
    }

    /// A baseline cannot be read.
    pub(crate) fn baseline(path: &Path, error: &CompareError) -> AnswerError {
        AnswerError::model("no-comparison", false, format!("{}: {error}", path.display()))
    }

    /// The code for `ppt explain`.
    pub fn code(&self) -> &'static str {
        match self {
            AnswerError::Query(error) => error.code(),
            AnswerError::Output(error) => error.code(),
            AnswerError::Delivery(error) => error.code(),
            AnswerError::Report(error) => error.code(),
            AnswerError::Serve(error) => error.code(),
            AnswerError::Import(_, error) => error.code(),
            AnswerError::FrameFile(..) => "import-frames",
            AnswerError::Capture(_, error) => error.code(),
            AnswerError::Watch(..) => "cannot-read",
            AnswerError::Model { code, .. } => code,
            AnswerError::Unjudged(_) => "not-judged",
            AnswerError::Usage(_) => "usage",
            AnswerError::Read(..) => "cannot-read",
            AnswerError::Write(..) => "cannot-write",
            AnswerError::System(..) => "system",
            AnswerError::Bug(_) => "bug",
            AnswerError::TextTooLong => "text-too-long",
        }
    }

    /// The error, with advice for the command line.
    pub fn message(&self) -> String {
        let (AnswerError::Query(error) | AnswerError::Report(ReportError::Query(error))) = self
        else {
            return self.to_string();
        };
        match error {
            QueryError::Memory(_) => question_settings::memory(None).exceeded(),
            QueryError::Spill(_) => format!(
                "{}: {error}: free some room, set TMPDIR to a folder with more, or allow more --memory",
                scratch::temporary_folder().display()
            ),
            QueryError::Failed(_) if panicked::first().is_some() => {
                AnswerError::of_panic().to_string()
            }
            _ => self.to_string(),
        }
    }

    /// The exit status.
    pub fn status(&self) -> ExitStatus {
        ExitStatus::of_failure(match self {
            AnswerError::Unjudged(_) => return ExitStatus::NOT_JUDGED,
            AnswerError::Usage(_) => true,
            AnswerError::Model { usage, .. } => *usage,
            AnswerError::Query(error) => error.is_usage(),
            AnswerError::Report(error) => error.is_usage(),
            AnswerError::Serve(error) => error.is_usage(),
            _ => false,
        })
    }

    /// Whether the reader of a pipe has closed it, which is no error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        match self {
            AnswerError::Write(_, error) | AnswerError::Query(QueryError::Output(error)) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }

    /// Whether a signal ended the question.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(
            self,
            AnswerError::Query(QueryError::Cancelled)
                | AnswerError::Report(ReportError::Query(QueryError::Cancelled))
        )
    }
}
