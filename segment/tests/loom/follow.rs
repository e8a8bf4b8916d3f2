//! A fork handler reads which agent follows its process while another agent takes over.
//!
//! The agent's stores are as weak as system calls may be: relaxed, each call a release of those
//! before it. The handler is the product's own, `follow::FollowWords`.

use std::cell::Cell;

use loom::thread;
use ppt_segment::follow::FollowWords;

use crate::*;

/// Fences that a mutant omits.
const NO_FENCE: u8 = 0;
const FIRST_FENCE: u8 = 1;
const SECOND_FENCE: u8 = 2;

thread_local! {
    /// Acquire fences of the handler in this execution; loom runs all threads of a model in one.
    static FENCES: Cell<u8> = const { Cell::new(0) };
}

struct ControlPage<const WITHOUT: u8>(AtomicU64);

impl<const WITHOUT: u8> SharedWord for ControlPage<WITHOUT> {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    fn compare_exchange(&self, _: u64, _: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        unreachable!("nothing here swaps")
    }
    fn add(&self, _: u64) {
        unreachable!("nothing here counts")
    }
    fn fence(order: Ordering) {
        FENCES.set(FENCES.get() + 1);
        if FENCES.get() != WITHOUT {
            fence(order);
        }
    }
}

/// The behaviour of the second agent, and what its handler reads.
#[derive(Clone, Copy, PartialEq)]
enum Second {
    /// Follows forks, too.
    Follows,
    /// Does not support following.
    IsOld,
    /// The same, and the handler does not check the claim.
    IsOldAndNobodyAsks,
    /// Follows forks, and writes its claim and the socket in one call, without an order.
    InOneCall,
}

/// The first agent, which follows forks, has been killed; a second one takes over. A handler uses
/// the words of one of them, and only those of the second once its gate has been seen.
fn take_over<const WITHOUT: u8>(second: Second) {
    explore(Some(3), 10, move || {
        FENCES.set(0);
        let word = |value| ControlPage::<WITHOUT>(AtomicU64::new(value));
        let page = Arc::new([word(1), word(11), word(11), word(0)]);
        let agent = thread::spawn({
            let page = page.clone();
            move || {
                let [socket, claim, holder, gate] = &*page;
                let write = |word: &ControlPage<WITHOUT>, value| {
                    word.0.store(value, Relaxed);
                    fence(Release);
                };
                fence(Release);
                match second {
                    Second::InOneCall => {
                        socket.0.store(2, Relaxed);
                        write(holder, 22);
                        write(claim, 22);
                    }
                    Second::Follows => {
                        write(holder, 22);
                        write(socket, 2);
                        write(claim, 22);
                    }
                    Second::IsOld | Second::IsOldAndNobodyAsks => write(holder, 22),
                }
                write(gate, 1);
            }
        });
        let [socket, claim, holder, gate] = &*page;
        let open = gate.0.load(Relaxed) != 0;
        fence(Acquire);
        let holder = if second == Second::IsOldAndNobodyAsks { claim } else { holder };
        let found = FollowWords { socket, claim, holder }.follower();
        match found {
            None => assert!(!open || second != Second::Follows, "nobody is told of a child"),
            Some(pair) => assert!([(11, 1), (22, 2)].contains(&pair), "half of each: {pair:?}"),
        }
        if open && matches!(second, Second::IsOld | Second::IsOldAndNobodyAsks) {
            assert_ne!(found, Some((11, 1)), "what an earlier agent left");
        }
        agent.join().unwrap();
    });
}

#[test]
fn a_handler_goes_by_one_agent() {
    take_over::<NO_FENCE>(Second::Follows);
}

#[test]
fn what_an_earlier_agent_left_is_nothing() {
    take_over::<NO_FENCE>(Second::IsOld);
}

#[test]
fn a_claim_meets_a_former_socket_without_the_first_fence() {
    fails(|| take_over::<FIRST_FENCE>(Second::Follows));
}

#[test]
fn a_former_claim_meets_a_socket_without_the_second_fence() {
    fails(|| take_over::<SECOND_FENCE>(Second::Follows));
}

#[test]
fn a_former_claim_meets_a_socket_where_all_is_one_call() {
    fails(|| take_over::<NO_FENCE>(Second::InOneCall));
}

#[test]
fn what_an_earlier_agent_left_is_believed_where_nobody_asks_whose_it_is() {
    fails(|| take_over::<NO_FENCE>(Second::IsOldAndNobodyAsks));
}
