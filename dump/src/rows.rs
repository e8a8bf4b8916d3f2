//! From a capture to a table: one row per frame, in capture order.

use std::io::{self, Read, Write};
use std::path::Path;

use ppt_capture::{
    Capture, CaptureError, Chunk, ClockTable, Damage, DamageKind, Frames, Item, SourceInfo, Stamps,
};

use crate::csv::Csv;
use crate::error::DumpError;
use crate::gaps;
use crate::jsonl::JsonLines;
use crate::plan::{FramePlan, Plan};
use crate::table::{TableWriter, Value};
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
    fn writer<'a, W: Write + 'a>(self, out: W) -> Box<dyn TableWriter + 'a> {
        match self {
            Format::Tsv => Box::new(Tsv::new(out)),
            Format::Csv => Box::new(Csv::new(out)),
            Format::JsonLines => Box::new(JsonLines::new(out)),
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
    /// Gaps instead of frames: `buffer`, `pid` where there are several, `segment`, `ring`, `first_seq`, `count`, `cause`. Of the
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

impl Outcome {
    fn damage(&mut self, damage: Damage) {
        self.damages += 1;
        if self.damaged.len() < MAX_DAMAGED {
            self.damaged.push(damage);
        }
    }
}

/// Writes the capture at `path` (`-`: standard input) as a table to `out`, which need not buffer.
///
/// A file is first surveyed for its buffers and clocks. A stream shows what it introduces before
/// its first frames; ticks become time as far as its clock readings have come.
///
/// # Errors
/// See [`DumpError`]. Damage is no error: good rows are written, the rest is in the [`Outcome`].
pub fn dump(path: &Path, options: &Options, out: impl Write) -> Result<Outcome, DumpError> {
    let survey = Capture::survey(path)?;
    let capture = Capture::open(path)?;
    dump_capture(survey, capture, options, out)
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
    dump_capture(None, Capture::from_reader(reader)?, options, out)
}

/// `survey` has not been read from.
fn dump_capture(
    survey: Option<Capture>,
    mut capture: Capture,
    options: &Options,
    out: impl Write,
) -> Result<Outcome, DumpError> {
    let mut table = Table {
        writer: options.format.writer(out),
        options,
        plan: None,
        clocks: ClockTable::default(),
        live: survey.is_none(),
        outcome: Outcome::default(),
    };
    if let Some(mut survey) = survey {
        while let Some(item) = survey.read().map_err(CaptureError::Io)? {
            table.learn(&item);
        }
        table.begin(&survey.sources().collect::<Vec<_>>())?;
    }
    let mut sources: Vec<SourceInfo> = Vec::new();
    while let Some(item) = capture.read().map_err(CaptureError::Io)? {
        if table.live {
            table.learn(&item);
        }
        match item {
            Item::Damage(damage) => table.outcome.damage(damage),
            Item::Chunk(Chunk::Source(info)) if table.live => {
                sources.retain(|known| known.id != info.id);
                sources.push(info.clone());
                if table.plan.is_some() && table.writer.grows() {
                    table.begin(&sources.iter().collect::<Vec<_>>())?;
                }
            }
            Item::Chunk(Chunk::Frames(frames)) => {
                if table.plan.is_none() {
                    table.begin(&sources.iter().collect::<Vec<_>>())?;
                }
                table.frames(&frames)?;
            }
            Item::Chunk(Chunk::Gap(gap)) if options.gaps => {
                if table.plan.is_none() {
                    table.begin(&sources.iter().collect::<Vec<_>>())?;
                }
                table.gap(&gap)?;
            }
            Item::Chunk(_) => {}
        }
    }
    if table.plan.is_none() {
        table.begin(&sources.iter().collect::<Vec<_>>())?;
    }
    if options.gaps {
        for hole in capture.account().holes() {
            table.gap(&hole)?;
        }
    }
    table.writer.flush().map_err(DumpError::Output)?;
    table.outcome.cut = capture.finish().cut;
    Ok(table.outcome)
}

struct Table<'a> {
    writer: Box<dyn TableWriter + 'a>,
    options: &'a Options,
    /// None until the first row must be written.
    plan: Option<Plan>,
    clocks: ClockTable,
    /// Whether rows should not wait for more rows.
    live: bool,
    outcome: Outcome,
}

impl Table<'_> {
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
        let columns =
            if self.options.gaps { &gaps::columns(plan.by_process) } else { &plan.columns };
        self.writer.header(columns).map_err(DumpError::Output)?;
        if self.live {
            self.writer.flush().map_err(DumpError::Output)?;
        }
        self.plan = Some(plan);
        Ok(())
    }

    fn frames(&mut self, frames: &Frames<'_>) -> Result<(), DumpError> {
        let written = if self.options.gaps { self.lost_frames(frames) } else { self.rows(frames) };
        written.map_err(DumpError::Output)?;
        if self.live {
            self.writer.flush().map_err(DumpError::Output)?;
        }
        Ok(())
    }

    fn lost_frames(&mut self, frames: &Frames<'_>) -> io::Result<()> {
        for gap in gaps::of_frames(frames) {
            self.write_gap(&gap)?;
        }
        Ok(())
    }

    fn gap(&mut self, gap: &ppt_capture::Gap) -> Result<(), DumpError> {
        self.write_gap(gap).map_err(DumpError::Output)
    }

    fn write_gap(&mut self, gap: &ppt_capture::Gap) -> io::Result<()> {
        let Some(plan) = &self.plan else { return Ok(()) };
        if let Some(source) = plan.sources.get(&gap.source) {
            let pid = plan.by_process.then_some(source.pid);
            gaps::write(&mut *self.writer, &source.label, pid, gap)?;
            self.outcome.rows += 1;
        }
        Ok(())
    }

    fn rows(&mut self, frames: &Frames<'_>) -> io::Result<()> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let Some(source) = plan.sources.get(&frames.head.source) else {
            if self.live && self.options.buffers.is_empty() && self.options.frame.is_none() {
                self.outcome.unshown += u64::from(frames.head.count);
            }
            return Ok(());
        };
        let (head, writer) = (&frames.head, &mut *self.writer);
        let stamps = Stamps {
            table: &self.clocks,
            drained_ns: head.drained_mono_ns,
            monotonic_offset: source.monotonic_offset,
        };
        let mut unknown = None;
        for (seq, bytes) in frames.iter() {
            let Some(frame) = kind_of(&source.frames, bytes) else {
                unknown.get_or_insert((seq, frame_id(bytes)));
                continue;
            };
            if !frame.wanted {
                continue;
            }
            writer.cell(Value::Unsigned(seq))?;
            writer.cell(Value::Unsigned(head.ring.into()))?;
            writer.cell(match head.tid {
                0 => Value::Empty,
                tid => Value::Unsigned(tid.into()),
            })?;
            if plan.by_process {
                writer.cell(Value::Unsigned(source.pid.into()))?;
            }
            if plan.by_buffer {
                writer.cell(Value::Text(source.label.as_bytes()))?;
            }
            if plan.by_frame {
                writer.cell(Value::Text(frame.name.as_bytes()))?;
            }
            let bytes = bytes.get(..frame.size).unwrap_or(bytes);
            for cell in &frame.cells {
                let read = |cell| crate::cell::Cell::read(cell, bytes, stamps);
                writer.cell(cell.as_ref().map_or(Value::Empty, read))?;
            }
            writer.end_row()?;
            self.outcome.rows += 1;
        }
        if let Some((seq, id)) = unknown {
            let kind = DamageKind::UnknownFrame { ring: head.ring, seq, id };
            self.outcome.damage(Damage { offset: frames.offset, kind });
        }
        Ok(())
    }
}

/// Where several frames share a buffer: the u16 after the sequence number.
fn frame_id(bytes: &[u8]) -> u16 {
    bytes.get(8..10).map_or(0, |id| u16::from_le_bytes([id[0], id[1]]))
}

fn kind_of<'a>(frames: &'a [FramePlan], bytes: &[u8]) -> Option<&'a FramePlan> {
    match frames {
        [only] => Some(only),
        several => several.get(usize::from(frame_id(bytes))),
    }
}
