//! Adds the values of fields to a partial summary.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, max, min};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type, UInt64Type,
};
use ppt_stats::{ColumnValue, DistinctValue, Samples};

use super::PartialSummary;
use super::runs::RowsOfStep;
use crate::error::QueryError;
use crate::summary::gathered::{Gathered, arrow, cast_integers, extend, hull};
use crate::summary::plan::{Steps, SummarisedField, ValueType};

impl PartialSummary {
    /// Adds the fields of these rows for whose steps `is_wanted` is true.
    pub(super) fn fields(
        &mut self,
        rows: &RowsOfStep<'_>,
        is_wanted: fn(&Steps) -> bool,
    ) -> Result<(), QueryError> {
        let plan = self.plan.clone();
        let wanted = plan
            .summarised
            .iter()
            .enumerate()
            .filter(|(_, summarised)| is_wanted(&summarised.steps));
        for (at, summarised) in wanted {
            self.field(rows, at, summarised)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        rows: &RowsOfStep<'_>,
        at: usize,
        summarised: &SummarisedField,
    ) -> Result<(), QueryError> {
        let column = rows.batch.column(summarised.column);
        match summarised.kind {
            ValueType::Signed => {
                let values = cast_integers::<Int64Type>(column)?;
                self.numbers(rows, at, values.as_primitive::<Int64Type>(), Gathered::signed);
                if let Some(ends) = summarised.ends {
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
        let (start, end) = (cast_integers::<Int64Type>(start)?, cast_integers::<Int64Type>(end)?);
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
            let values = cast_integers::<Int64Type>(column)?.as_primitive::<Int64Type>().clone();
            Box::new(move |row| DistinctValue::Number(values.value(row).into()))
        }
    })
}
