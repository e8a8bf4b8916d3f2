//! What threads did from one time to another: their states, and their own slices.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use futures::StreamExt;

use super::cut::{Cut, ThreadTime, TimeUse, WokenBy};
use super::running::RunningTime;
use super::slow::{Doing, FrameName, Slow, SlowPart};
use crate::engine::Engine;
use crate::error::QueryError;

/// A thread, from one time to another.
#[derive(Debug, Clone)]
pub(super) struct During {
    pub host: String,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub from: i64,
    pub to: i64,
    /// Slices that cover all of this add no information.
    pub whole: Option<(i64, i64)>,
}

impl During {
    /// The slice covers the whole, so it adds no information.
    fn is_covered(&self, slice: &Owned) -> bool {
        self.whole.is_some_and(|(from, to)| slice.from <= from && to <= slice.to)
    }
}

impl Slow {
    /// Its own thread, in all of the interval; slices around that do not count.
    pub(super) fn inner(&self) -> During {
        During { whole: Some((self.ts, self.ts + self.dur)), ..self.during() }
    }

    /// Its own thread.
    pub(super) fn during(&self) -> During {
        self.thread_during(self.tid, (self.ts, self.ts + self.dur))
    }

    /// A thread of its process.
    pub(super) fn thread_during(&self, tid: Option<i32>, (from, to): (i64, i64)) -> During {
        During { host: self.host.clone(), pid: self.pid, tid, from, to, whole: None }
    }

    /// Who ended a wait, while the longest piece of it lasted.
    pub(super) fn waker_during(&self, part: &SlowPart) -> During {
        let waker = part.part.woken().and_then(|entry| entry.thread);
        self.thread_during(waker, part.spent.longest)
    }
}

/// Finds those that share time with a row. Rows come in the order of their beginnings.
pub(super) struct Sweep<'a> {
    asked: &'a [During],
    /// By process and thread: numbers of `asked` in the order of their beginnings, and how many are over.
    threads: HashMap<(i64, i64), (Vec<usize>, usize)>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(asked: &'a [During]) -> Self {
        let mut threads: HashMap<(i64, i64), (Vec<usize>, usize)> = HashMap::new();
        for (number, entry) in asked.iter().enumerate() {
            if let (Some(pid), Some(tid)) = (entry.pid, entry.tid) {
                threads.entry((pid.into(), tid.into())).or_default().0.push(number);
            }
        }
        threads.values_mut().for_each(|entry| entry.0.sort_by_key(|&number| asked[number].from));
        Sweep { asked, threads }
    }

    pub(super) fn each(&mut self, row: &Owned, mut then: impl FnMut(usize)) {
        let Some((order, over)) = self.threads.get_mut(&(row.pid, row.tid)) else { return };
        while order.get(*over).is_some_and(|&entry| self.asked[entry].to <= row.from) {
            *over += 1;
        }
        for &number in &order[*over..] {
            let asked = &self.asked[number];
            if asked.from >= row.to {
                break;
            }
            if asked.to > row.from && asked.host == row.host {
                then(number);
            }
        }
    }
}

impl Engine {
    /// What each thread did, by its states.
    pub(super) async fn states_during(
        &self,
        asked: &[During],
    ) -> Result<Vec<ThreadTime>, QueryError> {
        let mut cuts: Vec<Cut> = asked.iter().map(|entry| Cut::new(entry.from, entry.to)).collect();
        let mut sweep = Sweep::new(asked);
        if let Some(states) = self.beside("thread_states", asked)? {
            let words = ["state", "blocked_in", "woken_by", "successor_name"];
            let numbers = ["waker", "successor"];
            let words = words.map(|entry| cast_to(ident(entry), DataType::Utf8).alias(entry));
            let numbers = numbers.map(|entry| cast_to(ident(entry), DataType::Int64).alias(entry));
            let select = owner().into_iter().chain(words).chain(numbers).collect::<Vec<_>>();
            let mut stream = states.select(select)?.sort(in_order(true))?.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                for row in 0..batch.num_rows() {
                    let Some(of) = Owned::from_row(&batch, row) else { continue };
                    let Some(part) = part(&batch, row) else { continue };
                    sweep.each(&of, |entry| cuts[entry].add_state(of.from, of.to, &part));
                }
            }
        }
        Ok(cuts.into_iter().map(Cut::finish).collect())
    }

    /// What the frames of each thread say that it was doing: of the slices around the end the innermost,
    /// or else the one that shares most of the time. `running`, the time that threads ran in, takes the
    /// slices of these threads.
    pub(super) async fn slices_during(
        &self,
        asked: &[During],
        running: &mut [(During, RunningTime)],
    ) -> Result<Vec<Option<Doing>>, QueryError> {
        let mut found: Vec<Option<Doing>> = vec![None; asked.len()];
        let owners: Vec<During> = running.iter().map(|entry| entry.0.clone()).collect();
        let all = [asked, &owners].concat();
        let Some(slices) = self.beside("slices", &all)? else { return Ok(found) };
        let words = ["name", "capture", "buffer", "segment"];
        let words = words.map(|entry| cast_to(ident(entry), DataType::Utf8).alias(entry));
        let numbers =
            ["ring", "seqno"].map(|entry| cast_to(ident(entry), DataType::Int64).alias(entry));
        let select = owner().into_iter().chain(words).chain(numbers).collect::<Vec<_>>();
        let mut stream = slices.select(select)?.sort(in_order(false))?.execute_stream().await?;
        let (mut sweep, mut running_sweep) = (Sweep::new(asked), Sweep::new(&owners));
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let Some(of) = Owned::from_row(&batch, row) else { continue };
                let Some(name) = text(&batch, 5, row) else { continue };
                let word = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let doing = |entry: &During| Doing {
                    name: name.to_owned(),
                    about: None,
                    ns: of.to.min(entry.to) - of.from.max(entry.from),
                    ts: of.from,
                    dur: of.to - of.from,
                    frame: FrameName {
                        capture: word(6),
                        buffer: word(7),
                        segment: word(8),
                        ring: long(&batch, 9, row),
                        seqno: long(&batch, 10, row),
                    },
                    around: of.to >= entry.to,
                };
                running_sweep.each(&of, |number| {
                    let (entry, running) = &mut running[number];
                    if !entry.is_covered(&of) {
                        running.enter(doing(entry));
                    }
                });
                sweep.each(&of, |number| {
                    let entry = &asked[number];
                    if entry.is_covered(&of) {
                        return;
                    }
                    let doing = doing(entry);
                    if found[number].as_ref().is_none_or(|entry| entry.rank() < doing.rank()) {
                        found[number] = Some(doing);
                    }
                });
            }
        }
        Ok(found)
    }

    /// The rows of a table with `ts` and `dur` that are of these threads, and share time with one of
    /// `asked`, whatever window is seen; None: of none.
    fn beside(&self, table: &str, asked: &[During]) -> Result<Option<DataFrame>, QueryError> {
        let known = || asked.iter().filter(|entry| entry.pid.is_some() && entry.tid.is_some());
        let (Some(from), Some(to)) =
            (known().map(|entry| entry.from).min(), known().map(|entry| entry.to).max())
        else {
            return Ok(None);
        };
        let numbers = |of: fn(&During) -> Option<i32>| {
            let mut all: Vec<i32> = known().filter_map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(lit).collect::<Vec<Expr>>()
        };
        let (pids, tids) = (numbers(|entry| entry.pid), numbers(|entry| entry.tid));
        let Some(rows) = self.whole(table)? else { return Ok(None) };
        let ts = || cast_to(ident("ts"), DataType::Int64);
        let rows = rows.filter(ident("pid").in_list(pids, false))?;
        let rows = rows.filter(ident("tid").in_list(tids, false))?;
        let rows = rows.filter(ts().lt(lit(to)).and((ts() + ident("dur")).gt(lit(from))))?;
        Ok(Some(rows))
    }
}

/// In the order of their beginnings, the shorter or the longer first. Where the longer comes first, an
/// outer slice comes before those in it.
fn in_order(shorter_first: bool) -> Vec<datafusion::logical_expr::SortExpr> {
    vec![ident("c3").sort(true, false), ident("c4").sort(shorter_first, false)]
}

/// Whose a row is, and when: `host pid tid from dur`.
fn owner() -> Vec<Expr> {
    let long = |name: &str| cast_to(ident(name), DataType::Int64);
    let host = cast_to(ident("host"), DataType::Utf8);
    let all = [host, long("pid"), long("tid"), long("ts"), ident("dur")];
    all.into_iter().zip(0..).map(|(entry, n)| entry.alias(format!("c{n}"))).collect()
}

pub(super) struct Owned {
    pub(super) host: String,
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Owned {
    fn from_row(batch: &RecordBatch, row: usize) -> Option<Owned> {
        let long = |at| long(batch, at, row);
        let from = long(3)?;
        Some(Owned {
            host: text(batch, 0, row).unwrap_or_default().to_owned(),
            pid: long(1)?,
            tid: long(2)?,
            from,
            to: from.saturating_add(long(4)?),
        })
    }
}

/// What a state is to an interval; None: no state that there is.
fn part(batch: &RecordBatch, row: usize) -> Option<TimeUse> {
    let text = |at| text(batch, at, row).map(str::to_owned);
    let small = |at| long(batch, at, row).and_then(|entry| i32::try_from(entry).ok());
    let by = || WokenBy { kind: text(7), thread: small(9), name: None };
    Some(match text(5)?.as_str() {
        "running" => TimeUse::Running,
        "runnable" if text(7).is_some() => TimeUse::WokenLate(by()),
        "runnable" => TimeUse::Preempted { by: small(10), name: text(8) },
        "blocked" if text(6).as_deref() == Some("page_fault") => TimeUse::Faulting(by()),
        "blocked" => TimeUse::Blocked { call: text(6), by: by() },
        "unknown" => TimeUse::Unknown,
        _ => return None,
    })
}

/// A cell of text, which may be of any type of text.
pub(super) fn text(batch: &RecordBatch, at: usize, row: usize) -> Option<&str> {
    let column = batch.column(at);
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        DataType::Utf8 => {
            column.as_any().downcast_ref::<StringArray>().map(|entry| entry.value(row))
        }
        _ => None,
    }
}

pub(super) fn long(batch: &RecordBatch, at: usize, row: usize) -> Option<i64> {
    let column = batch.column(at);
    let column = match column.data_type() {
        DataType::Int64 => column.clone(),
        _ => cast(column, &DataType::Int64).ok()?,
    };
    column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row))
}
