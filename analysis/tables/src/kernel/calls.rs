//! The system calls of a thread.

use super::event::ThreadEvent;

/// A system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub ts: i64,
    /// In ns; None if it did not return, or its return was not recorded.
    pub dur: Option<i64>,
    /// Key of the name in the tables' words.
    pub name: i32,
    pub result: Option<i64>,
    pub cpu: i32,
    /// Key of the capture in which it begins.
    pub capture: i32,
}

/// Follows the calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Option<Call>,
    done: Vec<Call>,
}

impl Calls {
    /// Adds the next event, in the order of time.
    pub fn add_event(&mut self, ts: i64, capture: i32, event: &ThreadEvent) {
        match *event {
            ThreadEvent::Enter { cpu, call } => {
                self.lose();
                self.open = Some(Call { ts, dur: None, name: call, result: None, cpu, capture });
            }
            ThreadEvent::Exit { call, result, .. } => {
                // The call may have begun before the first record.
                let Some(mut open) = self.open.take() else { return };
                if open.name == call {
                    open.dur = ts.checked_sub(open.ts).map(|ns| ns.max(0));
                    open.result = Some(result);
                }
                self.done.push(open);
            }
            ThreadEvent::Start { .. } | ThreadEvent::End => self.lose(),
            _ => {}
        }
    }

    /// Records are missing: the call may have returned.
    pub fn lose(&mut self) {
        self.done.extend(self.open.take());
    }

    /// Removes and returns the finished calls.
    pub fn take_done(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.done.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(events: &[(i64, Option<ThreadEvent>)]) -> Vec<(i64, Option<i64>, i32, Option<i64>)> {
        let mut calls = Calls::default();
        for (ts, event) in events {
            match event {
                Some(event) => calls.add_event(*ts, 0, event),
                None => calls.lose(),
            }
        }
        calls.lose();
        calls.take_done().map(|call| (call.ts, call.dur, call.name, call.result)).collect()
    }

    #[test]
    fn a_call_has_its_length_and_its_result() {
        let enter = |call| Some(ThreadEvent::Enter { cpu: 0, call });
        let exit = |call, result| Some(ThreadEvent::Exit { cpu: 0, call, result });
        let all = [
            (1, exit(9, 7)),
            (2, enter(3)),
            (5, exit(3, -4)),
            (6, enter(4)),
            (7, enter(5)),
            (8, exit(6, 0)),
            (9, enter(5)),
            (10, None),
            (11, exit(5, 1)),
            (12, enter(8)),
        ];
        let expected = [
            (2, Some(3), 3, Some(-4)),
            (6, None, 4, None),
            (7, None, 5, None),
            (9, None, 5, None),
            (12, None, 8, None),
        ];
        assert_eq!(calls(&all), expected);
    }
}
