//! The activity of threads in stretches of time: their states, and their own slices.

use std::collections::HashMap;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use futures::StreamExt;

use super::answer::{FrameOrigin, SlowInterval, SlowPart, ThreadSlice};
use super::cells::{long, text};
use super::cut::{ThreadTime, TimeCutter, TimeUse, WokenBy};
use super::running::RunningTime;
use crate::engine::Engine;
use crate::error::QueryError;

/// The columns of [`ThreadRow`], in the order of [`thread_columns`].
const HOST: usize = 0;
const PID: usize = 1;
const TID: usize = 2;
const TS: usize = 3;
const DUR: usize = 4;

/// The columns of states that [`Engine::states_during`] selects after those of [`ThreadRow`].
const STATE: usize = 5;
const BLOCKED_IN: usize = 6;
const WOKEN_BY: usize = 7;
const SUCCESSOR_NAME: usize = 8;
const WAKER: usize = 9;
const SUCCESSOR: usize = 10;

/// The columns of slices that [`Engine::slices_during`] selects after those of [`ThreadRow`].
const SLICE_NAME: usize = 5;
const CAPTURE: usize = 6;
const BUFFER: usize = 7;
const SEGMENT: usize = 8;
const RING: usize = 9;
const SEQNO: usize = 10;

/// A thread in a stretch of time.
#[derive(Debug, Clone)]
pub(super) struct ThreadStretch {
    pub host: String,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub from: i64,
    pub to: i64,
    /// The interval that contains the stretch. Slices that cover all of it add no information.
    pub outer_interval: Option<(i64, i64)>,
}

impl ThreadStretch {
    /// Whether the slice covers all of `outer_interval`, so that it adds no information.
    fn is_covered(&self, slice: &ThreadRow) -> bool {
        self.outer_interval.is_some_and(|(from, to)| slice.from <= from && to <= slice.to)
    }
}

impl SlowInterval {
    /// The thread of the interval, without slices around the whole interval.
    pub(super) fn inner(&self) -> ThreadStretch {
        ThreadStretch { outer_interval: Some((self.ts, self.ts + self.dur)), ..self.during() }
    }

    /// The thread of the interval.
    pub(super) fn during(&self) -> ThreadStretch {
        self.thread_during(self.tid, (self.ts, self.ts + self.dur))
    }

    /// A thread of its process.
    pub(super) fn thread_during(&self, tid: Option<i32>, (from, to): (i64, i64)) -> ThreadStretch {
        ThreadStretch {
            host: self.host.clone(),
            pid: self.pid,
            tid,
            from,
            to,
            outer_interval: None,
        }
    }

    /// The thread that ended a wait, during the longest piece of that wait.
    pub(super) fn waker_during(&self, part: &SlowPart) -> ThreadStretch {
        let waker = part.state.woken().and_then(|by| by.thread);
        self.thread_during(waker, part.spent.longest)
    }
}

/// The stretches of one thread.
#[derive(Debug, Default)]
struct StretchesOfThread {
    /// Places in `stretches`, in the order of their beginnings.
    order: Vec<usize>,
    /// The number of these stretches that ended before the current row.
    ended: usize,
}

/// Finds the stretches that overlap a row. Rows must come in the order of their beginnings.
pub(super) struct StretchSweep<'a> {
    stretches: &'a [ThreadStretch],
    /// By process and thread.
    threads: HashMap<(i64, i64), StretchesOfThread>,
}

impl<'a> StretchSweep<'a> {
    pub(super) fn new(stretches: &'a [ThreadStretch]) -> Self {
        let mut threads: HashMap<(i64, i64), StretchesOfThread> = HashMap::new();
        for (number, stretch) in stretches.iter().enumerate() {
            if let (Some(pid), Some(tid)) = (stretch.pid, stretch.tid) {
                threads.entry((pid.into(), tid.into())).or_default().order.push(number);
            }
        }
        for of_thread in threads.values_mut() {
            of_thread.order.sort_by_key(|&number| stretches[number].from);
        }
        StretchSweep { stretches, threads }
    }

    /// Calls `then` with the place of each stretch that overlaps the row.
    pub(super) fn each_overlapping(&mut self, row: &ThreadRow, mut then: impl FnMut(usize)) {
        let Some(StretchesOfThread { order, ended }) = self.threads.get_mut(&(row.pid, row.tid))
        else {
            return;
        };
        while order.get(*ended).is_some_and(|&number| self.stretches[number].to <= row.from) {
            *ended += 1;
        }
        for &number in &order[*ended..] {
            let stretch = &self.stretches[number];
            if stretch.from >= row.to {
                break;
            }
            if stretch.to > row.from && stretch.host == row.host {
                then(number);
            }
        }
    }
}

impl Engine {
    /// The time of each thread in its stretch, by its states.
    pub(super) async fn states_during(
        &self,
        stretches: &[ThreadStretch],
    ) -> Result<Vec<ThreadTime>, QueryError> {
        let mut cuts: Vec<TimeCutter> =
            stretches.iter().map(|stretch| TimeCutter::new(stretch.from, stretch.to)).collect();
        let mut sweep = StretchSweep::new(stretches);
        if let Some(states) = self.rows_during("thread_states", stretches)? {
            let words = ["state", "blocked_in", "woken_by", "successor_name"];
            let numbers = ["waker", "successor"];
            let words = words.map(|name| cast_to(ident(name), DataType::Utf8).alias(name));
            let numbers = numbers.map(|name| cast_to(ident(name), DataType::Int64).alias(name));
            let select =
                thread_columns().into_iter().chain(words).chain(numbers).collect::<Vec<_>>();
            let mut stream = states.select(select)?.sort(in_order(true))?.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for row in 0..batch.num_rows() {
                    let Some(state) = ThreadRow::from_row(&batch, row) else { continue };
                    let Some(part) = part(&batch, row) else { continue };
                    sweep.each_overlapping(&state, |number| {
                        cuts[number].add_state(state.from, state.to, &part);
                    });
                }
            }
        }
        Ok(cuts.into_iter().map(TimeCutter::finish).collect())
    }

    /// The slice of each thread, by its own frames: the innermost slice around the end of the stretch,
    /// or else the slice that overlaps it longest. Also adds the slices of the threads in `running` to
    /// their running time.
    pub(super) async fn slices_during(
        &self,
        stretches: &[ThreadStretch],
        running: &mut [(ThreadStretch, RunningTime)],
    ) -> Result<Vec<Option<ThreadSlice>>, QueryError> {
        let mut found: Vec<Option<ThreadSlice>> = vec![None; stretches.len()];
        let owners: Vec<ThreadStretch> = running.iter().map(|thread| thread.0.clone()).collect();
        let all = [stretches, &owners].concat();
        let Some(slices) = self.rows_during("slices", &all)? else { return Ok(found) };
        let words = ["name", "capture", "buffer", "segment"];
        let words = words.map(|name| cast_to(ident(name), DataType::Utf8).alias(name));
        let numbers =
            ["ring", "seqno"].map(|name| cast_to(ident(name), DataType::Int64).alias(name));
        let select = thread_columns().into_iter().chain(words).chain(numbers).collect::<Vec<_>>();
        let mut stream = slices.select(select)?.sort(in_order(false))?.execute_stream().await?;
        let (mut sweep, mut running_sweep) =
            (StretchSweep::new(stretches), StretchSweep::new(&owners));
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let Some(slice) = ThreadRow::from_row(&batch, row) else { continue };
                let Some(name) = text(&batch, SLICE_NAME, row) else { continue };
                let word = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let thread_slice = |stretch: &ThreadStretch| ThreadSlice {
                    name: name.to_owned(),
                    about: None,
                    ns: slice.to.min(stretch.to) - slice.from.max(stretch.from),
                    ts: slice.from,
                    dur: slice.to - slice.from,
                    frame: FrameOrigin {
                        capture: word(CAPTURE),
                        buffer: word(BUFFER),
                        segment: word(SEGMENT),
                        ring: long(&batch, RING, row),
                        seqno: long(&batch, SEQNO, row),
                    },
                    around: slice.to >= stretch.to,
                };
                running_sweep.each_overlapping(&slice, |number| {
                    let (stretch, running) = &mut running[number];
                    if !stretch.is_covered(&slice) {
                        running.enter(thread_slice(stretch));
                    }
                });
                sweep.each_overlapping(&slice, |number| {
                    let stretch = &stretches[number];
                    if stretch.is_covered(&slice) {
                        return;
                    }
                    let slice = thread_slice(stretch);
                    if found[number].as_ref().is_none_or(|known| known.rank() < slice.rank()) {
                        found[number] = Some(slice);
                    }
                });
            }
        }
        Ok(found)
    }

    /// The rows of a table with `ts` and `dur` that belong to these threads and overlap the whole stretch
    /// of time from the first to the last of `stretches`, whatever window the engine shows. None if no
    /// thread is known.
    fn rows_during(
        &self,
        table: &str,
        stretches: &[ThreadStretch],
    ) -> Result<Option<DataFrame>, QueryError> {
        let with_thread =
            || stretches.iter().filter(|stretch| stretch.pid.is_some() && stretch.tid.is_some());
        let (Some(from), Some(to)) = (
            with_thread().map(|stretch| stretch.from).min(),
            with_thread().map(|stretch| stretch.to).max(),
        ) else {
            return Ok(None);
        };
        let numbers = |number_of: fn(&ThreadStretch) -> Option<i32>| {
            let mut all: Vec<i32> = with_thread().filter_map(number_of).collect();
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(lit).collect::<Vec<Expr>>()
        };
        let (pids, tids) = (numbers(|stretch| stretch.pid), numbers(|stretch| stretch.tid));
        let Some(rows) = self.unwindowed_table(table)? else { return Ok(None) };
        let ts = || cast_to(ident("ts"), DataType::Int64);
        let rows = rows.filter(ident("pid").in_list(pids, false))?;
        let rows = rows.filter(ident("tid").in_list(tids, false))?;
        let rows = rows.filter(ts().lt(lit(to)).and((ts() + ident("dur")).gt(lit(from))))?;
        Ok(Some(rows))
    }
}

/// Sorts by beginning, then the shorter or the longer first. Where the longer comes first, an outer slice
/// comes before the slices inside it.
fn in_order(shorter_first: bool) -> Vec<datafusion::logical_expr::SortExpr> {
    let column = |number: usize| ident(format!("c{number}"));
    vec![column(TS).sort(true, false), column(DUR).sort(shorter_first, false)]
}

/// The columns of [`ThreadRow`]: host, pid, tid, ts, dur.
fn thread_columns() -> Vec<Expr> {
    let long = |name: &str| cast_to(ident(name), DataType::Int64);
    let host = cast_to(ident("host"), DataType::Utf8);
    let all = [host, long("pid"), long("tid"), long("ts"), ident("dur")];
    all.into_iter().zip(0..).map(|(column, n)| column.alias(format!("c{n}"))).collect()
}

/// A row that belongs to a thread, and its time.
pub(super) struct ThreadRow {
    pub(super) host: String,
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl ThreadRow {
    fn from_row(batch: &RecordBatch, row: usize) -> Option<ThreadRow> {
        let long = |at| long(batch, at, row);
        let from = long(TS)?;
        Some(ThreadRow {
            host: text(batch, HOST, row).unwrap_or_default().to_owned(),
            pid: long(PID)?,
            tid: long(TID)?,
            from,
            to: from.saturating_add(long(DUR)?),
        })
    }
}

/// The part of an interval that a state is; None if the state is not one of those known.
fn part(batch: &RecordBatch, row: usize) -> Option<TimeUse> {
    let text = |at| text(batch, at, row).map(str::to_owned);
    let small = |at| long(batch, at, row).and_then(|number| i32::try_from(number).ok());
    let by = || WokenBy { kind: text(WOKEN_BY), thread: small(WAKER), name: None };
    Some(match text(STATE)?.as_str() {
        "running" => TimeUse::Running,
        "runnable" if text(WOKEN_BY).is_some() => TimeUse::WokenLate(by()),
        "runnable" => TimeUse::Preempted { by: small(SUCCESSOR), name: text(SUCCESSOR_NAME) },
        "blocked" if text(BLOCKED_IN).as_deref() == Some("page_fault") => TimeUse::Faulting(by()),
        "blocked" => TimeUse::Blocked { call: text(BLOCKED_IN), by: by() },
        "unknown" => TimeUse::Unknown,
        _ => return None,
    })
}
