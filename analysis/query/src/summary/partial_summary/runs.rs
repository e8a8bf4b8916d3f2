//! Rows of a batch, side by side with those of their group.

use std::ops::Range;

use datafusion::arrow::array::{RecordBatch, UInt32Array};

/// Rows of a batch whose fields are summarised together.
pub(super) struct RowsOfStep<'a> {
    pub batch: &'a RecordBatch,
    pub runs: &'a [GroupRun],
    /// Key of their step; 0: all rows.
    pub step: usize,
}

/// Adjacent rows of a batch that are in the same group.
#[derive(Clone)]
pub(super) struct GroupRun {
    pub group: usize,
    pub rows: Range<usize>,
}

/// The runs of the rows `taken`, which are taken out of the batch in order.
pub(super) fn runs_of(all: &[GroupRun], taken: &[u32]) -> Vec<GroupRun> {
    let mut start = 0;
    let run = |run: &GroupRun| {
        let before = |end: usize| taken.partition_point(|&row| (row as usize) < end);
        let rows = start..before(run.rows.end);
        start = rows.end;
        GroupRun { group: run.group, rows }
    };
    all.iter().map(run).filter(|run| !run.rows.is_empty()).collect()
}

/// Groups rows: returns the run of each group, and the new order of rows; None if the order does not change.
pub(super) fn runs(group_of_row: &[usize]) -> (Vec<GroupRun>, Option<UInt32Array>) {
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
