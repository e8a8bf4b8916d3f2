//! `ppt dump out.bin > table.tsv`: prints one row for each captured frame.

use std::io::BufWriter;

use ppt_dump::{
    DumpError, DumpRequest, NameRemark, Predicate, RowOrder, SearchPaths, SortLimits, TableFormat,
    TimeFormat,
};
use ppt_output::{FileId, Output, Readers, Rules};
use ppt_text::exit::ExitStatus;
use ppt_text::{escaped, grouped};

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::{privileges, report, signals, stdout};

/// Bytes of rows that are sorted in memory.
const SORT_MEMORY: usize = 64 << 20;

pub(crate) fn run(args: &args::Dump) -> CommandResult {
    if !args.others.is_empty() {
        let message = format!(
            "ppt dump makes a table of one capture, and {} are given; `ppt info` and `ppt sql` take several",
            1 + args.others.len()
        );
        return Err(Failure::usage(Code::OneCapture, message));
    }
    let name = args.capture.display().to_string();
    let matching = args.matching.as_deref().map(Predicate::parse).transpose();
    let options = DumpRequest {
        buffers: args.buffers.clone(),
        frame: args.frame.clone(),
        matching: matching.map_err(|error| failure(&name, &error.into()))?,
        format: format(args)?,
        time: args.time.map(|time| match time {
            args::TimeFormat::Own => TimeFormat::Own,
            args::TimeFormat::Ns => TimeFormat::Ns,
            args::TimeFormat::Utc => TimeFormat::Utc,
            args::TimeFormat::Rel => TimeFormat::Rel,
        }),
        order: match args.order {
            args::RowOrder::Capture => RowOrder::Capture,
            args::RowOrder::Time => {
                RowOrder::Time(SortLimits { memory: SORT_MEMORY, folder: std::env::temp_dir() })
            }
        },
        gaps: args.gaps,
        names: args.names,
        addresses: (args.addresses == args::AddressForm::Name).then(SearchPaths::default),
        from: args.from,
        to: args.to,
    };
    let rules = Rules {
        force: args.force,
        readers: Readers::ByUmask,
        inputs: FileId::of_input(&args.capture).into_iter().collect(),
        invoker: privileges::invoker(),
    };
    if args.output.as_os_str() == "-" && signals::stdout_was_closed() {
        return Err(Failure::usage(
            Code::StdoutTaken,
            "stdout is closed; choose a file for the table with -o",
        ));
    }
    let mut output = Output::open(&args.output, &rules)?;
    privileges::only_read(output.needs_rights());
    let out = BufWriter::with_capacity(1 << 16, output.file());
    match ppt_dump::dump(&args.capture, &options, out) {
        Ok(outcome) => {
            privileges::publish(|| output.publish())?;
            Ok(finish(&name, &outcome))
        }
        Err(DumpError::Output(error)) if stdout::is_closed(&error) => Ok(ExitStatus::DONE),
        Err(error @ DumpError::Output(_)) => Err(failure(&output.name(), &error)),
        Err(error) => Err(failure(&name, &error)),
    }
}

fn format(args: &args::Dump) -> Result<TableFormat, Failure> {
    match (args.format, args.for_spreadsheet) {
        (None | Some(args::OutputFormat::Csv), true) => Ok(TableFormat::CsvForSpreadsheet),
        (Some(_), true) => Err(Failure::usage(
            Code::NotForSpreadsheets,
            "--for-spreadsheet writes CSV; leave --format out, or choose csv",
        )),
        (None | Some(args::OutputFormat::Tsv), false) => Ok(TableFormat::Tsv),
        (Some(args::OutputFormat::Csv), false) => Ok(TableFormat::Csv),
        (Some(args::OutputFormat::Jsonl), false) => Ok(TableFormat::JsonLines),
    }
}

fn failure(name: &str, error: &DumpError) -> Failure {
    let message = match error {
        DumpError::Predicate(why) => format!("{name}: {why}\n{}", why.draw("--where", false)),
        DumpError::MadeOfFrames { table, frame } => format!(
            "{name}: {error}: choose --frame {frame}, or print the table by \
             `ppt export {name} --format csv --frame {table}`"
        ),
        _ => format!("{name}: {error}"),
    };
    if error.is_usage() {
        Failure::usage(error.code(), message)
    } else {
        Failure::failed(error.code(), message)
    }
}

fn finish(name: &str, outcome: &ppt_dump::DumpOutcome) -> ExitStatus {
    const SHOWN: usize = 5;
    for damage in outcome.damaged.iter().take(SHOWN) {
        report::warning(Code::Damaged, format_args!("{name}: {damage}"));
    }
    if outcome.damages > SHOWN as u64 {
        let more = outcome.damages - SHOWN as u64;
        report::warning(Code::Damaged, format_args!("{name}: and {more} more damaged places"));
    }
    if outcome.unshown > 0 {
        report::warning(
            Code::RowsNotShown,
            format_args!(
                "{name}: {} rows of buffers that began after the header line are not in the table; \
             read the capture from a file, or choose --format jsonl",
                outcome.unshown
            ),
        );
    }
    if outcome.untimed > 0 {
        report::warning(
            Code::RowsWithoutTime,
            format_args!(
                "{name}: {} rows are not in the table, because nothing in the capture says when \
                 they were written",
                outcome.untimed
            ),
        );
    }
    report_unnamed(name, &outcome.unnamed);
    let [outside, left_out] = outcome.outside.map(grouped);
    if outcome.outside[0] > 0 {
        let message = format!("{name}: {outside} addresses are in no file of the process's code");
        report::warning(Code::NamesMissing, message);
    }
    if outcome.outside[1] > 0 {
        let message = format!(
            "{name}: {left_out} addresses are in no module of the capture, which does not hold all of them"
        );
        report::warning(Code::NamesMissing, message);
    }
    if let Some(offset) = outcome.cut {
        report::warning(
            Code::CutOff,
            format_args!(
                "{name}: the capture was cut off at byte {offset}; all {} rows before that are in \
                 the table",
                outcome.rows
            ),
        );
    }
    ExitStatus::from_success(outcome.damages + outcome.unshown + outcome.untimed == 0)
}

/// Reports the modules whose functions have no names, without the kernel's own code, which has no file.
fn report_unnamed(name: &str, remarks: &[NameRemark]) {
    const SHOWN: usize = 3;
    let has_file = |remark: &&NameRemark| !remark.path.starts_with('[');
    let mut modules: Vec<String> = remarks
        .iter()
        .filter(has_file)
        .map(|remark| format!("{} ({})", escaped(&remark.path), remark.cause))
        .collect();
    if modules.is_empty() {
        return;
    }
    let more = modules.len().saturating_sub(SHOWN);
    modules.truncate(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let modules = modules.join(", ");
    let message = format!("{name}: functions of these modules have no names: {modules}{more}");
    report::warning(Code::NamesMissing, message);
}
