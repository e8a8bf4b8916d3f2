//! Reads a capture and writes its table.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;

use ppt_capture::{
    Capture, CaptureError, CaptureItem, Chunk, ChunkFrames, ClockTable, Damage, FileHeader,
    FramesHead, Gap, OwnedFrames, Process, SourceInfo, ThreadTable,
};
use ppt_symbols::{CaptureHost, NameRemark, Symbols};

use crate::csv::Csv;
use crate::error::DumpError;
use crate::gaps;
use crate::jsonl::JsonLines;
use crate::options::{DumpRequest, RowOrder, TableFormat, TimeFormat};
use crate::ordered::{Ordered, counter};
use crate::plan::TablePlan;
use crate::rows::{RowContext, WrittenRows};
use crate::sorter::Sorter;
use crate::table::TableWriter;
use crate::time_cells::TimeCells;
use crate::tsv::Tsv;
use crate::window::{GapWindow, TableBounds, epoch_offset};

/// The result of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpOutcome {
    /// Rows written.
    pub rows: u64,
    /// The first 1,000 damaged places, which were skipped.
    pub damaged: Vec<Damage>,
    /// The number of all damaged places.
    pub damages: u64,
    /// The offset at which the capture was truncated, or at which it is still being written.
    pub cut: Option<u64>,
    /// Rows that were left out because a stream introduced their buffer after the table had begun,
    /// and the format (TSV, CSV) cannot add columns.
    pub unshown: u64,
    /// Rows that were left out because their time is unknown, so that the bounds cannot be checked.
    pub untimed: u64,
    /// Why addresses have no names, by the path of the module.
    pub unnamed: Vec<NameRemark>,
    /// As [`Symbols::outside`].
    pub outside: [u64; 2],
}

const MAX_DAMAGED: usize = 1000;
/// Bytes of frames per job.
const JOB_BYTES: usize = 256 << 10;

impl DumpOutcome {
    fn damage(&mut self, damage: Damage) {
        self.damages += 1;
        if self.damaged.len() < MAX_DAMAGED {
            self.damaged.push(damage);
        }
    }

    fn written(&mut self, written: WrittenRows) {
        self.rows += written.rows;
        self.untimed += written.untimed;
        if let Some(damage) = written.damage {
            self.damage(damage);
        }
    }
}

/// Compiles `$work` for the writer of each format, and runs it for `$format`.
macro_rules! with_writer {
    ($format:expr, $writer:ident => $work:expr) => {
        with_writer!($format, $writer => $work,
            Tsv: Tsv, Csv: Csv<false>, CsvForSpreadsheet: Csv<true>, JsonLines: JsonLines)
    };
    ($format:expr, $writer:ident => $work:expr, $($case:ident: $of:ty),*) => {
        match $format {
            $(TableFormat::$case => {
                type $writer = $of;
                $work
            })*
        }
    };
}

/// Writes the capture at `path` as a table to `out`. `-` is standard input. `out` need not buffer.
///
/// A file is first surveyed for its buffers and clocks, and all processors make its rows. The table
/// of a stream has the buffers that come before the first frames, and converts ticks by the clock
/// readings so far.
///
/// # Errors
/// The capture cannot be read, a requested buffer or frame is not in it, or writing to `out` fails. Damage is
/// not an error: intact rows are written, and the [`DumpOutcome`] lists the damage.
pub fn dump(path: &Path, options: &DumpRequest, out: impl Write) -> Result<DumpOutcome, DumpError> {
    with_writer!(options.format, Writer => TableOutput::<_, Writer>::new(options, out).of_file(path))
}

/// Writes a capture that comes from a stream as a table.
///
/// # Errors
/// As for [`dump`].
pub fn dump_stream(
    reader: impl Read + 'static,
    options: &DumpRequest,
    out: impl Write,
) -> Result<DumpOutcome, DumpError> {
    let capture = Capture::from_reader(reader)?;
    with_writer!(
        options.format,
        Writer => TableOutput::<_, Writer>::new(options, out).one_by_one(capture)
    )
}

struct TableOutput<'a, W, F> {
    out: W,
    writer: F,
    /// Text that has not been written to `out` yet.
    text: Vec<u8>,
    options: &'a DumpRequest,
    /// `None` until the first row must be written.
    plan: Option<TablePlan>,
    clocks: ClockTable,
    /// The names of threads; empty if they are not requested.
    threads: ThreadTable,
    /// Names code addresses. `None` if names are not requested.
    symbols: Option<Symbols>,
    /// Realtime − monotonic, ns; set together with the plan.
    offset: Option<i128>,
    /// The bounds of the rows; set together with the plan.
    window: Option<TableBounds>,
    /// The format of times; set together with the plan.
    times: Option<TimeCells>,
    /// Takes the rows if they are written in another order.
    sorter: Option<Sorter>,
    /// Whether rows are written without waiting for further rows.
    live: bool,
    outcome: DumpOutcome,
}

impl<'a, W: Write, F: TableWriter + Default + Send> TableOutput<'a, W, F> {
    fn new(options: &'a DumpRequest, out: W) -> Self {
        Self {
            out,
            writer: F::default(),
            text: Vec::new(),
            options,
            plan: None,
            clocks: ClockTable::default(),
            threads: ThreadTable::default(),
            symbols: None,
            offset: None,
            window: None,
            times: None,
            sorter: match &options.order {
                RowOrder::Time(limits) if !options.gaps => Some(Sorter::new(limits)),
                _ => None,
            },
            live: true,
            outcome: DumpOutcome::default(),
        }
    }

    fn of_file(mut self, path: &Path) -> Result<DumpOutcome, DumpError> {
        if let Some(mut survey) = Capture::survey(path)? {
            let mut processes = BTreeMap::new();
            self.name_addresses(survey.header());
            while let Some(item) = survey.read().map_err(CaptureError::Io)? {
                self.learn(&item, &mut processes);
            }
            self.live = false;
            self.begin(&survey.sources().collect::<Vec<_>>(), survey.header())?;
        }
        let capture = Capture::open(path)?;
        if self.live || self.options.gaps {
            self.one_by_one(capture)
        } else {
            self.side_by_side(capture)
        }
    }

    /// Sets up names of addresses, if they are requested.
    fn name_addresses(&mut self, header: Option<&FileHeader>) {
        let host = header.map(CaptureHost::of_header).unwrap_or_default();
        let places = self.options.addresses.clone().filter(|_| !self.options.gaps);
        self.symbols = places.map(|places| Symbols::new(places, host));
    }

    /// Extracts what rows need from clocks, threads and modules. `processes` holds those of the
    /// sources so far.
    fn learn(&mut self, item: &CaptureItem<'_>, processes: &mut BTreeMap<u16, Process>) {
        match item {
            CaptureItem::Chunk(Chunk::Clock(readings)) => self.clocks.add(readings),
            CaptureItem::Chunk(Chunk::Source(info)) => {
                processes.insert(info.id, info.source.process.clone());
                if let Some(hz) = info.source.tick_hz {
                    self.clocks.set_tick_hz(hz);
                }
            }
            CaptureItem::Chunk(Chunk::Threads(names)) if self.options.names => {
                if let Some(process) = processes.get(&names.source) {
                    self.threads.add(process.key(), names);
                }
            }
            CaptureItem::Chunk(Chunk::Modules(modules)) => {
                if let (Some(symbols), Some(process)) =
                    (&mut self.symbols, processes.get(&modules.source))
                {
                    symbols.add(process, modules);
                }
            }
            _ => {}
        }
    }

    fn begin(
        &mut self,
        sources: &[&SourceInfo],
        header: Option<&FileHeader>,
    ) -> Result<(), DumpError> {
        let DumpRequest { from, to, .. } = *self.options;
        self.offset = epoch_offset(header, &self.clocks);
        self.window = TableBounds::new(from, to, header, &self.clocks)?;
        let plan = TablePlan::new(sources, self.options)?;
        self.times = self.time_cells(&plan, header)?;
        self.writer.header(&self.columns(&plan), &mut self.text);
        self.plan = Some(plan);
        self.hand_over()
    }

    /// The format of times, in a capture with this header.
    fn time_cells(
        &self,
        plan: &TablePlan,
        header: Option<&FileHeader>,
    ) -> Result<Option<TimeCells>, DumpError> {
        let Some(format) = plan.time else { return Ok(None) };
        let start = header.zip(self.offset);
        let start = start.map(|(header, offset)| i128::from(header.created_mono_ns) + offset);
        if start.is_none() && format == TimeFormat::Rel {
            return Err(DumpError::NoStart);
        }
        Ok(Some(TimeCells { format, offset: self.offset, start: start.unwrap_or(0) }))
    }

    fn columns(&self, plan: &TablePlan) -> Vec<String> {
        if self.options.gaps { gaps::columns(plan.by_process) } else { plan.columns.clone() }
    }

    /// Writes the pending text. Also flushes if a reader may be watching.
    fn hand_over(&mut self) -> Result<(), DumpError> {
        self.out.write_all(&self.text).map_err(DumpError::Output)?;
        self.text.clear();
        if self.live { self.out.flush().map_err(DumpError::Output) } else { Ok(()) }
    }

    /// Reads and writes one chunk after the other.
    fn one_by_one(mut self, mut capture: Capture) -> Result<DumpOutcome, DumpError> {
        let header = capture.header().cloned();
        let mut sources: Vec<SourceInfo> = Vec::new();
        let mut processes = BTreeMap::new();
        if self.live {
            self.name_addresses(header.as_ref());
        }
        let created = header.as_ref().map_or(0, |header| header.created_mono_ns);
        let mut window = GapWindow::new(self.window.clone(), created);
        let DumpRequest { from, to, gaps: of_gaps, .. } = *self.options;
        let part = of_gaps && (from.is_some() || to.is_some());
        while let Some(item) = read(&mut capture, part, |head| window.may_hold(head))? {
            if self.live {
                self.learn(&item, &mut processes);
            }
            let rows = match &item {
                CaptureItem::Chunk(Chunk::Frames(_)) => true,
                CaptureItem::Chunk(Chunk::Gap(_)) => of_gaps,
                _ => false,
            };
            if rows && self.plan.is_none() {
                self.begin(&sources.iter().collect::<Vec<_>>(), header.as_ref())?;
                window.set(self.window.clone());
            }
            match item {
                CaptureItem::Damage(damage) => self.outcome.damage(damage),
                CaptureItem::Chunk(Chunk::Source(info)) if self.live => {
                    sources.retain(|known| known.id != info.id);
                    sources.push(info.clone());
                    if self.plan.is_some() && self.writer.grows() {
                        self.begin(&sources.iter().collect::<Vec<_>>(), header.as_ref())?;
                    }
                }
                CaptureItem::Chunk(Chunk::Frames(frames)) if of_gaps => {
                    let missing = gaps::of_frames(&frames);
                    missing.iter().for_each(|gap| self.gap(gap, window.has(gap, false)));
                }
                CaptureItem::Chunk(Chunk::Frames(frames)) => self.frames(&frames)?,
                CaptureItem::Chunk(Chunk::Gap(gap)) if of_gaps => {
                    self.gap(&gap, window.has(&gap, false));
                }
                CaptureItem::Chunk(_) => {}
            }
            self.hand_over()?;
        }
        if self.plan.is_none() {
            self.begin(&sources.iter().collect::<Vec<_>>(), header.as_ref())?;
            window.set(self.window.clone());
        }
        if of_gaps {
            let holes = capture.account().holes();
            holes.for_each(|hole| self.gap(&hole, window.has(&hole, true)));
        }
        self.hand_over()?;
        self.outcome.cut = capture.finish().cut;
        self.done()
    }

    /// Writes the sorted rows, if rows are sorted.
    fn done(mut self) -> Result<DumpOutcome, DumpError> {
        if let Some(sorter) = self.sorter.take() {
            sorter.finish(&mut self.out)?;
        }
        self.out.flush().map_err(DumpError::Output)?;
        self.outcome.outside = self.symbols.as_ref().map(Symbols::outside).unwrap_or_default();
        self.outcome.unnamed = self.symbols.as_ref().map(Symbols::remarks).unwrap_or_default();
        Ok(self.outcome)
    }

    fn frames(&mut self, frames: &ChunkFrames<'_>) -> Result<(), DumpError> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let DumpRequest { buffers, frame, matching, .. } = self.options;
        let shows_all = buffers.is_empty() && frame.is_none() && matching.is_none();
        if shows_all && !plan.sources.contains_key(&frames.head.source) {
            self.outcome.unshown += u64::from(frames.head.count);
        }
        let (clocks, window) = (&self.clocks, self.window.as_ref());
        let (times, with_keys) = (self.times, self.sorter.is_some());
        let (threads, offset) = (&self.threads, self.offset);
        let symbols = self.symbols.as_ref();
        let rows = RowContext { plan, clocks, threads, symbols, offset, window, times, with_keys };
        let chunk = (frames.offset, &frames.head);
        let written = rows.write(chunk, frames.iter(), &mut self.writer, &mut self.text);
        if let Some(sorter) = &mut self.sorter {
            sorter.push(&written.keyed, &self.text)?;
            self.text.clear();
        }
        self.outcome.written(written);
        Ok(())
    }

    fn gap(&mut self, gap: &Gap, wanted: Option<bool>) {
        let Some(plan) = &self.plan else { return };
        let Some(source) = plan.sources.get(&gap.source) else { return };
        match wanted {
            Some(true) => {
                let pid = plan.by_process.then_some(source.pid);
                gaps::write(&mut self.writer, &source.label, pid, gap, &mut self.text);
                self.outcome.rows += 1;
            }
            Some(false) => {}
            None => self.outcome.untimed += 1,
        }
    }

    /// Lets all processors make the rows, and writes them in order. The plan exists already.
    fn side_by_side(mut self, mut capture: Capture) -> Result<DumpOutcome, DumpError> {
        let plan = self.plan.take().unwrap_or_default();
        let (columns, clocks, window) = (self.columns(&plan), &self.clocks, self.window.as_ref());
        let (times, with_keys) = (self.times, self.sorter.is_some());
        let (threads, offset) = (&self.threads, self.offset);
        let symbols = self.symbols.as_ref();
        let plan = &plan;
        let rows = RowContext { plan, clocks, threads, symbols, offset, window, times, with_keys };
        let worker = || {
            let mut writer = F::default();
            writer.header(&columns, &mut Vec::new());
            move |mut job: RowJob| {
                job.write(rows, &mut writer);
                job
            }
        };
        let (out, outcome, sorter) = (&mut self.out, &mut self.outcome, &mut self.sorter);
        let mut take = |mut job: RowJob| {
            let keyed: Vec<_> =
                job.written.iter().flat_map(|rows| rows.keyed.iter().copied()).collect();
            job.written.drain(..).for_each(|rows| outcome.written(rows));
            match sorter {
                Some(sorter) => sorter.push(&keyed, &job.text)?,
                None => out.write_all(&job.text).map_err(DumpError::Output)?,
            }
            Ok::<_, DumpError>(job)
        };
        let (jobs, fetch) = counter();
        let mut reading = DumpOutcome::default();
        let wanted =
            |head: &FramesHead| window.is_none_or(|window| window.may_hold(head, plan, clocks));
        thread::scope(|scope| {
            let mut ordered = Ordered::start(scope, (jobs, &fetch), worker);
            let mut job = RowJob::default();
            while let Some(item) = read(&mut capture, window.is_some(), wanted)? {
                match item {
                    CaptureItem::Damage(damage) => reading.damage(damage),
                    CaptureItem::Chunk(Chunk::Frames(frames)) => {
                        job.add(&frames);
                        if job.bytes >= JOB_BYTES
                            && let Some(done) = ordered.push(std::mem::take(&mut job))
                        {
                            job = take(done)?;
                        }
                    }
                    CaptureItem::Chunk(_) => {}
                }
            }
            ordered.push(job).map(&mut take).transpose()?;
            while let Some(done) = ordered.pop() {
                take(done)?;
            }
            Ok::<_, DumpError>(())
        })?;
        self.outcome.damages += reading.damages;
        self.outcome.damaged.extend(reading.damaged);
        self.outcome.damaged.truncate(MAX_DAMAGED);
        self.outcome.cut = capture.finish().cut;
        self.done()
    }
}

/// The next item. For a part of a capture, frames that are not `wanted` are skipped.
fn read<'a>(
    capture: &'a mut Capture,
    part: bool,
    wanted: impl Fn(&FramesHead) -> bool,
) -> Result<Option<CaptureItem<'a>>, DumpError> {
    let item = if part { capture.read_chosen(&wanted) } else { capture.read() };
    Ok(item.map_err(CaptureError::Io)?)
}

/// Chunks that are to become rows. The memory is reused.
#[derive(Default)]
struct RowJob {
    chunks: Vec<OwnedFrames>,
    /// The number of chunks in use.
    count: usize,
    /// Bytes of their frames.
    bytes: usize,
    text: Vec<u8>,
    written: Vec<WrittenRows>,
}

impl RowJob {
    fn add(&mut self, frames: &ChunkFrames<'_>) {
        if self.count == self.chunks.len() {
            self.chunks.push(OwnedFrames::default());
        }
        frames.copy_to(&mut self.chunks[self.count]);
        self.count += 1;
        self.bytes += frames.bytes().len();
    }

    fn write<F: TableWriter>(&mut self, rows: RowContext<'_>, writer: &mut F) {
        self.text.clear();
        for chunk in &self.chunks[..self.count] {
            let head = (chunk.offset, &chunk.head);
            self.written.push(rows.write(head, chunk.iter(), writer, &mut self.text));
        }
        (self.count, self.bytes) = (0, 0);
    }
}
