//! Checks where the time of intervals went against the truth.

use std::collections::BTreeMap;

use ppt_capture::FramesHead;
use ppt_query::QueryError;
use ppt_query::why::{SlowInterval, TimeUse, WhyQuestion};

use crate::kernel::world::{KernelFrame, KernelWorld, LONG, REAL, capture};
use crate::random::Dice;
use crate::support::{self, Files, with_pushdown};

/// A job: its thread, from, and to.
type JobTimes = (i64, i64, i64);

/// The program's own frames: jobs of its threads.
fn program(jobs: &[JobTimes]) -> Vec<u8> {
    program_with_steps(jobs, &[])
}

/// Kinds of frames for the steps of a job.
const STEPS: [&str; 3] = ["parse", "exec", "sort"];

/// Jobs, and steps: the number of a kind, and when.
fn program_with_steps(jobs: &[JobTimes], steps: &[(usize, JobTimes)]) -> Vec<u8> {
    let own = "{ int n; interval time handle @at; }";
    let kinds: String =
        ["job"].iter().chain(&STEPS).map(|kind| format!("frame {kind} {own}\n")).collect();
    let source = format!("emit C; buffer app; option time ns monotonic;\n{kinds}");
    let schema = ppt_frame_dsl::compile(source.as_bytes(), "app.frame").unwrap().schema;
    let chunk = |(n, (kind, (tid, from, to))): (usize, (usize, JobTimes))| {
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&1u64.to_le_bytes());
        bytes[8..10].copy_from_slice(&(kind as u16).to_le_bytes());
        let values = [("n", n as i64), ("handle_start", from), ("handle_end", to)];
        for (name, value) in values {
            let field = schema.frames[kind].fields.iter().find(|field| field.name == name).unwrap();
            let len = field.bytes(&schema) as usize;
            bytes[field.offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        let head = FramesHead {
            nonce: 7,
            ring: n as u32,
            tid: tid as u32,
            first_seq: 1,
            count: 1,
            stride: schema.stride,
            drained_mono_ns: to as u64,
            t_min: to as u64,
            t_max: to as u64,
            ..FramesHead::default()
        };
        (head, bytes)
    };
    let steps = steps.iter().map(|&(kind, step)| (kind + 1, step));
    let all = jobs.iter().map(|&job| (0, job)).chain(steps);
    let chunks: Vec<_> = all.enumerate().map(chunk).collect();
    capture(99, "", &schema, &chunks)
}

fn why(files: &Files, why: &WhyQuestion) -> Result<Vec<SlowInterval>, QueryError> {
    let engine = files.engine(&with_pushdown());
    support::runtime().block_on(engine.why(why)).map(|answer| answer.slowest)
}

/// State, call and waker of a part, and how much of it there is; None is unknown.
type StateSums = BTreeMap<Option<(String, Option<String>, Option<i64>)>, i64>;

fn sums(slow: &SlowInterval) -> StateSums {
    let mut sums = StateSums::new();
    for part in &slow.parts {
        let (state, call) = match &part.state {
            TimeUse::Running => ("running", None),
            TimeUse::Preempted { by, name } => {
                // The frame with the waker may be lost.
                let all = [(Some(77), Some("other")), (None, None)];
                assert!(all.contains(&(*by, name.as_deref())), "{by:?} {name:?}");
                ("runnable", None)
            }
            TimeUse::WokenLate(_) => ("runnable", None),
            TimeUse::Blocked { call, .. } => ("blocked", call.clone()),
            TimeUse::Faulting(_) => ("blocked", None),
            TimeUse::Unknown => ("", None),
        };
        let waker = part.state.woken().and_then(|woken| woken.thread).map(i64::from);
        let key = (!state.is_empty()).then(|| (state.to_owned(), call, waker));
        *sums.entry(key).or_default() += part.spent.ns;
    }
    sums
}

/// The same, computed ns by ns.
fn truly(world: &KernelWorld, (tid, from, to): JobTimes) -> StateSums {
    let mut sums = StateSums::new();
    let truth = world.truth.get(&tid);
    for ns in from..to {
        let at = truth.and_then(|(begin, truth)| truth.get(usize::try_from(ns - begin).ok()?));
        let key = at.map(|entry| (entry.0.to_owned(), entry.1.map(str::to_owned), entry.2));
        *sums.entry(key).or_default() += 1;
    }
    sums
}

fn jobs(world: &KernelWorld, dice: &mut Dice) -> Vec<JobTimes> {
    let job = |_| {
        // Nothing is known of one thread.
        let tid = 100 + dice.below(7) as i64;
        let from = 500 + dice.below(world.end as u64) as i64;
        (tid, from, from + dice.below(LONG * 30) as i64)
    };
    let mut jobs: Vec<JobTimes> = (0..30).map(job).collect();
    // Threads that wake others have slices of their own.
    jobs.push((50, 1, world.end * 2));
    jobs.push((51, 100, 2000));
    jobs.push((51, 900, 1900));
    jobs
}

#[test]
fn parts_of_intervals_are_what_their_threads_did() {
    let all = WhyQuestion { slowest: 100, ..WhyQuestion::default() };
    for seed in 0..6 {
        let mut dice = Dice::new(300 + seed);
        let world = KernelWorld::new(&mut dice, 6);
        let jobs = jobs(&world, &mut dice);
        let mut captures = world.captures(&mut dice, 1 + seed as usize % 3, false, false);
        captures.push(program(&jobs));
        let files = Files::new(&captures);
        let found = why(&files, &all).unwrap();
        assert_eq!(found.len(), jobs.len());
        assert!(found.is_sorted_by_key(|slow| -slow.dur));
        for slow in &found {
            let job = jobs[slow.ring.unwrap() as usize];
            assert_eq!((slow.ts - REAL as i64, slow.dur), (job.1, job.2 - job.1));
            assert_eq!(sums(slow), truly(&world, job), "seed {seed}: {job:?}");
            assert_eq!(slow.parts.iter().map(|part| part.spent.ns).sum::<i64>(), slow.dur);
            for part in slow.parts.iter().filter(|part| part.state.is_wait()) {
                let doing = part.waker_slice.as_ref().map(|doing| (doing.name.as_str(), doing.ns));
                let (from, to) = part.spent.longest;
                let (from, to) = (from - REAL as i64, to - REAL as i64);
                // The innermost slice around the end, or else the one that overlaps longest.
                let expected = match part.state.woken().unwrap().thread {
                    Some(50) => Some(to - from),
                    Some(51) if (901..=1900).contains(&to) => Some(to - from.max(900)),
                    Some(51) => Some(to.min(2000) - from.max(100)).filter(|&ns| ns > 0),
                    _ => None,
                };
                assert_eq!(
                    doing,
                    expected.map(|ns| ("job.handle", ns)),
                    "{from} to {to}: {part:?}"
                );
            }
        }
        let few = why(&files, &WhyQuestion { slowest: 3, ..WhyQuestion::default() }).unwrap();
        assert_eq!(few, found[..3]);
        let filter = Some("n >= 3 AND handle > 100ns".to_owned());
        let field = Some("handle".to_owned());
        let some = WhyQuestion {
            filter,
            field,
            frame: Some("job".to_owned()),
            slowest: 100,
            show: Vec::new(),
        };
        let expected = found.iter().filter(|slow| slow.ring.unwrap() >= 3 && slow.dur > 100);
        assert!(why(&files, &some).unwrap().iter().eq(expected), "seed {seed}");
    }
}

#[test]
fn parts_add_up_whatever_is_lost() {
    let all = WhyQuestion { slowest: 100, ..WhyQuestion::default() };
    let mut known = 0;
    for seed in 0..12 {
        let mut dice = Dice::new(700 + seed);
        let mut world = KernelWorld::new(&mut dice, 6);
        let kernel = seed % 2 == 0;
        if kernel {
            (0..4).for_each(|_| world.kernel_loses(&mut dice));
        }
        let jobs = jobs(&world, &mut dice);
        let mut captures = world.captures(&mut dice, 1, false, !kernel);
        captures.push(program(&jobs));
        for slow in why(&Files::new(&captures), &all).unwrap() {
            let job = jobs[slow.ring.unwrap() as usize];
            assert_eq!(slow.parts.iter().map(|part| part.spent.ns).sum::<i64>(), slow.dur);
            // Calls and wakers may be unknown even if the state is known.
            let by_state = |sums: StateSums| {
                let mut states: BTreeMap<String, i64> = BTreeMap::new();
                for (key, ns) in sums {
                    *states.entry(key.map(|key| key.0).unwrap_or_default()).or_default() += ns;
                }
                states
            };
            let truth = by_state(truly(&world, job));
            for (state, ns) in by_state(sums(&slow)) {
                let is_over = job.2
                    > world.truth.get(&job.0).map_or(0, |truth| truth.0 + truth.1.len() as i64);
                let most = truth.get(&state).copied().unwrap_or_default();
                // A thread whose end is lost counts as present.
                assert!(state.is_empty() || is_over || ns <= most, "seed {seed}: {job:?} {state}");
                known += if state.is_empty() { 0 } else { ns };
            }
        }
    }
    assert!(known > 10_000, "{known} ns");
}

#[test]
fn what_cannot_be_answered_is_said() {
    let mut dice = Dice::new(5);
    let world = KernelWorld::new(&mut dice, 2);
    let kernel = world.captures(&mut dice, 1, false, false).remove(0);
    let both = Files::new(&[kernel.clone(), program(&[(100, 1000, 1100)])]);
    let ask = |files: &Files, frame: Option<&str>, field: Option<&str>| {
        let (frame, field) = (frame.map(str::to_owned), field.map(str::to_owned));
        why(files, &WhyQuestion { frame, field, slowest: 9, ..WhyQuestion::default() })
            .map(|why| why.len())
    };
    let said = |files: &Files, frame, field| ask(files, frame, field).unwrap_err().to_string();
    assert_eq!(ask(&both, Some("job"), Some("handle")).unwrap(), 1);
    let typo = "there is no interval of time `handel` (did you mean `handle`?); there are: handle";
    assert_eq!(said(&both, None, Some("handel")), typo);
    assert!(said(&both, Some("jobs"), None).starts_with("there is no frame `jobs`"));
    assert_eq!(
        said(&both, Some("wakeup"), None),
        "`wakeup` has no interval of time and no span; these have: exec, job, parse, sort"
    );
    let alone = Files::new(&[program(&[(100, 1000, 1100)])]);
    assert!(matches!(ask(&alone, None, None), Err(QueryError::NoKernel)));
    let none = Files::new(&[kernel]);
    assert_eq!(said(&none, None, None), "there is no interval of time; there are: none");
    let filter = Some("colour = 1".to_owned());
    let asked = why(
        &both,
        &WhyQuestion { frame: Some("job".into()), filter, slowest: 9, ..WhyQuestion::default() },
    );
    assert!(matches!(asked, Err(QueryError::NoColumn { .. })), "{asked:?}");
}

/// A thread that waits for another one, which waits for a third one, which runs.
#[test]
fn those_who_are_waited_for_are_followed() {
    let own = |waker| [("by", 0), ("waker", waker)];
    let call =
        |at, thread, kind, number| KernelFrame::new(kind, at, thread, 0, &[("call", number)]);
    let out = |at, thread| KernelFrame::new("switch_out", at, thread, 0, &[("preempted", 0)]);
    let on = |at, thread| KernelFrame::new("switch_in", at, thread, 0, &[]);
    let mut frames = vec![
        on(100, 1),
        call(150, 1, "syscall_enter", 1),
        out(200, 1),
        KernelFrame::new("wakeup", 9000, 1, 0, &own(2)),
        on(9100, 1),
        call(9200, 1, "syscall_exit", 1),
        on(100, 2),
        call(300, 2, "syscall_enter", 0),
        out(400, 2),
        KernelFrame::new("wakeup", 8000, 2, 0, &own(3)),
        on(8100, 2),
        on(100, 3),
        out(9500, 3),
        KernelFrame::new("watch_end", 20_000, 0, 0, &[]),
    ];
    frames.sort_by_key(|state| state.at);
    let world = KernelWorld { frames, end: 20_000, ..KernelWorld::default() };
    let mut captures = world.captures(&mut Dice::new(1), 1, false, false);
    // Within the first job, a slice of its thread shows what it waits for.
    captures.push(program(&[(1, 100, 9300), (1, 180, 9150), (2, 250, 9050), (3, 350, 8600)]));
    let found =
        why(&Files::new(&captures), &WhyQuestion { slowest: 1, ..WhyQuestion::default() }).unwrap();
    let [slow] = &found[..] else { panic!("{found:?}") };
    assert_eq!(slow.request, [("n".to_owned(), "0".to_owned())], "what identifies it");
    let wait = slow.parts.iter().find(|part| part.state.is_wait()).unwrap();
    assert_eq!(wait.spent.ns, 8800);
    let seqnos = |of: &Option<ppt_query::why::ThreadSlice>| {
        of.as_ref().map(|doing| (doing.frame.ring, doing.ts - REAL as i64, doing.dur))
    };
    assert_eq!(seqnos(&wait.own_slice), Some((Some(1), 180, 8970)));
    assert_eq!(seqnos(&wait.waker_slice), Some((Some(2), 250, 8800)));
    let hops: Vec<_> = slow
        .hops()
        .iter()
        .map(|hop| {
            let within = (hop.within.0 - REAL as i64, hop.within.1 - REAL as i64);
            (hop.thread, within, <&str>::from(&hop.state), hop.spent.ns, seqnos(&hop.slice))
        })
        .collect();
    // The second one waited from 400 to 8000 for the third one, which ran all the time.
    let expected = [
        (2, (200, 9000), "blocked", 7600, Some((Some(2), 250, 8800))),
        (3, (400, 8000), "running", 7600, Some((Some(3), 350, 8250))),
    ];
    assert_eq!(hops, expected);
    let sentence = slow.sentence();
    let end = "In the longest wait (8.80 µs), thread 2 was blocked in read for 7.60 µs until it was woken \
               by thread 3. In the longest wait of thread 2 (7.60 µs), thread 3 (in job.handle) ran for \
               7.60 µs.";
    assert!(sentence.ends_with(end), "{sentence}");
}

/// Each ns that a thread runs counts for the innermost slice within the job.
#[test]
fn running_time_is_in_the_innermost_slices() {
    let mut told = 0;
    for seed in 0..6 {
        let mut dice = Dice::new(1300 + seed);
        let world = KernelWorld::new(&mut dice, 6);
        let mut jobs = jobs(&world, &mut dice);
        jobs.truncate(20);
        let mut steps: Vec<(usize, JobTimes)> = Vec::new();
        for &(tid, from, to) in &jobs {
            for _ in 0..dice.below(6) {
                // Most are within their job, and some are beyond its end.
                let begin = from + dice.below((to - from + 1) as u64) as i64;
                let step = (tid, begin, begin + dice.below(LONG * 12) as i64);
                if steps.iter().all(|other| other.1 != step) && !jobs.contains(&step) {
                    steps.push((dice.below(STEPS.len() as u64) as usize, step));
                }
            }
        }
        let mut captures = world.captures(&mut dice, 1, false, false);
        captures.push(program_with_steps(&jobs, &steps));
        let asked =
            WhyQuestion { frame: Some("job".to_owned()), slowest: 100, ..WhyQuestion::default() };
        let engine = Files::new(&captures).engine(&with_pushdown());
        let answer = support::runtime().block_on(engine.why(&asked)).unwrap();
        let mut slices: Vec<(&str, JobTimes)> =
            jobs.iter().map(|&job| ("job.handle", job)).collect();
        let names = ["parse.handle", "exec.handle", "sort.handle"];
        slices.extend(steps.iter().map(|&(kind, step)| (names[kind], step)));
        // The innermost comes first.
        slices.sort_by_key(|&(_, (_, from, to))| (-from, to));
        let mut of_all: BTreeMap<String, i64> = BTreeMap::new();
        for slow in &answer.slowest {
            let (tid, from, to) = jobs[slow.ring.unwrap() as usize];
            let inner = |ns: i64| {
                let is_it = |slice: &&(&str, JobTimes)| {
                    let (of, begin, end) = slice.1;
                    of == tid && begin <= ns && ns < end && !(begin <= from && to <= end)
                };
                slices.iter().find(is_it).map(|slice| slice.0)
            };
            let mut expected: BTreeMap<&str, i64> = BTreeMap::new();
            let (begin, truth) =
                world.truth.get(&tid).map_or((0, &[][..]), |truth| (truth.0, &truth.1[..]));
            for ns in from..to {
                let state = usize::try_from(ns - begin).ok().and_then(|at| truth.get(at));
                if state.is_some_and(|state| state.0 == "running") {
                    *expected.entry(inner(ns).unwrap_or("")).or_default() += 1;
                }
            }
            let ran: Vec<_> =
                slow.parts.iter().filter(|part| part.state == TimeUse::Running).collect();
            let shares = ran.iter().flat_map(|part| &part.running_in);
            let mut found: BTreeMap<&str, i64> =
                shares.clone().map(|share| (share.name.as_str(), share.ns)).collect();
            let rest =
                ran.iter().map(|part| part.spent.ns).sum::<i64>() - found.values().sum::<i64>();
            if rest > 0 {
                found.insert("", rest);
            }
            assert_eq!(found, expected, "seed {seed}: {from} to {to} of {tid}");
            assert!(shares.clone().is_sorted_by_key(|share| -share.ns));
            for share in shares {
                // The frame of the longest is there, and has that name.
                let frame = share.longest.frame.ring.unwrap() as usize;
                let (name, (_, begin, end)) = match frame.checked_sub(jobs.len()) {
                    None => ("job.handle", jobs[frame]),
                    Some(step) => (names[steps[step].0], steps[step].1),
                };
                assert_eq!((share.name.as_str(), share.longest.dur), (name, end - begin));
                assert!(share.longest.ns <= share.ns && share.slices > 0);
            }
            told += found.len();
            for (name, ns) in found {
                let cause =
                    if name.is_empty() { "running".into() } else { format!("running in {name}") };
                *of_all.entry(cause).or_default() += ns;
            }
        }
        // There are few jobs: the summary is of all of them.
        let causes = answer.tails.iter().flat_map(|tail| &tail.causes);
        let causes = causes.filter(|cause| cause.cause.starts_with("running"));
        let causes: BTreeMap<String, i64> =
            causes.map(|cause| (cause.cause.clone(), cause.ns)).collect();
        assert_eq!(causes, of_all, "seed {seed}");
    }
    assert!(told > 100, "{told} shares");
}

/// The same sums, computed from the state at each ns.
#[test]
fn all_time_above_the_percentile_is_told() {
    for (seed, count) in [(900, 450), (901, 60)] {
        let mut dice = Dice::new(seed);
        let world = KernelWorld::new(&mut dice, 6);
        let mut jobs = jobs(&world, &mut dice);
        while jobs.len() < count {
            jobs.extend(self::jobs(&world, &mut dice).into_iter().take(30));
        }
        jobs.truncate(count);
        let mut captures = world.captures(&mut dice, 1, false, false);
        captures.push(program(&jobs));
        let engine = Files::new(&captures).engine(&with_pushdown());
        let asked = WhyQuestion { slowest: 7, ..WhyQuestion::default() };
        let answer = support::runtime().block_on(engine.why(&asked)).unwrap();
        let [tail] = &answer.tails[..] else { panic!("{:?}", answer.tails) };
        let mut lengths: Vec<i64> = jobs.iter().map(|job| job.2 - job.1).collect();
        lengths.sort_unstable();
        let rank = (0.99 * count as f64).ceil() as usize;
        // Of 60 intervals, none is above the percentile: the seven slowest are used instead.
        let p99 = (count >= 100).then(|| lengths[rank - 1]);
        let least = p99.unwrap_or(lengths[count - 8]);
        let own: Vec<&JobTimes> = jobs.iter().filter(|job| job.2 - job.1 > least).collect();
        assert_eq!((tail.all, tail.p99, tail.count), (count as u64, p99, own.len() as u64));
        assert_eq!(tail.ns, own.iter().map(|interval| interval.2 - interval.1).sum::<i64>());
        assert_eq!(tail.causes.iter().map(|cause| cause.ns).sum::<i64>(), tail.ns);
        assert!(tail.causes.is_sorted_by_key(|cause| -cause.ns));
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for job in own {
            for (key, ns) in truly(&world, *job) {
                let what = match key {
                    None => "unknown".to_owned(),
                    Some((state, ..)) if state == "running" => state,
                    Some((state, ..)) if state == "runnable" => "waiting for a CPU".to_owned(),
                    Some((_, call, waker)) => {
                        let call = call.map(|call| format!(" in {call}")).unwrap_or_default();
                        format!("waiting{call} for thread {}", waker.unwrap())
                    }
                };
                *expected.entry(what).or_default() += ns;
            }
        }
        // What threads were doing divides causes further.
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        for tail_cause in &tail.causes {
            let (cause, _) =
                tail_cause.cause.split_once(" in job.").unwrap_or((&tail_cause.cause, ""));
            *found.entry(cause.replace(" (job.handle)", "")).or_default() += tail_cause.ns;
        }
        assert_eq!(found, expected, "seed {seed}");
    }
}
