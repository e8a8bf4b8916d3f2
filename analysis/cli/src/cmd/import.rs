//! `ppt import --schema FRAME_FILE TABLE -o CAPTURE`: recordings of other tools, as a capture.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ppt_import::frame_dsl::{self, Schema};
use ppt_import::{ImportError, ImportHost, Origin, Recording, csv, pcap};
use ppt_output::{FileId, Output, Readers, Rules};
use ppt_query::{Bound, QueryError};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::message::{self, StatusLine};
use ppt_query::text::grouped;

pub(crate) fn run(args: &args::Import) -> Result<ExitStatus, AnswerError> {
    let schema = schema(&args.schema)?;
    let options = options(args)?;
    let input_name = args.input.display().to_string();
    let input = open(&args.input).map_err(|error| AnswerError::Read(input_name.clone(), error))?;
    ppt_signals::end_work();
    let inputs = [&args.input, &args.schema].into_iter().filter_map(|path| FileId::of_input(path));
    let rules = Rules {
        force: args.to.force,
        readers: Readers::ByUmask,
        inputs: inputs.collect(),
        invoker: None,
    };
    let mut output = Output::open(&args.to.output, &rules)?;
    let name = output.name();
    let writing = AnswerError::writing(&name);
    let failed = |error: ImportError| match error {
        ImportError::Read(_) if ppt_signals::came() => AnswerError::Query(QueryError::Cancelled),
        ImportError::Read(error) => AnswerError::Read(input_name.clone(), error),
        ImportError::Write(error) => AnswerError::Write(name.clone(), error),
        other => AnswerError::Import(input_name.clone(), other),
    };

    let recording = Recording::new(&schema, origin(args)?, output.file());
    let mut recording = recording.map_err(&writing)?;
    let mut input = Watched { input, read: 0, status: StatusLine::default() };
    let mut head = [0; 4];
    let len = fill(&mut input, &mut head).map_err(|error| failed(ImportError::Read(error)))?;
    let is_pcap = pcap::is_pcap(&head[..len]);
    let whole = Cursor::new(&head[..len]).chain(&mut input);
    let mut found = pcap::Imported::default();
    if is_pcap {
        found = pcap::import(whole, &schema, &mut recording).map_err(failed)?;
    } else {
        csv::import(whole, &schema, &options, &mut recording).map_err(failed)?;
    }
    input.status.clear();
    let frames = recording.frames();
    recording.finish(&format!("imported from {input_name}")).map_err(&writing)?;
    output.publish()?;

    if let Some(cut) = found.cut {
        message::warning(
            "import-cut",
            format_args!("{input_name}: cut off at byte {cut}; every packet before that counts"),
        );
    }
    if found.untaken > 0 {
        let (untaken, all) = (grouped(found.untaken), grouped(found.packets));
        message::note(format_args!(
            "{untaken} of {all} packets are in no frame; a frame `packet` takes all that no other \
             frame takes"
        ));
    }
    message::note(format_args!("{} frames from {input_name} in {name}", grouped(frames)));
    Ok(ExitStatus::DONE)
}

/// The schema of a frame file.
fn schema(path: &Path) -> Result<Schema, AnswerError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| AnswerError::Read(name.clone(), error))?;
    match frame_dsl::compile(&bytes, &name) {
        Ok(compiled) => Ok(compiled.schema),
        Err(failure) => Err(AnswerError::FrameFile(name, failure.render(false))),
    }
}

fn options(args: &args::Import) -> Result<csv::CsvOptions, AnswerError> {
    Ok(csv::CsvOptions {
        frame: args.frame.clone(),
        names: args.columns.clone(),
        skip: args.skip.clone(),
        units: args.units.clone(),
        delimiter: args.delimiter,
    })
}

fn origin(args: &args::Import) -> Result<Origin, AnswerError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Origin {
        host: host(args)?,
        error_ns: args.clock_error.map_or(0, i64::unsigned_abs),
        pid: args.pid,
        input: args.input.display().to_string(),
        tags: args.tags.clone(),
        tool: concat!("ppt import ", env!("CARGO_PKG_VERSION")).to_owned(),
        now_ns: u64::try_from(now.as_nanos()).unwrap_or(0),
    })
}

fn host(args: &args::Import) -> Result<ImportHost, AnswerError> {
    if let Some(capture) = &args.clock_of {
        let name = capture.display().to_string();
        return match ImportHost::from_capture(capture) {
            Ok(Some(host)) => Ok(host),
            Ok(None) => Err(AnswerError::Import(name, ImportError::Clock)),
            Err(error) => Err(AnswerError::Capture(name, error)),
        };
    }
    let stem = args.input.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let epoch_ns = match args.epoch {
        None => 0,
        Some(Bound::Epoch(ns)) => ns,
        Some(_) => {
            let text = "--epoch is a time in UTC (2026-11-21T15:04:05Z, or @ and seconds)";
            return Err(AnswerError::Usage(text.to_owned()));
        }
    };
    let name = args.host.clone().or(stem).unwrap_or_default();
    Ok(ImportHost { name, epoch_ns, ..ImportHost::default() })
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path)?))
}

fn fill(input: &mut impl Read, head: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < head.len() {
        match input.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// An input that a signal ends, and that shows progress.
struct Watched<R> {
    input: R,
    read: u64,
    status: StatusLine,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const EACH: u64 = 16 << 20;
        if ppt_signals::came() {
            return Err(io::Error::other("interrupted"));
        }
        let read = match self.input.read(buffer) {
            // The next read checks for signals.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return self.read(buffer),
            other => other?,
        };
        let before = self.read;
        self.read += read as u64;
        if before / EACH != self.read / EACH {
            self.status.show(format_args!("ppt: {} MiB read", self.read >> 20));
        }
        Ok(read)
    }
}
