//! `ppt export --format parquet CAPTURE… -o PATH`: files that other programs open.

mod folder;
mod follow;
mod store;
mod tables;
mod traces;

use ppt_interchange::TraceFormat;
use ppt_query::ResultFormat;
use ppt_text::exit::ExitStatus;

use crate::args::{self, ExportFormat};
use crate::error::AnswerError;
use crate::{open, run};

pub(crate) fn run(args: &args::Export) -> Result<ExitStatus, AnswerError> {
    if args.for_spreadsheet && args.format != ExportFormat::Csv {
        return Err(AnswerError::not_for_spreadsheets());
    }
    if args.follow.follow {
        return follow::run(args);
    }
    if args::is_address(&args.to.output.to_string_lossy()) {
        let why = "an object store gets files by --follow alone: name a file, and copy it with the tools \
                   of the store";
        return Err(AnswerError::Usage(why.to_owned()));
    }
    let engine = open::engine(&args.captures)?;
    let runtime = run::runtime(engine.threads())?;
    ppt_signals::end_work();
    let content = content(args);
    let work = async {
        match content {
            ExportContent::Trace(form) => traces::export(form, args, &engine).await,
            ExportContent::Tables(format, extension) => {
                tables::export(format, extension, args, &engine).await
            }
        }
    };
    runtime.block_on(run::question(engine.set().watch(), work))?;
    Ok(open::report_faults(&engine))
}

/// The content of an export.
enum ExportContent {
    Trace(TraceFormat),
    /// Tables, in files with this extension.
    Tables(ResultFormat, &'static str),
}

fn content(args: &args::Export) -> ExportContent {
    use ExportContent::{Tables, Trace};
    match args.format {
        ExportFormat::Parquet => Tables(ResultFormat::Parquet, "parquet"),
        ExportFormat::Arrow => Tables(ResultFormat::Arrow, "arrow"),
        ExportFormat::Csv if args.for_spreadsheet => Tables(ResultFormat::CsvForSpreadsheet, "csv"),
        ExportFormat::Csv => Tables(ResultFormat::Csv, "csv"),
        ExportFormat::Jsonl => Tables(ResultFormat::JsonLines, "jsonl"),
        ExportFormat::Perfetto => Trace(TraceFormat::Perfetto),
        ExportFormat::Chrome => Trace(TraceFormat::Chrome),
        ExportFormat::Ctf => Trace(TraceFormat::Ctf),
        ExportFormat::Otlp | ExportFormat::OtlpJson => Trace(TraceFormat::Otlp),
    }
}
