//! The columns that are read to pair frames.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::frames::{HIDDEN, Hidden, KeyedFrames};
use crate::growing::HalfColumns;
use crate::pair_pass::FindMissing;
use crate::set::CaptureSet;
use crate::standard::Standard;
use crate::table::{Pass, Start};

/// The columns that are read to pair frames.
#[derive(Debug)]
pub(in crate::tables) struct KeyedColumns {
    /// Columns of [`KeyedFrames`]; the hidden ones are last.
    pub columns: Vec<usize>,
}

impl KeyedColumns {
    /// The columns `shown` of the frames, and those that pairing needs.
    pub fn new(frames: &KeyedFrames, shown: impl IntoIterator<Item = usize>) -> KeyedColumns {
        let mut columns: Vec<usize> = Vec::new();
        let all = shown.into_iter().chain(ORDER.map(KeyedFrames::standard));
        for column in all.chain(HIDDEN.map(|hidden| frames.hidden(hidden))) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        KeyedColumns { columns }
    }

    /// The index of a column of the parts among the read columns.
    pub fn at(&self, column: usize) -> usize {
        self.columns.iter().position(|&index| index == column).unwrap_or_default()
    }

    /// Indices of the columns by which frames are paired.
    pub fn half_columns(&self, frames: &KeyedFrames) -> HalfColumns {
        let at = |standard| self.at(KeyedFrames::standard(standard));
        HalfColumns {
            group: self.at(frames.hidden(Hidden::Group)),
            key: self.at(frames.hidden(Hidden::Key)),
            mark: self.at(frames.hidden(Hidden::Mark)),
            ts: at(Standard::Ts),
            ring: at(Standard::Ring),
            seqno: at(Standard::Seqno),
            segment: at(Standard::Segment),
            capture: at(Standard::Capture),
        }
    }

    /// A pass over frames that are grouped by group and key, and in pairing order.
    pub fn pass(
        &self,
        frames: &KeyedFrames,
        schema: SchemaRef,
        explain_text: &str,
        start: Start,
    ) -> Pass {
        let group_by =
            [Hidden::Group, Hidden::Key].map(|hidden| self.at(frames.hidden(hidden))).to_vec();
        let order = ORDER.map(|order| self.at(KeyedFrames::standard(order)));
        let order = group_by.iter().copied().chain(order).map(|column| (column, false)).collect();
        Pass { schema, group_by, order, start, explain_text: explain_text.to_owned() }
    }
}

/// Pairing order: by time, then by the columns that identify a frame.
const ORDER: [Standard; 5] =
    [Standard::Ts, Standard::Ring, Standard::Seqno, Standard::Segment, Standard::Capture];

/// Computes by group when frames may be missing.
pub(in crate::tables) fn find_missing(
    set: &Arc<CaptureSet>,
    frames: &Arc<KeyedFrames>,
) -> FindMissing {
    let (set, frames) = (set.clone(), frames.clone());
    Arc::new(move || frames.missing(&set))
}
