//! Why a command failed.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use ppt_delivery::DeliveryError;
use ppt_import::ImportError;
use ppt_live::CaptureError;
use ppt_models::{
    CompareError, FitError, FormulaError, GateError, GateMistake, PlanError, PredictError,
    ResourceError, TableError, carets,
};
use ppt_output::OutputError;
use ppt_query::QueryError;
use ppt_query::whatif::live::ExperimentRefusal;
use ppt_query::whatif::retime::RetimeRefusal;
use ppt_report::ReportError;
use ppt_view_server::ServeError;

use crate::{message, panicked, scratch, signals, terms};

/// What a comparison ends with that can neither show a change nor rule one out.
pub(crate) const NOT_JUDGED: u8 = 3;

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
    /// An input that cannot be a capture.
    #[error("{0}: {1}")]
    Import(String, #[source] ImportError),
    /// A frame file with errors: its name, and what is wrong.
    #[error("{1}{0}: the frame file has errors")]
    FrameFile(String, String),
    #[error("{0}: {1}")]
    Capture(String, #[source] CaptureError),
    /// A capture that was read while it was written.
    #[error("{0}: {1}")]
    Watch(String, String),
    /// A model, a formula, a gate: what is wrong with it, under which code, and whether it was
    /// asked wrongly.
    #[error("{text}")]
    Model { code: &'static str, text: String, usage: bool },
    /// Nothing can be compared, so no change is shown and none is ruled out.
    #[error("{0}")]
    Unjudged(String),
    /// The command line asks for what there is not.
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    #[error("could not {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// A panic: what it says, and where.
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
    /// An output that could not be written: `name` says which.
    pub(crate) fn writing(name: &str) -> impl Fn(io::Error) -> Failure + '_ {
        |error| Failure::Write(name.to_owned(), error)
    }

    /// Another format than CSV was chosen for a spreadsheet.
    pub(crate) fn not_for_spreadsheets() -> Failure {
        let text = "--for-spreadsheet writes CSV; leave --format out, or choose csv";
        Failure::model("not-for-spreadsheets", true, text.to_owned())
    }

    /// The failure of work that panicked.
    pub(crate) fn of_panic() -> Failure {
        let said = panicked::first().unwrap_or_else(|| "a panic".to_owned());
        if said.contains("offset overflow") { Failure::TextTooLong } else { Failure::Bug(said) }
    }

    fn model(code: &'static str, usage: bool, text: String) -> Failure {
        Failure::Model { code, text, usage }
    }

    /// A formula that cannot be read.
    pub(crate) fn formula(error: &FormulaError, text: &str) -> Failure {
        Failure::model("formula", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A formula that cannot be fitted.
    pub(crate) fn fit(error: &FitError, text: &str) -> Failure {
        let drawn = error.span().map(|span| format!("\n{}", carets(text, &span)));
        let usage = matches!(error, FitError::NoColumn { .. } | FitError::Level { .. });
        Failure::model("no-fit", usage, format!("{error}{}", drawn.unwrap_or_default()))
    }

    /// The same of a component of a model.
    pub(crate) fn component(name: &str, error: &FitError, text: &str) -> Failure {
        let usage = matches!(error, FitError::NoColumn { .. });
        Failure::model("no-fit", usage, format!("{name}: {text}: {error}"))
    }

    /// A file that is no model.
    pub(crate) fn plan(path: &Path, error: &PlanError) -> Failure {
        let drawn = match error {
            PlanError::Formula { text, error, .. } => format!("\n{}", error.drawn(text)),
            _ => String::new(),
        };
        Failure::model("model-file", true, format!("{}: {error}{drawn}", path.display()))
    }

    /// Numbers that are no table.
    pub(crate) fn table(error: TableError) -> Failure {
        Failure::model("no-fit", true, error.to_string())
    }

    /// A point of which nothing can be said.
    pub(crate) fn predict(error: &PredictError) -> Failure {
        Failure::model("no-prediction", true, error.to_string())
    }

    /// A run that is not timed again.
    pub(crate) fn refused(error: RetimeRefusal) -> Failure {
        Failure::model("no-retiming", false, error.to_string())
    }

    /// What the run that is timed again does not have.
    pub(crate) fn asked(error: impl std::fmt::Display) -> Failure {
        Failure::model("no-retiming", true, error.to_string())
    }

    /// An experiment with a running program that shows nothing.
    pub(crate) fn no_experiment(refusal: &ExperimentRefusal) -> Failure {
        Failure::model("no-experiment", false, refusal.to_string())
    }

    /// Components that are no resource.
    pub(crate) fn resource(error: &ResourceError) -> Failure {
        Failure::model("no-prediction", true, error.to_string())
    }

    /// A gate that cannot be read.
    pub(crate) fn gate(error: &GateError, text: &str) -> Failure {
        Failure::model("gate", true, format!("{error}\n{}", error.drawn(text)))
    }

    /// A gate of a field that was not compared.
    pub(crate) fn no_field(error: &GateError) -> Failure {
        Failure::model("gate", true, error.to_string())
    }

    /// A field of `--field` that no capture has.
    pub(crate) fn no_such_field(name: &str, there: &[String]) -> Failure {
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        Failure::model("gate", true, GateMistake::no_field(name, &there).to_string())
    }

    /// Sides that have fields in common, none of which can be compared.
    pub(crate) fn unjudged(text: String) -> Failure {
        Failure::Unjudged(text)
    }

    /// A field that cannot be compared.
    pub(crate) fn compare(field: &str, error: &CompareError) -> Failure {
        Failure::model("no-comparison", false, format!("{field}: {error}"))
    }

    /// A baseline that cannot be read.
    pub(crate) fn baseline(path: &Path, error: &CompareError) -> Failure {
        Failure::model("no-comparison", false, format!("{}: {error}", path.display()))
    }

    /// The name under which `ppt explain` knows it.
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

    /// Says it, with what only the command line knows.
    pub(crate) fn say(&self) {
        let code = self.code();
        match self {
            Failure::Query(error) | Failure::Report(ReportError::Query(error)) => match error {
                QueryError::Memory(_) => message::error(code, terms::memory(None).exceeded()),
                QueryError::Spill(_) => {
                    let folder = scratch::temporary_folder();
                    let hint =
                        "free some room, set TMPDIR to a folder with more, or allow more --memory";
                    message::error(code, format_args!("{}: {error}: {hint}", folder.display()));
                }
                QueryError::Failed(_) => match panicked::first() {
                    Some(_) => Failure::of_panic().say(),
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

    /// Says it, and what the command ends with.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // Whoever read it has enough.
            Failure::Write(_, error) | Failure::Query(QueryError::Output(error))
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return ExitCode::SUCCESS;
            }
            Failure::Query(QueryError::Cancelled)
            | Failure::Report(ReportError::Query(QueryError::Cancelled)) => {
                return signals::interrupted();
            }
            Failure::Usage(text) => message::note(text),
            other => other.say(),
        }
        match self {
            Failure::Unjudged(_) => ExitCode::from(NOT_JUDGED),
            other => ExitCode::from(if other.is_usage() { 2 } else { 1 }),
        }
    }
}
