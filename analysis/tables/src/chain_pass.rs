//! A pass that follows chains. Its input is grouped by group and key, and sorted by time. Memory: the first
//! row of the current chain, and a time for each of its steps.

use std::sync::Arc;

use arrow_array::TimestampNanosecondArray;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::builder::timestamp;
use crate::error::TableError;
use crate::gather::{BatchRow, gather};
use crate::pair_pass::FindMissing;
use crate::spans_and_chains::{ChainSteps, ChainVerdict, Missing, NOTHING};
use crate::table::{ROWS_PER_BATCH, Runner};

/// Largest number of times of finished chains in memory.
const MAX_TIMES: usize = 1 << 20;

/// An output column.
#[derive(Debug, Clone)]
pub(crate) enum ChainColumn {
    /// The value of the earliest frame in this input column.
    Own(usize),
    Total,
    /// The time of a step: by plan, its number, if the plan has it.
    Step(Vec<Option<usize>>),
    /// The time from a step to the next one: by plan, the number of the step, if the plan has both.
    Between(Vec<Option<usize>>),
    State,
}

/// A pass that follows chains: indices of its input columns, and its output columns.
#[derive(Clone)]
pub(crate) struct ChainPass {
    pub group: usize,
    pub key: usize,
    pub mark: usize,
    pub ts: usize,
    /// By group: number of its plan.
    pub plans: Vec<usize>,
    /// By plan: names of its steps.
    pub steps: Vec<Vec<String>>,
    pub columns: Vec<ChainColumn>,
    pub schema: SchemaRef,
    /// None if states are not requested.
    pub missing: Option<FindMissing>,
}

impl ChainPass {
    pub fn runner(&self) -> Box<dyn Runner> {
        Box::new(ChainRunner {
            pass: self.clone(),
            current: None,
            kept: Vec::new(),
            done: Vec::new(),
            missing: None,
        })
    }
}

/// A chain: its earliest row, and its steps.
struct OpenChain {
    group: usize,
    key: Vec<u8>,
    first: BatchRow,
    /// The row has a time.
    timed: bool,
    taken: ChainSteps,
}

/// Follows one chain after the other.
struct ChainRunner {
    pass: ChainPass,
    current: Option<OpenChain>,
    kept: Vec<RecordBatch>,
    done: Vec<OpenChain>,
    /// By group, once it was computed.
    missing: Option<Vec<Missing>>,
}

impl Runner for ChainRunner {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let groups = batch.column(self.pass.group).as_primitive::<Int32Type>().clone();
        let keys = batch.column(self.pass.key).as_fixed_size_binary().clone();
        let marks = batch.column(self.pass.mark).as_primitive::<Int32Type>().clone();
        let times = batch.column(self.pass.ts).as_primitive::<TimestampNanosecondType>().clone();
        let (rows, number) = (batch.num_rows(), self.kept.len());
        self.kept.push(batch);
        let mut out = Vec::new();
        for row in 0..rows {
            let (group, key) = (groups.value(row) as usize, keys.value(row));
            let is_same = |chain: &&mut OpenChain| chain.group == group && chain.key == key;
            let ts = times.is_valid(row).then(|| times.value(row));
            let step = usize::try_from(marks.value(row)).ok();
            if let Some(chain) = self.current.as_mut().filter(is_same) {
                // Rows without a time come first.
                if ts.is_some() && !chain.timed {
                    (chain.first, chain.timed) = ((number, row), true);
                }
                chain.taken.add_step(step, ts);
                continue;
            }
            self.done.extend(self.current.take());
            let steps = self.steps(group).len();
            if self.done.len() * steps.max(1) > MAX_TIMES {
                out.extend(self.flush()?);
            }
            let mut taken = ChainSteps::new(steps);
            taken.add_step(step, ts);
            let (first, timed) = ((number, row), ts.is_some());
            self.current = Some(OpenChain { group, key: key.to_owned(), first, timed, taken });
        }
        out.extend(self.flush()?);
        let Some(chain) = &mut self.current else { return Ok(out) };
        // A copy of the row: a slice would keep the whole batch in memory.
        let (batch, row) = std::mem::take(&mut chain.first);
        let one = arrow_array::UInt32Array::from(vec![row as u32]);
        self.kept = vec![arrow_select::take::take_record_batch(&self.kept[batch], &one)?];
        Ok(out)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.done.extend(self.current.take());
        self.flush()
    }
}

impl ChainRunner {
    fn steps(&self, group: usize) -> &[String] {
        let plan = self.pass.plans.get(group);
        plan.and_then(|&plan| self.pass.steps.get(plan)).map_or(&[], Vec::as_slice)
    }

    /// Returns the rows of the finished chains.
    fn flush(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        let done = std::mem::take(&mut self.done);
        if let (None, Some(find), false) = (&self.missing, &self.pass.missing, done.is_empty()) {
            self.missing = Some(find()?);
        }
        done.chunks(ROWS_PER_BATCH).map(|chains| self.batch(chains)).collect()
    }

    fn batch(&self, chains: &[OpenChain]) -> Result<RecordBatch, TableError> {
        let of_plan = |by_plan: &[Option<usize>], chain: &OpenChain| {
            by_plan.get(*self.pass.plans.get(chain.group)?).copied().flatten()
        };
        let column = |out: &ChainColumn| -> Result<ArrayRef, TableError> {
            let all = chains.iter();
            Ok(match out {
                ChainColumn::Own(input) => {
                    gather(&self.kept, *input, all.map(|chain| Some(chain.first)))?
                }
                ChainColumn::Total => {
                    Arc::new(all.map(|chain| chain.taken.total()).collect::<Int64Array>())
                }
                ChainColumn::Step(by_plan) => {
                    let time = |chain: &OpenChain| chain.taken.time(of_plan(by_plan, chain)?);
                    let times = all.map(time).collect::<TimestampNanosecondArray>();
                    Arc::new(times.with_data_type(timestamp()))
                }
                ChainColumn::Between(by_plan) => {
                    let between = |chain: &OpenChain| {
                        let from = of_plan(by_plan, chain)?;
                        chain.taken.between(from, from + 1)
                    };
                    Arc::new(all.map(between).collect::<Int64Array>())
                }
                ChainColumn::State => {
                    let mut states = StringDictionaryBuilder::<Int32Type>::new();
                    for chain in all {
                        states.append(self.state(chain))?;
                    }
                    Arc::new(states.finish())
                }
            })
        };
        let columns = self.pass.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chains.len()));
        Ok(RecordBatch::try_new_with_options(self.pass.schema.clone(), columns, &options)?)
    }

    fn state(&self, chain: &OpenChain) -> String {
        let missing = self.missing.as_ref().and_then(|missing| missing.get(chain.group));
        let names = |steps: &[usize]| {
            let all = self.steps(chain.group);
            let names: Vec<&str> = steps.iter().map(|&step| all[step].as_str()).collect();
            names.join(",")
        };
        match chain.taken.verdict(missing.unwrap_or(&NOTHING)) {
            ChainVerdict::Complete => "complete".to_owned(),
            ChainVerdict::Missing(steps) => format!("missing {}", names(&steps)),
            ChainVerdict::Repeated(steps) => format!("repeated {}", names(&steps)),
            ChainVerdict::OutOfOrder => "out of order".to_owned(),
            ChainVerdict::Lost => "lost".to_owned(),
        }
    }
}
