//! Checks that cells are the same sums as SQL computes from the table `slices`.

mod leaves;
#[path = "../../../view/tests/nested/mod.rs"]
mod nested;

use std::sync::atomic::AtomicBool;

use ppt_view::{Phase, RowId, View, WindowRequest};
use proptest::prelude::*;

use self::leaves::{LeafSums, Oracle, sums};
use self::nested::{Dice, Shape, captures};
use crate::support::Files;

const MEMORY: usize = 1 << 24;

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

fn built(files: &Files) -> View {
    let view = View::open(&files.paths, None, MEMORY).unwrap();
    view.build(2, &|_| {}, &AtomicBool::new(false)).unwrap();
    view
}

fn shapes() -> impl Strategy<Value = Shape> {
    let numbers = (any::<u64>(), 20..1500u64, 1..3u64, 5..400u64, 1..3u64, 1..4u64);
    let shape = |((seed, slices, threads, chunk, buffers, captures), (overlap, others))| Shape {
        seed,
        slices,
        threads,
        chunk,
        buffers,
        overlap,
        others,
        captures,
    };
    (numbers, any::<(bool, bool)>()).prop_map(shape)
}

/// All sums of a view over a window.
fn told(view: &View, from: i64, to: i64, pixels: u32, phase: Phase) -> LeafSums {
    let about = view.about();
    let rows: Vec<RowId> = about.rows.iter().map(|row| row.id).collect();
    let request = WindowRequest { from, to, pixels, rows, phase };
    let cancel = AtomicBool::new(false);
    let rows = view.window(&request, &cancel).map(Result::unwrap).collect::<Vec<_>>();
    for row in &rows {
        assert!(row.is_built);
        assert!(row.cells.is_sorted_by_key(|cell| cell.from), "{row:?}");
        for cell in &row.cells {
            assert!(cell.from < to && cell.to >= from, "{cell:?}");
        }
    }
    sums(&about, &rows)
}

/// Compares windows of a view with the results of SQL.
fn check(files: &Files, view: &View, dice: &mut Dice) {
    let oracle = Oracle::of(files);
    let Some((first, last)) = oracle.range() else { return };
    for pixels in [1, 7, 2000] {
        let all = told(view, first, last.saturating_add(1), pixels, Phase::Index);
        assert_eq!(all, oracle.all(), "all, {pixels} px");
    }
    let width = (i128::from(last) - i128::from(first)) as u64;
    for _ in 0..12 {
        let zoom = [1, 5, 100, 3000][dice.below(4) as usize];
        let wide = (width / zoom).max(2);
        let at = |dice: &mut Dice| first.saturating_add_unsigned(dice.below(width.max(1)));
        let from = at(dice);
        let to = from.saturating_add_unsigned(1 + dice.below(wide));
        let pixels = 1 + dice.below(3000) as u32;
        for phase in [Phase::Index, Phase::Frames] {
            let whole = told(view, from, to, pixels, phase);
            let expected = oracle.window((from, to), pixels, phase);
            assert_eq!(whole, expected, "{from}..{to}, {pixels} px, {phase:?}");
        }
        let middle = from + (to - from) / 2;
        let mut halves = told(view, from, middle, pixels, Phase::Index);
        halves.add(&told(view, middle, to, pixels, Phase::Index));
        assert_eq!(halves, told(view, from, to, pixels, Phase::Index), "{from}..{middle}..{to}");
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn cells_are_the_sums_of_slices_that_nest(shape in shapes()) {
        let files = Files::new(&captures(shape));
        check(&files, &built(&files), &mut Dice::new(shape.seed));
    }

    #[test]
    fn cells_are_the_sums_of_any_slices(seed in any::<u64>(), clocks in any::<bool>()) {
        let captures: Vec<Vec<u8>> =
            (0..1 + seed % 3).map(|n| crate::random::capture(seed ^ n, n as u8, clocks)).collect();
        let files = Files::new(&captures);
        check(&files, &built(&files), &mut Dice::new(seed));
    }

    /// The number of threads and the amount of memory do not change the result.
    #[test]
    fn an_index_follows_from_the_captures_alone(shape in shapes()) {
        let files = Files::new(&captures(shape));
        let bytes = |threads: usize, memory: usize| -> Vec<Vec<u8>> {
            let view = View::open(&files.paths, None, memory).unwrap();
            view.build(threads, &|_| {}, &AtomicBool::new(false)).unwrap();
            (0..files.paths.len()).map(|capture| view.index_bytes(capture)).collect()
        };
        let expected = bytes(1, MEMORY);
        for (threads, memory) in [(2, MEMORY), (8, MEMORY), (1, 0), (2, 30_000)] {
            prop_assert!(bytes(threads, memory) == expected, "{threads} threads, {memory} bytes");
        }
    }

    /// A capture that is read while it grows ends with the same index as one read at once.
    #[test]
    fn pieces_are_as_good_as_all_at_once(shape in shapes()) {
        let whole = captures(Shape { captures: 1, ..shape });
        let expected = built(&Files::new(&whole)).index_bytes(0);
        let mut dice = Dice::new(shape.seed);
        let mut cuts: Vec<usize> =
            (0..4).map(|_| 400 + dice.below(whole[0].len() as u64 - 400) as usize).collect();
        cuts.push(whole[0].len());
        cuts.sort_unstable();
        let files = Files::new(&[Vec::new()]);
        let cancel = AtomicBool::new(false);
        let mut view: Option<View> = None;
        let (mut built, mut kept) = (0, 0);
        for cut in cuts {
            std::fs::write(&files.paths[0], &whole[0][..cut]).unwrap();
            let set = ppt_view::CaptureSet::open(&files.paths).unwrap();
            let next = match view {
                None => View::from_set(set, None, MEMORY).unwrap(),
                Some(before) => before.grown(set).unwrap(),
            };
            let cost = next.build(2, &|_| {}, &cancel).unwrap();
            (built, kept) = (built + cost.built, kept + cost.kept);
            view = Some(next);
        }
        prop_assert!(view.unwrap().index_bytes(0) == expected, "{built} built, {kept} kept");
    }
}
