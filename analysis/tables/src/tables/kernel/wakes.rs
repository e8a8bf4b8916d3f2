//! Wake-ups as edges: a thread woke another thread of its process, which then got a CPU.
//!
//! The cause is the frame `wakeup`, attributed to the waker; the effect is the frame `switch_in` of the woken
//! thread. Wake-ups by interrupts and other processes make no edges.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, SchemaRef};

use super::chosen::Chosen;
use super::frames::KernelFrames;
use super::read::{KernelBatch, ReadColumn, SEQNO, at, columns_read};
use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::causality::{EdgeColumn, EndColumn, ShownEnd, edge_column};
use crate::chunk_scan::ChunkScan;
use crate::error::TableError;
use crate::kernel::{FramePosition, KernelFrameKind, KernelWord, Records, ThreadEvent};
use crate::set::CaptureSet;
use crate::standard::Standard;
use crate::table::{Pass, Planned, ROWS_PER_BATCH, Runner, Scan, Start, TableRequest};

/// The kind of these edges.
pub(in crate::tables) const WAKE: &str = "wake";
/// The kinds of frames at their ends, which take the place of points.
const ENDS: [&str; 2] = ["wakeup", "switch_in"];

/// The wake-ups of a set of captures.
#[derive(Debug)]
pub(in crate::tables) struct WakeEdges {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
}

impl WakeEdges {
    /// The wake-ups of `set`; None if no capture has frames of the kernel.
    pub fn new(set: &Arc<CaptureSet>) -> Option<WakeEdges> {
        let frames = || Arc::new(KernelFrames::new(set));
        set.has_kernel().then(|| WakeEdges { set: set.clone(), frames: frames() })
    }

    /// Plans their rows of `edges`. `schema` has the requested columns.
    pub fn links(
        &self,
        request: &TableRequest<'_>,
        schema: SchemaRef,
    ) -> Result<Planned, TableError> {
        const KINDS: &[KernelFrameKind] = &[
            KernelFrameKind::Watched,
            KernelFrameKind::ThreadStart,
            KernelFrameKind::ThreadEnd,
            KernelFrameKind::SwitchIn,
            KernelFrameKind::SwitchOut,
            KernelFrameKind::Wakeup,
        ];
        let frames = self.frames.clone();
        let chosen = Arc::new(Chosen { frames: frames.clone(), kinds: KINDS, threads: None });
        let (read, bounds) = (columns_read(), Bounds::default());
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &chosen, &inner)?);
        let columns: Vec<EdgeColumn> =
            request.columns.iter().map(|&column| edge_column(column)).collect();
        let (set, out) = (self.set.clone(), schema.clone());
        let start = Start(Arc::new(move || {
            Box::new(WakeFollower {
                set: set.clone(),
                frames: frames.clone(),
                records: None,
                thread: None,
                latest: FramePosition::BEGIN,
                woken: None,
                columns: columns.clone(),
                schema: out.clone(),
                edges: Vec::new(),
            })
        }));
        let group_by = vec![at(ReadColumn::Group), at(ReadColumn::Thread)];
        let order = group_by.iter().copied().chain([SEQNO]).map(|column| (column, false)).collect();
        let explain_text = "edges: who woke whom".to_owned();
        let pass = Pass { schema, group_by, order, start, explain_text };
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }
}

/// A frame of the kernel, and its thread: the waker, or the thread that got the CPU.
#[derive(Debug, Clone, Copy)]
struct KernelFrame {
    capture: i32,
    seqno: u64,
    /// ns since the epoch.
    ts: i64,
    tid: i32,
}

/// The wake-up of a thread that has no CPU yet.
#[derive(Debug, Clone, Copy)]
struct Woken {
    /// The `wakeup` frame; None if the waker is not a thread of the process.
    by: Option<KernelFrame>,
    /// The wake-up came before the thread gave up its CPU. A later one replaces it.
    is_early: bool,
}

/// A wake-up, and the switch that it led to.
#[derive(Debug, Clone, Copy)]
struct WakeEdge {
    group: i32,
    src: KernelFrame,
    dst: KernelFrame,
}

/// Follows one thread after the other.
struct WakeFollower {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    records: Option<Arc<Vec<Records>>>,
    /// Group and id of the current thread.
    thread: Option<(i32, i32)>,
    /// The latest frame of the current thread.
    latest: FramePosition,
    woken: Option<Woken>,
    columns: Vec<EdgeColumn>,
    schema: SchemaRef,
    edges: Vec<WakeEdge>,
}

impl Runner for WakeFollower {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        let records = match &self.records {
            Some(records) => records.clone(),
            None => self.records.insert(self.frames.records(&self.set)?).clone(),
        };
        let batch = KernelBatch::new(&batch);
        let mut done = Vec::new();
        for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
            let (group, thread) = (batch.groups.value(row), batch.threads.value(row));
            if self.thread != Some((group, thread)) {
                self.thread = Some((group, thread));
                (self.latest, self.woken) = (FramePosition::BEGIN, None);
            } else if batch.seqno(row) <= self.latest.seqno {
                // Two captures of one session have the same frame.
                continue;
            }
            // Clocks of two files of one session may differ by a few ns.
            let ts = batch.times.value(row).max(self.latest.ts);
            let here = FramePosition { seqno: batch.seqno(row), ts };
            let records = records.get(group as usize).filter(|_| self.latest.seqno > 0);
            if records.is_some_and(|records| records.missing(self.latest, here, None).is_some()) {
                self.woken = None;
            }
            self.latest = here;
            let frame = |tid| KernelFrame {
                capture: batch.captures.value(row),
                seqno: here.seqno,
                ts: here.ts,
                tid,
            };
            match batch.event(row) {
                Some(ThreadEvent::Wake { by, waker, .. }) => {
                    let is_thread = by == KernelWord::Thread.key() && waker > 0;
                    let by = is_thread.then(|| frame(waker));
                    let earlier = self.woken.filter(|woken| !woken.is_early);
                    self.woken = earlier.or(Some(Woken { by, is_early: false }));
                }
                Some(ThreadEvent::In { .. }) => {
                    let by = self.woken.take().and_then(|woken| woken.by);
                    let dst = frame(thread);
                    self.edges.extend(by.map(|src| WakeEdge { group, src, dst }));
                }
                Some(ThreadEvent::Out { preempted: false, .. }) => {
                    self.woken.iter_mut().for_each(|woken| woken.is_early = true);
                }
                Some(_) => self.woken = None,
                None => {}
            }
            if self.edges.len() >= ROWS_PER_BATCH {
                done.push(self.batch()?);
            }
        }
        Ok(done)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if self.edges.is_empty() { Ok(Vec::new()) } else { Ok(vec![self.batch()?]) }
    }
}

impl WakeFollower {
    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let edges = std::mem::take(&mut self.edges);
        let types = self.schema.fields().iter().map(|field| field.data_type().clone());
        let columns = self.columns.iter().zip(types);
        let columns = columns.map(|(column, ty)| {
            let mut builder = self.builder(*column, &ty);
            edges.iter().for_each(|edge| self.cell(*column, edge, &mut builder));
            builder.finish()
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(edges.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }

    fn builder(&self, column: EdgeColumn, ty: &DataType) -> Builder {
        let word = |word: &str| Some(Arc::new(StringArray::from_iter_values([word])));
        let words = match column {
            EdgeColumn::End(_, EndColumn::Standard(standard)) => {
                standard.dictionary(self.set.names())
            }
            EdgeColumn::End(ShownEnd::Source, EndColumn::Point) => word(ENDS[0]),
            EdgeColumn::End(ShownEnd::Destination, EndColumn::Point) => word(ENDS[1]),
            EdgeColumn::Kind => word(WAKE),
            EdgeColumn::Certainty => word("certain"),
            _ => None,
        };
        Builder::new(ty, words.as_ref())
    }

    fn cell(&self, column: EdgeColumn, edge: &WakeEdge, to: &mut Builder) {
        let group = self.frames.groups.get(edge.group as usize);
        let frame = |end| if end == ShownEnd::Source { edge.src } else { edge.dst };
        match column {
            EdgeColumn::End(end, EndColumn::Standard(standard)) => match standard {
                Standard::Capture => to.repeat(Some(frame(end).capture), 1),
                Standard::Buffer => to.repeat(group.map(|group| group.buffer), 1),
                Standard::Segment => to.repeat(group.map(|group| group.segment), 1),
                Standard::Host => to.repeat(group.map(|group| group.host), 1),
                Standard::Ring => to.repeat(group.and_then(|group| group.ring), 1),
                Standard::Pid => to.repeat(group.and_then(|group| group.pid), 1),
                Standard::Tid => to.repeat(Some(frame(end).tid), 1),
                Standard::Seqno => to.repeat(i64::try_from(frame(end).seqno).ok(), 1),
                Standard::Ts => to.repeat(Some(frame(end).ts), 1),
                Standard::Drained => to.nulls(1),
            },
            EdgeColumn::End(_, EndColumn::Point) | EdgeColumn::Kind | EdgeColumn::Certainty => {
                to.repeat(Some(0i32), 1);
            }
            EdgeColumn::Latency | EdgeColumn::LatencyLo | EdgeColumn::LatencyHi => {
                to.repeat(edge.dst.ts.checked_sub(edge.src.ts), 1);
            }
            EdgeColumn::Type | EdgeColumn::Policy => to.nulls(1),
        }
    }
}
