//! Locks that neither an edge nor the kernel's records show.

use ppt_causality::retime::{RecordedRun, RetimeModel, RetimeRefusal};

use crate::retime::simulator::SimulatorRandom;

/// Three threads rest for about 1 ms, and then work for about `work` ns. `lock`: one at a time, in the order in which
/// they ask. `has_edge`: an edge leads from the end of the one before.
fn recording(work: f64, lock: bool, has_edge: bool) -> (RecordedRun, f64) {
    let mut recording = RecordedRun::new();
    let threads = [0; 3].map(|process| recording.thread(process));
    let [rested, begun, ended, name] =
        ["rested", "work_start", "work_end", "work"].map(|name| recording.name(name));
    let mut dice = SimulatorRandom::new(7);
    let (mut asks, mut free, mut last) = ([0; 3], 0, None);
    let (mut waited, mut all) = (0, 0);
    for _ in 0..3_000 {
        let thread = (0..3).min_by_key(|&thread| asks[thread]).unwrap();
        let asked = asks[thread];
        recording.vertex(threads[thread], asked, rested);
        // A lock is handed over within 20 us.
        let start = if lock && free > asked { free + 20_000 } else { asked + 500 };
        let begin = recording.vertex(threads[thread], start, begun);
        free = start + dice.exponential(work);
        let end = recording.vertex(threads[thread], free, ended);
        recording.interval(name, begin, end);
        if has_edge && let Some(last) = last.filter(|_| start > asked + 500) {
            recording.edge(last, begin);
        }
        last = Some(end);
        waited += start - asked;
        asks[thread] = free + dice.exponential(1e6);
        all += asks[thread] - asked;
    }
    (recording, waited as f64 / all as f64)
}

#[test]
fn threads_that_wait_for_their_turn_are_refused() {
    let (locked, share) = recording(1e6, true, false);
    match RetimeModel::new(locked) {
        Err(RetimeRefusal::UnseenWaits { share: found }) => {
            println!("{found} of {share}");
            assert!(found > 0.8 * share && found < 1.2 * share, "{found} of {share}");
        }
        other => panic!("{:?}", other.map(|model| model.notes())),
    }
}

#[test]
fn threads_that_do_not_wait_for_their_turn_are_believed() {
    for (work, lock, has_edge) in [
        // Nobody waits.
        (1e6, false, false),
        // The lock is taken so seldom that waits are short.
        (2e4, true, false),
        // A replay moves these waits.
        (1e6, true, true),
    ] {
        let (recording, _) = recording(work, lock, has_edge);
        let model = RetimeModel::new(recording);
        assert!(model.is_ok(), "{work} {lock} {has_edge}: {:?}", model.err());
    }
}
