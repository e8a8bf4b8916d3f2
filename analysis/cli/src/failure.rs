//! Errors of commands.

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
use ppt_view_server::ServeError;

use crate::{message, panicked, question_settings, scratch, signals};
use ppt_text::exit::ExitStatus;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The input cannot become a capture.
    #[error("{0}: {1}")]
    Import(String, #[source] ImportError),
    /// A frame file with errors: its name, and the errors.
    #[error("{1}{0}: the frame file has errors")]
    FrameFile(String, String),
    #[error("{0}: {1}")]
    Capture(String, #[source] CaptureError),
    /// A growing capture could not be read.
    #[error("{0}: {1}")]
    Watch(String, String),
    /// An error in a model, a formula or a gate. `usage`: the command line is wrong.
    #[error("{text}")]
    Model { code: &'static str, text: String, usage: bool },
    /// Nothing can be compared, so no change is shown and none is ruled out.
    #[error("{0}")]
    Unjudged(String),
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
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

impl Failure {
    /// The output `name` could not be written.
    pub(crate) fn writing(name: &str) -> impl Fn(io::Error) -> Failure + '_ {
        |error| Failure::Write(name.to_owned(), error)
    }

    /// A spreadsheet needs CSV, but another format was chosen.
    pub(crate) fn not_for_spreadsheets() -> Failure {
        let text = "--for-spreadsheet writes CSV; leave --format out, or choose csv";
        Failure::model("not-for-spreadsheets", true, text.to_owned())
    }

    /// The work panicked.
    pub(crate) fn of_panic() -> Failure {
        let message = panicked::first().unwrap_or_else(|| "a panic".to_owned());
        if message.contains("offset overflow") {
            Failure::TextTooLong
        } else {
            Failure::Bug(message)
        }
    }

    fn model(code: &'static str, usage: bool, text: String) -> Failure {
        Failure::Model { code, text, usage }
    }

    /// A formula cannot be parsed.
    pub(crate) fn formula(error: &FormulaError, text: &str) -> Failure {
        Failure::model("formula", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A formula cannot be fitted.
    pub(crate) fn fit(error: &FitError, text: &str) -> Failure {
        let drawn = error.span().map(|span| format!("\n{}", carets(text, &span)));
        let usage = matches!(error, FitError::NoColumn { .. } | FitError::Level { .. });
        Failure::model("no-fit", usage, format!("{error}{}", drawn.unwrap_or_default()))
    }

    /// A component of a model cannot be fitted.
    pub(crate) fn component(name: &str, error: &FitError, text: &str) -> Failure {
        let usage = matches!(error, FitError::NoColumn { .. });
        Failure::model("no-fit", usage, format!("{name}: {text}: {error}"))
    }

    /// A file is not a model.
    pub(crate) fn plan(path: &Path, error: &PlanError) -> Failure {
        let drawn = match error {
            PlanError::Formula { text, error, .. } => format!("\n{}", error.drawn(text)),
            _ => String::new(),
        };
        Failure::model("model-file", true, format!("{}: {error}{drawn}", path.display()))
    }

    /// Rows do not form a table of numbers.
    pub(crate) fn table(error: TableError) -> Failure {
        Failure::model("no-fit", true, error.to_string())
    }

    /// A point cannot be predicted.
    pub(crate) fn predict(error: &PredictError) -> Failure {
        Failure::model("no-prediction", true, error.to_string())
    }

    /// A run cannot be replayed credibly.
    pub(crate) fn no_retiming(error: RetimeRefusal) -> Failure {
        Failure::model("no-retiming", false, error.to_string())
    }

    /// The replayed run lacks a requested interval or metric.
    pub(crate) fn bad_whatif_question(error: impl std::fmt::Display) -> Failure {
        Failure::model("no-retiming", true, error.to_string())
    }

    /// An experiment with a running program shows nothing.
    pub(crate) fn no_experiment(refusal: &ExperimentRefusal) -> Failure {
        Failure::model("no-experiment", false, refusal.to_string())
    }

    /// Components cannot be added up to a resource.
    pub(crate) fn resource(error: &ResourceError) -> Failure {
        Failure::model("no-prediction", true, error.to_string())
    }

    /// A gate cannot be parsed.
    pub(crate) fn gate(error: &GateError, text: &str) -> Failure {
        Failure::model("gate", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A gate names a field that was not compared.
    pub(crate) fn no_field(error: &GateError) -> Failure {
        Failure::model("gate", true, error.to_string())
    }

    /// `--field` names a field that no capture has.
    pub(crate) fn no_such_field(name: &str, there: &[String]) -> Failure {
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        Failure::model("gate", true, GateMistake::no_field(name, &there).to_string())
    }

    /// Both sides have common fields, but none of them can be compared.
    pub(crate) fn unjudged(text: String) -> Failure {
        Failure::Unjudged(text)
    }

    /// A field cannot be compared.
    pub(crate) fn compare(field: &str, error: &CompareError) -> Failure {
        Failure::model("no-comparison", false, format!("{field}: {error}"))
    }

    /// A baseline cannot be read.
    pub(crate) fn baseline(path: &Path, error: &CompareError) -> Failure {
        Failure::model("no-comparison", false, format!("{}: {error}", path.display()))
    }

    /// The code for `ppt explain`.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::Query(error) => error.code(),
            Failure::Output(error) => error.code(),
            Failure::Delivery(error) => error.code(),
            Failure::Report(error) => error.code(),
            Failure::Serve(error) => error.code(),
            Failure::Import(_, error) => error.code(),
            Failure::FrameFile(..) => "import-frames",
            Failure::Capture(_, error) => error.code(),
            Failure::Watch(..) => "cannot-read",
            Failure::Model { code, .. } => code,
            Failure::Unjudged(_) => "not-judged",
            Failure::Usage(_) => "usage",
            Failure::Read(..) => "cannot-read",
            Failure::Write(..) => "cannot-write",
            Failure::System(..) => "system",
            Failure::Bug(_) => "bug",
            Failure::TextTooLong => "text-too-long",
        }
    }

    /// Prints the error, with advice for the command line.
    pub(crate) fn print(&self) {
        let code = self.code();
        match self {
            Failure::Query(error) | Failure::Report(ReportError::Query(error)) => match error {
                QueryError::Memory(_) => {
                    message::error(code, question_settings::memory(None).exceeded());
                }
                QueryError::Spill(_) => {
                    let folder = scratch::temporary_folder();
                    let hint =
                        "free some room, set TMPDIR to a folder with more, or allow more --memory";
                    message::error(code, format_args!("{}: {error}: {hint}", folder.display()));
                }
                QueryError::Failed(_) => match panicked::first() {
                    Some(_) => Failure::of_panic().print(),
                    None => message::error(code, self),
                },
                _ => message::error(code, self),
            },
            _ => message::error(code, self),
        }
    }

    fn is_usage(&self) -> bool {
        match self {
            Failure::Usage(_) => true,
            Failure::Model { usage, .. } => *usage,
            Failure::Query(error) => error.is_usage(),
            Failure::Report(error) => error.is_usage(),
            Failure::Serve(error) => error.is_usage(),
            _ => false,
        }
    }

    /// Prints the error and returns the exit status.
    pub(crate) fn report(&self) -> ExitStatus {
        match self {
            // The reader closed the pipe: this is not an error.
            Failure::Write(_, error) | Failure::Query(QueryError::Output(error))
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return ExitStatus::DONE;
            }
            Failure::Query(QueryError::Cancelled)
            | Failure::Report(ReportError::Query(QueryError::Cancelled)) => {
                return signals::interrupted();
            }
            Failure::Usage(text) => message::note(text),
            other => other.print(),
        }
        match self {
            Failure::Unjudged(_) => ExitStatus::NOT_JUDGED,
            other => ExitStatus::of_failure(other.is_usage()),
        }
    }
}
