//! The summary of some of the rows, by groups. Streams are read in parallel, and their summaries
//! joined.

mod fields;
mod runs;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, UInt32Array,
};
use datafusion::arrow::compute::{max, min, take_record_batch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use ppt_stats::Budget;

use self::runs::{GroupRun, RowsOfStep, runs, runs_of};
use super::gathered::{Gathered, arrow, cast_integers, hull};
use super::plan::ReadPlan;
use super::steps::{ByStep, by_step};
use crate::error::QueryError;

/// The partial summary of a group of rows.
pub(super) struct GroupedRows {
    pub by: Vec<Option<String>>,
    pub slice: Option<i64>,
    pub count: u64,
    pub time: Option<(i64, i64)>,
    /// Number of the host, pid and tid.
    pub threads: HashSet<(u32, i32, i32)>,
    pub fields: ByStep,
}

/// Slices of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slicing {
    /// The width of a slice, in ns.
    pub every: i64,
    /// The period of the slices, both ends included. Other rows are in no slice.
    pub within: Option<(i64, i64)>,
}

impl From<i64> for Slicing {
    fn from(every: i64) -> Slicing {
        Slicing { every, within: None }
    }
}

impl Slicing {
    /// The begin of the slice with a time.
    fn slice(self, time: i64) -> Option<i64> {
        let is_in = self.within.is_none_or(|(from, to)| (from..=to).contains(&time));
        time.div_euclid(self.every).checked_mul(self.every).filter(|_| is_in)
    }
}

/// The summary of some of the rows.
pub(super) struct PartialSummary {
    pub plan: Arc<ReadPlan>,
    pub slicing: Option<Slicing>,
    pub budget: Budget,
    pub groups: Vec<GroupedRows>,
    /// Indices of groups, by the keys of the words of each column, and the slice.
    group_of: HashMap<(Vec<u32>, Option<i64>), usize>,
    /// The words of each column. Key 0 is NULL.
    words: Vec<Interner>,
    hosts: Interner,
    /// Steps of spans and chains, in order. Key 0 is NULL.
    pub steps: Interner,
}

/// Assigns keys to words, from 1 on.
#[derive(Default)]
pub(super) struct Interner {
    pub words: Vec<String>,
    keys: HashMap<String, u32>,
}

impl Interner {
    fn key(&mut self, word: &str) -> u32 {
        if let Some(&key) = self.keys.get(word) {
            return key;
        }
        self.words.push(word.to_owned());
        let key = self.words.len() as u32;
        self.keys.insert(word.to_owned(), key);
        key
    }
}

impl PartialSummary {
    pub(super) fn new(
        plan: Arc<ReadPlan>,
        slicing: Option<Slicing>,
        budget: Budget,
    ) -> PartialSummary {
        let words = plan.by.iter().map(|_| Interner::default()).collect();
        let (groups, group_of, hosts, steps) = Default::default();
        PartialSummary { plan, slicing, budget, groups, group_of, words, hosts, steps }
    }

    pub(super) async fn read(
        mut self,
        mut rows: SendableRecordBatchStream,
    ) -> Result<PartialSummary, QueryError> {
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.batch(&batch)?;
            }
        }
        Ok(self)
    }

    fn group(&mut self, by: &[u32], slice: Option<i64>) -> usize {
        if let Some(&group) = self.group_of.get(&(by.to_vec(), slice)) {
            return group;
        }
        let word = |(&key, words): (&u32, &Interner)| {
            key.checked_sub(1).map(|key| words.words[key as usize].clone())
        };
        self.groups.push(GroupedRows {
            by: by.iter().zip(&self.words).map(word).collect(),
            slice,
            count: 0,
            time: None,
            threads: HashSet::new(),
            fields: self.plan.summarised.iter().map(|_| Vec::new()).collect(),
        });
        self.group_of.insert((by.to_vec(), slice), self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// The keys of a column of a batch, by row; `index`: index of the column in [`ReadPlan::by`].
    fn keys(&mut self, index: usize, column: &ArrayRef) -> Result<Vec<u32>, QueryError> {
        let words = &mut self.words[index];
        if let Some(column) = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>() {
            let values = column.values().as_string::<i32>();
            let mut known: Vec<Option<u32>> = vec![None; values.len()];
            let key = |key: Option<i32>| {
                let Some(at) = key.map(|key| key as usize) else { return 0 };
                *known[at].get_or_insert_with(|| words.key(values.value(at)))
            };
            return Ok(column.keys().iter().map(key).collect());
        }
        let options = FormatOptions::default();
        let text = ArrayFormatter::try_new(column.as_ref(), &options).map_err(arrow)?;
        let key =
            |row| if column.is_null(row) { 0 } else { words.key(&text.value(row).to_string()) };
        Ok((0..column.len()).map(key).collect())
    }

    /// The index of the group of each row; None if rows are not grouped.
    fn groups_of_rows(
        &mut self,
        batch: &RecordBatch,
        times: &Int64Array,
    ) -> Result<Option<Vec<usize>>, QueryError> {
        let plan = self.plan.clone();
        let mut keys = Vec::new();
        for (index, &column) in plan.by.iter().enumerate() {
            keys.push(self.keys(index, batch.column(column))?);
        }
        if keys.is_empty() && self.slicing.is_none() {
            return Ok(None);
        }
        let slicing = self.slicing;
        // Most rows are in the same slice as the previous row.
        let mut current: Option<(i64, i64)> = None;
        let mut slice = |row: usize| {
            let slicing = slicing?;
            let time = times.is_valid(row).then(|| times.value(row))?;
            if let Some((first, end)) = current
                && first <= time
                && time < end
                && slicing.within.is_none_or(|(from, to)| from <= time && time <= to)
            {
                return Some(first);
            }
            let slice = slicing.slice(time)?;
            current = Some((slice, slice.saturating_add(slicing.every)));
            Some(slice)
        };
        let mut last: Option<(Vec<u32>, Option<i64>, usize)> = None;
        // With a single column, groups are looked up by key.
        let mut direct: Vec<usize> = Vec::new();
        let mut group_of_row = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if let ([keys], None) = (&keys[..], slicing) {
                let key = keys[row] as usize;
                if direct.len() <= key {
                    direct.resize(key + 1, usize::MAX);
                }
                if direct[key] == usize::MAX {
                    direct[key] = self.group(&[keys[row]], None);
                }
                group_of_row.push(direct[key]);
                continue;
            }
            let slice = slice(row);
            let same = |group: &(Vec<u32>, Option<i64>, usize)| {
                group.1 == slice && group.0.iter().zip(&keys).all(|(key, keys)| *key == keys[row])
            };
            let group = match last.as_ref().filter(|last| same(last)) {
                Some(&(_, _, group)) => group,
                None => {
                    let by: Vec<u32> = keys.iter().map(|keys| keys[row]).collect();
                    let group = self.group(&by, slice);
                    last = Some((by, slice, group));
                    group
                }
            };
            group_of_row.push(group);
        }
        Ok(Some(group_of_row))
    }

    pub(super) fn batch(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let plan = self.plan.clone();
        let times = cast_integers::<Int64Type>(batch.column(plan.time))?;
        let (runs, order) = match self.groups_of_rows(batch, times.as_primitive())? {
            None => {
                (vec![GroupRun { group: self.group(&[], None), rows: 0..batch.num_rows() }], None)
            }
            Some(group_of_row) => runs(&group_of_row),
        };
        let batch = match order {
            None => batch,
            Some(order) => &take_record_batch(batch, &order).map_err(arrow)?,
        };
        let times = cast_integers::<Int64Type>(batch.column(plan.time))?;
        for run in &runs {
            let times = times.slice(run.rows.start, run.rows.len());
            let times = times.as_primitive::<Int64Type>();
            let rows = &mut self.groups[run.group];
            rows.count += run.rows.len() as u64;
            rows.time = hull(rows.time, min(times).zip(max(times)));
        }
        self.threads(batch, &runs)?;
        self.fields(&RowsOfStep { batch, runs: &runs, step: 0 }, |steps| !by_step(steps))?;
        let Some(step) = plan.step else { return Ok(()) };
        for (step, rows) in self.rows_of_steps(batch.column(step)) {
            let rows = UInt32Array::from(rows);
            let are_all = rows.len() == batch.num_rows();
            let own =
                if are_all { None } else { Some(take_record_batch(batch, &rows).map_err(arrow)?) };
            let runs = if own.is_some() { &runs_of(&runs, rows.values()) } else { &runs };
            self.fields(&RowsOfStep { batch: own.as_ref().unwrap_or(batch), runs, step }, by_step)?;
        }
        Ok(())
    }

    /// The keys of the steps in a batch, each with its rows in order.
    fn rows_of_steps(&mut self, column: &ArrayRef) -> Vec<(usize, Vec<u32>)> {
        let column = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
        let Some(column) = column else { return Vec::new() };
        // The words of a dictionary are in the order of the steps.
        let words = column.values().as_string::<i32>().iter();
        let numbers: Vec<u32> =
            words.map(|word| word.map_or(0, |word| self.steps.key(word))).collect();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.steps.words.len() + 1];
        for (row, key) in (0..).zip(column.keys()) {
            rows[key.map_or(0, |key| numbers[key as usize]) as usize].push(row);
        }
        rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// The gathered values of a field in a group.
    fn gathered(&mut self, group: usize, at: usize, step: usize) -> &mut Gathered {
        let steps = &mut self.groups[group].fields[at];
        if steps.len() <= step {
            steps.resize_with(step + 1, || None);
        }
        let kind = self.plan.summarised[at].kind;
        steps[step].get_or_insert_with(|| Gathered::new(kind, &self.budget))
    }

    /// Adds the threads of rows. Successive rows often have the same thread.
    fn threads(&mut self, batch: &RecordBatch, runs: &[GroupRun]) -> Result<(), QueryError> {
        let [host, pid, tid] = self.plan.thread;
        let host = batch.column(host);
        let host = host.as_any().downcast_ref::<DictionaryArray<Int32Type>>().map(|host| {
            // Each batch may have a dictionary of its own.
            let names = host.values().as_string::<i32>().iter();
            let names = names.map(|text| text.map_or(0, |name| self.hosts.key(name)));
            (host.keys(), names.collect::<Vec<u32>>())
        });
        let (pid, tid) = (
            cast_integers::<Int32Type>(batch.column(pid))?,
            cast_integers::<Int32Type>(batch.column(tid))?,
        );
        let (pid, tid) = (pid.as_primitive::<Int32Type>(), tid.as_primitive::<Int32Type>());
        let value =
            |array: &Int32Array, row| if array.is_null(row) { -1 } else { array.value(row) };
        for run in runs {
            let threads = &mut self.groups[run.group].threads;
            let mut last = None;
            for row in run.rows.clone() {
                let host = host.as_ref().filter(|(keys, _)| keys.is_valid(row));
                let host = host.map_or(0, |(keys, names)| names[keys.value(row) as usize]);
                let thread = (host, value(pid, row), value(tid, row));
                if last != Some(thread) {
                    threads.insert(thread);
                    last = Some(thread);
                }
            }
        }
        Ok(())
    }

    pub(super) fn join(&mut self, other: PartialSummary) {
        let steps = other.steps.words.iter().map(|word| self.steps.key(word) as usize);
        let steps: Vec<usize> = std::iter::once(0).chain(steps).collect();
        let hosts: Vec<u32> = other.hosts.words.iter().map(|text| self.hosts.key(text)).collect();
        for theirs in other.groups {
            let keys = theirs.by.iter().zip(&mut self.words);
            let by: Vec<u32> =
                keys.map(|(word, words)| word.as_ref().map_or(0, |word| words.key(word))).collect();
            let group = self.group(&by, theirs.slice);
            let ours = &mut self.groups[group];
            ours.count += theirs.count;
            ours.time = hull(ours.time, theirs.time);
            let host = |host: u32| host.checked_sub(1).map_or(0, |at| hosts[at as usize]);
            let threads =
                theirs.threads.into_iter().map(|(number, pid, tid)| (host(number), pid, tid));
            ours.threads.extend(threads);
            for (at, fields) in theirs.fields.into_iter().enumerate() {
                for (step, field) in fields.into_iter().enumerate() {
                    let Some(theirs) = field else { continue };
                    self.gathered(group, at, steps[step]).join(theirs);
                }
            }
        }
    }
}
