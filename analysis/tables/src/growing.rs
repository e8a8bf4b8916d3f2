//! Spans and chains while captures grow: decides which of them are complete at some time, and which frames
//! wait for others.
//!
//! A follower of captures reads each frame once. [`GrowingWholes::settle`] takes the frames of a part and the
//! waiting frames of earlier parts, and returns the finished rows. Each frame is in exactly one row, in
//! whatever order frames arrive.

mod half_columns;
mod waiting;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

pub(crate) use self::half_columns::HalfColumns;
use self::half_columns::HalfValues;
use self::waiting::{GROUP, at_most_max_times, join, renumbered};
pub use self::waiting::{WaitingGroup, WaitingWholes};
use crate::bounds::Bounds;
use crate::error::TableError;
use crate::pair_pass::PairPass;
use crate::spans_and_chains::{ChainSteps, Halves, Missing, NOTHING, SpanFrame};
use crate::table::{Runner, Scan};

/// The result of settling a part.
#[derive(Debug, Default)]
pub struct SettledWholes {
    /// The finished rows.
    pub rows: Vec<RecordBatch>,
    /// The frames that wait for others.
    pub waiting: WaitingWholes,
    /// Number of frames that arrived after later frames had been settled.
    pub late: u64,
    /// Number of frames that stopped waiting because too many waited.
    pub let_go: u64,
    /// The links within the finished rows, by `LINK_COLUMNS`: each begin with its end, or each step with the next.
    pub links: Vec<RecordBatch>,
    /// The identity of complete frames: capture, segment, ring, number.
    pub done: Option<RecordBatch>,
}

/// The time up to which frames are settled, and limits.
#[derive(Debug, Clone, Copy)]
pub struct Settling {
    /// The time up to which frames were settled before, ns since the epoch.
    pub settled: Option<i64>,
    /// The time up to which all frames have arrived, ns since the epoch; None if all frames have arrived.
    pub until: Option<i64>,
    /// Whether the part is of another capture than the previous part.
    pub is_new_capture: bool,
    /// Largest number of frames that may wait.
    pub max_waiting: usize,
    /// Whether [`SettledWholes::links`] and [`SettledWholes::done`] are wanted.
    pub with_links: bool,
}

/// The form of a group: spans, or chains.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WholeForm {
    Span { fifo: bool },
    Chain { steps: usize },
}

/// A group of frames: those with equal keys form a span or a chain.
#[derive(Debug)]
pub(crate) struct GrowingGroup {
    /// Identifies the group in all captures of a series.
    pub name: String,
    pub form: WholeForm,
    /// Periods in which its frames may be missing.
    pub missing: Missing,
}

/// The indices of all columns, and bounds that include all rows.
pub(crate) fn everything(schema: &SchemaRef) -> (Vec<usize>, Bounds) {
    ((0..schema.fields().len()).collect(), Bounds::default())
}

/// A table of spans or chains that can be read while its captures grow.
pub trait GrowingTable: fmt::Debug + Send + Sync {
    /// The spans or chains of the captures. `with_absent`: frames before the captures count as missing.
    ///
    /// # Errors
    /// The clocks of hosts cannot be compared.
    fn growing(&self, with_absent: bool) -> Result<GrowingWholes, TableError>;
}

type MakeRunner = Box<dyn Fn(Vec<Missing>) -> Box<dyn Runner> + Send + Sync>;

/// The spans or the chains of a kind of frames, in a part of a capture.
pub struct GrowingWholes {
    scan: Arc<dyn Scan>,
    schema: SchemaRef,
    columns: HalfColumns,
    groups: Vec<GrowingGroup>,
    runner: MakeRunner,
    links: PairPass,
}

impl fmt::Debug for GrowingWholes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingWholes").field("scan", &self.scan).finish_non_exhaustive()
    }
}

/// Row numbers of frames, divided.
#[derive(Debug, Default)]
struct SortedOut {
    done: Vec<u32>,
    waiting: Vec<u32>,
}

impl GrowingWholes {
    pub(crate) fn new(
        scan: Arc<dyn Scan>,
        schema: SchemaRef,
        columns: HalfColumns,
        groups: Vec<GrowingGroup>,
        runner: impl Fn(Vec<Missing>) -> Box<dyn Runner> + Send + Sync + 'static,
    ) -> GrowingWholes {
        let (mut fifo, mut steps) = (Vec::new(), false);
        for group in &groups {
            match group.form {
                WholeForm::Span { fifo: of } => fifo.push(of),
                WholeForm::Chain { .. } => steps = true,
            }
        }
        let links = columns.links(fifo, steps, scan.schema());
        GrowingWholes { scan, schema, columns, groups, runner: Box::new(runner), links }
    }

    /// Reads the frames of the part, and returns the rows that they and the waiting frames complete.
    ///
    /// # Errors
    /// A capture cannot be read, a time is too uncertain, or the reader was cancelled.
    pub fn settle(
        &self,
        waiting: WaitingWholes,
        settling: Settling,
    ) -> Result<SettledWholes, TableError> {
        let mut settled = SettledWholes::default();
        let mut halves = Vec::new();
        for part in 0..self.scan.parts() {
            for batch in self.scan.read(part) {
                let batch = batch?;
                settled.late += self.late(&batch, settling);
                halves.push(batch);
            }
        }
        let groups = self.known_groups(&waiting, settling.is_new_capture);
        let (own, others) = self.divide(waiting, &groups)?;
        match own.halves {
            Some(own) if own.schema().fields() == self.scan.schema().fields() => halves.push(own),
            // Other frames with the same name: their keys have other types.
            Some(other) => {
                settled.let_go += other.num_rows() as u64;
                settled.rows.extend(WaitingWholes { halves: None, ..own }.last_rows());
            }
            None => {}
        }
        let all = concat_batches(self.scan.schema(), &halves)?;
        drop(halves);
        let mut sorted = self.sort_out(&all, settling.until);
        settled.let_go += self.let_go(&all, &mut sorted, settling);
        let missing = || -> Vec<Missing> {
            let times = |group: &WaitingGroup| {
                let all = group.before.iter().chain(&group.missing);
                Missing::during(all.map(|&(from, to)| (Some(from), Some(to))))
            };
            groups[..self.groups.len()].iter().map(times).collect()
        };
        let done = take(&all, sorted.done)?;
        settled.rows.extend(self.run(&done, missing())?);
        if settling.with_links {
            let HalfColumns { capture, segment, ring, seqno, .. } = self.columns;
            settled.done = Some(done.project(&[capture, segment, ring, seqno])?);
            settled.links = passed(self.links.runner(), done)?;
        }
        if settling.until.is_none() {
            settled.rows.extend(others.last_rows());
            return Ok(settled);
        }
        let own = take(&all, sorted.waiting)?;
        let rows = self.rows_that_wait(&own, &missing())?;
        settled.waiting =
            join(WaitingWholes { groups, halves: Some(own), rows: Some(rows) }, others)?;
        Ok(settled)
    }

    /// Number of frames that are older than the previous settled time.
    fn late(&self, batch: &RecordBatch, settling: Settling) -> u64 {
        let Some(settled) = settling.settled else { return 0 };
        let times = batch.column(self.columns.ts).as_primitive::<TimestampNanosecondType>();
        times.iter().flatten().filter(|&ts| ts <= settled).count() as u64
    }

    /// The groups of the part in the order of their numbers, followed by those of waiting frames only.
    fn known_groups(&self, waiting: &WaitingWholes, is_new_capture: bool) -> Vec<WaitingGroup> {
        let known: HashMap<&str, &WaitingGroup> =
            waiting.groups.iter().map(|group| (group.name.as_str(), group)).collect();
        let before = |name: &str| -> Vec<(i64, i64)> {
            let Some(group) = known.get(name) else { return Vec::new() };
            let last = if is_new_capture { &group.missing[..] } else { &[] };
            at_most_max_times(group.before.iter().chain(last).copied())
        };
        let own = self.groups.iter().map(|group| WaitingGroup {
            before: before(&group.name),
            missing: at_most_max_times(group.missing.times().iter().copied()),
            name: group.name.clone(),
        });
        let mut groups: Vec<WaitingGroup> = own.collect();
        let names: HashSet<String> = groups.iter().map(|group| group.name.clone()).collect();
        let others = waiting.groups.iter().filter(|group| !names.contains(&group.name));
        let other = |group: &WaitingGroup| WaitingGroup {
            before: before(&group.name),
            missing: if is_new_capture { Vec::new() } else { group.missing.clone() },
            name: group.name.clone(),
        };
        groups.extend(others.map(other));
        groups
    }

    /// Renumbers the waiting frames as in `groups`, and divides them: those of groups of the part, and the
    /// others.
    fn divide(
        &self,
        mut waiting: WaitingWholes,
        groups: &[WaitingGroup],
    ) -> Result<(WaitingWholes, WaitingWholes), TableError> {
        let place = |group: &WaitingGroup| {
            let place = groups.iter().position(|known| known.name == group.name);
            place.map_or(-1, |place| place as i32)
        };
        let numbers: Vec<i32> = waiting.groups.iter().map(place).collect();
        for batch in [&mut waiting.halves, &mut waiting.rows].into_iter().flatten() {
            *batch = renumbered(batch, &numbers)?;
        }
        let own = 0..self.groups.len() as i32;
        Ok((
            waiting.filtered(|group| own.contains(&group))?,
            waiting.filtered(|group| !own.contains(&group))?,
        ))
    }

    /// Divides frames into those that are done at `until` and those that wait, each in pairing order.
    fn sort_out(&self, all: &RecordBatch, until: Option<i64>) -> SortedOut {
        let half = HalfValues::new(all, &self.columns);
        let mut order: Vec<u32> = (0..all.num_rows() as u32).collect();
        order.sort_by(|&a, &b| half.compare(a as usize, b as usize));
        let mut out = SortedOut::default();
        let is_same =
            |a: &u32, b: &u32| half.group_and_key(*a as usize) == half.group_and_key(*b as usize);
        for run in order.chunk_by(is_same) {
            let waits = self.waiting(&half, run, until);
            for &row in run {
                if waits.contains(&row) { &mut out.waiting } else { &mut out.done }.push(row);
            }
        }
        out
    }

    /// The frames of one key that wait for others; `run` has the frames of the key in pairing order.
    fn waiting(&self, half: &HalfValues<'_>, run: &[u32], until: Option<i64>) -> HashSet<u32> {
        let Some(until) = until else { return HashSet::new() };
        let is_settled = |row: &&u32| half.ts(**row as usize).is_none_or(|ts| ts <= until);
        // Frames without a time come first, the others in the order of time.
        let settled = run.iter().take_while(is_settled).count();
        let (settled, later) = run.split_at(settled);
        let mut waits: HashSet<u32> = later.iter().copied().collect();
        let group = half.groups.value(run[0] as usize) as usize;
        match self.groups.get(group).map(|group| group.form) {
            Some(WholeForm::Span { fifo }) => {
                let mut halves = Halves::new(fifo);
                for &row in settled {
                    let frame = match half.marks.value(row as usize) {
                        0 => SpanFrame::Begin,
                        1 => SpanFrame::End,
                        _ => SpanFrame::Neither,
                    };
                    let _ = halves.add_half(frame, half.ts(row as usize), row, &NOTHING);
                }
                waits.extend(halves.open());
            }
            Some(WholeForm::Chain { steps }) => {
                let mut taken = ChainSteps::new(steps);
                for &row in settled {
                    let step = usize::try_from(half.marks.value(row as usize)).ok();
                    taken.add_step(step, half.ts(row as usize));
                }
                if !taken.has_all() {
                    waits.extend(settled);
                }
            }
            None => {}
        }
        waits
    }

    /// If too many frames wait, releases those of the keys that have waited longest; returns their number.
    fn let_go(&self, all: &RecordBatch, sorted: &mut SortedOut, settling: Settling) -> u64 {
        let Some(until) = settling.until else { return 0 };
        let half = HalfValues::new(all, &self.columns);
        let waits = |row: u32| half.ts(row as usize).is_none_or(|ts| ts <= until);
        let count = sorted.waiting.iter().filter(|&&row| waits(row)).count();
        if count <= settling.max_waiting {
            return 0;
        }
        let is_same =
            |a: &u32, b: &u32| half.group_and_key(*a as usize) == half.group_and_key(*b as usize);
        let mut runs: Vec<&[u32]> = sorted.waiting.chunk_by(is_same).collect();
        runs.sort_by_key(|run| half.ts(run[0] as usize));
        let (mut gone, mut left) = (HashSet::new(), count);
        for run in runs {
            if left <= settling.max_waiting / 2 {
                break;
            }
            let before = gone.len();
            gone.extend(run.iter().copied().filter(|&row| waits(row)));
            left -= gone.len() - before;
        }
        sorted.waiting.retain(|row| !gone.contains(row));
        let count = gone.len() as u64;
        sorted.done.extend(gone);
        sorted.done.sort_by(|&a, &b| half.compare(a as usize, b as usize));
        count
    }

    /// The rows of frames that are in pairing order.
    fn run(
        &self,
        halves: &RecordBatch,
        missing: Vec<Missing>,
    ) -> Result<Vec<RecordBatch>, TableError> {
        passed((self.runner)(missing), halves.clone())
    }

    /// The rows that waiting frames would make if no more frames came, each with the number of its group.
    fn rows_that_wait(
        &self,
        halves: &RecordBatch,
        missing: &[Missing],
    ) -> Result<RecordBatch, TableError> {
        let group = Arc::new(Field::new(GROUP, DataType::Int32, true));
        let fields = self.schema.fields().iter().cloned().chain([group]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let groups = halves.column(self.columns.group).as_primitive::<Int32Type>();
        let (mut rows, mut from) = (Vec::new(), 0);
        while from < halves.num_rows() {
            let group = groups.value(from);
            let count =
                (from..halves.num_rows()).take_while(|&row| groups.value(row) == group).count();
            for batch in self.run(&halves.slice(from, count), missing.to_vec())? {
                let number: ArrayRef = Arc::new(Int32Array::from(vec![group; batch.num_rows()]));
                let columns = batch.columns().iter().cloned().chain([number]);
                rows.push(RecordBatch::try_new(schema.clone(), columns.collect())?);
            }
            from += count;
        }
        Ok(concat_batches(&schema, &rows)?)
    }
}

/// The rows that a runner makes of `rows`.
fn passed(mut runner: Box<dyn Runner>, rows: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
    if rows.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let mut out = runner.push(rows)?;
    out.extend(runner.finish()?);
    out.retain(|batch| batch.num_rows() > 0);
    Ok(out)
}

fn take(batch: &RecordBatch, rows: Vec<u32>) -> Result<RecordBatch, TableError> {
    Ok(take_record_batch(batch, &UInt32Array::from(rows))?)
}
