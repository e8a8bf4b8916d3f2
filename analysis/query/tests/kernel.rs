//! The tables `thread_states`, `syscalls` and `faults`: held against programs of which each ns is known,
//! whose records are lost in every way, and against DuckDB over the frames themselves.

#[path = "../../oracles/ask.rs"]
mod oracles;
#[allow(dead_code, reason = "what is shared with the other tests is more than is used here")]
#[path = "random/mod.rs"]
mod random;
#[allow(dead_code, reason = "what is shared with the other tests is more than is used here")]
#[path = "support/mod.rs"]
mod support;

use std::collections::{BTreeMap, HashMap};

use oracles::ask;
use ppt_capture::frame_dsl::schema::{FieldType, Schema};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Lost, Process,
    Segment, Source,
};
use ppt_query::why::{Slow, TimeUse, WhyQuestion};
use ppt_query::{Encoder, QueryError, ResultFormat};
use random::Dice;
use serde_json::{Value, json};
use support::{Files, Row, batches, number, rows, sorted, with_pushdown, without_pushdown};

const REAL: u64 = 1_700_000_000_000_000_000;
/// The last one has no name: it is younger than the ppt that captured it.
const CALLS: [&str; 5] = ["read", "futex", "clock_nanosleep", "epoll_wait", "4"];
const PID: u32 = 9;

/// The buffer of the kernel's frames, with a few calls.
fn schema() -> Schema {
    let named = CALLS[..4].iter().enumerate();
    let calls: Vec<_> = named.map(|(n, name)| format!("{name} = {n}")).collect();
    let source = include_str!("../../../kernel/src/kernel.frame");
    let source = format!("{source}\nenum Call : u16 {{ {} }}\n", calls.join(", "));
    ppt_frame_dsl::compile(source.as_bytes(), "kernel.frame").unwrap().schema
}

/// A frame: its kind, its time, and its other fields.
#[derive(Debug, Clone)]
struct ToldState {
    kind: &'static str,
    at: i64,
    /// The CPU whose ring had its record.
    ring: i64,
    fields: Vec<(&'static str, i64)>,
}

impl ToldState {
    fn new(
        kind: &'static str,
        at: i64,
        thread: i64,
        cpu: i64,
        own: &[(&'static str, i64)],
    ) -> ToldState {
        let fields = [("thread", thread), ("cpu", cpu)].into_iter().chain(own.iter().copied());
        ToldState { kind, at, ring: cpu, fields: fields.collect() }
    }

    fn bytes(&self, schema: &Schema, seq: u64) -> (u16, Vec<u8>) {
        let id = schema.frames.iter().position(|frame| frame.name == self.kind).unwrap();
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&seq.to_le_bytes());
        bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
        let fields = self.fields.iter().copied().chain([("at", self.at)]);
        for (name, value) in fields {
            let field = schema.frames[id].fields.iter().find(|field| field.name == name);
            let Some(field) = field else { continue };
            let len = field.bytes(schema) as usize;
            bytes[field.offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        let name = schema.frames[id].fields.iter().find(|field| field.name == "name");
        if let Some(field) = name {
            assert!(matches!(field.ty, FieldType::Char { .. }));
            bytes[field.offset as usize..][..5].copy_from_slice(b"other");
        }
        (id as u16, bytes)
    }
}

/// What is true of a ns of a thread: state, call, who ended the wait or the wait before.
type ExpectedState = (&'static str, Option<&'static str>, Option<i64>);

#[derive(Default)]
struct KernelWorld {
    told: Vec<ToldState>,
    /// From its beginning, by thread.
    truth: BTreeMap<i64, (i64, Vec<ExpectedState>)>,
    /// Thread, begin, length, name.
    calls: Vec<(i64, i64, Option<i64>, &'static str)>,
    faults: Vec<(i64, i64)>,
    end: i64,
}

/// How long things take is many ns: no two frames have the same time by their meaning.
const LONG: u64 = 40;

impl KernelWorld {
    fn new(dice: &mut Dice, threads: i64) -> KernelWorld {
        let mut world = KernelWorld::default();
        for n in 0..threads {
            let begin = 1000 + dice.below(LONG * 10) as i64;
            world.thread(dice, 100 + n, begin);
        }
        world.told.sort_by_key(|state| state.at);
        world.end = world.told.last().map_or(0, |state| state.at);
        world.told.push(ToldState::new("watch_end", world.end, 0, 0, &[]));
        world
    }

    fn thread(&mut self, dice: &mut Dice, tid: i64, begin: i64) {
        let (mut now, mut truth, mut call) = (begin, Vec::new(), None);
        let mut last = |dice: &mut Dice, now: &mut i64, of: ExpectedState| {
            let ns = 1 + dice.below(LONG) as i64;
            truth.extend((0..ns).map(|_| of));
            *now += ns;
        };
        let told = &mut self.told;
        told.push(ToldState::new("thread_start", now, tid, 0, &[("parent", 1)]));
        last(dice, &mut now, ("runnable", None, Some(1)));
        for _ in 0..5 + dice.below(20) {
            let cpu = dice.below(2) as i64;
            told.push(ToldState::new("switch_in", now, tid, cpu, &[]));
            last(dice, &mut now, ("running", None, None));
            for _ in 0..dice.below(4) {
                match call.take() {
                    Some(call) => {
                        let own = [("call", call as i64), ("result", now)];
                        told.push(ToldState::new("syscall_exit", now, tid, cpu, &own));
                        self.calls.last_mut().unwrap().2 = Some(now);
                    }
                    None if dice.chance(3) => {
                        let own = [("kind", 0), ("address", 4096)];
                        told.push(ToldState::new("page_fault", now, tid, cpu, &own));
                        self.faults.push((tid, now));
                    }
                    None => {
                        let entered = dice.below(4) as usize;
                        call = Some(entered);
                        let own = [("call", entered as i64)];
                        told.push(ToldState::new("syscall_enter", now, tid, cpu, &own));
                        self.calls.push((tid, now, None, CALLS[entered]));
                    }
                }
                last(dice, &mut now, ("running", None, None));
            }
            let preempted = dice.chance(2);
            let state = i64::from(!preempted);
            let next = [("state", state), ("next", 77)];
            told.push(ToldState::new("successor", now, tid, cpu, &next));
            told.push(ToldState::new(
                "switch_out",
                now,
                tid,
                cpu,
                &[("preempted", preempted.into())],
            ));
            if preempted {
                last(dice, &mut now, ("runnable", None, None));
                continue;
            }
            let waker = 50 + dice.below(3) as i64;
            let blocked_in = call.map(|call| CALLS[call]);
            last(dice, &mut now, ("blocked", blocked_in, Some(waker)));
            let own = [("by", 0), ("waker", waker)];
            let mut wakeup = ToldState::new("wakeup", now, tid, dice.below(2) as i64, &own);
            // The waker may have any CPU.
            wakeup.ring = dice.below(2) as i64;
            told.push(wakeup);
            last(dice, &mut now, ("runnable", None, Some(waker)));
        }
        told.push(ToldState::new("switch_in", now, tid, 0, &[]));
        last(dice, &mut now, ("running", None, None));
        told.push(ToldState::new("thread_end", now, tid, 0, &[]));
        self.truth.insert(tid, (begin, truth));
    }

    /// The kernel loses what a CPU has for it, and says so later.
    fn kernel_loses(&mut self, dice: &mut Dice) {
        let (from, until) = self.sometime(dice);
        let cpu = dice.below(2) as i64;
        let before = self.told.len();
        let last_seen = self
            .told
            .iter()
            .filter(|state| state.ring == cpu && state.at <= from)
            .map(|state| state.at);
        let since = last_seen.max().unwrap_or(0);
        let is_lost = |state: &ToldState| state.ring == cpu && from < state.at && state.at < until;
        self.told.retain(|state| state.kind == "watch_end" || !is_lost(state));
        let count = (before - self.told.len()) as i64;
        if count == 0 {
            return;
        }
        // It is stated when the reader is done with what it took.
        let at = until + dice.below(LONG) as i64;
        let place = self.told.partition_point(|state| state.at <= at);
        let at = self.told.get(place.wrapping_sub(1)).map_or(at, |state| state.at.max(at));
        let at = self.told.get(place).map_or(at, |state| state.at.min(at));
        let own = [("since", since), ("count", count)];
        // No ring has it.
        self.told.insert(place, ToldState { ring: -1, ..ToldState::new("lost", at, 0, cpu, &own) });
    }

    fn sometime(&self, dice: &mut Dice) -> (i64, i64) {
        let from = 1000 + dice.below((self.end - 1000) as u64) as i64;
        (from, from + 1 + dice.below(LONG * 8) as i64)
    }

    /// The frames as captures: `rotated` of them, of which some are `left_out`; `drained` frames in a row
    /// are missing now and then.
    fn captures(
        &self,
        dice: &mut Dice,
        files: usize,
        left_out: bool,
        overruns: bool,
    ) -> Vec<Vec<u8>> {
        let schema = schema();
        let (mut seq, mut lost) = (1, Lost::default());
        let mut all: Vec<Vec<(FramesHead, Vec<u8>)>> = vec![Vec::new()];
        let mut skip = 0;
        for (n, told) in self.told.iter().enumerate() {
            if n > 0 && n.is_multiple_of((self.told.len() / files).max(1)) && all.len() < files {
                all.push(Vec::new());
            }
            if overruns && skip == 0 && dice.chance(60) {
                skip = 1 + dice.below(30);
            }
            // What ends the watch is there: nobody misses what is behind.
            if skip > 0 && told.kind != "watch_end" {
                skip -= 1;
                lost.overrun += 1;
                seq += 1;
                if told.kind == "lost" {
                    // Its numbers, too.
                    let count = told.fields.iter().find(|field| field.0 == "count").unwrap().1;
                    lost.overrun += count as u64;
                    seq += count as u64;
                }
                continue;
            }
            if told.kind == "lost" {
                let count = told.fields.iter().find(|field| field.0 == "count").unwrap().1 as u64;
                lost.overrun += count;
                seq += count;
            }
            let (id, bytes) = told.bytes(&schema, seq);
            let at = told.at as u64;
            let chunks = all.last_mut().unwrap();
            match chunks.last_mut() {
                Some((head, frames)) if lost.total() == 0 && !dice.chance(8) => {
                    head.count += 1;
                    head.t_min = head.t_min.min(at);
                    head.t_max = head.t_max.max(at);
                    head.frame_mask |= 1 << id;
                    frames.extend(bytes);
                }
                _ => {
                    let head = FramesHead {
                        nonce: 7,
                        first_seq: seq,
                        count: 1,
                        stride: schema.stride,
                        lost_before: std::mem::take(&mut lost),
                        drained_mono_ns: at,
                        t_min: at,
                        t_max: at,
                        frame_mask: 1 << id,
                        ..FramesHead::default()
                    };
                    chunks.push((head, bytes));
                }
            }
            seq += 1;
        }
        if left_out && all.len() > 2 {
            all.remove(1);
        }
        (1..).zip(&all).map(|(id, chunks)| capture(id, "kernel", &schema, chunks)).collect()
    }
}

fn capture(id: u8, kind: &str, schema: &Schema, chunks: &[(FramesHead, Vec<u8>)]) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [id; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let (a, b) = (ClockId::Monotonic, ClockId::Realtime);
    let (a_before, a_after, b_value) = (1, 1, REAL + 1);
    writer.clock(&[ClockReading { a, a_before, b, b_value, a_after, distrusted: false }]).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        kind: kind.to_owned(),
        buffer: schema.buffer.clone(),
        process: Process { pid: PID, ..Process::default() },
        segments: vec![Segment { nonce: 7, rings: 999, slots: 4096, stride: schema.stride }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    chunks.iter().for_each(|(head, frames)| writer.frames(head, frames).unwrap());
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: Vec::new(),
        drops: Vec::new(),
        realtime_ns: REAL + 99,
        mono_ns: 99,
    };
    writer.end(&end).unwrap()
}

fn long(cell: &Option<String>) -> i64 {
    cell.as_ref().unwrap().parse().unwrap()
}

const STATES: &str = "SELECT tid, ts, dur, state, blocked_in, waker FROM thread_states \
                      ORDER BY tid, ts";

/// Each ns of what is said is true, or unknown, and no ns is said twice. Returns how many are known.
fn check(world: &KernelWorld, said: &[Row], what: &str) -> usize {
    let mut known = 0;
    let mut until: HashMap<i64, i64> = HashMap::new();
    for row in said {
        let (tid, ts, dur) = (long(&row[0]), long(&row[1]) - REAL as i64, long(&row[2]));
        let until = until.entry(tid).or_insert(ts);
        assert!(*until <= ts && dur > 0, "{what}: {row:?}, said until {until}");
        *until = ts + dur;
        let state = row[3].as_deref().unwrap();
        if state == "unknown" {
            continue;
        }
        let (begin, truth) = &world.truth[&tid];
        for ns in ts..ts + dur {
            // Whose end is lost is said to be there.
            let Some(truth) = truth.get((ns - begin) as usize) else { continue };
            known += 1;
            // A fault may have begun before what it records.
            let call = row[4].as_deref().filter(|row| *row != "page_fault" || truth.1.is_some());
            assert_eq!(state, truth.0, "{what}: {tid} at {ns}");
            assert!(
                call.is_none() || call == truth.1,
                "{what}: {tid} at {ns} in {call:?}: {truth:?}"
            );
            let waker = row[5].as_ref().map(|row| row.parse().unwrap());
            assert!(
                waker.is_none() || waker == truth.2,
                "{what}: {tid} at {ns}: {row:?}, {truth:?}"
            );
        }
    }
    known
}

#[test]
fn each_ns_of_a_thread_is_what_it_was() {
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let world = KernelWorld::new(&mut dice, 6);
        let total: usize = world.truth.values().map(|entry| entry.1.len()).sum();
        let files = Files::new(&world.captures(&mut dice, 1 + seed as usize % 4, false, false));
        for options in [with_pushdown(), without_pushdown()] {
            let engine = files.engine(&options);
            let said = rows(&engine, STATES);
            assert_eq!(check(&world, &said, &format!("seed {seed}")), total);
            assert!(said.iter().all(|it| it[3].as_deref() != Some("unknown")));
            let lengths = world.truth.iter().map(|(tid, entry)| (*tid, entry.1.len() as i64));
            let sums =
                rows(&engine, "SELECT tid, sum(dur) FROM thread_states GROUP BY 1 ORDER BY 1");
            let sums = sums.iter().map(|sum| (long(&sum[0]), long(&sum[1])));
            assert!(sums.eq(lengths));
            // One thread is the same alone.
            let alone = "SELECT count(*), sum(dur) FROM thread_states WHERE tid = 102 AND pid = 9";
            let of = said.iter().filter(|texts| texts[0].as_deref() == Some("102"));
            let of = (of.clone().count() as i64, of.map(|texts| long(&texts[2])).sum::<i64>());
            let found = rows(&engine, alone);
            assert_eq!((long(&found[0][0]), long(&found[0][1])), of);
            assert_eq!(number(&engine, "SELECT count(*) FROM thread_states WHERE tid = 7"), 0);
        }
        let engine = files.engine(&with_pushdown());
        let mut calls: Vec<Row> = world
            .calls
            .iter()
            .map(|&(tid, ts, end, name)| {
                let text = |number: i64| Some(number.to_string());
                let (dur, result) = (end.map(|end| end - ts), end);
                let ts = ts + REAL as i64;
                vec![
                    text(tid),
                    text(ts),
                    dur.and_then(text),
                    Some(name.into()),
                    result.and_then(text),
                ]
            })
            .collect();
        calls.sort();
        let found = sorted(&engine, "SELECT tid, ts, dur, name, result FROM syscalls");
        assert_eq!(found, calls, "seed {seed}");
        let found = rows(&engine, "SELECT tid, ts, kind, address FROM faults ORDER BY ts, tid");
        let mut faults = world.faults.clone();
        faults.sort_by_key(|fault| (fault.1, fault.0));
        let found: Vec<_> = found
            .iter()
            .map(|texts| {
                assert_eq!(
                    (texts[2].as_deref(), texts[3].as_deref()),
                    (Some("MINOR"), Some("4096"))
                );
                (long(&texts[0]), long(&texts[1]) - REAL as i64)
            })
            .collect();
        assert_eq!(found, faults, "seed {seed}");
    }
}

#[test]
fn what_is_lost_is_unknown_and_never_wrong() {
    let (mut known, mut total) = (0, 0);
    for seed in 0..48 {
        let mut dice = Dice::new(1000 + seed);
        let mut world = KernelWorld::new(&mut dice, 6);
        // Frames that say what the kernel lost are not among what is lost later: they say since when.
        let (kernel, drain, part) =
            [(true, false, false), (false, true, false), (false, false, true), (false, true, true)]
                [seed as usize % 4];
        if kernel {
            (0..1 + dice.below(6)).for_each(|_| world.kernel_loses(&mut dice));
        }
        let captures = world.captures(&mut dice, if part { 4 } else { 1 }, part, drain);
        let files = Files::new(&captures);
        let engine = files.engine(&with_pushdown());
        let what = format!("seed {seed}: kernel {kernel}, drain {drain}, part {part}");
        known += check(&world, &rows(&engine, STATES), &what);
        total += world.truth.values().map(|entry| entry.1.len()).sum::<usize>();
        // No call has a length that it did not have.
        let lengths: HashMap<(i64, i64), i64> = world
            .calls
            .iter()
            .filter_map(|call| Some(((call.0, call.1), call.2? - call.1)))
            .collect();
        for row in rows(&engine, "SELECT tid, ts, dur, name FROM syscalls WHERE dur IS NOT NULL") {
            let begin = (long(&row[0]), long(&row[1]) - REAL as i64);
            assert_eq!(lengths[&begin], long(&row[2]), "{what}: {row:?}");
        }
    }
    assert!(known * 4 > total && known * 100 < total * 99, "{known} of {total}");
}

#[test]
fn a_copy_of_a_capture_adds_nothing() {
    let mut dice = Dice::new(77);
    let world = KernelWorld::new(&mut dice, 4);
    let one = world.captures(&mut dice, 1, false, false).remove(0);
    let again = world.captures(&mut dice, 3, false, false);
    let alone = Files::new(std::slice::from_ref(&one));
    // The same session, as a file and as a series: their ids differ.
    let both = Files::new(&[one, again[1].clone()]);
    let (alone, both) = (alone.engine(&with_pushdown()), both.engine(&with_pushdown()));
    assert_eq!(rows(&alone, STATES), rows(&both, STATES));
}

/// DuckDB, over the frames alone.
#[test]
fn duckdb_finds_the_same_in_the_frames() {
    let mut dice = Dice::new(3);
    let world = KernelWorld::new(&mut dice, 8);
    let files = Files::new(&world.captures(&mut dice, 1, false, false));
    let engine = files.engine(&with_pushdown());
    let frames = "SELECT seqno, ts, thread, 'in' AS what, NULL AS n, NULL AS call FROM kernel.switch_in \
        UNION ALL SELECT seqno, ts, thread, 'out', CAST(preempted AS INT), NULL FROM kernel.switch_out \
        UNION ALL SELECT seqno, ts, thread, 'wake', waker, NULL FROM kernel.wakeup \
        UNION ALL SELECT seqno, ts, thread, 'start', parent, NULL FROM kernel.thread_start \
        UNION ALL SELECT seqno, ts, thread, 'end', NULL, NULL FROM kernel.thread_end \
        UNION ALL SELECT seqno, ts, thread, 'enter', NULL, CAST(call AS VARCHAR) FROM kernel.syscall_enter \
        UNION ALL SELECT seqno, ts, thread, 'exit', NULL, CAST(call AS VARCHAR) FROM kernel.syscall_exit";
    let answer = batches(&engine, frames).unwrap();
    let path = files.folder().join("t.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut encoder = Encoder::new(file, ResultFormat::Parquet, &answer[0].schema()).unwrap();
    answer.iter().for_each(|batch| encoder.write(batch).unwrap());
    encoder.finish().unwrap();
    let question = "WITH calls AS (SELECT *, last_value(CASE WHEN what = 'enter' THEN call WHEN \
            what = 'exit' THEN '' END IGNORE NULLS) OVER (PARTITION BY thread ORDER BY seqno) AS inside \
            FROM t), \
        turns AS (SELECT *, lead(epoch_ns(ts)) OVER (PARTITION BY thread ORDER BY seqno) AS until \
            FROM calls WHERE what NOT IN ('enter', 'exit')), \
        said AS (SELECT thread, until - epoch_ns(ts) AS ns, CASE what WHEN 'in' THEN 'running' WHEN 'out' THEN \
            CASE n WHEN 1 THEN 'runnable' ELSE 'blocked' END ELSE 'runnable' END AS state, \
            CASE WHEN what = 'out' AND n = 0 THEN nullif(inside, '') END AS blocked_in \
            FROM turns WHERE what <> 'end') \
        SELECT thread, state, blocked_in, count(*), sum(ns) FROM said GROUP BY ALL \
        ORDER BY 1, 2, 3 NULLS FIRST";
    let ours = "SELECT tid, state, nullif(blocked_in, 'page_fault') AS blocked_in, count(*), sum(dur) \
                FROM thread_states GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 NULLS FIRST";
    let Some(answers) = ask("duckdb", &path, &json!([question])) else { return };
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let row = |row: &Value| row.as_array().unwrap().iter().map(text).collect();
    let theirs: Vec<Row> = answers[0].as_array().unwrap().iter().map(row).collect();
    let ours = rows(&engine, ours);
    assert!(ours.len() > 20, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// A job: its thread, from, and to.
type JobTimes = (i64, i64, i64);

/// What the program says of itself: jobs of its threads.
fn program(jobs: &[JobTimes]) -> Vec<u8> {
    program_with_steps(jobs, &[])
}

/// Kinds of frames that say what a job does.
const STEPS: [&str; 3] = ["parse", "exec", "sort"];

/// The same, and steps: the number of a kind, and when.
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

fn why(files: &Files, why: &WhyQuestion) -> Result<Vec<Slow>, QueryError> {
    let engine = files.engine(&with_pushdown());
    support::runtime().block_on(engine.why(why)).map(|answer| answer.slowest)
}

/// State, call and waker of a part, and how much of it there is; None is unknown.
type StateSums = BTreeMap<Option<(String, Option<String>, Option<i64>)>, i64>;

fn sums(slow: &Slow) -> StateSums {
    let mut sums = StateSums::new();
    for part in &slow.parts {
        let (state, call) = match &part.part {
            TimeUse::Running => ("running", None),
            TimeUse::Preempted { by, name } => {
                // Who it was may be lost.
                let all = [(Some(77), Some("other")), (None, None)];
                assert!(all.contains(&(*by, name.as_deref())), "{by:?} {name:?}");
                ("runnable", None)
            }
            TimeUse::WokenLate(_) => ("runnable", None),
            TimeUse::Blocked { call, .. } => ("blocked", call.clone()),
            TimeUse::Faulting(_) => ("blocked", None),
            TimeUse::Unknown => ("", None),
        };
        let waker = part.part.woken().and_then(|woken| woken.thread).map(i64::from);
        let key = (!state.is_empty()).then(|| (state.to_owned(), call, waker));
        *sums.entry(key).or_default() += part.spent.ns;
    }
    sums
}

/// The same, ns by ns.
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
        // One thread has done nothing that anybody knows of.
        let tid = 100 + dice.below(7) as i64;
        let from = 500 + dice.below(world.end as u64) as i64;
        (tid, from, from + dice.below(LONG * 30) as i64)
    };
    let mut jobs: Vec<JobTimes> = (0..30).map(job).collect();
    // Who wakes others says what it does.
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
        assert!(found.is_sorted_by_key(|it| -it.dur));
        for slow in &found {
            let job = jobs[slow.ring.unwrap() as usize];
            assert_eq!((slow.ts - REAL as i64, slow.dur), (job.1, job.2 - job.1));
            assert_eq!(sums(slow), truly(&world, job), "seed {seed}: {job:?}");
            assert_eq!(slow.parts.iter().map(|it| it.spent.ns).sum::<i64>(), slow.dur);
            for part in slow.parts.iter().filter(|part| part.part.is_wait()) {
                let doing = part.doing.as_ref().map(|doing| (doing.name.as_str(), doing.ns));
                let (from, to) = part.spent.longest;
                let (from, to) = (from - REAL as i64, to - REAL as i64);
                // The innermost one around the end, or else the one that shares most.
                let expected = match part.part.woken().unwrap().thread {
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
            assert_eq!(slow.parts.iter().map(|it| it.spent.ns).sum::<i64>(), slow.dur);
            // Calls and wakers may be unknown where the state is not.
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
                // Whose end is lost is said to be there.
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
    let call = |at, thread, kind, number| ToldState::new(kind, at, thread, 0, &[("call", number)]);
    let out = |at, thread| ToldState::new("switch_out", at, thread, 0, &[("preempted", 0)]);
    let on = |at, thread| ToldState::new("switch_in", at, thread, 0, &[]);
    let mut told = vec![
        on(100, 1),
        call(150, 1, "syscall_enter", 1),
        out(200, 1),
        ToldState::new("wakeup", 9000, 1, 0, &own(2)),
        on(9100, 1),
        call(9200, 1, "syscall_exit", 1),
        on(100, 2),
        call(300, 2, "syscall_enter", 0),
        out(400, 2),
        ToldState::new("wakeup", 8000, 2, 0, &own(3)),
        on(8100, 2),
        on(100, 3),
        out(9500, 3),
        ToldState::new("watch_end", 20_000, 0, 0, &[]),
    ];
    told.sort_by_key(|state| state.at);
    let world = KernelWorld { told, end: 20_000, ..KernelWorld::default() };
    let mut captures = world.captures(&mut Dice::new(1), 1, false, false);
    // Within the first job, its thread says for what it waits.
    captures.push(program(&[(1, 100, 9300), (1, 180, 9150), (2, 250, 9050), (3, 350, 8600)]));
    let found =
        why(&Files::new(&captures), &WhyQuestion { slowest: 1, ..WhyQuestion::default() }).unwrap();
    let [slow] = &found[..] else { panic!("{found:?}") };
    assert_eq!(slow.request, [("n".to_owned(), "0".to_owned())], "what identifies it");
    let wait = slow.parts.iter().find(|part| part.part.is_wait()).unwrap();
    assert_eq!(wait.spent.ns, 8800);
    let seqnos = |of: &Option<ppt_query::why::Doing>| {
        of.as_ref().map(|doing| (doing.frame.ring, doing.ts - REAL as i64, doing.dur))
    };
    assert_eq!(seqnos(&wait.inside), Some((Some(1), 180, 8970)));
    assert_eq!(seqnos(&wait.doing), Some((Some(2), 250, 8800)));
    let hops: Vec<_> = slow
        .hops()
        .iter()
        .map(|hop| {
            let within = (hop.within.0 - REAL as i64, hop.within.1 - REAL as i64);
            (hop.thread, within, <&str>::from(&hop.part), hop.spent.ns, seqnos(&hop.doing))
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
                slow.parts.iter().filter(|part| part.part == TimeUse::Running).collect();
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

/// The same sums, of the states of each ns.
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
        // Of 60, none is above: the seven that are shown stand in.
        let p99 = (count >= 100).then(|| lengths[rank - 1]);
        let least = p99.unwrap_or(lengths[count - 8]);
        let own: Vec<&JobTimes> = jobs.iter().filter(|job| job.2 - job.1 > least).collect();
        assert_eq!((tail.all, tail.p99, tail.count), (count as u64, p99, own.len() as u64));
        assert_eq!(tail.ns, own.iter().map(|it| it.2 - it.1).sum::<i64>());
        assert_eq!(tail.causes.iter().map(|it| it.ns).sum::<i64>(), tail.ns);
        assert!(tail.causes.is_sorted_by_key(|it| -it.ns));
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
