//! The partial summary of a part of the rows, by groups. Parts are read in parallel, and joined.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch,
    UInt32Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, max, min, take_record_batch};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use ppt_stats::{Budget, ColumnValue, DistinctValue, Samples};

use super::gathered::{Gathered, arrow, extend, hull, whole};
use super::plan::{ReadPlan, Role, Steps, ValueType};
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

/// The partial summary of a part of the rows.
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

/// Rows of a batch whose fields are summarised together.
struct RowsOfStep<'a> {
    batch: &'a RecordBatch,
    runs: &'a [GroupRun],
    /// Key of their step; 0: all rows.
    step: usize,
}

/// Adjacent rows of a batch that are in the same group.
#[derive(Clone)]
struct GroupRun {
    group: usize,
    rows: Range<usize>,
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
            fields: self.plan.roles.iter().map(|_| Vec::new()).collect(),
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

    /// The index of the group of each row; None: rows are not grouped.
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
            let same = |entry: &(Vec<u32>, Option<i64>, usize)| {
                entry.1 == slice && entry.0.iter().zip(&keys).all(|(key, keys)| *key == keys[row])
            };
            let group = match last.as_ref().filter(|last| same(last)) {
                Some(pair) => pair.2,
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
        let times = whole::<Int64Type>(batch.column(plan.time))?;
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
        let times = whole::<Int64Type>(batch.column(plan.time))?;
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

    /// Adds the fields of these rows for whose steps `is_wanted` is true.
    fn fields(
        &mut self,
        rows: &RowsOfStep<'_>,
        is_wanted: fn(&Steps) -> bool,
    ) -> Result<(), QueryError> {
        let plan = self.plan.clone();
        let roles = plan.roles.iter().enumerate().filter(|(_, role)| is_wanted(&role.steps));
        for (at, role) in roles {
            self.field(rows, at, role)?;
        }
        Ok(())
    }

    /// The gathered values of a field in a group.
    fn gathered(&mut self, group: usize, at: usize, step: usize) -> &mut Gathered {
        let steps = &mut self.groups[group].fields[at];
        if steps.len() <= step {
            steps.resize_with(step + 1, || None);
        }
        let kind = self.plan.roles[at].kind;
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
        let (pid, tid) =
            (whole::<Int32Type>(batch.column(pid))?, whole::<Int32Type>(batch.column(tid))?);
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

    fn field(&mut self, rows: &RowsOfStep<'_>, at: usize, role: &Role) -> Result<(), QueryError> {
        let column = rows.batch.column(role.column);
        match role.kind {
            ValueType::Signed => {
                let values = whole::<Int64Type>(column)?;
                self.numbers(rows, at, values.as_primitive::<Int64Type>(), Gathered::signed);
                if let Some(ends) = role.ends {
                    self.ends(rows, at, column, ends)?;
                }
            }
            ValueType::Unsigned => {
                let values = column.as_primitive::<UInt64Type>();
                self.numbers(rows, at, values, Gathered::unsigned);
            }
            ValueType::Real => {
                let values = cast(column, &DataType::Float64).map_err(arrow)?;
                self.numbers(rows, at, values.as_primitive::<Float64Type>(), Gathered::real);
            }
            ValueType::Words => self.add_words(rows, at, column)?,
            ValueType::Keys => self.identities(rows, at, column)?,
        }
        Ok(())
    }

    fn numbers<T: ArrowPrimitiveType<Native: ColumnValue>>(
        &mut self,
        rows: &RowsOfStep<'_>,
        at: usize,
        values: &PrimitiveArray<T>,
        samples_of: fn(&mut Gathered) -> Option<&mut Samples<T::Native>>,
    ) {
        for run in rows.runs {
            if let Some(samples) = samples_of(self.gathered(run.group, at, rows.step)) {
                extend(samples, &values.slice(run.rows.start, run.rows.len()));
            }
        }
    }

    /// Adds the first begin and the last end of intervals.
    fn ends(
        &mut self,
        rows: &RowsOfStep<'_>,
        at: usize,
        length: &ArrayRef,
        (start, end): (usize, usize),
    ) -> Result<(), QueryError> {
        let (start, end) = (rows.batch.column(start), rows.batch.column(end));
        let (start, end) = (whole::<Int64Type>(start)?, whole::<Int64Type>(end)?);
        // An interval without a length or an end is ignored.
        let valid = NullBuffer::union(length.nulls(), start.nulls());
        let valid = NullBuffer::union(valid.as_ref(), end.nulls());
        let times_of = |column: &ArrayRef| {
            let values = column.as_primitive::<Int64Type>().values().clone();
            Int64Array::new(values, valid.clone())
        };
        let (start, end) = (times_of(&start), times_of(&end));
        for run in rows.runs {
            let of_run = |column: &Int64Array| column.slice(run.rows.start, run.rows.len());
            let reached = min(&of_run(&start)).zip(max(&of_run(&end)));
            if let Gathered::Signed(_, ends) = self.gathered(run.group, at, rows.step) {
                *ends = hull(*ends, reached);
            }
        }
        Ok(())
    }

    fn add_words(
        &mut self,
        rows: &RowsOfStep<'_>,
        at: usize,
        column: &ArrayRef,
    ) -> Result<(), QueryError> {
        // Booleans count as words.
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
        let mut counts = vec![0u64; words.len()];
        for run in rows.runs {
            let Gathered::Words(totals, nulls) = self.gathered(run.group, at, rows.step) else {
                continue;
            };
            let mut seen = Vec::new();
            for key in &column.keys().slice(run.rows.start, run.rows.len()) {
                match key {
                    None => *nulls += 1,
                    Some(key) => {
                        if counts[key as usize] == 0 {
                            seen.push(key as usize);
                        }
                        counts[key as usize] += 1;
                    }
                }
            }
            for key in seen {
                let count = std::mem::take(&mut counts[key]);
                match totals.get_mut(words.value(key)) {
                    Some(total) => *total += count,
                    None => drop(totals.insert(words.value(key).to_owned(), count)),
                }
            }
        }
        Ok(())
    }

    fn identities(
        &mut self,
        rows: &RowsOfStep<'_>,
        at: usize,
        column: &ArrayRef,
    ) -> Result<(), QueryError> {
        let identity = identity_of(column)?;
        for run in rows.runs {
            let Gathered::Keys(keys) = self.gathered(run.group, at, rows.step) else { continue };
            for row in run.rows.clone() {
                if column.is_valid(row) {
                    keys.push(identity(row));
                } else {
                    keys.push_nulls(1);
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

/// The runs of the rows `taken`, which are taken out of the batch in order.
fn runs_of(all: &[GroupRun], taken: &[u32]) -> Vec<GroupRun> {
    let mut start = 0;
    let run = |run: &GroupRun| {
        let before = |end: usize| taken.partition_point(|&row| (row as usize) < end);
        let rows = start..before(run.rows.end);
        start = rows.end;
        GroupRun { group: run.group, rows }
    };
    all.iter().map(run).filter(|run| !run.rows.is_empty()).collect()
}

/// A function that returns the value of a row.
fn identity_of(column: &ArrayRef) -> Result<Box<dyn Fn(usize) -> DistinctValue + '_>, QueryError> {
    let bytes = |bytes: &[u8]| DistinctValue::Bytes(bytes.into());
    Ok(match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            Box::new(move |row| bytes(texts.value(row).as_bytes()))
        }
        DataType::FixedSizeBinary(_) => {
            let values = column.as_fixed_size_binary();
            Box::new(move |row| bytes(values.value(row)))
        }
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>();
            Box::new(move |row| DistinctValue::Number(values.value(row).into()))
        }
        _ => {
            let values = whole::<Int64Type>(column)?.as_primitive::<Int64Type>().clone();
            Box::new(move |row| DistinctValue::Number(values.value(row).into()))
        }
    })
}

/// Groups rows: returns the run of each group, and the new order of rows; None: the order does not change.
fn runs(group_of_row: &[usize]) -> (Vec<GroupRun>, Option<UInt32Array>) {
    let in_order = group_of_row.is_sorted();
    let order =
        if in_order { (0..group_of_row.len() as u32).collect() } else { sorted(group_of_row) };
    let group = |row: &u32| group_of_row[*row as usize];
    let mut start = 0;
    let same = order.chunk_by(|one, other| group(one) == group(other));
    let run = |rows: &[u32]| {
        start += rows.len();
        GroupRun { group: group(&rows[0]), rows: start - rows.len()..start }
    };
    let runs = same.map(run).collect();
    (runs, (!in_order).then(|| order.into()))
}

/// Row numbers, sorted by group; the order within a group does not change.
fn sorted(group_of_row: &[usize]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..group_of_row.len() as u32).collect();
    let groups = group_of_row.iter().max().map_or(0, |last| last + 1);
    if groups > group_of_row.len() {
        order.sort_by_key(|&row| group_of_row[row as usize]);
        return order;
    }
    // With fewer groups than rows, counting is faster.
    let mut places = vec![0usize; groups + 1];
    group_of_row.iter().for_each(|&group| places[group + 1] += 1);
    (0..groups).for_each(|group| places[group + 1] += places[group]);
    for (row, &group) in group_of_row.iter().enumerate() {
        order[places[group]] = row as u32;
        places[group] += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_taken_are_in_their_groups() {
        let of = |taken: &[u32]| {
            let all =
                [(3, 0..2), (7, 2..3), (9, 3..5)].map(|(group, rows)| GroupRun { group, rows });
            runs_of(&all, taken).into_iter().map(|run| (run.group, run.rows)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[1, 3, 4]), [(3, 0..1), (9, 1..3)]);
        assert_eq!(of(&[0, 1, 2]), [(3, 0..2), (7, 2..3)]);
    }

    #[test]
    fn rows_of_a_group_are_put_side_by_side() {
        let of = |group_of_row: &[usize]| {
            let (runs, order) = runs(group_of_row);
            let runs: Vec<_> = runs.into_iter().map(|run| (run.group, run.rows)).collect();
            (runs, order.map(|order| order.values().to_vec()))
        };
        assert_eq!(of(&[]), (vec![], None));
        assert_eq!(of(&[3, 3, 7]), (vec![(3, 0..2), (7, 2..3)], None));
        let expected = (vec![(0, 0..2), (1, 2..4), (9, 4..5)], Some(vec![2, 4, 1, 3, 0]));
        assert_eq!(of(&[9, 1, 0, 1, 0]), expected);
        let expected = (vec![(0, 0..2), (1, 2..5)], Some(vec![1, 4, 0, 2, 3]));
        assert_eq!(of(&[1, 0, 1, 1, 0]), expected);
    }
}
