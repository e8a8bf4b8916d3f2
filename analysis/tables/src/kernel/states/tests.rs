//! Compares the states that events lead to with a simulated thread whose state is known for each ns.

use super::*;

const ALL: Recorded = Recorded { calls: true, faults: true };
const READ: i32 = 100;

fn states_of(recorded: Recorded, events: &[(i64, ThreadEvent)], end: i64) -> Vec<StateStretch> {
    let mut thread = ThreadTrack::new(recorded);
    events.iter().for_each(|(at, event)| thread.add_event(*at, 0, event));
    thread.finish(end);
    thread.take_done().collect()
}

fn brief(stretches: &[StateStretch]) -> Vec<(i64, i64, KernelWord)> {
    stretches.iter().map(|stretch| (stretch.ts, stretch.end, stretch.state)).collect()
}

fn into(cpu: i32) -> ThreadEvent {
    ThreadEvent::In { cpu }
}

fn out(preempted: bool) -> ThreadEvent {
    ThreadEvent::Out { cpu: 0, preempted }
}

fn wake(waker: i32) -> ThreadEvent {
    ThreadEvent::Wake { cpu: 0, by: 7, waker }
}

fn enter(call: i32) -> ThreadEvent {
    ThreadEvent::Enter { cpu: 0, call }
}

fn exit(call: i32) -> ThreadEvent {
    ThreadEvent::Exit { cpu: 0, call, result: 0 }
}

#[test]
fn a_wait_has_its_call_and_who_ended_it() {
    let next = ThreadEvent::Successor { next: 9, name: "other".into() };
    let events = [
        (5, ThreadEvent::Watched),
        (10, into(0)),
        (20, enter(READ)),
        (25, out(false)),
        (60, wake(42)),
        (66, into(3)),
        (70, ThreadEvent::Exit { cpu: 3, call: READ, result: 1 }),
        (80, next),
        (80, ThreadEvent::Out { cpu: 3, preempted: true }),
        (90, into(0)),
    ];
    let found = states_of(ALL, &events, 100);
    let expected = [
        (5, 10, KernelWord::Unknown),
        (10, 25, KernelWord::Running),
        (25, 60, KernelWord::Blocked),
        (60, 66, KernelWord::Runnable),
        (66, 80, KernelWord::Running),
        (80, 90, KernelWord::Runnable),
        (90, 100, KernelWord::Running),
    ];
    assert_eq!(brief(&found), expected);
    assert_eq!((found[2].blocked_in, found[2].waker), (Some(READ), Some(42)));
    assert_eq!((found[3].blocked_in, found[3].waker, found[3].woken_by), (None, Some(42), Some(7)));
    assert_eq!((found[5].successor, found[5].successor_name.as_deref()), (Some(9), Some("other")));
    assert_eq!((found[5].woken_by, found[5].cpu, found[6].cpu), (None, Some(3), Some(0)));
}

#[test]
fn a_wake_up_may_come_before_the_thread_waits() {
    let woken = [(0, into(0)), (5, wake(8)), (7, out(false)), (9, into(0))];
    let found = states_of(ALL, &woken, 10);
    assert_eq!(brief(&found)[1], (7, 9, KernelWord::Runnable));
    assert_eq!(found[1].waker, Some(8));
    // The thread continued instead: the later wait is another one.
    let stale = [(0, into(0)), (5, wake(8)), (6, enter(READ)), (7, out(false)), (9, into(0))];
    assert_eq!(
        brief(&states_of(ALL, &stale, 10))[1],
        (7, 9, KernelWord::Blocked),
        "its wake-up is missing"
    );
    let both = [(0, into(0)), (5, wake(8)), (7, out(false)), (8, wake(3)), (9, into(0))];
    let found = states_of(ALL, &both, 10);
    assert_eq!(brief(&found)[1..3], [(7, 8, KernelWord::Blocked), (8, 9, KernelWord::Runnable)]);
    assert_eq!(found[2].waker, Some(3));
}

#[test]
fn without_a_wake_up_a_wait_lasts_until_the_thread_runs() {
    let events = [(0, into(0)), (7, out(false)), (9, into(0))];
    let found = states_of(ALL, &events, 10);
    assert_eq!(brief(&found)[1], (7, 9, KernelWord::Blocked));
    assert_eq!((found[1].woken_by, found[1].waker), (None, None));
}

#[test]
fn a_wait_outside_of_calls_may_be_for_a_page() {
    let fault = (30, ThreadEvent::Fault { cpu: 0, kind: 5, address: 1 });
    let before = [(0, into(0)), (1, exit(READ)), (5, out(false)), (15, wake(0)), (18, into(0))];
    let with = [&before[..], std::slice::from_ref(&fault)].concat();
    let found = states_of(ALL, &with, 40);
    assert_eq!(found[1].blocked_in, Some(KernelWord::PageFault.key()));
    assert_eq!(brief(&found).last(), Some(&(18, 40, KernelWord::Running)));
    let without = [&before[..], &[(20, enter(READ)), fault]].concat();
    assert_eq!(states_of(ALL, &without, 40)[1].blocked_in, None);
    let recorded = Recorded { calls: false, ..ALL };
    let unsure: Vec<_> = with.iter().filter(|entry| entry.1 != exit(READ)).cloned().collect();
    assert_eq!(states_of(recorded, &unsure, 40)[1].blocked_in, None, "it may have been in a call");
}

#[test]
fn what_contradicts_itself_is_unknown() {
    let twice = [(0, into(0)), (5, into(1)), (9, out(true))];
    let found = brief(&states_of(ALL, &twice, 12));
    let expected =
        [(0, 5, KernelWord::Unknown), (5, 9, KernelWord::Unknown), (9, 12, KernelWord::Runnable)];
    assert_eq!(found, expected, "it left a CPU that it did not have");
    let waits = [(0, into(0)), (5, out(false)), (7, enter(READ)), (9, exit(READ))];
    let expected =
        [(0, 5, KernelWord::Running), (5, 7, KernelWord::Unknown), (7, 12, KernelWord::Running)];
    assert_eq!(brief(&states_of(ALL, &waits, 12)), expected);
}

#[test]
fn a_thread_begins_and_ends_and_its_number_comes_again() {
    let events = [
        (3, ThreadEvent::Start { parent: 6 }),
        (5, into(0)),
        (8, ThreadEvent::End),
        (9, out(false)),
        (20, ThreadEvent::Start { parent: 0 }),
        (22, into(0)),
    ];
    let found = states_of(ALL, &events, 30);
    let expected = [
        (3, 5, KernelWord::Runnable),
        (5, 8, KernelWord::Running),
        (20, 22, KernelWord::Runnable),
        (22, 30, KernelWord::Running),
    ];
    assert_eq!(brief(&found), expected);
    assert_eq!((found[0].waker, found[0].woken_by), (Some(6), Some(KernelWord::Thread.key())));
}

#[test]
fn a_loss_ends_what_is_known() {
    let mut thread = ThreadTrack::new(ALL);
    thread.add_event(0, 0, &into(0));
    thread.add_event(2, 0, &enter(READ));
    thread.lose(4, 0);
    thread.add_event(10, 0, &wake(3));
    thread.add_event(12, 0, &out(false));
    thread.add_event(20, 0, &wake(5));
    thread.lose(25, 0);
    thread.lose(26, 0);
    thread.add_event(30, 0, &exit(READ));
    thread.finish(31);
    let found: Vec<_> = thread.take_done().collect();
    let expected = [
        (0, 4, KernelWord::Running),
        (4, 12, KernelWord::Unknown),
        (12, 20, KernelWord::Blocked),
        (20, 25, KernelWord::Runnable),
        (25, 30, KernelWord::Unknown),
        (30, 31, KernelWord::Running),
    ];
    assert_eq!(brief(&found), expected);
    assert_eq!(found[2].blocked_in, None, "the call may have returned meanwhile");
}

struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The truth for a ns: state, call, and the waker that ended the wait or the previous one.
type StateTruth = (KernelWord, Option<i32>, Option<i32>);

/// A random thread: its events, and the truth for each ns.
fn made(dice: &mut PseudoRandom) -> (Vec<(i64, ThreadEvent)>, Vec<StateTruth>) {
    let (mut events, mut truth) = (vec![(0, ThreadEvent::Start { parent: 1 })], Vec::new());
    let last = |truth: &mut Vec<StateTruth>, dice: &mut PseudoRandom, of: StateTruth| {
        // At least 1 ns: two events of a thread never have the same time.
        (0..=dice.below(6)).for_each(|_| truth.push(of));
        truth.len() as i64
    };
    let mut now = last(&mut truth, dice, (KernelWord::Runnable, None, Some(1)));
    let mut call = None;
    for _ in 0..dice.below(12) {
        let cpu = dice.below(3) as i32;
        events.push((now, ThreadEvent::In { cpu }));
        now = last(&mut truth, dice, (KernelWord::Running, None, None));
        // A thread outside of a call may enter one.
        for _ in 0..dice.below(3) {
            let event = match call.take() {
                Some(call) => ThreadEvent::Exit { cpu, call, result: 0 },
                None => {
                    let entered = 100 + dice.below(4) as i32;
                    call = Some(entered);
                    ThreadEvent::Enter { cpu, call: entered }
                }
            };
            events.push((now, event));
            now = last(&mut truth, dice, (KernelWord::Running, None, None));
        }
        let preempted = dice.below(2) == 0;
        events.push((now, ThreadEvent::Out { cpu, preempted }));
        if preempted {
            now = last(&mut truth, dice, (KernelWord::Runnable, None, None));
            continue;
        }
        let waker = 2 + dice.below(5) as i32;
        now = last(&mut truth, dice, (KernelWord::Blocked, call, Some(waker)));
        events.push((now, ThreadEvent::Wake { cpu: 0, by: 7, waker }));
        now = last(&mut truth, dice, (KernelWord::Runnable, None, Some(waker)));
    }
    if dice.below(2) == 0 {
        events.push((now, into(0)));
        last(&mut truth, dice, (KernelWord::Running, None, None));
        events.push((truth.len() as i64, ThreadEvent::End));
    }
    (events, truth)
}

/// The state for each ns. Stretches must be adjacent.
fn by_ns(stretches: &[StateStretch]) -> Vec<StateTruth> {
    let mut all = Vec::new();
    for stretch in stretches {
        assert_eq!(stretch.ts, all.len() as i64, "{stretches:?}");
        let said = (stretch.state, stretch.blocked_in, stretch.waker);
        all.extend((stretch.ts..stretch.end).map(|_| said));
    }
    all
}

#[test]
fn each_ns_is_what_it_was_or_unknown() {
    let mut dice = PseudoRandom(1);
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..3000 {
        let (events, truth) = made(&mut dice);
        let end = truth.len() as i64;
        let whole = by_ns(&states_of(ALL, &events, end));
        // A wait that lasts has no waker.
        let lasting = truth
            .iter()
            .rposition(|entry| entry.0 != KernelWord::Blocked)
            .map_or(0, |index| index + 1);
        assert_eq!(whole[..lasting], truth[..lasting], "{events:?}");
        // Some events are lost, with known bounds of their times.
        let (first, second) =
            (dice.below(end as u64 + 1) as i64, dice.below(end as u64 + 1) as i64);
        let (since, until) = (first.min(second), first.max(second));
        let mut thread = ThreadTrack::new(ALL);
        let mut before = 0;
        for (at, event) in &events {
            if (since..=until).contains(at) && dice.below(3) == 0 {
                continue;
            }
            if since < *at && until > before {
                thread.lose(since.max(before), 0);
            }
            thread.add_event(*at, 0, event);
            before = *at;
        }
        if since < end && until > before {
            thread.lose(since.max(before), 0);
        }
        thread.finish(end);
        let stretches: Vec<_> = thread.take_done().collect();
        let mut expected = 0;
        for stretch in &stretches {
            assert!(stretch.ts >= expected && stretch.end > stretch.ts, "{stretches:?}");
            expected = stretch.end;
            for ns in stretch.ts..stretch.end {
                let Some(truth) = truth.get(ns as usize) else { continue };
                if stretch.state == KernelWord::Unknown {
                    unknown += 1;
                    continue;
                }
                known += 1;
                assert_eq!(stretch.state, truth.0, "{ns}: {events:?}, lost {since} to {until}");
                // Calls and wakers that are stated are true; some are unknown.
                assert!(
                    stretch.blocked_in.is_none_or(|call| Some(call) == truth.1),
                    "{ns}: {events:?}"
                );
                assert!(
                    stretch.waker.is_none_or(|waker| Some(waker) == truth.2),
                    "{ns}: {events:?}"
                );
            }
        }
    }
    assert!(known > 10_000 && unknown > 10_000, "{known} known, {unknown} not");
}
