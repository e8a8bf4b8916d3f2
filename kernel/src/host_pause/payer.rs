//! The real-time thread of a CPU: it looks at each interval, and pays what its CPU owes by computing, so that
//! nobody else runs there.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use super::scheduling;
use super::state::{LOOK_INTERVAL, Shared, now_ns};

/// The longest pause at once.
const MAX_PAUSE_NS: i64 = 5_000_000;
/// The piece of a pause after which a payer looks again.
const PIECE_NS: i64 = 2_000;

pub(super) struct Payer {
    shared: Arc<Shared>,
    /// The number of its CPU among those of the host.
    number: usize,
    /// Its CPU time when it was last counted, in ns.
    counted_ns: u64,
}

impl Payer {
    /// Starts the thread of a CPU, at a real-time priority.
    pub fn start(shared: Arc<Shared>, number: usize, cpu: u32) -> io::Result<JoinHandle<()>> {
        let (report, started) = channel();
        let thread = thread::Builder::new().name("ppt-pause".into()).spawn(move || {
            let is_realtime =
                scheduling::be_realtime(cpu).and_then(|()| scheduling::keep_only_nice());
            if is_realtime.is_ok() {
                shared.state().ledger.set_payer(number, scheduling::own_tid());
            }
            let goes_on = is_realtime.is_ok();
            let _ = report.send(is_realtime);
            if goes_on {
                Payer { shared, number, counted_ns: 0 }.run();
            }
        })?;
        match started.recv() {
            Ok(Ok(())) => Ok(thread),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("a real-time thread ended at once")),
        }
    }

    fn run(mut self) {
        {
            let begun = self.shared.has_begun.lock().unwrap_or_else(PoisonError::into_inner);
            let _begun = self.shared.begins.wait_while(begun, |begun| !*begun);
        }
        let interval = LOOK_INTERVAL.as_nanos() as i64;
        let mut next = now_ns() + interval * self.number as i64 / 2;
        while !self.shared.stops.load(Relaxed) {
            next = (next + interval).max(now_ns() + interval / 2);
            sleep_until(next);
            self.look_and_pay();
            self.count();
        }
    }

    fn look_and_pay(&self) {
        let mut state = self.shared.state();
        state.look();
        state.weigh();
        if !state.may_pay(self.number) {
            return;
        }
        let begun = now_ns();
        let mut paid = begun;
        while state.owes(self.number) && paid < begun + MAX_PAUSE_NS {
            drop(state);
            let mut now = now_ns();
            while now < paid + PIECE_NS {
                std::hint::spin_loop();
                now = now_ns();
            }
            state = self.shared.state();
            state.look();
            state.ledger.pay(self.number, now - paid);
            paid = now;
        }
    }

    /// Counts a look, and its CPU time.
    fn count(&mut self) {
        let ran = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(TimeSpec::new(0, 0));
        let ran_ns = ran.tv_sec() as u64 * 1_000_000_000 + ran.tv_nsec() as u64;
        self.shared.ran_ns.fetch_add(ran_ns.saturating_sub(self.counted_ns), Relaxed);
        self.shared.looks.fetch_add(1, Relaxed);
        self.counted_ns = ran_ns;
    }
}

fn sleep_until(at_ns: i64) {
    let at = TimeSpec::new(at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    // A signal only makes the look earlier.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
}
