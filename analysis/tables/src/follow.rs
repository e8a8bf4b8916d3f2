//! A pass that follows chains: rows of the same group and key come one after the other, in the order of
//! time. Of the chain that is looked at, its first row is kept, and a time for each step.

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
use crate::pair::MissingOf;
use crate::table::Runner;
use crate::whole::{ChainSteps, ChainVerdict, Missing, NOTHING};

/// Rows of a batch that comes out.
const ROWS: usize = 8192;
/// Times of chains that are kept until they come out.
const TIMES: usize = 1 << 20;

/// A column that comes out.
#[derive(Debug, Clone)]
pub(crate) enum ChainColumn {
    /// A column of what is read: of the earliest step.
    Own(usize),
    Total,
    /// By plan: the number of the step, if that has it.
    Step(Vec<Option<usize>>),
    /// By plan: the number of the step before.
    Between(Vec<Option<usize>>),
    State,
}

/// Where the columns are that chains take, and which come out.
#[derive(Clone)]
pub(crate) struct Follow {
    pub group: usize,
    pub key: usize,
    pub mark: usize,
    pub ts: usize,
    /// By group: its plan.
    pub plans: Vec<usize>,
    /// By plan: its steps.
    pub steps: Vec<Vec<String>>,
    pub columns: Vec<ChainColumn>,
    pub schema: SchemaRef,
    /// None: nobody asks for states.
    pub missing: Option<MissingOf>,
}

impl Follow {
    pub fn runner(&self) -> Box<dyn Runner> {
        Box::new(Following {
            follow: self.clone(),
            on_its_way: None,
            kept: Vec::new(),
            done: Vec::new(),
            missing: None,
        })
    }
}

/// A chain: its earliest row, and what was taken.
struct OneChain {
    group: usize,
    key: Vec<u8>,
    first: BatchRow,
    /// The row says when it was.
    timed: bool,
    taken: ChainSteps,
}

struct Following {
    follow: Follow,
    on_its_way: Option<OneChain>,
    kept: Vec<RecordBatch>,
    done: Vec<OneChain>,
    /// By group, once they are known.
    missing: Option<Vec<Missing>>,
}

impl Runner for Following {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let groups = batch.column(self.follow.group).as_primitive::<Int32Type>().clone();
        let keys = batch.column(self.follow.key).as_fixed_size_binary().clone();
        let marks = batch.column(self.follow.mark).as_primitive::<Int32Type>().clone();
        let times = batch.column(self.follow.ts).as_primitive::<TimestampNanosecondType>().clone();
        let (rows, number) = (batch.num_rows(), self.kept.len());
        self.kept.push(batch);
        let mut out = Vec::new();
        for row in 0..rows {
            let (group, key) = (groups.value(row) as usize, keys.value(row));
            let is_same = |chain: &&mut OneChain| chain.group == group && chain.key == key;
            let ts = times.is_valid(row).then(|| times.value(row));
            let step = usize::try_from(marks.value(row)).ok();
            if let Some(chain) = self.on_its_way.as_mut().filter(is_same) {
                // Rows without a time come first.
                if ts.is_some() && !chain.timed {
                    (chain.first, chain.timed) = ((number, row), true);
                }
                chain.taken.add_step(step, ts);
                continue;
            }
            self.done.extend(self.on_its_way.take());
            let steps = self.steps(group).len();
            if self.done.len() * steps.max(1) > TIMES {
                out.extend(self.flush()?);
            }
            let mut taken = ChainSteps::new(steps);
            taken.add_step(step, ts);
            let (first, timed) = ((number, row), ts.is_some());
            self.on_its_way = Some(OneChain { group, key: key.to_owned(), first, timed, taken });
        }
        out.extend(self.flush()?);
        let Some(chain) = &mut self.on_its_way else { return Ok(out) };
        // A copy of the one row: a slice would keep all of its batch.
        let (batch, row) = std::mem::take(&mut chain.first);
        let one = arrow_array::UInt32Array::from(vec![row as u32]);
        self.kept = vec![arrow_select::take::take_record_batch(&self.kept[batch], &one)?];
        Ok(out)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.done.extend(self.on_its_way.take());
        self.flush()
    }
}

impl Following {
    fn steps(&self, group: usize) -> &[String] {
        let plan = self.follow.plans.get(group);
        plan.and_then(|&plan| self.follow.steps.get(plan)).map_or(&[], Vec::as_slice)
    }

    /// The chains that are done.
    fn flush(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        let done = std::mem::take(&mut self.done);
        if let (None, Some(find), false) = (&self.missing, &self.follow.missing, done.is_empty()) {
            self.missing = Some(find()?);
        }
        done.chunks(ROWS).map(|chains| self.batch(chains)).collect()
    }

    fn batch(&self, chains: &[OneChain]) -> Result<RecordBatch, TableError> {
        let of_plan = |by_plan: &[Option<usize>], chain: &OneChain| {
            by_plan.get(*self.follow.plans.get(chain.group)?).copied().flatten()
        };
        let column = |out: &ChainColumn| -> Result<ArrayRef, TableError> {
            let all = chains.iter();
            Ok(match out {
                ChainColumn::Own(of) => {
                    gather(&self.kept, *of, all.map(|chain| Some(chain.first)))?
                }
                ChainColumn::Total => {
                    Arc::new(all.map(|chain| chain.taken.total()).collect::<Int64Array>())
                }
                ChainColumn::Step(by_plan) => {
                    let time = |chain: &OneChain| chain.taken.time(of_plan(by_plan, chain)?);
                    let times = all.map(time).collect::<TimestampNanosecondArray>();
                    Arc::new(times.with_data_type(timestamp()))
                }
                ChainColumn::Between(by_plan) => {
                    let between = |chain: &OneChain| {
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
        let columns = self.follow.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chains.len()));
        Ok(RecordBatch::try_new_with_options(self.follow.schema.clone(), columns, &options)?)
    }

    fn state(&self, chain: &OneChain) -> String {
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
