//! In which state a thread is: what its switches, wake-ups and calls say.
//!
//! A state is reported when it is over. What contradicts itself is unknown, and so is what follows a loss, up
//! to the next event that settles it.

use std::sync::Arc;

use super::event::{KernelWord, ThreadEvent};

/// Stretches that wait for the fault that they may belong to, at most.
const MOST_HELD: usize = 64;

/// What the kernel was asked for: what is not recorded may not have happened, or was not asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Knows {
    pub calls: bool,
    pub faults: bool,
}

/// A time during which a thread was in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub ts: i64,
    pub end: i64,
    pub state: KernelWord,
    /// Where it runs, or waits to run.
    pub cpu: Option<i32>,
    /// The call, or [`KernelWord::PageFault`].
    pub blocked_in: Option<i32>,
    /// Who ended the wait, or the wait before.
    pub woken_by: Option<i32>,
    pub waker: Option<i32>,
    /// Who got the CPU of a thread that still wanted it. 0: nobody.
    pub successor: Option<i32>,
    pub successor_name: Option<Arc<str>>,
    /// Of the capture in which it begins.
    pub capture: i32,
}

impl Stretch {
    fn new(ts: i64, capture: i32, state: KernelWord) -> Self {
        Stretch {
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

    /// Nobody knows, after all.
    fn forget(&mut self) {
        *self =
            Stretch { end: self.end, ..Stretch::new(self.ts, self.capture, KernelWord::Unknown) };
    }

    fn set_waker(&mut self, wake: Wake) {
        self.woken_by = Some(wake.by);
        self.waker = (wake.waker != 0).then_some(wake.waker);
    }
}

#[derive(Debug, Clone, Copy)]
struct Wake {
    cpu: i32,
    by: i32,
    waker: i32,
}

/// Which call a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    #[default]
    Unknown,
    Nothing,
    Call(i32),
}

/// A thread on its way.
#[derive(Debug, Default)]
pub(crate) struct ThreadTrack {
    knows: Knows,
    /// The state that lasts; None: there is no such thread, or not yet.
    now: Option<Stretch>,
    ended: bool,
    inside: Inside,
    /// It was woken before it gave up its CPU to wait, if it did not go on instead.
    early: Option<Wake>,
    successor: Option<(i32, Arc<str>)>,
    /// From a wait outside of calls on: a fault may explain it.
    held: Vec<Stretch>,
    done: Vec<Stretch>,
}

impl ThreadTrack {
    pub fn new(knows: Knows) -> Self {
        ThreadTrack { knows, ..ThreadTrack::default() }
    }

    /// The CPU that it has, if it has one.
    pub fn cpu(&self) -> Option<i32> {
        self.now.as_ref().filter(|now| now.state == KernelWord::Running).and_then(|now| now.cpu)
    }

    /// Something happened; events come in the order of time.
    pub fn add_event(&mut self, at: i64, capture: i32, event: &ThreadEvent) {
        // Clocks of two files of one session may differ by a few ns.
        let at = self.now.as_ref().map_or(at, |now| at.max(now.ts));
        let open = |state| Stretch::new(at, capture, state);
        match event {
            ThreadEvent::Watched => {
                self.now.get_or_insert_with(|| open(KernelWord::Unknown));
            }
            ThreadEvent::Start { parent } => {
                self.close(at);
                self.settle();
                (self.ended, self.inside, self.early) = (false, Inside::Unknown, None);
                let mut stretch = open(KernelWord::Runnable);
                if *parent != 0 {
                    stretch.set_waker(Wake {
                        cpu: -1,
                        by: KernelWord::Thread.key(),
                        waker: *parent,
                    });
                }
                self.now = Some(stretch);
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
                self.now = Some(Stretch { cpu: Some(*cpu), ..open(KernelWord::Running) });
            }
            ThreadEvent::Out { cpu, preempted } => {
                if self.now.is_none() && self.ended {
                    return;
                }
                let was_there = self.confirm_cpu(*cpu);
                let early = self.early.take().filter(|_| was_there);
                self.close(at);
                let successor = self.successor.take();
                self.now = Some(match preempted {
                    true => Stretch {
                        cpu: Some(*cpu),
                        successor: successor.as_ref().map(|successor| successor.0),
                        successor_name: successor
                            .map(|successor| successor.1)
                            .filter(|text| !text.is_empty()),
                        ..open(KernelWord::Runnable)
                    },
                    false => {
                        self.early = early;
                        let blocked_in = match self.inside {
                            Inside::Call(call) => Some(call),
                            Inside::Nothing | Inside::Unknown => None,
                        };
                        Stretch { blocked_in, ..open(KernelWord::Blocked) }
                    }
                });
            }
            ThreadEvent::Successor { next, name } => self.successor = Some((*next, name.clone())),
            ThreadEvent::Wake { cpu, by, waker } => {
                let wake = Wake { cpu: *cpu, by: *by, waker: *waker };
                match &mut self.now {
                    Some(now) if now.state == KernelWord::Blocked => {
                        now.set_waker(wake);
                        self.early = None;
                        self.close(at);
                        let mut stretch = Stretch { cpu: Some(*cpu), ..open(KernelWord::Runnable) };
                        stretch.set_waker(wake);
                        self.now = Some(stretch);
                    }
                    Some(now) if now.state == KernelWord::Running => self.early = Some(wake),
                    _ => {}
                }
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
                for stretch in
                    self.held.iter_mut().filter(|stretch| stretch.state == KernelWord::Blocked)
                {
                    stretch.blocked_in = Some(KernelWord::PageFault.key());
                }
                self.settle();
            }
        }
    }

    /// From `at` on, records are missing.
    pub fn lose(&mut self, at: i64, capture: i32) {
        let early = self.early.take();
        if let Some(now) = &mut self.now
            && now.state != KernelWord::Unknown
        {
            let at = at.max(now.ts);
            if now.state == KernelWord::Blocked && early.is_some() {
                now.forget();
            } else {
                self.close(at);
                self.now = Some(Stretch::new(at, capture, KernelWord::Unknown));
            }
        }
        self.settle();
        (self.inside, self.successor) = (Inside::Unknown, None);
    }

    /// Nothing is known from `at` on, not even whether it is there.
    pub fn finish(&mut self, at: i64) {
        if let Some(now) = &mut self.now
            && now.state == KernelWord::Blocked
            && self.early.is_some()
        {
            now.forget();
        }
        self.close(at);
        self.settle();
    }

    /// Those that are over.
    pub fn done(&mut self) -> impl Iterator<Item = Stretch> + '_ {
        self.done.drain(..)
    }

    /// It gets a CPU: so it had none, and wanted one.
    fn gets_cpu(&mut self) {
        let early = self.early.take();
        let Some(now) = &mut self.now else { return };
        match (now.state, early) {
            (KernelWord::Blocked, Some(wake)) => {
                *now = Stretch::new(now.ts, now.capture, KernelWord::Runnable);
                now.cpu = Some(wake.cpu);
                now.set_waker(wake);
            }
            // No record of what woke it, or when: it counts as blocked until now.
            (KernelWord::Blocked, None) => {}
            (KernelWord::Running, _) => now.forget(),
            _ => {}
        }
    }

    /// Whether it ran on that CPU, as far as is known. If it did not, nobody knows what it did.
    fn confirm_cpu(&mut self, cpu: i32) -> bool {
        let Some(now) = &mut self.now else { return false };
        let is_at = now.state == KernelWord::Running && now.cpu == Some(cpu);
        if !is_at && now.state != KernelWord::Unknown {
            now.forget();
        }
        is_at
    }

    /// It does something: so it runs there.
    fn runs(&mut self, at: i64, capture: i32, cpu: i32) {
        self.early = None;
        self.successor = None;
        if (self.now.is_none() && self.ended) || self.confirm_cpu(cpu) {
            return;
        }
        self.close(at);
        self.now =
            Some(Stretch { cpu: Some(cpu), ..Stretch::new(at, capture, KernelWord::Running) });
    }

    fn close(&mut self, at: i64) {
        let Some(mut stretch) = self.now.take() else { return };
        stretch.end = at.max(stretch.ts);
        if stretch.end == stretch.ts {
            return;
        }
        let may_be_fault = stretch.state == KernelWord::Blocked
            && self.inside == Inside::Nothing
            && self.knows.faults
            && self.knows.calls;
        if may_be_fault || !self.held.is_empty() {
            self.held.push(stretch);
        } else {
            self.done.push(stretch);
        }
        if self.held.len() > MOST_HELD {
            self.settle();
        }
    }

    /// Nothing that follows adds to what is over.
    fn settle(&mut self) {
        self.done.append(&mut self.held);
    }
}

#[cfg(test)]
mod tests;
