//! Describes a slow interval in sentences.

use super::answer::{RunningIn, ServiceCall, SlowInterval, SlowPart, WakerHop};
use super::cut::{TimeUse, WokenBy};
use super::names::labelled;
use super::request;
use crate::text::{duration, grouped};

/// The largest number of parts, or slices that a thread ran in, that a sentence mentions.
const MAX_SHOWN: usize = 3;
/// The least share of the interval, or of the running time, that a sentence mentions.
const MIN_SHARE: f64 = 0.05;

impl TimeUse {
    /// Describes it in a few words.
    pub fn phrase(&self) -> String {
        match self {
            TimeUse::Running => "running".to_owned(),
            TimeUse::Preempted { by: Some(0), .. } => "preempted".to_owned(),
            TimeUse::Preempted { by, name } => match (name, by) {
                (Some(name), Some(by)) => format!("preempted by `{name}` ({by})"),
                (None, Some(by)) => format!("preempted by {by}"),
                _ => "preempted".to_owned(),
            },
            TimeUse::WokenLate(by) => format!("woken{}, but not running yet", by.phrase()),
            TimeUse::Blocked { call: Some(call), by } => {
                format!("blocked in {call}{}", by.end())
            }
            TimeUse::Blocked { call: None, by } => format!("blocked{}", by.end()),
            TimeUse::Faulting(by) => format!("waiting for a page{}", by.end()),
            TimeUse::Unknown => "unknown".to_owned(),
        }
    }

    /// Says what the thread did for `length`: `was blocked in futex for 8.00 ms until it was woken`.
    fn past(&self, length: &str, details: &StateDetails<'_>) -> String {
        let StateDetails { own_slice, times, .. } = details;
        match self {
            TimeUse::Running => format!("ran for {length}"),
            TimeUse::Preempted { .. } | TimeUse::WokenLate(_) => {
                format!("wanted a CPU for {length}")
            }
            TimeUse::Blocked { call, by } => {
                let call = call.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
                format!("was blocked{call}{own_slice}{times} for {length}{}", by.until(details))
            }
            TimeUse::Faulting(by) => {
                format!("waited for a page{times} for {length}{}", by.until(details))
            }
            TimeUse::Unknown => format!("was in an unknown state for {length}"),
        }
    }
}

/// Details in the description of a state. Each is a text that may be empty.
#[derive(Default)]
struct StateDetails<'a> {
    /// The slice of the thread.
    own_slice: &'a str,
    /// How often the thread was in the state.
    times: &'a str,
    /// `, mostly` if other threads ended some of the waits.
    mostly: &'a str,
    /// The slice of the waker.
    waker_slice: &'a str,
}

impl WokenBy {
    fn phrase(&self) -> String {
        match (self.kind.as_deref(), self.label()) {
            (_, Some(thread)) => format!(" by thread {thread}"),
            (Some("THREAD"), None) => " by another thread".to_owned(),
            (Some("PROCESS"), None) => " by another process".to_owned(),
            (Some("INTERRUPT"), None) => " by an interrupt".to_owned(),
            _ => String::new(),
        }
    }

    fn end(&self) -> String {
        match self.phrase() {
            who if who.is_empty() => who,
            who => format!(", woken{who}"),
        }
    }

    /// The end of a wait: ` until it was woken by thread 5`, between the texts of `details` about the waker.
    fn until(&self, details: &StateDetails<'_>) -> String {
        match self.phrase() {
            who if who.is_empty() => who,
            who => format!("{} until it was woken{who}{}", details.mostly, details.waker_slice),
        }
    }

    /// The awaited thread or process: ` for thread 5`.
    fn awaited(&self) -> String {
        match (self.kind.as_deref(), self.label()) {
            (_, Some(thread)) => format!(" for thread {thread}"),
            (Some("THREAD"), None) => " for another thread".to_owned(),
            (Some("PROCESS"), None) => " for another process".to_owned(),
            (Some("INTERRUPT"), None) => " for a device or a timer".to_owned(),
            _ => String::new(),
        }
    }
}

impl SlowPart {
    /// The causes of a part's time, in ns each. Running time is divided by slices.
    pub(super) fn causes(&self) -> Vec<(String, i64)> {
        let of_slices = |share: &RunningIn| (format!("running in {}", share.name), share.ns);
        let mut causes: Vec<(String, i64)> = self.running_in.iter().map(of_slices).collect();
        let rest = self.spent.ns - causes.iter().map(|cause| cause.1).sum::<i64>();
        if rest > 0 {
            causes.push((self.cause(), rest));
        }
        causes
    }

    /// The cause in words that are the same for all parts of the same kind.
    pub fn cause(&self) -> String {
        match &self.state {
            TimeUse::Running => "running".to_owned(),
            TimeUse::Preempted { .. } | TimeUse::WokenLate(_) => "waiting for a CPU".to_owned(),
            TimeUse::Unknown => "unknown".to_owned(),
            TimeUse::Faulting(by) => {
                format!("waiting for a page{}{}", by.awaited(), self.in_waker_slice())
            }
            TimeUse::Blocked { call, by } => {
                let call = call.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
                let own_slice = self
                    .own_slice
                    .as_ref()
                    .map_or_else(String::new, |slice| format!(" ({})", slice.shared_words()));
                format!("waiting{call}{own_slice}{}{}", by.awaited(), self.in_waker_slice())
            }
        }
    }

    fn in_waker_slice(&self) -> String {
        self.waker_slice
            .as_ref()
            .map_or_else(String::new, |slice| format!(" in {}", slice.shared_words()))
    }

    /// The slices that the thread ran in most and that a sentence mentions.
    fn mostly_in(&self) -> impl Iterator<Item = &RunningIn> {
        let all = self.spent.ns.max(1) as f64;
        self.running_in
            .iter()
            .take(MAX_SHOWN)
            .filter(move |share| share.ns as f64 / all >= MIN_SHARE)
    }

    /// In which slices the thread ran: `62 % in exec.run, 20 % in exec.sort`. None if no slice has a large
    /// enough share.
    pub fn running_words(&self) -> Option<String> {
        let percent = |ns: i64| 100.0 * ns as f64 / self.spent.ns.max(1) as f64;
        let shown = self.mostly_in();
        let shown: Vec<String> =
            shown.map(|share| format!("{:.0} % in {}", percent(share.ns), share.name)).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    /// The description without numbers, to compare parts.
    fn shape(&self) -> String {
        let mut slices: Vec<&str> = self.mostly_in().map(|share| share.name.as_str()).collect();
        slices.sort_unstable();
        [self.cause(), slices.join(", ")].join(" in ")
    }
}

/// Parts of one kind and of one system call, which a sentence mentions together.
struct Clause<'a> {
    /// The largest of them.
    largest: &'a SlowPart,
    count: usize,
    ns: i64,
    times: u64,
}

impl SlowInterval {
    /// Explains in plain English where the time of the interval went.
    pub fn sentence(&self) -> String {
        let labelled = self.tid.map(|tid| labelled(tid, self.thread.as_deref()));
        let who = match (labelled, self.is_span) {
            (Some(tid), false) => format!("thread {tid}"),
            (Some(tid), true) => format!("thread {tid}, which began it,"),
            (None, _) => "a thread whose number is not known".to_owned(),
        };
        let share = |clause: &Clause<'_>| clause.ns as f64 / self.dur.max(1) as f64;
        let shown: Vec<String> =
            self.shown_clauses().iter().map(|clause| clause.phrase(share(clause))).collect();
        let Some((last, others)) = shown.split_last() else {
            return format!("It took no time in {who}.");
        };
        let shown = match others {
            [] => last.clone(),
            [one] => format!("{one}, and {last}"),
            others => format!("{}, and {last}", others.join(", ")),
        };
        let hops = self.hops().iter().enumerate();
        let hops: String =
            hops.map(|(at, hop)| format!(" {}", hop.sentence(at, self.hops()))).collect();
        let answered = self.answered_by.as_ref();
        let answered = answered.map_or_else(String::new, |call| format!(" {}", call.sentence()));
        format!("Of {}, {who} {shown}.{hops}{answered}", duration(self.dur as f64))
    }

    /// The identity of the request in one line, `id=88 kind=UPDATE`; empty if it has none.
    pub fn label(&self) -> String {
        request::label(&self.request)
    }

    /// The threads waited for in the largest wait: its waker, the waker of that thread, and so on.
    pub fn hops(&self) -> &[WakerHop] {
        self.parts
            .iter()
            .map(|part| part.hops.as_slice())
            .find(|hops| !hops.is_empty())
            .unwrap_or(&[])
    }

    /// Why it took so long, without numbers. Intervals whose sentences differ only in numbers have the
    /// same shape.
    pub fn shape(&self) -> String {
        let shown = self.shown_clauses().into_iter().map(|clause| clause.largest.shape());
        let hops = self.hops().iter().map(WakerHop::shape);
        let answered = self.answered_by.iter().map(|call| call.shape());
        let name = std::iter::once(self.name.clone());
        let all: Vec<String> = name.chain(shown).chain(hops).chain(answered).collect();
        all.join("; ")
    }

    /// The clauses that a sentence mentions.
    fn shown_clauses(&self) -> Vec<Clause<'_>> {
        let mut clauses = self.clauses();
        let mut rank = 0..;
        clauses.retain(|clause| {
            let rank = rank.next().unwrap_or(MAX_SHOWN);
            rank == 0
                || (rank < MAX_SHOWN && clause.ns as f64 / self.dur.max(1) as f64 >= MIN_SHARE)
        });
        clauses
    }

    /// All clauses, the largest first.
    fn clauses(&self) -> Vec<Clause<'_>> {
        let kind = |part: &TimeUse| match part {
            TimeUse::Blocked { call, .. } => (std::mem::discriminant(part), call.clone()),
            _ => (std::mem::discriminant(part), None),
        };
        let mut clauses: Vec<Clause<'_>> = Vec::new();
        for part in &self.parts {
            let (ns, times) = (part.spent.ns, part.spent.times);
            match clauses.iter_mut().find(|clause| kind(&clause.largest.state) == kind(&part.state))
            {
                Some(clause) => {
                    clause.count += 1;
                    clause.ns += ns;
                    clause.times += times;
                }
                None => clauses.push(Clause { largest: part, count: 1, ns, times }),
            }
        }
        clauses.sort_by_key(|clause| std::cmp::Reverse(clause.ns));
        clauses
    }
}

impl Clause<'_> {
    fn phrase(&self, share: f64) -> String {
        let state = &self.largest.state;
        let ran = if *state == TimeUse::Running { self.ran_in() } else { String::new() };
        let length = format!("{} ({:.0} %{ran})", duration(self.ns as f64), 100.0 * share);
        let times = match self.times {
            1 => String::new(),
            2 => " twice".to_owned(),
            times => format!(" {} times", grouped(times)),
        };
        let mostly = if self.count > 1 { ", mostly" } else { "" };
        let own_slice = self.largest.own_slice.as_ref();
        let own_slice = own_slice.map_or_else(String::new, |slice| format!(" ({})", slice.label()));
        let waker_slice = self.waker_slice();
        let details = StateDetails {
            own_slice: &own_slice,
            times: &times,
            mostly,
            waker_slice: &waker_slice,
        };
        let did = state.past(&length, &details);
        match state {
            TimeUse::Preempted { by, name } => {
                let lost = if self.times == 1 { " once" } else { &times };
                let to = match (name, by) {
                    (_, Some(0) | None) => String::new(),
                    (Some(name), Some(by)) => format!("{mostly} to `{name}` ({by})"),
                    (None, Some(by)) => format!("{mostly} to {by}"),
                };
                format!("{did}, which it had lost{lost}{to}")
            }
            TimeUse::WokenLate(_) => format!("{did} after it was woken{times}"),
            TimeUse::Running
            | TimeUse::Blocked { .. }
            | TimeUse::Faulting(_)
            | TimeUse::Unknown => did,
        }
    }

    /// The slices and the functions in which the thread ran: `; 62 % of it in exec.run`.
    fn ran_in(&self) -> String {
        let slices = self.largest.running_words();
        // The first one also names the whole of the share.
        let slices = slices.map(|words| words.replacen(" % in ", " % of it in ", 1));
        let all = slices.into_iter().chain(self.largest.functions.text());
        all.map(|text| format!("; {text}")).collect()
    }

    /// The slice of the waker.
    fn waker_slice(&self) -> String {
        match &self.largest.waker_slice {
            Some(slice) if slice.around => format!(", which was in {} then", slice.label()),
            Some(slice) => format!(", which had been in {} meanwhile", slice.label()),
            None => String::new(),
        }
    }
}

impl ServiceCall {
    /// The process that answered, and where its time went.
    fn sentence(&self) -> String {
        let pid = self.request.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
        let name = self.process_name.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        let certain = if self.had_others { "its call, or one beside it" } else { "its call" };
        let late = self.taken_after as f64 / self.dur.max(1) as f64 >= MIN_SHARE;
        let late = if late {
            format!(", and took it up after {}", duration(self.taken_after as f64))
        } else {
            String::new()
        };
        let (of, dur) = (&self.service, duration(self.dur as f64));
        let answered = match &self.identity {
            Some(identity) => format!("had the same {identity} in {of} for {dur}"),
            None => format!("answered {certain}, of {of} ({dur}){late}"),
        };
        format!("Process {pid}{name} {answered}. {}", self.request.sentence())
    }

    fn shape(&self) -> String {
        let name = self.process_name.as_deref().unwrap_or_default();
        format!("{} {name}: {}", self.service, self.request.shape())
    }
}

impl WakerHop {
    /// The number of the thread, and its name.
    pub fn label(&self) -> String {
        labelled(self.thread, self.name.as_deref())
    }

    /// A sentence about the thread during the wait for it. `at` is its place in `all`.
    fn sentence(&self, at: usize, all: &[WakerHop]) -> String {
        let length = duration((self.within.1 - self.within.0) as f64);
        let during = match at.checked_sub(1).and_then(|index| all.get(index)) {
            None => format!("In the longest wait ({length})"),
            Some(before) => format!("In the longest wait of thread {} ({length})", before.label()),
        };
        let ns = duration(self.spent.ns as f64);
        let thread = self.label();
        let did = self.state.past(&ns, &StateDetails::default());
        // For the first hop, the sentence before already says this.
        let slice = self.slice.as_ref().filter(|_| at > 0);
        let slice = slice.map_or_else(String::new, |slice| format!(" (in {})", slice.label()));
        format!("{during}, thread {thread}{slice} {did}.")
    }

    fn shape(&self) -> String {
        let slice = self.slice.as_ref().map_or("", |slice| slice.name.as_str());
        let what = match &self.state {
            TimeUse::Blocked { call, .. } => call.clone().unwrap_or_default(),
            part => <&str>::from(part).to_owned(),
        };
        format!("{} {slice} {what}", self.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{FrameOrigin, ThreadSlice};
    use super::super::cut::Spent;
    use super::*;

    fn slow(parts: Vec<(TimeUse, i64, u64, Option<ThreadSlice>)>) -> SlowInterval {
        let part = |(state, ns, times, waker_slice)| {
            let spent = Spent { ns, times, longest: (0, ns) };
            SlowPart { waker_slice, ..SlowPart::new((state, spent)) }
        };
        let dur = parts.iter().map(|part| part.1).sum();
        SlowInterval {
            name: "job.handle".into(),
            capture: String::new(),
            buffer: String::new(),
            segment: String::new(),
            ring: None,
            seqno: None,
            host: String::new(),
            pid: Some(1),
            tid: Some(7),
            thread: None,
            ts: 0,
            dur,
            is_span: false,
            request: Vec::new(),
            parts: parts.into_iter().map(part).collect(),
            answered_by: None,
        }
    }

    #[test]
    fn running_time_is_described_by_the_slices_around_it() {
        let ran_in = |name: &str, ns| {
            let longest = doing(name, true);
            RunningIn { name: name.to_owned(), ns, slices: 2, longest }
        };
        let mut one =
            slow(vec![(TimeUse::Running, 1000, 3, None), (TimeUse::Unknown, 1000, 1, None)]);
        one.parts[0].running_in =
            vec![ran_in("exec.run", 620), ran_in("exec.sort", 200), ran_in("exec.tidy", 49)];
        assert_eq!(
            one.sentence(),
            "Of 2.00 µs, thread 7 ran for 1.00 µs (50 %; 62 % of it in exec.run, 20 % in exec.sort), and \
             was in an unknown state for 1.00 µs (50 %)."
        );
        let mut other = one.clone();
        other.parts[0].running_in[0].ns = 500;
        other.parts[0].running_in.truncate(2);
        assert_eq!(other.shape(), one.shape(), "numbers do not matter");
        other.parts[0].running_in.truncate(1);
        assert_ne!(other.shape(), one.shape());
        other.parts[0].running_in[0].ns = 49;
        assert!(
            other.sentence().contains("ran for 1.00 µs (50 %), and"),
            "too small a share to be shown"
        );
    }

    fn doing(name: &str, around: bool) -> ThreadSlice {
        ThreadSlice {
            name: name.into(),
            about: None,
            ns: 5,
            ts: 0,
            dur: 5,
            frame: FrameOrigin::default(),
            around,
        }
    }

    #[test]
    fn wakers_are_followed() {
        let by = |thread| WokenBy { kind: Some("THREAD".into()), thread: Some(thread), name: None };
        let futex = |thread| TimeUse::Blocked { call: Some("futex".into()), by: by(thread) };
        let device = WokenBy { kind: Some("INTERRUPT".into()), thread: None, name: None };
        let sync = TimeUse::Blocked { call: Some("fsync".into()), by: device };
        let mut one = slow(vec![
            (futex(5), 8_000_000, 1, Some(doing("log.rotate", true))),
            (TimeUse::Running, 2_000_000, 2, None),
        ]);
        one.parts[0].own_slice = Some(doing("job.lock", true));
        let hop = |thread, state, ns, within| {
            let spent = Spent { ns, times: 1, longest: (0, ns) };
            WakerHop {
                thread,
                name: None,
                within,
                state,
                spent,
                slice: Some(doing("log.write", true)),
            }
        };
        one.parts[0].hops = vec![
            hop(5, futex(6), 7_900_000, (0, 8_000_000)),
            hop(6, sync, 7_000_000, (0, 7_900_000)),
        ];
        assert_eq!(
            one.sentence(),
            "Of 10.0 ms, thread 7 was blocked in futex (job.lock) for 8.00 ms (80 %) until it was \
             woken by thread 5, which was in log.rotate then, and ran for 2.00 ms (20 %). In the \
             longest wait (8.00 ms), thread 5 was blocked in futex for 7.90 ms until it was woken by \
             thread 6. In the longest wait of thread 5 (7.90 ms), thread 6 (in log.write) was blocked \
             in fsync for 7.00 ms until it was woken by an interrupt."
        );
        let mut other = one.clone();
        other.dur += 1_000_000;
        other.parts[1].spent.ns += 1_000_000;
        assert_eq!(other.shape(), one.shape(), "numbers do not matter");
        other.parts[0].hops.pop();
        assert_ne!(other.shape(), one.shape());
    }

    #[test]
    fn calls_are_followed_to_the_service_that_answered() {
        let call = |taken_after, had_others, request: SlowInterval| ServiceCall {
            service: ":5432".into(),
            identity: None,
            ts: 0,
            dur: 1000,
            taken_after,
            had_others,
            process_name: Some("postgres".into()),
            request,
        };
        let poll = TimeUse::Blocked { call: Some("poll".into()), by: WokenBy::default() };
        let mut one = slow(vec![(poll, 1000, 1, None)]);
        let query = slow(vec![(TimeUse::Running, 1000, 1, None)]);
        one.answered_by = Some(Box::new(call(10, false, query.clone())));
        assert_eq!(
            one.sentence(),
            "Of 1.00 µs, thread 7 was blocked in poll for 1.00 µs (100 %). Process 1 (postgres) answered its \
             call, of :5432 (1.00 µs). Of 1.00 µs, thread 7 ran for 1.00 µs (100 %)."
        );
        let mut other = one.clone();
        other.answered_by = Some(Box::new(call(500, true, query)));
        let expected = "Process 1 (postgres) answered its call, or one beside it, of :5432 (1.00 µs), and took \
                        it up after 500 ns. Of";
        assert!(other.sentence().contains(expected), "{}", other.sentence());
        assert_eq!(other.shape(), one.shape(), "numbers do not matter");
        let named = other.answered_by.as_mut().unwrap();
        (named.service, named.identity) = ("stmt.run".into(), Some("trace".into()));
        let expected = "Process 1 (postgres) had the same trace in stmt.run for 1.00 µs. Of 1.00 µs, thread 7 ran";
        assert!(other.sentence().contains(expected), "{}", other.sentence());
        other.answered_by = None;
        assert_ne!(other.shape(), one.shape());
    }

    #[test]
    fn a_sentence_mentions_the_largest_parts() {
        let by = |thread| WokenBy { kind: Some("THREAD".into()), thread: Some(thread), name: None };
        let futex = |thread| TimeUse::Blocked { call: Some("futex".into()), by: by(thread) };
        let doing = |around| doing("cache.fill", around);
        let to = |by| TimeUse::Preempted { by: Some(by), name: Some("backup".into()) };
        let all = [
            (
                slow(vec![
                    (futex(5), 8_000_000, 1, Some(doing(true))),
                    (TimeUse::Running, 2_000_000, 2, None),
                ]),
                "Of 10.0 ms, thread 7 was blocked in futex for 8.00 ms (80 %) until it was woken by \
                 thread 5, which was in cache.fill then, and ran for 2.00 ms (20 %).",
            ),
            (
                slow(vec![
                    (futex(5), 400, 2, Some(doing(false))),
                    (to(9), 300, 1, None),
                    (futex(6), 200, 3, None),
                    (TimeUse::Unknown, 90, 1, None),
                    (TimeUse::Running, 10, 6, None),
                ]),
                "Of 1.00 µs, thread 7 was blocked in futex 5 times for 600 ns (60 %), mostly until it was \
                 woken by thread 5, which had been in cache.fill meanwhile, wanted a CPU for 300 ns \
                 (30 %), which it had lost once to `backup` (9), and was in an unknown state for 90 ns (9 %).",
            ),
            (
                slow(vec![(to(9), 60, 2, None), (to(8), 40, 1, None)]),
                "Of 100 ns, thread 7 wanted a CPU for 100 ns (100 %), which it had lost 3 times, mostly to \
                 `backup` (9).",
            ),
            (
                slow(vec![
                    (TimeUse::WokenLate(by(5)), 50, 1, None),
                    (TimeUse::Faulting(WokenBy::default()), 50, 2, None),
                ]),
                "Of 100 ns, thread 7 wanted a CPU for 50 ns (50 %) after it was woken, and waited for a \
                 page twice for 50 ns (50 %).",
            ),
            (slow(Vec::new()), "It took no time in thread 7."),
        ];
        for (slow, expected) in all {
            assert_eq!(slow.sentence(), expected);
        }
    }
}
