//! Builds a graph from the rows of tables.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::error::Result;
use ppt_causality::{Certainty, EdgeKind, Graph, GraphLink, Vertex};
use ppt_tables::Clocks;

use super::{Causality, FrameId, FrameOwner, Numbering, Texts};
use crate::error::external;

/// A table that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Input {
    Points,
    Edges,
    Unmatched,
    Gaps,
}

/// The columns of a point, or of one end of an edge.
const FRAME_COLUMNS: [&str; 9] =
    ["capture", "buffer", "segment", "ring", "seqno", "pid", "tid", "point", "ts"];
const EDGE_COLUMNS: [&str; 3] = ["kind", "policy", "certainty"];

impl Input {
    /// The name of the table.
    pub fn table(self) -> &'static str {
        self.into()
    }

    /// The columns to read, in order.
    pub fn columns(self) -> Vec<String> {
        let own = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        match self {
            Input::Points => own(&FRAME_COLUMNS),
            Input::Edges => {
                let ends = ["src", "dst"].into_iter();
                let ends = ends.flat_map(|end| FRAME_COLUMNS.map(|name| format!("{end}_{name}")));
                ends.chain(EDGE_COLUMNS.map(str::to_owned)).collect()
            }
            Input::Unmatched => own(&[&FRAME_COLUMNS[..], &["side", "reason"]].concat()),
            Input::Gaps => own(&["capture", "segment", "ring", "first_seq", "count"]),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LoadedFrame {
    id: FrameId,
    ts: i64,
    point: u32,
    /// Whether the cause of the frame is lost.
    is_cause_lost: bool,
}

#[derive(Debug, Clone, Copy)]
struct LoadedEdge {
    src: FrameId,
    dst: FrameId,
    kind: EdgeKind,
    certainty: Certainty,
    queue: bool,
}

/// The threads of all owners, as the graph numbers them.
struct LoadedThreads {
    /// By owner: its thread.
    thread_of: Vec<u32>,
    /// By thread: its process.
    processes: Vec<u32>,
    /// By thread: its clock.
    clocks: Vec<u32>,
}

/// Collects rows for a graph.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    owners: Numbering<FrameOwner>,
    points: Numbering<String>,
    frames: Vec<LoadedFrame>,
    edges: Vec<LoadedEdge>,
    /// By capture, segment and ring: the first numbers of runs of missing frames.
    gaps: HashMap<(String, String, Option<i32>), Vec<i64>>,
    clocks: Arc<Clocks>,
}

impl Loader {
    pub fn new(clocks: Arc<Clocks>) -> Loader {
        Loader { clocks, ..Loader::default() }
    }

    /// Adds rows of a table.
    pub fn add_rows(&mut self, input: Input, batch: &RecordBatch) -> Result<()> {
        match input {
            Input::Points => {
                let ends = self.ends(batch, 0)?;
                self.frames.extend(ends.into_iter().flatten());
            }
            Input::Edges => {
                let [kinds, policies, certainties] =
                    [0, 1, 2].map(|index| Texts::new(batch, 2 * FRAME_COLUMNS.len() + index));
                let (kinds, policies, certainties) = (kinds?, policies?, certainties?);
                // A wake-up passes no data.
                if (0..batch.num_rows()).all(|row| kinds.get(row) == "wake") {
                    return Ok(());
                }
                let (sources, ends) =
                    (self.ends(batch, 0)?, self.ends(batch, FRAME_COLUMNS.len())?);
                for (row, (src, dst)) in sources.into_iter().zip(ends).enumerate() {
                    let (Some(src), Some(dst)) = (src, dst) else { continue };
                    let kind = match kinds.get(row) {
                        "span" => EdgeKind::Span,
                        "chain" => EdgeKind::Chain,
                        "wake" => continue,
                        _ => EdgeKind::Hash,
                    };
                    if kind != EdgeKind::Hash {
                        self.frames.extend([src, dst]);
                    }
                    let certainty = match certainties.get(row) {
                        "possible" => Certainty::Possible,
                        _ => Certainty::Certain,
                    };
                    let queue = policies.get(row) == "fifo";
                    let (src, dst) = (src.id, dst.id);
                    self.edges.push(LoadedEdge { src, dst, kind, certainty, queue });
                }
            }
            Input::Unmatched => {
                let (side, reason) = (
                    Texts::new(batch, FRAME_COLUMNS.len())?,
                    Texts::new(batch, FRAME_COLUMNS.len() + 1)?,
                );
                let ends = self.ends(batch, 0)?;
                let lost = ends.into_iter().enumerate();
                let lost =
                    lost.filter(|entry| side.get(entry.0) == "in" && reason.get(entry.0) == "loss");
                let frames =
                    lost.filter_map(|entry| Some(LoadedFrame { is_cause_lost: true, ..entry.1? }));
                self.frames.extend(frames);
            }
            Input::Gaps => {
                let (captures, segments) = (Texts::new(batch, 0)?, Texts::new(batch, 1)?);
                let rings = batch.column(2).as_primitive::<Int32Type>();
                let firsts = long(batch, 3)?;
                for row in 0..batch.num_rows() {
                    let ring = rings.is_valid(row).then(|| rings.value(row));
                    let key = (captures.get(row).to_owned(), segments.get(row).to_owned(), ring);
                    self.gaps.entry(key).or_default().push(firsts.value(row));
                }
            }
        }
        Ok(())
    }

    /// Approximate memory use, in bytes.
    pub fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<LoadedFrame>()
            + self.edges.capacity() * size_of::<LoadedEdge>()
    }

    /// The frames of rows, whose columns begin at `from`; None if the frame has no time.
    fn ends(&mut self, batch: &RecordBatch, from: usize) -> Result<Vec<Option<LoadedFrame>>> {
        let words = |at: usize| Texts::new(batch, from + at);
        let (captures, buffers, segments, points) = (words(0)?, words(1)?, words(2)?, words(7)?);
        let int = |at: usize| batch.column(from + at).as_primitive::<Int32Type>().clone();
        let (rings, pids, tids) = (int(3), int(5), int(6));
        let (seqnos, times) = (long(batch, from + 4)?, long(batch, from + 8)?);
        // Most rows share their owner with another row.
        let mut owners: HashMap<_, u32> = HashMap::new();
        let mut names: HashMap<_, u32> = HashMap::new();
        let rows = 0..batch.num_rows();
        let frame = rows.map(|row| {
            if times.is_null(row) {
                return None;
            }
            let cell = |column: &Int32Array| column.is_valid(row).then(|| column.value(row));
            let (ring, pid, tid) = (cell(&rings), cell(&pids), cell(&tids));
            let key = (captures.key(row), segments.key(row), ring, pid, tid);
            let owner = *owners.entry(key).or_insert_with(|| {
                self.owners.number(FrameOwner {
                    capture: captures.get(row).to_owned(),
                    buffer: buffers.get(row).to_owned(),
                    segment: segments.get(row).to_owned(),
                    ring,
                    pid,
                    tid,
                })
            });
            let point = *names.entry((buffers.key(row), points.key(row))).or_insert_with(|| {
                self.points.number(format!("{}.{}", buffers.get(row), points.get(row)))
            });
            let seqno = if seqnos.is_valid(row) { seqnos.value(row) } else { -1 };
            Some(LoadedFrame {
                id: FrameId { owner, seqno },
                ts: times.value(row),
                point,
                is_cause_lost: false,
            })
        });
        Ok(frame.collect())
    }

    /// Builds the graph.
    pub fn finish(mut self) -> Result<Causality> {
        // If a frame has several rows, one with a lost cause is kept.
        self.frames.sort_unstable_by_key(|frame| (frame.id, !frame.is_cause_lost));
        self.frames.dedup_by_key(|frame| frame.id);
        self.gaps.values_mut().for_each(|gap| gap.sort_unstable());
        let cut = self.cut();
        let capture =
            |owner: &FrameOwner| self.clocks.capture(&owner.capture).unwrap_or(usize::MAX);
        let captures: Vec<usize> = self.owners.all.iter().map(capture).collect();
        let LoadedThreads { thread_of, processes, clocks } = self.threads(&captures);
        let mut order: Vec<u32> = (0..self.frames.len() as u32).collect();
        order.sort_unstable_by_key(|&at| {
            let frame = &self.frames[at as usize];
            (frame.ts, thread_of[frame.id.owner as usize], frame.id)
        });
        let vertices = order.iter().map(|&at| {
            let frame = &self.frames[at as usize];
            let bounds = self.clocks.around(captures[frame.id.owner as usize], frame.ts);
            let (lo, hi) = bounds.unwrap_or((i64::MIN, i64::MAX));
            Vertex {
                point: frame.point,
                thread: thread_of[frame.id.owner as usize],
                lo,
                ts: frame.ts,
                hi,
                cut: cut[at as usize],
            }
        });
        let links = self.links(&order);
        let graph = Graph::new(processes, vertices, links).map_err(external)?.with_clocks(clocks);
        let frames = order.iter().map(|&at| self.frames[at as usize].id).collect();
        Ok(Causality { graph, points: self.points.all, frames, owners: self.owners.all })
    }

    /// By frame: whether its cause is lost, or frames of its ring are missing before it.
    fn cut(&self) -> Vec<bool> {
        let none: Vec<i64> = Vec::new();
        let gaps_of = self.owners.all.iter().map(|owner| {
            let key = (owner.capture.clone(), owner.segment.clone(), owner.ring);
            self.gaps.get(&key).unwrap_or(&none)
        });
        let gaps_of: Vec<&Vec<i64>> = gaps_of.collect();
        let is_cut = |(at, frame): (usize, &LoadedFrame)| {
            let last = at.checked_sub(1).map(|index| self.frames[index].id);
            let last =
                last.filter(|last| last.owner == frame.id.owner).map_or(0, |last| last.seqno);
            let gaps = gaps_of[frame.id.owner as usize];
            let next = gaps.partition_point(|&first| first <= last);
            frame.is_cause_lost || gaps.get(next).is_some_and(|&first| first < frame.id.seqno)
        };
        self.frames.iter().enumerate().map(is_cut).collect()
    }

    /// The threads of the owners, whose `captures` these are.
    fn threads(&self, captures: &[usize]) -> LoadedThreads {
        // A thread has a ring in each buffer, and may be in several captures.
        let mut threads = Numbering::default();
        let mut clocks: Vec<u32> = Vec::new();
        let thread_of: Vec<u32> = (self.owners.all.iter().zip(captures).enumerate())
            .map(|(number, (owner, &capture))| {
                let unknown = owner.tid.is_none().then_some(number);
                let host = self.clocks.host(capture);
                let thread = threads.number((host, owner.pid, owner.tid, unknown));
                let clock = self.clocks.number(capture);
                match clocks.get_mut(thread as usize) {
                    None => clocks.push(clock),
                    // A thread with times of two clocks is comparable with itself only.
                    Some(other) if *other != clock => *other = u32::MAX - thread,
                    Some(_) => {}
                }
                thread
            })
            .collect();
        let mut processes = Numbering::default();
        let processes: Vec<u32> =
            threads.all.iter().map(|thread| processes.number((thread.0, thread.1))).collect();
        LoadedThreads { thread_of, processes, clocks }
    }

    /// The edges between frames of the graph. `order`: by vertex, the index of its frame.
    fn links(&self, order: &[u32]) -> Vec<GraphLink> {
        let mut vertex_of = vec![0; order.len()];
        for (vertex, &at) in (0..).zip(order) {
            vertex_of[at as usize] = vertex;
        }
        let vertex = |id: FrameId| {
            let at = self.frames.binary_search_by_key(&id, |frame| frame.id).ok()?;
            Some(vertex_of[at])
        };
        let links = self.edges.iter().filter_map(|edge| {
            let (src, dst) = (vertex(edge.src)?, vertex(edge.dst)?);
            let LoadedEdge { kind, certainty, queue, .. } = *edge;
            Some(GraphLink { dst, src, kind, certainty, queue })
        });
        links.collect()
    }
}

fn long(batch: &RecordBatch, column: usize) -> Result<Int64Array> {
    Ok(cast(batch.column(column), &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}
