//! Reads a capture and writes its table.

use std::io::{Read, Write};
use std::path::Path;
use std::thread;

use ppt_capture::{
    Capture, CaptureError, Chunk, ClockTable, Damage, Frames, Gap, Item, OwnedFrames, SourceInfo,
};

use crate::csv::Csv;
use crate::error::DumpError;
use crate::gaps;
use crate::jsonl::JsonLines;
use crate::ordered::{Ordered, counter};
use crate::plan::Plan;
use crate::rows::{Rows, Written};
use crate::table::TableWriter;
use crate::tsv::Tsv;

/// What a table looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated values.
    #[default]
    Tsv,
    /// Comma-separated values.
    Csv,
    /// An object per line.
    JsonLines,
}

impl Format {
    fn writer(self) -> Box<dyn TableWriter + Send> {
        match self {
            Format::Tsv => Box::new(Tsv::default()),
            Format::Csv => Box::new(Csv::new()),
            Format::JsonLines => Box::new(JsonLines::default()),
        }
    }
}

/// What is wanted of a capture.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Buffers by name (`NAME[#hash8][@object]`); none: all.
    pub buffers: Vec<String>,
    /// The only kind of frame that is wanted.
    pub frame: Option<String>,
    /// What the table looks like.
    pub format: Format,
    /// Gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`. Of the
    /// options above only `frame` has no meaning for them, though it must name a frame.
    pub gaps: bool,
}

/// How a dump went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows written.
    pub rows: u64,
    /// Damage that was skipped; the first 1,000 places of it.
    pub damaged: Vec<Damage>,
    /// Places of damage, all of them.
    pub damages: u64,
    /// Where the capture was cut off, or is still being written.
    pub cut: Option<u64>,
    /// Rows of buffers that a stream introduced after its table had begun, and for whose columns
    /// the table has no room (TSV, CSV): not written.
    pub unshown: u64,
}

const MAX_DAMAGED: usize = 1000;
/// Bytes of frames that one processor takes at a time.
const JOB_BYTES: usize = 256 << 10;

impl Outcome {
    fn damage(&mut self, damage: Damage) {
        self.damages += 1;
        if self.damaged.len() < MAX_DAMAGED {
            self.damaged.push(damage);
        }
    }

    fn written(&mut self, written: Written) {
        self.rows += written.rows;
        if let Some(damage) = written.damage {
            self.damage(damage);
        }
    }
}

/// Writes the capture at `path` (`-`: standard input) as a table to `out`, which need not buffer.
///
/// A file is first surveyed for its buffers and clocks, and all processors make its rows. A stream
/// shows what it introduces before its first frames; ticks become time as far as its clock readings
/// have come.
///
/// # Errors
/// See [`DumpError`]. Damage is no error: good rows are written, the rest is in the [`Outcome`].
pub fn dump(path: &Path, options: &Options, out: impl Write) -> Result<Outcome, DumpError> {
    let mut table = Table::new(options, out);
    if let Some(mut survey) = Capture::survey(path)? {
        while let Some(item) = survey.read().map_err(CaptureError::Io)? {
            table.learn(&item);
        }
        table.live = false;
        table.begin(&survey.sources().collect::<Vec<_>>())?;
    }
    let mut capture = Capture::open(path)?;
    if table.live || options.gaps {
        table.one_by_one(&mut capture)?;
    } else {
        table.side_by_side(&mut capture)?;
    }
    table.outcome.cut = capture.finish().cut;
    Ok(table.outcome)
}

/// The same for a stream.
///
/// # Errors
/// As for [`dump`].
pub fn dump_stream(
    reader: impl Read + 'static,
    options: &Options,
    out: impl Write,
) -> Result<Outcome, DumpError> {
    let mut table = Table::new(options, out);
    let mut capture = Capture::from_reader(reader)?;
    table.one_by_one(&mut capture)?;
    table.outcome.cut = capture.finish().cut;
    Ok(table.outcome)
}

struct Table<'a, W> {
    out: W,
    writer: Box<dyn TableWriter + Send>,
    /// Text that is not in `out` yet.
    text: Vec<u8>,
    options: &'a Options,
    /// None until the first row must be written.
    plan: Option<Plan>,
    clocks: ClockTable,
    /// Whether rows should not wait for more rows.
    live: bool,
    outcome: Outcome,
}

impl<'a, W: Write> Table<'a, W> {
    fn new(options: &'a Options, out: W) -> Self {
        Self {
            out,
            writer: options.format.writer(),
            text: Vec::new(),
            options,
            plan: None,
            clocks: ClockTable::default(),
            live: true,
            outcome: Outcome::default(),
        }
    }

    fn learn(&mut self, item: &Item<'_>) {
        match item {
            Item::Chunk(Chunk::Clock(readings)) => self.clocks.add(readings),
            Item::Chunk(Chunk::Source(info)) => {
                if let Some(hz) = info.source.tick_hz {
                    self.clocks.set_tick_hz(hz);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, sources: &[&SourceInfo]) -> Result<(), DumpError> {
        let plan = Plan::new(sources, self.options)?;
        self.writer.header(&self.columns(&plan), &mut self.text);
        self.plan = Some(plan);
        self.hand_over()
    }

    fn columns(&self, plan: &Plan) -> Vec<String> {
        if self.options.gaps { gaps::columns(plan.by_process) } else { plan.columns.clone() }
    }

    /// Writes what is written; at once where somebody may be looking.
    fn hand_over(&mut self) -> Result<(), DumpError> {
        self.out.write_all(&self.text).map_err(DumpError::Output)?;
        self.text.clear();
        if self.live { self.out.flush().map_err(DumpError::Output) } else { Ok(()) }
    }

    /// Reads and writes a chunk after the other.
    fn one_by_one(&mut self, capture: &mut Capture) -> Result<(), DumpError> {
        let mut sources: Vec<SourceInfo> = Vec::new();
        while let Some(item) = capture.read().map_err(CaptureError::Io)? {
            if self.live {
                self.learn(&item);
            }
            let rows = match &item {
                Item::Chunk(Chunk::Frames(_)) => true,
                Item::Chunk(Chunk::Gap(_)) => self.options.gaps,
                _ => false,
            };
            if rows && self.plan.is_none() {
                self.begin(&sources.iter().collect::<Vec<_>>())?;
            }
            match item {
                Item::Damage(damage) => self.outcome.damage(damage),
                Item::Chunk(Chunk::Source(info)) if self.live => {
                    sources.retain(|known| known.id != info.id);
                    sources.push(info.clone());
                    if self.plan.is_some() && self.writer.grows() {
                        self.begin(&sources.iter().collect::<Vec<_>>())?;
                    }
                }
                Item::Chunk(Chunk::Frames(frames)) if self.options.gaps => {
                    gaps::of_frames(&frames).iter().for_each(|gap| self.gap(gap));
                }
                Item::Chunk(Chunk::Frames(frames)) => self.frames(&frames),
                Item::Chunk(Chunk::Gap(gap)) if self.options.gaps => self.gap(&gap),
                Item::Chunk(_) => {}
            }
            self.hand_over()?;
        }
        if self.plan.is_none() {
            self.begin(&sources.iter().collect::<Vec<_>>())?;
        }
        if self.options.gaps {
            capture.account().holes().for_each(|hole| self.gap(&hole));
        }
        self.hand_over()?;
        self.out.flush().map_err(DumpError::Output)
    }

    fn frames(&mut self, frames: &Frames<'_>) {
        let Some(plan) = &self.plan else { return };
        let shows_all = self.options.buffers.is_empty() && self.options.frame.is_none();
        if shows_all && !plan.sources.contains_key(&frames.head.source) {
            self.outcome.unshown += u64::from(frames.head.count);
        }
        let rows = Rows { plan, clocks: &self.clocks };
        let chunk = (frames.offset, &frames.head);
        let written = rows.write(chunk, frames.iter(), &mut *self.writer, &mut self.text);
        self.outcome.written(written);
    }

    fn gap(&mut self, gap: &Gap) {
        let Some(plan) = &self.plan else { return };
        if let Some(source) = plan.sources.get(&gap.source) {
            let pid = plan.by_process.then_some(source.pid);
            gaps::write(&mut *self.writer, &source.label, pid, gap, &mut self.text);
            self.outcome.rows += 1;
        }
    }

    /// Has all processors make the rows, and writes them in order. The plan is made.
    fn side_by_side(&mut self, capture: &mut Capture) -> Result<(), DumpError> {
        let plan = self.plan.take().unwrap_or_default();
        let (columns, format, clocks) = (self.columns(&plan), self.options.format, &self.clocks);
        let rows = Rows { plan: &plan, clocks };
        let worker = || {
            let mut writer = format.writer();
            writer.header(&columns, &mut Vec::new());
            move |job: Vec<OwnedFrames>| {
                let mut text = Vec::with_capacity(2 * JOB_BYTES);
                let written: Vec<_> = job
                    .iter()
                    .map(|it| rows.write((it.offset, &it.head), it.iter(), &mut *writer, &mut text))
                    .collect();
                (text, written)
            }
        };
        let (out, outcome) = (&mut self.out, &mut self.outcome);
        let mut take = |(text, written): (Vec<u8>, Vec<Written>)| {
            written.into_iter().for_each(|it| outcome.written(it));
            out.write_all(&text).map_err(DumpError::Output)
        };
        let (jobs, fetch) = counter();
        let mut reading = Outcome::default();
        thread::scope(|scope| {
            let mut ordered = Ordered::start(scope, (jobs, &fetch), worker);
            let (mut job, mut bytes) = (Vec::new(), 0);
            while let Some(item) = capture.read().map_err(CaptureError::Io)? {
                match item {
                    Item::Damage(damage) => reading.damage(damage),
                    Item::Chunk(Chunk::Frames(frames)) => {
                        bytes += frames.bytes().len();
                        job.push(frames.to_owned());
                        if bytes >= JOB_BYTES {
                            bytes = 0;
                            ordered.push(std::mem::take(&mut job)).map_or(Ok(()), &mut take)?;
                        }
                    }
                    Item::Chunk(_) => {}
                }
            }
            ordered.push(job).map_or(Ok(()), &mut take)?;
            while let Some(done) = ordered.pop() {
                take(done)?;
            }
            Ok::<_, DumpError>(())
        })?;
        self.outcome.damages += reading.damages;
        self.outcome.damaged.extend(reading.damaged);
        self.outcome.damaged.truncate(MAX_DAMAGED);
        self.out.flush().map_err(DumpError::Output)
    }
}
