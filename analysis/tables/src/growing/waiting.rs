//! Frames that wait for others.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use crate::error::TableError;
use crate::spans_and_chains::Missing;

/// The column of waiting rows that has the number of their group.
pub(super) const GROUP: &str = "ppt_group";

/// Largest number of periods of missing frames for a group. Beyond it, the older half is merged into one
/// period, which covers more than they did.
const MAX_TIMES: usize = 4096;

/// Frames that wait for others.
#[derive(Debug, Clone, Default)]
pub struct WaitingWholes {
    /// The groups of the frames.
    pub groups: Vec<WaitingGroup>,
    /// The frames, as a scan reads them.
    pub halves: Option<RecordBatch>,
    /// The rows of the frames if no further frame belongs to them.
    pub rows: Option<RecordBatch>,
}

/// A group of frames: those with equal keys form a span or a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingGroup {
    /// Identifies the group in all captures of a series.
    pub name: String,
    /// Periods in which its frames are missing in captures before the last one, ns since the epoch.
    pub before: Vec<(i64, i64)>,
    /// Periods in which its frames are missing in the last capture, ns since the epoch.
    pub missing: Vec<(i64, i64)>,
}

impl WaitingWholes {
    /// The remaining rows when no more frames arrive.
    pub fn last_rows(&self) -> Option<RecordBatch> {
        let rows = self.rows.as_ref().filter(|rows| rows.num_rows() > 0)?;
        let shown: Vec<usize> = (0..rows.num_columns() - 1).collect();
        rows.project(&shown).ok()
    }

    /// The frames and rows of the groups for whose number `is_wanted` is true.
    pub(super) fn filtered(
        &self,
        is_wanted: impl Fn(i32) -> bool,
    ) -> Result<WaitingWholes, TableError> {
        let chosen = |batch: &Option<RecordBatch>| -> Result<Option<RecordBatch>, TableError> {
            let Some(batch) = batch else { return Ok(None) };
            let groups = group_column(batch)?;
            let rows = (0..batch.num_rows()).filter(|&row| is_wanted(groups.value(row)));
            let rows: UInt32Array = rows.map(|row| row as u32).collect();
            Ok(Some(take_record_batch(batch, &rows)?))
        };
        let (halves, rows) = (chosen(&self.halves)?, chosen(&self.rows)?);
        Ok(WaitingWholes { groups: self.groups.clone(), halves, rows })
    }
}

/// The group numbers of waiting frames or rows.
fn group_column(batch: &RecordBatch) -> Result<Int32Array, TableError> {
    let wrong = || arrow_schema::ArrowError::SchemaError(format!("no column {GROUP} of numbers"));
    let column = batch.column_by_name(GROUP).ok_or_else(wrong)?;
    let column = column.as_primitive_opt::<Int32Type>().ok_or_else(wrong)?;
    Ok(column.clone())
}

/// The rows with new group numbers: `numbers` has the new one for each old one.
pub(super) fn renumbered(batch: &RecordBatch, numbers: &[i32]) -> Result<RecordBatch, TableError> {
    let groups = group_column(batch)?;
    let new = groups.iter().map(|group| numbers.get(usize::try_from(group?).ok()?).copied());
    let new: ArrayRef = Arc::new(new.collect::<Int32Array>());
    let at = batch.schema().index_of(GROUP)?;
    let columns = batch.columns().iter().enumerate();
    let columns =
        columns.map(|(place, column)| if place == at { new.clone() } else { column.clone() });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

/// Joins the waiting frames of the groups of a part and those of other groups.
pub(super) fn join(own: WaitingWholes, others: WaitingWholes) -> Result<WaitingWholes, TableError> {
    let both = |own: Option<RecordBatch>, other: Option<RecordBatch>| match (own, other) {
        (Some(own), Some(other)) if other.num_rows() > 0 => {
            if own.schema().fields() != other.schema().fields() {
                let message = "frames of one name have other columns than before".to_owned();
                return Err(TableError::from(arrow_schema::ArrowError::SchemaError(message)));
            }
            Ok(Some(concat_batches(&own.schema(), [&own, &other])?))
        }
        (own, other) => Ok(own.or(other)),
    };
    let (halves, rows) = (both(own.halves, others.halves)?, both(own.rows, others.rows)?);
    Ok(WaitingWholes { groups: own.groups, halves, rows })
}

/// Merges periods until at most [`MAX_TIMES`] are left.
pub(super) fn at_most_max_times(times: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let all = Missing::during(times.map(|(from, to)| (Some(from), Some(to))));
    let times = all.times();
    match times.len().checked_sub(MAX_TIMES / 2) {
        Some(old) if times.len() > MAX_TIMES => [(times[0].0, times[old].1)]
            .into_iter()
            .chain(times[old + 1..].iter().copied())
            .collect(),
        _ => times.to_vec(),
    }
}
