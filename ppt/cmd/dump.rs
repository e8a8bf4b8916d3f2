//! `ppt dump out.bin > table.tsv`: a row for every captured frame.

use std::io::{self, BufWriter};
use std::process::ExitCode;

use ppt_dump::{DumpError, Format, Options, Outcome};
use ppt_output::{FileId, Output, Readers, Rules};

use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::{exit, privileges, report};

pub(crate) fn run(args: &args::Dump) -> ExitCode {
    let options = Options {
        buffers: args.buffers.clone(),
        frame: args.frame.clone(),
        format: match args.format {
            args::Format::Tsv => Format::Tsv,
            args::Format::Csv => Format::Csv,
            args::Format::Jsonl => Format::JsonLines,
        },
        gaps: args.gaps,
        from: args.from,
        to: args.to,
    };
    let rules = Rules {
        force: args.force,
        readers: Readers::ByUmask,
        inputs: FileId::of_input(&args.capture).into_iter().collect(),
        invoker: privileges::invoker(),
    };
    let mut output = match Output::open(&args.output, &rules) {
        Ok(output) => output,
        Err(error) => return Failure::from(error).tell(),
    };
    privileges::only_read(output.needs_rights());
    let name = args.capture.display();
    let out = BufWriter::with_capacity(1 << 16, output.file());
    match ppt_dump::dump(&args.capture, &options, out) {
        Ok(outcome) => match privileges::publish(|| output.publish()) {
            Ok(()) => finish(&name.to_string(), &outcome),
            Err(error) => Failure::from(error).tell(),
        },
        Err(DumpError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => exit::DONE,
        Err(error) => {
            report::error(error.code(), format_args!("{name}: {error}"));
            if error.is_usage() { exit::usage() } else { exit::FAILED }
        }
    }
}

fn finish(name: &str, outcome: &Outcome) -> ExitCode {
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
                "{name}: {} rows are not in the table: nothing in the capture says when they were",
                outcome.untimed
            ),
        );
    }
    if let Some(offset) = outcome.cut {
        report::warning(
            Code::CutOff,
            format_args!(
                "{name}: the capture was cut off at byte {offset}; all {} rows before that are here",
                outcome.rows
            ),
        );
    }
    if outcome.damages + outcome.unshown + outcome.untimed > 0 { exit::FAILED } else { exit::DONE }
}
