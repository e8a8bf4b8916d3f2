//! A pass that pairs begins with ends, or each step with the next one. Its input is grouped by group and
//! key, and sorted by time.
//!
//! Memory: about twice the open begins of the current key, and one batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, new_null_array,
};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;
use strum::IntoEnumIterator;

use crate::error::TableError;
use crate::gather::{BatchRow, gather};
use crate::spans_and_chains::{Halves, Missing, NOTHING, SpanFrame, SpanRow, SpanState};
use crate::table::{ROWS_PER_BATCH, Runner};

/// An output column. Numbers are indices of input columns.
#[derive(Debug, Clone)]
pub(crate) enum PairColumn {
    /// The value of the begin, or of an end without a begin.
    Own(usize),
    /// The value of the begin.
    Begin(usize),
    /// The value of the end.
    End(usize),
    Dur,
    State,
    /// One word for all rows.
    Word(Arc<StringArray>),
    Zero,
    Null,
}

/// Computes by group when frames may be missing.
pub(crate) type FindMissing = Arc<dyn Fn() -> Result<Vec<Missing>, TableError> + Send + Sync>;

/// A pass that pairs frames: indices of its input columns, and its output columns.
#[derive(Clone)]
pub(crate) struct PairPass {
    pub group: usize,
    pub key: usize,
    pub mark: usize,
    pub ts: usize,
    /// For each group, whether an end belongs to the earliest open begin instead of the latest.
    pub fifo: Vec<bool>,
    pub columns: Vec<PairColumn>,
    pub schema: SchemaRef,
    /// Whether only closed pairs are rows.
    pub closed: bool,
    /// Whether marks are steps: a frame forms a pair with the next one if that has a later step.
    pub steps: bool,
    /// None if states are not requested.
    pub missing: Option<FindMissing>,
}

impl PairPass {
    pub fn runner(&self) -> Box<dyn Runner> {
        Box::new(PairRunner {
            pass: self.clone(),
            key: None,
            halves: Halves::new(false),
            step: None,
            kept: Vec::new(),
            done: Vec::new(),
            missing: None,
        })
    }
}

/// The last step.
#[derive(Debug, Clone, Copy)]
struct TakenStep {
    number: i32,
    ts: i64,
    frame: BatchRow,
}

/// Pairs the frames of one key after the other.
struct PairRunner {
    pass: PairPass,
    /// The current group and key.
    key: Option<(i32, Vec<u8>)>,
    halves: Halves<BatchRow>,
    step: Option<TakenStep>,
    kept: Vec<RecordBatch>,
    done: Vec<SpanRow<BatchRow>>,
    /// By group, once it was computed.
    missing: Option<Vec<Missing>>,
}

impl Runner for PairRunner {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let missing = self.take_missing()?;
        let missing_in = |group: i32| missing.get(group as usize).unwrap_or(&NOTHING);
        let groups = batch.column(self.pass.group).as_primitive::<Int32Type>().clone();
        let keys = batch.column(self.pass.key).as_fixed_size_binary().clone();
        let marks = batch.column(self.pass.mark).as_primitive::<Int32Type>().clone();
        let times = batch.column(self.pass.ts).as_primitive::<TimestampNanosecondType>().clone();
        let number = self.kept.len();
        for row in 0..batch.num_rows() {
            let (group, key) = (groups.value(row), keys.value(row));
            let same = self.key.as_ref().is_some_and(|entry| entry.0 == group && entry.1 == key);
            if !same {
                if let Some((group, _)) = self.key.replace((group, key.to_owned())) {
                    self.done.extend(self.halves.finish(missing_in(group)));
                }
                self.step = None;
                let fifo = self.pass.fifo.get(group as usize).copied().unwrap_or_default();
                self.halves = Halves::new(fifo);
            }
            let ts = times.is_valid(row).then(|| times.value(row));
            if self.pass.steps {
                let step = |ts| TakenStep { number: marks.value(row), ts, frame: (number, row) };
                self.take_step(ts.map(step));
                continue;
            }
            let half = match marks.value(row) {
                0 => SpanFrame::Begin,
                1 => SpanFrame::End,
                _ => SpanFrame::Neither,
            };
            self.done.extend(self.halves.add_half(half, ts, (number, row), missing_in(group)));
        }
        self.kept.push(batch);
        self.missing = Some(missing);
        let out = self.flush()?;
        self.forget()?;
        Ok(out)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if let Some((group, _)) = self.key.take() {
            let missing = self.take_missing()?;
            let missing = missing.get(group as usize).unwrap_or(&NOTHING);
            self.done.extend(self.halves.finish(missing));
        }
        self.flush()
    }
}

impl PairRunner {
    /// By group: when frames may be missing.
    fn take_missing(&mut self) -> Result<Vec<Missing>, TableError> {
        match (self.missing.take(), &self.pass.missing) {
            (Some(known), _) => Ok(known),
            (None, Some(find)) => find(),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Takes the next step of the key; steps without a time form no pairs.
    fn take_step(&mut self, step: Option<TakenStep>) {
        let Some(step) = step.filter(|step| step.number >= 0) else { return };
        if let Some(last) = self.step.replace(step)
            && last.number < step.number
        {
            let (begin, end) = (Some(last.frame), Some(step.frame));
            let dur = step.ts.checked_sub(last.ts);
            self.done.push(SpanRow { begin, end, state: SpanState::Closed, dur });
        }
    }

    /// Returns the finished rows.
    fn flush(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        let mut done = std::mem::take(&mut self.done);
        done.retain(|row| !self.pass.closed || row.state == SpanState::Closed);
        done.chunks(ROWS_PER_BATCH).map(|rows| self.batch(rows)).collect()
    }

    fn batch(&self, rows: &[SpanRow<BatchRow>]) -> Result<RecordBatch, TableError> {
        let columns = self.pass.columns.iter().zip(self.pass.schema.fields());
        let column =
            |(out, field): (&PairColumn, &Arc<arrow_schema::Field>)| -> Result<ArrayRef, TableError> {
                let all = rows.iter();
                let own = |row: &SpanRow<BatchRow>| row.begin.or(row.end);
                Ok(match out {
                    PairColumn::Own(input) => gather(&self.kept, *input, all.map(own))?,
                    PairColumn::Begin(input) => gather(&self.kept, *input, all.map(|row| row.begin))?,
                    PairColumn::End(input) => gather(&self.kept, *input, all.map(|row| row.end))?,
                    PairColumn::Dur => Arc::new(all.map(|row| row.dur).collect::<Int64Array>()),
                    PairColumn::State => {
                        let words = SpanState::iter().map(<&str>::from);
                        let words = Arc::new(StringArray::from_iter_values(words));
                        let keys = all.map(|row| Some(row.state as i32)).collect::<Int32Array>();
                        Arc::new(DictionaryArray::try_new(keys, words)?)
                    }
                    PairColumn::Word(word) => {
                        let keys = Int32Array::from(vec![0; rows.len()]);
                        Arc::new(DictionaryArray::try_new(keys, word.clone())?)
                    }
                    PairColumn::Zero => Arc::new(Int32Array::from(vec![0; rows.len()])),
                    PairColumn::Null => new_null_array(field.data_type(), rows.len()),
                })
            };
        let columns = columns.map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.pass.schema.clone(), columns, &options)?)
    }

    /// Drops rows that are not open, once that is worth the copy.
    fn forget(&mut self) -> Result<(), TableError> {
        if let Some(step) = &mut self.step {
            let batches: Vec<&RecordBatch> = self.kept.iter().collect();
            self.kept = vec![interleave_record_batch(&batches, &[step.frame])?];
            step.frame = (0, 0);
            return Ok(());
        }
        let open = self.halves.open().len();
        if open == 0 {
            self.kept.clear();
            return Ok(());
        }
        let kept: usize = self.kept.iter().map(RecordBatch::num_rows).sum();
        if kept > 2 * open + ROWS_PER_BATCH {
            let rows: Vec<BatchRow> = self.halves.open().copied().collect();
            let batches: Vec<&RecordBatch> = self.kept.iter().collect();
            self.kept = vec![interleave_record_batch(&batches, &rows)?];
            self.halves.open_mut().enumerate().for_each(|(at, row)| *row = (0, at));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeBinaryArray, TimestampNanosecondArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::builder::word_type;

    /// A frame: key, mark, time. Its index identifies it.
    type PairFrame = (u8, i32, Option<i64>);

    fn runner(fifo: bool, missing: Option<FindMissing>) -> PairRunner {
        let field = |name: &str, ty| Field::new(name, ty, true);
        let schema = Schema::new(vec![
            field("begin", DataType::Int64),
            field("end", DataType::Int64),
            field("own", DataType::Int64),
            field("dur", DataType::Int64),
            field("state", word_type()),
        ]);
        let pass = PairPass {
            group: 0,
            key: 1,
            mark: 2,
            ts: 3,
            fifo: vec![fifo],
            columns: vec![
                PairColumn::Begin(4),
                PairColumn::End(4),
                PairColumn::Own(4),
                PairColumn::Dur,
                PairColumn::State,
            ],
            schema: Arc::new(schema),
            closed: false,
            steps: false,
            missing,
        };
        let halves = Halves::new(false);
        PairRunner {
            pass,
            key: None,
            halves,
            step: None,
            kept: Vec::new(),
            done: Vec::new(),
            missing: None,
        }
    }

    fn batch(frames: &[PairFrame], first: i64) -> RecordBatch {
        let keys =
            FixedSizeBinaryArray::try_from_iter(frames.iter().map(|frame| [frame.0])).unwrap();
        let times: TimestampNanosecondArray = frames.iter().map(|frame| frame.2).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("group", Arc::new(Int32Array::from(vec![0; frames.len()]))),
            ("key", Arc::new(keys)),
            ("mark", Arc::new(frames.iter().map(|frame| Some(frame.1)).collect::<Int32Array>())),
            ("ts", Arc::new(times)),
            ("name", Arc::new(Int64Array::from_iter_values(first..first + frames.len() as i64))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    type PairTimes = (Option<i64>, Option<i64>, Option<i64>, Option<i64>, String);

    /// The output for batches of `each` frames, and the largest number of rows in memory.
    fn pairs(mut runner: PairRunner, frames: &[PairFrame], each: usize) -> (Vec<PairTimes>, usize) {
        let (mut out, mut most) = (Vec::new(), 0);
        for (at, part) in frames.chunks(each).enumerate() {
            out.extend(runner.push(batch(part, (at * each) as i64)).unwrap());
            most = most.max(runner.kept.iter().map(RecordBatch::num_rows).sum());
        }
        out.extend(runner.finish().unwrap());
        let mut rows = Vec::new();
        for batch in &out {
            let long = |at: usize, row: usize| {
                let column = batch.column(at).as_primitive::<arrow_array::types::Int64Type>();
                column.is_valid(row).then(|| column.value(row))
            };
            let states = batch.column(4).as_dictionary::<Int32Type>();
            let states = states.downcast_dict::<StringArray>().unwrap();
            rows.extend((0..batch.num_rows()).map(|row| {
                let state = arrow_array::ArrayAccessor::value(&states, row).to_owned();
                (long(0, row), long(1, row), long(2, row), long(3, row), state)
            }));
        }
        rows.sort();
        (rows, most)
    }

    #[test]
    fn an_end_belongs_to_the_latest_begin_or_to_the_earliest() {
        let frames = [
            (1, 0, Some(10)),
            (1, 0, Some(20)),
            (1, 1, Some(25)),
            (1, 1, Some(40)),
            (2, 1, Some(5)),
        ];
        let closed =
            |begin, end, dur| (Some(begin), Some(end), Some(begin), Some(dur), "closed".to_owned());
        let orphan = (None, Some(4), Some(4), None, "orphan".to_owned());
        for each in 1..=frames.len() {
            let (rows, _) = pairs(runner(false, None), &frames, each);
            assert_eq!(rows, [orphan.clone(), closed(0, 3, 30), closed(1, 2, 5)]);
            let (rows, _) = pairs(runner(true, None), &frames, each);
            assert_eq!(rows, [orphan.clone(), closed(0, 2, 15), closed(1, 3, 20)]);
        }
    }

    #[test]
    fn spans_with_a_half_in_a_gap_are_lost() {
        let gap: FindMissing = Arc::new(|| Ok(vec![Missing::during([(Some(15), Some(17))])]));
        let frames = [
            (1, 1, Some(14)),
            (2, 1, Some(15)),
            (3, 0, Some(17)),
            (4, 0, Some(18)),
            (5, 1, None),
            (5, 0, Some(90)),
            (6, 7, Some(3)),
        ];
        let (rows, _) = pairs(runner(false, Some(gap)), &frames, 3);
        let states: Vec<_> = rows.iter().map(|row| (row.2.unwrap(), row.4.as_str())).collect();
        let mut states = states;
        states.sort_unstable();
        let expected = [
            (0, "orphan"),
            (1, "lost"),
            (2, "lost"),
            (3, "open"),
            (4, "lost"),
            (5, "lost"),
            (6, "orphan"),
        ];
        assert_eq!(states, expected);
    }

    /// One key with 20,000 open spans, of which every tenth never ends, and 50,000 short spans while they are
    /// open.
    #[test]
    fn memory_holds_open_spans_only() {
        let mut frames: Vec<PairFrame> = (0..20_000).map(|n| (1, 0, Some(n))).collect();
        frames.extend((0..18_000).map(|n| (1, 1, Some(20_000 + n))));
        let long = (1, 0, Some(50_000));
        frames.push(long);
        frames.extend((0..100_000).map(|n| (1, (n % 2) as i32, Some(60_000 + n))));
        for fifo in [false, true] {
            let (whole, _) = pairs(runner(fifo, None), &frames, frames.len());
            let (rows, most) = pairs(runner(fifo, None), &frames, 1000);
            assert_eq!(rows, whole);
            let count = |state: &str| rows.iter().filter(|row| row.4 == state).count();
            assert_eq!((count("closed"), count("open")), (68_000, 2_001));
            assert!(most <= 2 * 20_000 + ROWS_PER_BATCH + 1000, "{most}");
        }
        let (_, most) = pairs(runner(false, None), &frames[38_000..], 1000);
        assert!(most <= 2 + ROWS_PER_BATCH + 1000, "one open span holds one row: {most}");
    }
}
