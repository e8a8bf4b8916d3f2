//! Cells: rows of single threads, and the shared row. The sum read is the sum added, whichever
//! thread starts, ends, forks or dies.

use loom::thread;
use ppt_segment::abi::ring_state;
use ppt_segment::cells::{add_own, add_shared, read};

use crate::detach::Gate;
use crate::*;

/// A segment of one ring: its row, and the shared one, of one cell each.
struct CellSegment<const W: u8> {
    memory: Arc<ModelMemory<W>>,
    own: ModelWord<W>,
    shared: ModelWord<W>,
}

impl<const W: u8> CellSegment<W> {
    fn new() -> Arc<Self> {
        let cell = || ModelWord(AtomicU64::new(0));
        Arc::new(Self { memory: ModelMemory::new(2), own: cell(), shared: cell() })
    }

    /// A thread starts, adds 1 to its row, or to the shared one if there is no row for it, and
    /// ends.
    fn visit(&self, tid: u32) {
        let ring = self.memory.ring();
        if !ring.claim(tid) {
            return add_shared(&self.shared, 1);
        }
        let epoch = ring.owner().epoch;
        add_own(&self.own, 1);
        assert!(ring.release(epoch), "two owners");
    }

    fn sum(&self) -> u64 {
        read(&self.own) + read(&self.shared)
    }

    /// The sum that a reader sees once the writers are done; not stale.
    fn sum_now(&self) -> u64 {
        self.own.0.fetch_add(0, Ordering::AcqRel) + self.shared.0.fetch_add(0, Ordering::AcqRel)
    }
}

/// Three threads and one row: nothing is refused, nothing is lost, and a reader never sees more
/// than was added, nor less than it saw before.
fn threads_come_and_go<const W: u8>() {
    explore(Some(3), 100, || {
        let rows = CellSegment::<W>::new();
        let others = [2, 3].map(|tid| {
            let rows = rows.clone();
            thread::spawn(move || rows.visit(tid))
        });
        rows.visit(1);
        let (first, second) = (rows.sum(), rows.sum());
        assert!(first <= second && second <= 3, "more than was added");
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(rows.sum_now(), 3, "an add is lost");
    });
}

#[test]
fn no_add_is_lost_when_threads_come_and_go() {
    threads_come_and_go::<NOTHING>();
}

#[test]
fn an_add_is_lost_without_the_compare_and_swap_of_the_claim() {
    fails(threads_come_and_go::<CLAIM>);
}

#[test]
fn an_add_is_lost_without_the_release_of_the_owner_word() {
    fails(threads_come_and_go::<GIVE_BACK>);
}

#[test]
fn an_add_is_lost_without_the_atomic_add_to_the_shared_row() {
    fails(threads_come_and_go::<SHARED>);
}

/// The row that a signal handler adds to when it interrupts an add.
#[derive(Clone, Copy, PartialEq)]
enum Handler {
    Shared,
    Own,
}

/// A handler interrupts an add between any two of its steps, while another thread also adds.
fn interrupted(handler: Handler) {
    explore(Some(3), 3, move || {
        let rows = CellSegment::<NOTHING>::new();
        assert!(rows.memory.ring().claim(1));
        let other = thread::spawn({
            let rows = rows.clone();
            move || rows.visit(2)
        });
        // The steps of an add.
        let value = rows.own.load(Relaxed);
        match handler {
            Handler::Shared => add_shared(&rows.shared, 1),
            Handler::Own => add_own(&rows.own, 1),
        }
        rows.own.store(value + 1, Relaxed);
        other.join().unwrap();
        assert_eq!(rows.sum_now(), 3, "an add is lost");
    });
}

#[test]
fn a_handler_adds_to_the_shared_row() {
    interrupted(Handler::Shared);
}

#[test]
fn an_add_is_lost_where_a_handler_adds_to_the_threads_row() {
    fails(|| interrupted(Handler::Own));
}

/// How a listener treats a segment that all threads have left for a larger one.
#[derive(Clone, Copy, PartialEq)]
enum Former {
    /// It reads the segment again at the end of the session.
    Kept,
    /// It reads the segment when no thread owns a ring there, and never again.
    Forgotten,
}

/// The gate moves to another segment while a thread with a ring and one without a ring add.
fn grow(former: Former) {
    explore(Some(3), 100, move || {
        let (old, new) = (CellSegment::<NOTHING>::new(), CellSegment::<NOTHING>::new());
        let gate = Arc::new(Gate::new(1));
        assert!(old.memory.ring().claim(1));
        let listener = thread::spawn({
            let (old, gate) = (old.clone(), gate.clone());
            move || {
                gate.set(0);
                gate.set(2);
                let free = old.memory.ring().owner().state == ring_state::FREE;
                (free, old.sum())
            }
        });
        let ringless = thread::spawn({
            let (old, new, gate) = (old.clone(), new.clone(), gate.clone());
            move || {
                match gate.get() {
                    1 => add_shared(&old.shared, 1),
                    2 => add_shared(&new.shared, 1),
                    _ => return 0,
                }
                1
            }
        });
        let mut added = 0;
        let mut knows_old = true;
        for _ in 0..2 {
            match gate.get() {
                1 if knows_old => add_own(&old.own, 1),
                2 => {
                    if std::mem::replace(&mut knows_old, false) {
                        assert!(old.memory.ring().release(1) && new.memory.ring().claim(1));
                    }
                    add_own(&new.own, 1);
                }
                _ => continue,
            }
            added += 1;
        }
        added += ringless.join().unwrap();
        let (free, then) = listener.join().unwrap();
        let captured = match former {
            Former::Forgotten if free => then,
            _ => old.sum_now(),
        };
        assert_eq!(captured + new.sum_now(), added, "an add is lost");
    });
}

#[test]
fn no_add_is_lost_when_rings_grow() {
    grow(Former::Kept);
}

#[test]
fn an_add_is_lost_where_a_former_segment_is_forgotten() {
    fails(|| grow(Former::Forgotten));
}

/// The values that a session subtracts.
#[derive(Clone, Copy, PartialEq)]
enum Base {
    /// Those that it found, read once.
    Found,
    /// Those that it reads when it computes the difference.
    ReadAgain,
    /// Those that its predecessor read last: this would include adds between the two sessions.
    OfPredecessor,
}

/// Two sessions on one segment, while a thread continues: each add is in one of them, or between
/// them.
fn sessions(base: Base) {
    explore(Some(3), 20, move || {
        let rows = CellSegment::<NOTHING>::new();
        assert!(rows.memory.ring().claim(1));
        let agent = thread::spawn({
            let rows = rows.clone();
            move || {
                let first = rows.sum();
                let found = rows.sum();
                let between = found - first;
                let base = match base {
                    Base::Found => found,
                    Base::ReadAgain => rows.sum(),
                    Base::OfPredecessor => first,
                };
                (first + between, base)
            }
        });
        (0..3).for_each(|_| add_own(&rows.own, 1));
        let (before, base) = agent.join().unwrap();
        assert_eq!(before + (rows.sum() - base), 3, "an add is in no session, or in two");
    });
}

#[test]
fn a_session_subtracts_what_it_found() {
    sessions(Base::Found);
}

#[test]
fn an_add_is_in_no_session_where_the_base_is_read_again() {
    fails(|| sessions(Base::ReadAgain));
}

#[test]
fn an_add_is_in_two_sessions_where_the_base_is_that_of_another() {
    fails(|| sessions(Base::OfPredecessor));
}

/// A forked child knows the address of its parent's row. `looks_up`: it checks whether the segment
/// is mapped, and finds that it is not.
fn fork(looks_up: bool) {
    explore(Some(3), if looks_up { 0 } else { 1 }, move || {
        let (parents, childs) = (CellSegment::<NOTHING>::new(), CellSegment::<NOTHING>::new());
        assert!(parents.memory.ring().claim(1));
        let child = thread::spawn({
            let (parents, childs) = (parents.clone(), childs.clone());
            move || add_own(if looks_up { &childs.own } else { &parents.own }, 1)
        });
        (0..2).for_each(|_| add_own(&parents.own, 1));
        child.join().unwrap();
        assert_eq!(parents.sum_now(), 2, "the child added to its parent's row");
    });
}

#[test]
fn a_child_adds_to_its_own_segment() {
    fork(true);
}

#[test]
fn a_child_breaks_its_parents_row_where_it_goes_by_the_address() {
    fails(|| fork(false));
}

/// The listener frees the ring of a thread that was killed during an add, or only seems to be dead.
fn free_a_row(dead: bool) {
    explore(Some(3), if dead { 0 } else { 1 }, move || {
        let rows = CellSegment::<NOTHING>::new();
        assert!(rows.memory.ring().claim(1));
        let first = thread::spawn({
            let rows = rows.clone();
            move || {
                add_own(&rows.own, 1);
                match dead {
                    // Killed before the store: this add is not made.
                    true => _ = rows.own.load(Relaxed),
                    false => add_own(&rows.own, 1),
                }
            }
        });
        let first = if dead { first.join().map(|()| None) } else { Ok(Some(first)) };
        let next = thread::spawn({
            let rows = rows.clone();
            move || {
                assert!(rows.memory.ring().release(1) && rows.memory.ring().claim(2));
                add_own(&rows.own, 1);
            }
        });
        first.unwrap().into_iter().for_each(|first| first.join().unwrap());
        next.join().unwrap();
        assert_eq!(rows.sum_now(), if dead { 2 } else { 3 }, "an add is lost");
    });
}

#[test]
fn a_killed_threads_row_goes_on() {
    free_a_row(true);
}

#[test]
fn a_late_add_of_a_thread_that_is_thought_dead_breaks_the_row() {
    fails(|| free_a_row(false));
}
