//! A part of the rows, by groups: parts are read side by side, and joined.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch,
};
use datafusion::arrow::compute::{cast, max, min};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use ppt_stats::{Budget, Samples, Value};

use super::answer::{Ask, Group};
use super::gathered::{Gathered, arrow, extend, reach, signed};
use super::plan::{Kind, Plan, Role};
use crate::error::QueryError;

/// What is known of some rows.
struct Rows {
    by: Vec<Option<String>>,
    slice: Option<i64>,
    count: u64,
    time: Option<(i64, i64)>,
    threads: HashSet<[i32; 3]>,
    fields: Vec<Gathered>,
}

/// A part of the rows.
pub(super) struct Part {
    plan: Arc<Plan>,
    every: Option<i64>,
    budget: Budget,
    groups: Vec<Rows>,
    /// By the words of each column, and the slice.
    known: HashMap<(Vec<u32>, Option<i64>), usize>,
    /// The words of each column; the first is NULL.
    words: Vec<Interner>,
}

#[derive(Default)]
struct Interner {
    words: Vec<String>,
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

/// Which group each row of a batch is in.
enum Members {
    All(usize),
    Each(Vec<u32>),
}

impl Part {
    pub(super) fn new(plan: Arc<Plan>, every: Option<i64>, budget: Budget) -> Part {
        let words = plan.by.iter().map(|_| Interner::default()).collect();
        Part { plan, every, budget, groups: Vec::new(), known: HashMap::new(), words }
    }

    pub(super) async fn read(
        mut self,
        mut rows: SendableRecordBatchStream,
    ) -> Result<Part, QueryError> {
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.batch(&batch)?;
            }
        }
        Ok(self)
    }

    fn group(&mut self, by: &[u32], slice: Option<i64>) -> usize {
        if let Some(&known) = self.known.get(&(by.to_vec(), slice)) {
            return known;
        }
        let field = |role: &Role| match role.kind {
            Kind::Signed => Gathered::Signed(Samples::new(&self.budget), None),
            Kind::Unsigned => Gathered::Unsigned(Samples::new(&self.budget)),
            Kind::Real => Gathered::Real(Samples::new(&self.budget)),
            Kind::Words => Gathered::Words(HashMap::new(), 0),
        };
        let word = |(&key, words): (&u32, &Interner)| {
            key.checked_sub(1).map(|key| words.words[key as usize].clone())
        };
        self.groups.push(Rows {
            by: by.iter().zip(&self.words).map(word).collect(),
            slice,
            count: 0,
            time: None,
            threads: HashSet::new(),
            fields: self.plan.roles.iter().map(field).collect(),
        });
        self.known.insert((by.to_vec(), slice), self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// The words of a column of a batch, by row.
    fn keys(&mut self, which: usize, column: &ArrayRef) -> Result<Vec<u32>, QueryError> {
        let words = &mut self.words[which];
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
        let key = |row| match column.is_null(row) {
            true => 0,
            false => words.key(&text.value(row).to_string()),
        };
        Ok((0..column.len()).map(key).collect())
    }

    fn members(&mut self, batch: &RecordBatch, times: &Int64Array) -> Result<Members, QueryError> {
        let plan = self.plan.clone();
        let mut keys = Vec::new();
        for (which, &column) in plan.by.iter().enumerate() {
            keys.push(self.keys(which, batch.column(column))?);
        }
        if keys.is_empty() && self.every.is_none() {
            return Ok(Members::All(self.group(&[], None)));
        }
        let every = self.every;
        let slice = |row: usize| {
            let every = every?;
            let time = times.is_valid(row).then(|| times.value(row))?;
            time.div_euclid(every).checked_mul(every)
        };
        let mut last: Option<(Vec<u32>, Option<i64>, u32)> = None;
        // Of one column of few words, each group is found in one step.
        let mut direct: Vec<u32> = Vec::new();
        let mut each = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if let ([keys], None) = (&keys[..], every) {
                let key = keys[row] as usize;
                if direct.len() <= key {
                    direct.resize(key + 1, u32::MAX);
                }
                if direct[key] == u32::MAX {
                    direct[key] = self.group(&[keys[row]], None) as u32;
                }
                each.push(direct[key]);
                continue;
            }
            let slice = slice(row);
            let same = |it: &(Vec<u32>, Option<i64>, u32)| {
                it.1 == slice && it.0.iter().zip(&keys).all(|(key, keys)| *key == keys[row])
            };
            let group = match last.as_ref().filter(|it| same(it)) {
                Some(it) => it.2,
                None => {
                    let by: Vec<u32> = keys.iter().map(|keys| keys[row]).collect();
                    let group = self.group(&by, slice) as u32;
                    last = Some((by, slice, group));
                    group
                }
            };
            each.push(group);
        }
        Ok(Members::Each(each))
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let plan = self.plan.clone();
        let int = |column: usize| cast(batch.column(column), &DataType::Int64).map_err(arrow);
        let times = int(plan.time)?;
        let times = times.as_primitive::<Int64Type>();
        let members = self.members(batch, times)?;
        match &members {
            Members::All(group) => {
                let rows = &mut self.groups[*group];
                rows.count += batch.num_rows() as u64;
                rows.time = reach(rows.time, min(times).zip(max(times)));
            }
            Members::Each(each) => {
                for (row, &group) in each.iter().enumerate() {
                    let rows = &mut self.groups[group as usize];
                    rows.count += 1;
                    if times.is_valid(row) {
                        let time = times.value(row);
                        rows.time = reach(rows.time, Some((time, time)));
                    }
                }
            }
        }
        self.threads(batch, &members)?;
        for (at, role) in plan.roles.iter().enumerate() {
            self.field(batch, &members, at, role)?;
        }
        Ok(())
    }

    /// Threads come in runs.
    fn threads(&mut self, batch: &RecordBatch, members: &Members) -> Result<(), QueryError> {
        let [host, pid, tid] = self.plan.thread;
        let host = batch.column(host);
        let host = host.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
        let int = |column: usize| cast(batch.column(column), &DataType::Int32).map_err(arrow);
        let (pid, tid) = (int(pid)?, int(tid)?);
        let (pid, tid) = (pid.as_primitive::<Int32Type>(), tid.as_primitive::<Int32Type>());
        let value =
            |array: &Int32Array, row| if array.is_null(row) { -1 } else { array.value(row) };
        let mut last = None;
        for row in 0..batch.num_rows() {
            let group = match members {
                Members::All(group) => *group,
                Members::Each(each) => each[row] as usize,
            };
            let host = host.map_or(-1, |it| value(it.keys(), row));
            let thread = [host, value(pid, row), value(tid, row)];
            if last != Some((group, thread)) {
                self.groups[group].threads.insert(thread);
                last = Some((group, thread));
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        batch: &RecordBatch,
        members: &Members,
        at: usize,
        role: &Role,
    ) -> Result<(), QueryError> {
        let column = batch.column(role.column);
        match role.kind {
            Kind::Signed => {
                signed(column, |it| self.numbers(members, at, it, Gathered::signed))?;
                if let Some((start, end)) = role.ends {
                    self.ends(members, at, column, batch.column(start), batch.column(end))?;
                }
            }
            Kind::Unsigned => {
                let values = column.as_primitive::<UInt64Type>();
                self.numbers(members, at, values, Gathered::unsigned);
            }
            Kind::Real => {
                let values = cast(column, &DataType::Float64).map_err(arrow)?;
                self.numbers(members, at, values.as_primitive::<Float64Type>(), Gathered::real);
            }
            Kind::Words => self.words(members, at, column)?,
        }
        Ok(())
    }

    fn numbers<T: ArrowPrimitiveType<Native: Value>>(
        &mut self,
        members: &Members,
        at: usize,
        values: &PrimitiveArray<T>,
        of: fn(&mut Gathered) -> Option<&mut Samples<T::Native>>,
    ) {
        match members {
            Members::All(group) => {
                if let Some(samples) = of(&mut self.groups[*group].fields[at]) {
                    extend(samples, values);
                }
            }
            Members::Each(each) => {
                for (row, &group) in each.iter().enumerate() {
                    let Some(samples) = of(&mut self.groups[group as usize].fields[at]) else {
                        continue;
                    };
                    match values.is_null(row) {
                        true => samples.push_nulls(1),
                        false => samples.push(values.value(row)),
                    }
                }
            }
        }
    }

    /// From when to when intervals were.
    fn ends(
        &mut self,
        members: &Members,
        at: usize,
        length: &ArrayRef,
        start: &ArrayRef,
        end: &ArrayRef,
    ) -> Result<(), QueryError> {
        let int = |column: &ArrayRef| cast(column, &DataType::Int64).map_err(arrow);
        let (start, end) = (int(start)?, int(end)?);
        let (start, end) = (start.as_primitive::<Int64Type>(), end.as_primitive::<Int64Type>());
        let mut reached = |group: usize, span| {
            if let Gathered::Signed(_, ends) = &mut self.groups[group].fields[at] {
                *ends = reach(*ends, span);
            }
        };
        match members {
            Members::All(group) if length.null_count() == 0 => {
                reached(*group, min(start).zip(max(end)));
            }
            _ => {
                for row in 0..length.len() {
                    if length.is_null(row) || start.is_null(row) || end.is_null(row) {
                        continue;
                    }
                    let group = match members {
                        Members::All(group) => *group,
                        Members::Each(each) => each[row] as usize,
                    };
                    reached(group, Some((start.value(row), end.value(row))));
                }
            }
        }
        Ok(())
    }

    fn words(&mut self, members: &Members, at: usize, column: &ArrayRef) -> Result<(), QueryError> {
        // A bool is a word, too.
        let column = match column.data_type() {
            DataType::Boolean => {
                let ty = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
                &cast(&cast(column, &DataType::Utf8).map_err(arrow)?, &ty).map_err(arrow)?
            }
            _ => column,
        };
        let Some(column) = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>() else {
            return Ok(());
        };
        let words = column.values().as_string::<i32>();
        let mut counts: HashMap<(usize, Option<i32>), u64> = HashMap::new();
        match members {
            Members::All(group) => {
                let mut by_key = vec![0u64; words.len()];
                column.keys().iter().flatten().for_each(|key| by_key[key as usize] += 1);
                counts.insert((*group, None), column.null_count() as u64);
                let some = by_key.iter().enumerate().filter(|it| *it.1 > 0);
                counts.extend(some.map(|(key, &count)| ((*group, Some(key as i32)), count)));
            }
            Members::Each(each) => {
                for (key, &group) in column.keys().iter().zip(each) {
                    *counts.entry((group as usize, key)).or_default() += 1;
                }
            }
        }
        for ((group, key), count) in counts {
            if let Gathered::Words(known, nulls) = &mut self.groups[group].fields[at] {
                match key {
                    None => *nulls += count,
                    Some(key) => {
                        let word = words.value(key as usize).to_owned();
                        *known.entry(word).or_default() += count;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn join(&mut self, other: Part) {
        for theirs in other.groups {
            let keys = theirs.by.iter().zip(&mut self.words);
            let by: Vec<u32> =
                keys.map(|(word, words)| word.as_ref().map_or(0, |it| words.key(it))).collect();
            let group = self.group(&by, theirs.slice);
            let ours = &mut self.groups[group];
            ours.count += theirs.count;
            ours.time = reach(ours.time, theirs.time);
            ours.threads.extend(theirs.threads);
            let fields = ours.fields.iter_mut().zip(theirs.fields);
            fields.for_each(|(ours, theirs)| ours.join(theirs));
        }
    }

    pub(super) fn finish(self, ask: &Ask) -> Vec<Group> {
        let roles = &self.plan.roles;
        let mut groups: Vec<Group> = self
            .groups
            .into_iter()
            .map(|rows| Group {
                by: rows.by,
                slice: rows.slice,
                count: rows.count,
                time: rows.time,
                threads: rows.threads.len() as u64,
                fields: roles
                    .iter()
                    .zip(rows.fields)
                    .map(|(role, gathered)| gathered.finish(role, ask))
                    .collect(),
            })
            .collect();
        groups.sort_by(|a, b| (&a.by, a.slice).cmp(&(&b.by, b.slice)));
        groups
    }
}
