//! Wake-ups as edges: a thread woke another one of its process, which then got a CPU.
//!
//! The cause is the frame `wakeup`, whose thread is the one that woke; the effect is the frame `switch_in` of
//! the thread that was woken. What interrupts and other processes wake has no cause here.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, SchemaRef};

use super::chosen::Chosen;
use super::columns::ROWS;
use super::frames::KernelFrames;
use super::read::{KernelBatch, ReadColumn, SEQNO, at, columns_read};
use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::causality::{EdgeColumn, EndColumn, ShownEnd, edge_column};
use crate::error::TableError;
use crate::kernel::{KernelFrameKind, KernelWord, Records, ThreadEvent};
use crate::of_chunks::ChunkScan;
use crate::set::CaptureSet;
use crate::standard::Standard;
use crate::table::{Pass, Planned, Runner, Scan, Start, TableRequest};

/// What such edges are called.
pub(in crate::tables) const WAKE: &str = "wake";
/// The kinds of frames that are their ends, which stand for points.
const ENDS: [&str; 2] = ["wakeup", "switch_in"];

/// The wake-ups of a set of captures.
#[derive(Debug)]
pub(in crate::tables) struct Wakes {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
}

impl Wakes {
    /// None: no capture has frames of the kernel.
    pub fn new(set: &Arc<CaptureSet>) -> Option<Wakes> {
        let frames = || Arc::new(KernelFrames::new(set));
        set.has_kernel().then(|| Wakes { set: set.clone(), frames: frames() })
    }

    /// Their rows of `edges`: `schema` has the columns that are asked for.
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
            Box::new(Follow {
                set: set.clone(),
                frames: frames.clone(),
                records: None,
                thread: None,
                latest: (0, i64::MIN),
                woken: None,
                columns: columns.clone(),
                schema: out.clone(),
                edges: Vec::new(),
            })
        }));
        let together = vec![at(ReadColumn::Group), at(ReadColumn::Thread)];
        let order = together.iter().copied().chain([SEQNO]).map(|column| (column, false)).collect();
        let told = "edges: who woke whom".to_owned();
        let pass = Pass { schema, together, order, start, told };
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }
}

/// One of the kernel's frames, and whose it is: who woke, or who got the CPU.
#[derive(Debug, Clone, Copy)]
struct KernelFrame {
    capture: i32,
    seqno: u64,
    /// ns since the epoch.
    ts: i64,
    tid: i32,
}

/// What woke a thread that has no CPU yet.
#[derive(Debug, Clone, Copy)]
struct Woken {
    /// None: no thread of the process did.
    by: Option<KernelFrame>,
    /// It came before the thread gave up its CPU; a later one counts instead.
    is_early: bool,
}

#[derive(Debug, Clone, Copy)]
struct WakeEdge {
    group: i32,
    src: KernelFrame,
    dst: KernelFrame,
}

/// Follows threads, one after the other.
struct Follow {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    records: Option<Arc<Vec<Records>>>,
    /// Group and thread that are followed.
    thread: Option<(i32, i32)>,
    /// Number and time of its latest frame.
    latest: (u64, i64),
    woken: Option<Woken>,
    columns: Vec<EdgeColumn>,
    schema: SchemaRef,
    edges: Vec<WakeEdge>,
}

impl Runner for Follow {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        let records = match &self.records {
            Some(known) => known.clone(),
            None => self.records.insert(self.frames.records(&self.set)?).clone(),
        };
        let batch = KernelBatch::new(&batch);
        let mut done = Vec::new();
        for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
            let (group, thread) = (batch.groups.value(row), batch.threads.value(row));
            if self.thread != Some((group, thread)) {
                self.thread = Some((group, thread));
                (self.latest, self.woken) = ((0, i64::MIN), None);
            } else if batch.seqno(row) <= self.latest.0 {
                // Two captures of one session have the same frame.
                continue;
            }
            // Clocks of two files of one session may differ by a few ns.
            let here = (batch.seqno(row), batch.times.value(row).max(self.latest.1));
            let known = records.get(group as usize).filter(|_| self.latest.0 > 0);
            if known.is_some_and(|known| known.missing(self.latest, here, None).is_some()) {
                self.woken = None;
            }
            self.latest = here;
            let frame = |tid| KernelFrame {
                capture: batch.captures.value(row),
                seqno: here.0,
                ts: here.1,
                tid,
            };
            match batch.event(row) {
                Some(ThreadEvent::Wake { by, waker, .. }) => {
                    let is_thread = by == KernelWord::Thread.key() && waker > 0;
                    let by = is_thread.then(|| frame(waker));
                    let known = self.woken.filter(|woken| !woken.is_early);
                    self.woken = known.or(Some(Woken { by, is_early: false }));
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
            if self.edges.len() >= ROWS {
                done.push(self.batch()?);
            }
        }
        Ok(done)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if self.edges.is_empty() { Ok(Vec::new()) } else { Ok(vec![self.batch()?]) }
    }
}

impl Follow {
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
            EdgeColumn::Of(_, EndColumn::Standard(standard)) => {
                standard.dictionary(self.set.names())
            }
            EdgeColumn::Of(ShownEnd::Source, EndColumn::Point) => word(ENDS[0]),
            EdgeColumn::Of(ShownEnd::Destination, EndColumn::Point) => word(ENDS[1]),
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
            EdgeColumn::Of(end, EndColumn::Standard(standard)) => match standard {
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
            EdgeColumn::Of(_, EndColumn::Point) | EdgeColumn::Kind | EdgeColumn::Certainty => {
                to.repeat(Some(0i32), 1);
            }
            EdgeColumn::Latency | EdgeColumn::LatencyLo | EdgeColumn::LatencyHi => {
                to.repeat(edge.dst.ts.checked_sub(edge.src.ts), 1);
            }
            EdgeColumn::Type | EdgeColumn::Policy => to.nulls(1),
        }
    }
}
