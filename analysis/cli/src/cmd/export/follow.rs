//! `ppt export --follow`: files of captures that grow, each row in exactly one.

use std::time::{Duration, Instant};

use ppt_delivery::{
    CaptureGrowth, CaptureState, Delivery, EndReason, GrowingCaptures, PlannedRange, RangeEnd,
    Settings, Target, file_name,
};
use ppt_query::text::grouped;
use ppt_query::{Engine, EngineOptions, FrameTable, QueryError, Window};
use ppt_text::exit::ExitStatus;

mod kernel;
mod otlp;
mod waiting;
mod wholes;

use otlp::OtlpExport;
use wholes::WholesExport;

use super::store::StoreAddress;
use super::tables::{parquet_file, path_component};
use crate::args::{self, ExportFormat, Time};
use crate::error::AnswerError;
use crate::{message, question_settings, run};

/// The interval between two looks at captures and signals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum wait for the file in which a capture continues.
const NEXT_FILE: Duration = Duration::from_secs(10);
/// Tables that are exported in addition to frames.
const COUNTERS: [&str; 2] = ["counters", "histograms"];

pub(super) fn run(args: &args::Export) -> Result<ExitStatus, AnswerError> {
    let Some(format) = followed_format(args.format) else {
        let why = "--follow writes --format parquet, otlp or otlp-json: other formats are of captures \
                   that have ended";
        return Err(AnswerError::Usage(why.to_owned()));
    };
    let output = args.to.output.to_string_lossy();
    if output == "-" || args.captures.captures.iter().any(|name| name.as_os_str() == "-") {
        let why =
            "--follow reads files and writes a folder, or objects of a store: name it with -o";
        return Err(AnswerError::Usage(why.to_owned()));
    }
    // A signal takes effect between ranges, never inside one.
    ppt_signals::end_work();
    ppt_signals::end_nothing();
    let threads = args.captures.threads.unwrap_or_else(|| EngineOptions::default().threads);
    let runtime = run::runtime(threads)?;
    runtime.block_on(async {
        let mut export = Export::begin(args, format).await?;
        export.follow().await
    })
}

/// An export in progress.
struct Export<'a> {
    args: &'a args::Export,
    captures: GrowingCaptures,
    delivery: Delivery,
    /// The time at which the last range of any capture was delivered.
    last: Instant,
    /// The time since which all open captures have ended; only further files are awaited.
    done: Option<Instant>,
    /// The number of missing frames that were already reported.
    told: u64,
    /// The numbers of late frames and of frames exported alone that were already reported.
    told_late: (u64, u64),
    told_kernel: bool,
    code: ExitStatus,
}

impl<'a> Export<'a> {
    async fn begin(args: &'a args::Export, format: &str) -> Result<Export<'a>, AnswerError> {
        let mut captures = GrowingCaptures::new(args.captures.paths());
        let failed = |error| AnswerError::from(QueryError::from(error));
        // Files that are not captures are refused before a folder is made.
        captures.find(|_| false).map_err(failed)?;
        for capture in captures.open() {
            capture.look(0).map_err(failed)?;
            kernel::refuse(args.frame.as_deref(), capture)?;
        }
        let target = match StoreAddress::parse(&args.to.output)? {
            Some(address) => address.target(args.follow.outage())?,
            None => Target::folder(&args.to.output)?,
        };
        let delivery = Delivery::open(target, settings(args, format), captures.open()).await?;
        if !delivery.target().is_guarded() {
            let name = delivery.target().name();
            let text = "the object store is said to have no conditional puts (AWS_CONDITIONAL_PUT), so ppt \
                        would not notice a second exporter: make sure that only one exporter runs";
            message::warning("no-conditional-put", format_args!("{name}: {text}"));
        }
        let mut export = Export {
            args,
            captures,
            delivery,
            last: Instant::now(),
            done: None,
            told: 0,
            told_late: (0, 0),
            told_kernel: false,
            code: ExitStatus::DONE,
        };
        export.go_on().await?;
        Ok(export)
    }

    /// Continues an earlier export.
    async fn go_on(&mut self) -> Result<(), AnswerError> {
        for capture in self.captures.open() {
            self.delivery.reopen(capture.id());
            self.delivery.take_up(capture);
        }
        let known = &self.delivery.manifest().captures;
        let mut gone: Vec<(String, String)> = Vec::new();
        for progress in known.iter().filter(|progress| !progress.state.is_over()) {
            if self.captures.get(&progress.id).is_none() {
                gone.push((progress.id.clone(), progress.file.clone()));
            }
        }
        for (id, file) in gone {
            self.tell_gone(&file, "is not there any more");
            self.delivery.close(&id, CaptureState::Gone).await?;
        }
        let Some(range) = self.delivery.manifest().planned.clone() else { return Ok(()) };
        self.write_again(&range).await
    }

    /// Writes a range that an earlier export was writing when it was killed.
    async fn write_again(&mut self, range: &PlannedRange) -> Result<(), AnswerError> {
        let at = self.captures.open().iter().position(|capture| capture.id() == range.capture);
        let Some(at) = at else { return Ok(()) };
        let growth = self.look(at, range.from_byte)?;
        if growth.is_gone || !growth.reaches(range.until_byte) {
            return self.lose(at).await;
        }
        self.deliver(range).await?;
        self.delivery.commit(CaptureState::Growing).await?;
        Ok(())
    }

    /// Exports until all captures have ended, or until a signal arrives.
    async fn follow(&mut self) -> Result<ExitStatus, AnswerError> {
        loop {
            let is_stopped = ppt_signals::came();
            self.find()?;
            let is_due = is_stopped || self.last.elapsed() >= self.args.follow.every();
            let mut has_more = false;
            for at in 0..self.captures.open().len() {
                has_more |= self.advance(at, is_due).await?;
            }
            self.tell_missing();
            self.tell_late();
            let delivery = &self.delivery;
            self.captures.close(|id| delivery.is_over(id));
            if is_due {
                self.last = Instant::now();
            }
            if is_stopped && !has_more {
                self.tell_stopped();
                return Err(QueryError::Cancelled.into());
            }
            if self.is_done() {
                self.end_all().await?;
                self.delivery.complete().await?;
                self.tell_complete();
                return Ok(self.code);
            }
            if !has_more {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Opens new files.
    fn find(&mut self) -> Result<(), AnswerError> {
        let delivery = &self.delivery;
        match self.captures.find(|id| delivery.is_over(id)) {
            Ok(_) => {}
            // Open captures are read to their ends, even if the files were removed.
            Err(_) if !self.delivery.manifest().captures.is_empty() => {}
            Err(error) => return Err(QueryError::from(error).into()),
        }
        Ok(())
    }

    fn look(&mut self, at: usize, from: u64) -> Result<CaptureGrowth, AnswerError> {
        let growth = self.captures.open()[at].look(from);
        Ok(growth.map_err(QueryError::from)?)
    }

    /// Delivers a range of a capture, if one is due. Returns whether another range may already be due.
    async fn advance(&mut self, at: usize, is_due: bool) -> Result<bool, AnswerError> {
        let id = self.captures.open()[at].id().to_owned();
        if self.delivery.is_over(&id) {
            return Ok(false);
        }
        let progress = self.delivery.manifest().progress(&id);
        let (chunk, byte) =
            progress.map_or((0, 0), |progress| (progress.next_chunk, progress.bytes));
        let most = self.args.follow.bytes(self.args.format);
        if !is_due && !self.captures.open()[at].may_have(byte, most) {
            return Ok(false);
        }
        let growth = self.look(at, byte)?;
        self.delivery.take_up(&self.captures.open()[at]);
        if growth.is_gone {
            self.lose(at).await?;
            return Ok(false);
        }
        if self.waits_for_others(at) {
            return Ok(false);
        }
        let (is_over, is_full) = (growth.is_over(), growth.bytes() >= most);
        let range_end = growth.range_end(chunk, most).filter(|_| is_due || is_over || is_full);
        let end = match growth.end {
            Some(EndReason::Rotated) => CaptureState::Continued,
            Some(_) => CaptureState::Complete,
            None if growth.is_cut => CaptureState::Cut,
            None => CaptureState::Growing,
        };
        let is_last = is_over && end != CaptureState::Continued;
        let range_end = range_end.or_else(|| {
            (is_over && self.has_more(at, &growth, is_last)).then(|| growth.rest(chunk))
        });
        let Some(range_end) = range_end else {
            if is_over {
                self.delivery.close(&id, end).await?;
            }
            return Ok(false);
        };
        let range = self.delivery.plan(&id, &range_end, is_last && range_end.is_all).await?;
        self.deliver(&range).await?;
        let state = if range_end.is_all { end } else { CaptureState::Growing };
        self.delivery.commit(state).await?;
        Ok(is_full)
    }

    /// Whether an earlier file of its series is not exported to its end: spans may cross files.
    fn waits_for_others(&mut self, at: usize) -> bool {
        let (series, number) = {
            let capture = &self.captures.open()[at];
            (capture.series().to_owned(), capture.number())
        };
        let captures = &self.delivery.manifest().captures;
        let mut before =
            captures.iter().filter(|known| known.series == series && known.number < number);
        before.any(|before| !before.state.is_over())
    }

    /// Whether open spans and chains need a range without frames after the last frames of a capture: frames
    /// are missing there, or nothing follows.
    fn has_more(&mut self, at: usize, growth: &CaptureGrowth, is_last: bool) -> bool {
        let manifest = self.delivery.manifest();
        let capture = &self.captures.open()[at];
        let open = manifest.open_of(capture.series()).filter(|open| open.file.is_some());
        let read = manifest.progress(capture.id()).map_or(0, |progress| progress.bytes);
        open.is_some() && (is_last || read < growth.whole())
    }

    /// Writes the open spans and chains of series that have ended.
    async fn end_all(&mut self) -> Result<(), AnswerError> {
        let manifest = self.delivery.manifest();
        let open = manifest.open.iter().filter(|open| open.file.is_some());
        let last = |series: &str| {
            let files = manifest.captures.iter().filter(|capture| capture.series == series);
            files.max_by_key(|capture| capture.number).cloned()
        };
        let ended: Vec<_> = open.filter_map(|open| last(&open.series)).collect();
        for capture in ended {
            let (until_chunk, until_byte) = (capture.next_chunk + 1, capture.bytes);
            let range_end = RangeEnd { until_chunk, until_byte, frames: 0, is_all: true };
            let range = self.delivery.plan(&capture.id, &range_end, true).await?;
            self.deliver(&range).await?;
            self.delivery.commit(capture.state).await?;
        }
        Ok(())
    }

    /// Writes the files of a range.
    async fn deliver(&mut self, range: &PlannedRange) -> Result<(), AnswerError> {
        let engine = self.engine(range)?;
        let encoding = otlp::encoding(self.args.format);
        if let Some(engine) = &engine {
            if encoding.is_none() {
                self.deliver_frames(range, engine).await?;
            }
            self.tell_damage(engine);
            self.tell_kernel(engine);
        } else if !range.ends {
            return Ok(());
        }
        let (delivery, engine) = (&mut self.delivery, engine.as_ref());
        if let Some(encoding) = encoding {
            OtlpExport { args: self.args, encoding }.deliver(delivery, range, engine).await?;
        } else if delivery.manifest().settings.wholes {
            let wholes = WholesExport { frame: self.args.frame.as_deref(), time: self.args.time };
            wholes.deliver(delivery, range, engine).await?;
        }
        Ok(())
    }

    /// An engine over the frames of a range; None if none of its buffers are wanted, or its file is gone.
    fn engine(&self, range: &PlannedRange) -> Result<Option<Engine>, AnswerError> {
        let Some(capture) = self.captures.get(&range.capture) else { return Ok(None) };
        let set = capture.part(range.from_byte..range.until_byte).map_err(QueryError::from)?;
        let wanted = &self.args.captures.buffers;
        let buffers: Vec<String> = set
            .buffers()
            .filter(|buffer| wanted.iter().any(|name| name == buffer))
            .map(str::to_owned)
            .collect();
        if !wanted.is_empty() && buffers.is_empty() {
            return Ok(None);
        }
        let threads =
            self.args.captures.threads.unwrap_or_else(|| EngineOptions::default().threads);
        let memory = question_settings::memory(self.args.captures.memory).bytes;
        let window = Window { buffers, ..Window::default() };
        let options = EngineOptions { memory, threads, window, ..EngineOptions::default() };
        Ok(Some(Engine::new(set, &options)?))
    }

    async fn deliver_frames(
        &mut self,
        range: &PlannedRange,
        engine: &Engine,
    ) -> Result<(), AnswerError> {
        for frame in tables(engine)? {
            if self.args.frame.as_ref().is_some_and(|name| *name != frame.frame) {
                continue;
            }
            if let Some((bytes, rows)) = parquet_file(engine, &frame, self.args.time).await? {
                let folder = match frame.buffer.as_str() {
                    "" => frame.frame.clone(),
                    buffer => format!("{buffer}.{}", frame.frame),
                };
                let name = file_name(&path_component(&folder), range, "parquet");
                self.delivery.put(name, rows, bytes).await?;
            }
        }
        Ok(())
    }

    fn tell_damage(&mut self, engine: &Engine) {
        for trouble in engine.set().troubles() {
            let path = trouble.path.display();
            for damage in &trouble.damaged {
                message::warning("damaged", format_args!("{path}: {damage}"));
                self.code = ExitStatus::FAILED;
            }
        }
    }

    /// Warns once that the kernel's tables, which combine frames of several ranges, are not exported.
    fn tell_kernel(&mut self, engine: &Engine) {
        if self.told_kernel || self.args.frame.is_some() || !engine.set().has_kernel() {
            return;
        }
        self.told_kernel = true;
        kernel::tell(&self.delivery.target().name());
    }

    /// Closes a capture that was truncated or overwritten.
    async fn lose(&mut self, at: usize) -> Result<(), AnswerError> {
        let capture = &self.captures.open()[at];
        let (id, file) = (capture.id().to_owned(), capture.path().display().to_string());
        self.tell_gone(&file, "was truncated, or another one was written over it");
        self.delivery.close(&id, CaptureState::Gone).await?;
        Ok(())
    }

    fn tell_gone(&mut self, file: &str, what: &str) {
        let text = "what had not been exported of it is in no file; the manifest says where";
        message::warning("capture-gone", format_args!("{file}: the capture {what}: {text}"));
        self.code = ExitStatus::FAILED;
    }

    fn tell_missing(&mut self) {
        let missing = self.delivery.manifest().frames_missing();
        if missing > self.told {
            self.told = missing;
            let entries = self.delivery.manifest().missing.iter();
            let what: Vec<&str> = entries.map(|entry| entry.what.as_str()).collect();
            let (frames, what) = (grouped(missing), what.join("; "));
            let text = "frames of the capture are in no file of the export, because files of the \
                        capture were removed before they were read";
            message::warning("capture-gone", format_args!("{frames} {text}: {what}"));
            self.code = ExitStatus::FAILED;
        }
    }

    /// Warns about frames that arrived after later ones were exported, and about halves exported alone.
    fn tell_late(&mut self) {
        let open = self.delivery.manifest().open.iter();
        let (late, let_go) =
            open.fold((0, 0), |sum, open| (sum.0 + open.late, sum.1 + open.let_go));
        let (told_late, told_let_go) = self.told_late;
        if late > told_late {
            let (frames, name) = (grouped(late), self.delivery.target().name());
            let text = "frames of spans or chains were published more than a second after their \
                        stamps: spans beside them may be in the export as two halves";
            message::warning("late-frames", format_args!("{name}: {frames} {text}"));
        }
        if let_go > told_let_go {
            let (frames, name) = (grouped(let_go), self.delivery.target().name());
            let text = "frames of spans or chains that had not ended are in the export as they \
                        were, because more waited than ppt keeps";
            message::warning("halves-let-go", format_args!("{name}: {frames} {text}"));
        }
        self.told_late = (late, let_go);
    }

    /// Whether all captures have ended.
    fn is_done(&mut self) -> bool {
        if !self.captures.open().is_empty() {
            self.done = None;
            return false;
        }
        let since = *self.done.get_or_insert_with(Instant::now);
        self.delivery.is_complete() || since.elapsed() > NEXT_FILE
    }

    fn tell_stopped(&mut self) {
        let name = self.delivery.target().name();
        let text = "all that is whole by now is exported; the same command goes on from there";
        message::note(format_args!("{}: stopped: {text}", self.said(&name)));
    }

    fn tell_complete(&mut self) {
        let name = self.delivery.target().name();
        message::note(format_args!("{}: complete", self.said(&name)));
    }

    fn said(&self, name: &str) -> String {
        let manifest = self.delivery.manifest();
        let (rows, files) = (grouped(manifest.rows()), grouped(manifest.file_count()));
        format!("{name}: {rows} rows in {files} files")
    }
}

/// The tables whose rows each come from one frame or reading. Tables of the kernel, spans and chains
/// combine frames of several ranges.
fn tables(engine: &Engine) -> Result<Vec<FrameTable>, AnswerError> {
    let mut tables = engine.frames(None)?;
    let mut others = engine.exportable(None)?;
    others.retain(|table| table.buffer.is_empty() && COUNTERS.contains(&table.frame.as_str()));
    tables.append(&mut others);
    Ok(tables)
}

/// The name of a format in the manifest; `None` if `--follow` does not write it.
fn followed_format(format: ExportFormat) -> Option<&'static str> {
    match format {
        ExportFormat::Parquet => Some("parquet"),
        ExportFormat::Otlp => Some("otlp"),
        ExportFormat::OtlpJson => Some("otlp-json"),
        ExportFormat::Arrow
        | ExportFormat::Csv
        | ExportFormat::Jsonl
        | ExportFormat::Perfetto
        | ExportFormat::Ctf
        | ExportFormat::Chrome => None,
    }
}

fn settings(args: &args::Export, format: &str) -> Settings {
    let time = match args.time {
        Time::Ns => "ns",
        Time::Both => "both",
    };
    let mut buffers = args.captures.buffers.clone();
    buffers.sort();
    buffers.dedup();
    let (format, time) = (format.to_owned(), time.to_owned());
    Settings { format, time, frame: args.frame.clone(), buffers, wholes: true }
}
