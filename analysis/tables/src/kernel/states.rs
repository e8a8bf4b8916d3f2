//! Derives the states of a thread from its switches, wake-ups and calls.
//!
//! A state is reported when it is over. It is unknown if events contradict each other, and after a loss until
//! an event determines it again.

use std::sync::Arc;

use super::event::{KernelWord, ThreadEvent};

/// Largest number of stretches that wait for a fault to which they may belong.
const MAX_HELD: usize = 64;

/// The optional events that a session records. Only for these does absence mean that nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub calls: bool,
    pub faults: bool,
}

/// A period during which a thread was in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateStretch {
    pub ts: i64,
    pub end: i64,
    pub state: KernelWord,
    /// The CPU on which it runs, or waits to run.
    pub cpu: Option<i32>,
    /// Key of the call, or of [`KernelWord::PageFault`].
    pub blocked_in: Option<i32>,
    /// Key of the kind of waker that ended this wait, or the previous one.
    pub woken_by: Option<i32>,
    /// The thread that ended the wait.
    pub waker: Option<i32>,
    /// The thread that got the CPU of a preempted thread. 0: the idle thread.
    pub successor: Option<i32>,
    pub successor_name: Option<Arc<str>>,
    /// Key of the capture in which it begins.
    pub capture: i32,
}

impl StateStretch {
    fn new(ts: i64, capture: i32, state: KernelWord) -> Self {
        StateStretch {
            ts,
            end: ts,
            state,
            cpu: None,
            blocked_in: None,
            woken_by: None,
            waker: None,
            successor: None,
            successor_name: None,
            capture,
        }
    }

    /// Makes the state unknown.
    fn set_unknown(&mut self) {
        *self = StateStretch {
            end: self.end,
            ..StateStretch::new(self.ts, self.capture, KernelWord::Unknown)
        };
    }

    fn set_waker(&mut self, wake: Wake) {
        self.woken_by = Some(wake.by);
        self.waker = (wake.waker != 0).then_some(wake.waker);
    }
}

/// A wake-up.
#[derive(Debug, Clone, Copy)]
struct Wake {
    cpu: i32,
    by: i32,
    waker: i32,
}

/// The call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    #[default]
    Unknown,
    Nothing,
    Call(i32),
}

/// Follows a thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadTrack {
    recorded: Recorded,
    /// The current state; None if the thread has ended, or has no event so far.
    now: Option<StateStretch>,
    ended: bool,
    inside: Inside,
    /// A wake-up that came before the thread gave up its CPU to wait.
    early: Option<Wake>,
    successor: Option<(i32, Arc<str>)>,
    /// Finished stretches since a wait outside of calls, which a fault may explain.
    held: Vec<StateStretch>,
    done: Vec<StateStretch>,
}

impl ThreadTrack {
    pub fn new(recorded: Recorded) -> Self {
        ThreadTrack { recorded, ..ThreadTrack::default() }
    }

    /// The CPU on which it runs, if it runs.
    pub fn cpu(&self) -> Option<i32> {
        self.now.as_ref().filter(|now| now.state == KernelWord::Running).and_then(|now| now.cpu)
    }

    /// Adds the next event, in the order of time.
    pub fn add_event(&mut self, at: i64, capture: i32, event: &ThreadEvent) {
        // Clocks of two files of one session may differ by a few ns.
        let at = self.now.as_ref().map_or(at, |now| at.max(now.ts));
        let open = |state| StateStretch::new(at, capture, state);
        match event {
            ThreadEvent::Watched => {
                self.now.get_or_insert_with(|| open(KernelWord::Unknown));
            }
            ThreadEvent::Start { parent } => {
                self.start(at, open(KernelWord::Runnable), *parent);
            }
            ThreadEvent::End => {
                self.close(at);
                self.settle();
                (self.ended, self.inside, self.early) = (true, Inside::Unknown, None);
            }
            ThreadEvent::In { cpu } => {
                self.gets_cpu();
                self.close(at);
                self.ended = false;
                self.now = Some(StateStretch { cpu: Some(*cpu), ..open(KernelWord::Running) });
            }
            ThreadEvent::Out { cpu, preempted: true } => {
                self.preempt(at, open(KernelWord::Runnable), *cpu);
            }
            ThreadEvent::Out { cpu, preempted: false } => {
                self.block(at, open(KernelWord::Blocked), *cpu);
            }
            ThreadEvent::Successor { next, name } => self.successor = Some((*next, name.clone())),
            ThreadEvent::Wake { cpu, by, waker } => {
                let wake = Wake { cpu: *cpu, by: *by, waker: *waker };
                self.wake(at, open(KernelWord::Runnable), wake);
            }
            ThreadEvent::Enter { cpu, call } => {
                self.runs(at, capture, *cpu);
                self.settle();
                self.inside = Inside::Call(*call);
            }
            ThreadEvent::Exit { cpu, .. } => {
                self.runs(at, capture, *cpu);
                self.settle();
                self.inside = Inside::Nothing;
            }
            ThreadEvent::Fault { cpu, .. } => {
                self.runs(at, capture, *cpu);
                let is_blocked = |stretch: &&mut StateStretch| stretch.state == KernelWord::Blocked;
                for stretch in self.held.iter_mut().filter(is_blocked) {
                    stretch.blocked_in = Some(KernelWord::PageFault.key());
                }
                self.settle();
            }
        }
    }

    fn start(&mut self, at: i64, mut runnable: StateStretch, parent: i32) {
        self.close(at);
        self.settle();
        (self.ended, self.inside, self.early) = (false, Inside::Unknown, None);
        if parent != 0 {
            runnable.set_waker(Wake { cpu: -1, by: KernelWord::Thread.key(), waker: parent });
        }
        self.now = Some(runnable);
    }

    fn preempt(&mut self, at: i64, runnable: StateStretch, cpu: i32) {
        if self.now.is_none() && self.ended {
            return;
        }
        self.confirm_cpu(cpu);
        self.early = None;
        self.close(at);
        let successor = self.successor.take();
        self.now = Some(StateStretch {
            cpu: Some(cpu),
            successor: successor.as_ref().map(|successor| successor.0),
            successor_name: successor.map(|successor| successor.1).filter(|text| !text.is_empty()),
            ..runnable
        });
    }

    fn block(&mut self, at: i64, blocked: StateStretch, cpu: i32) {
        if self.now.is_none() && self.ended {
            return;
        }
        let was_running = self.confirm_cpu(cpu);
        let early = self.early.take().filter(|_| was_running);
        self.close(at);
        self.successor = None;
        self.early = early;
        let blocked_in = match self.inside {
            Inside::Call(call) => Some(call),
            Inside::Nothing | Inside::Unknown => None,
        };
        self.now = Some(StateStretch { blocked_in, ..blocked });
    }

    fn wake(&mut self, at: i64, runnable: StateStretch, wake: Wake) {
        match &mut self.now {
            Some(now) if now.state == KernelWord::Blocked => {
                now.set_waker(wake);
                self.early = None;
                self.close(at);
                let mut stretch = StateStretch { cpu: Some(wake.cpu), ..runnable };
                stretch.set_waker(wake);
                self.now = Some(stretch);
            }
            Some(now) if now.state == KernelWord::Running => self.early = Some(wake),
            _ => {}
        }
    }

    /// Records are missing from `at` on.
    pub fn lose(&mut self, at: i64, capture: i32) {
        let early = self.early.take();
        if let Some(now) = &mut self.now
            && now.state != KernelWord::Unknown
        {
            let at = at.max(now.ts);
            if now.state == KernelWord::Blocked && early.is_some() {
                now.set_unknown();
            } else {
                self.close(at);
                self.now = Some(StateStretch::new(at, capture, KernelWord::Unknown));
            }
        }
        self.settle();
        (self.inside, self.successor) = (Inside::Unknown, None);
    }

    /// Ends the recording of the thread at `at`.
    pub fn finish(&mut self, at: i64) {
        if let Some(now) = &mut self.now
            && now.state == KernelWord::Blocked
            && self.early.is_some()
        {
            now.set_unknown();
        }
        self.close(at);
        self.settle();
    }

    /// Removes and returns the finished stretches.
    pub fn take_done(&mut self) -> impl Iterator<Item = StateStretch> + '_ {
        self.done.drain(..)
    }

    /// The thread gets a CPU: it must have been runnable.
    fn gets_cpu(&mut self) {
        let early = self.early.take();
        let Some(now) = &mut self.now else { return };
        match (now.state, early) {
            (KernelWord::Blocked, Some(wake)) => {
                *now = StateStretch::new(now.ts, now.capture, KernelWord::Runnable);
                now.cpu = Some(wake.cpu);
                now.set_waker(wake);
            }
            // Its wake-up was not recorded: it counts as blocked until now.
            (KernelWord::Blocked, None) => {}
            (KernelWord::Running, _) => now.set_unknown(),
            _ => {}
        }
    }

    /// Whether it ran on this CPU. If its state says otherwise, the state becomes unknown.
    fn confirm_cpu(&mut self, cpu: i32) -> bool {
        let Some(now) = &mut self.now else { return false };
        let is_running = now.state == KernelWord::Running && now.cpu == Some(cpu);
        if !is_running && now.state != KernelWord::Unknown {
            now.set_unknown();
        }
        is_running
    }

    /// The thread has an event of its own: it runs on this CPU.
    fn runs(&mut self, at: i64, capture: i32, cpu: i32) {
        self.early = None;
        self.successor = None;
        if (self.now.is_none() && self.ended) || self.confirm_cpu(cpu) {
            return;
        }
        self.close(at);
        self.now = Some(StateStretch {
            cpu: Some(cpu),
            ..StateStretch::new(at, capture, KernelWord::Running)
        });
    }

    fn close(&mut self, at: i64) {
        let Some(mut stretch) = self.now.take() else { return };
        stretch.end = at.max(stretch.ts);
        if stretch.end == stretch.ts {
            return;
        }
        let may_be_fault = stretch.state == KernelWord::Blocked
            && self.inside == Inside::Nothing
            && self.recorded.faults
            && self.recorded.calls;
        if may_be_fault || !self.held.is_empty() {
            self.held.push(stretch);
        } else {
            self.done.push(stretch);
        }
        if self.held.len() > MAX_HELD {
            self.settle();
        }
    }

    /// No later event can change the finished stretches.
    fn settle(&mut self) {
        self.done.append(&mut self.held);
    }
}

#[cfg(test)]
mod tests;
