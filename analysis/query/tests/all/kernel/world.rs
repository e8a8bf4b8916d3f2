//! Generates programs whose state is known at each ns, and captures of the kernel's frames about them.

use std::collections::BTreeMap;

use ppt_capture::frame_dsl::schema::{FieldType, Schema};
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Lost, Process,
    Segment, Source,
};

use crate::random::Dice;

pub const REAL: u64 = 1_700_000_000_000_000_000;
/// The last one has no name: it is younger than the ppt that captured it.
pub const CALLS: [&str; 5] = ["read", "futex", "clock_nanosleep", "epoll_wait", "4"];
pub const PID: u32 = 9;

/// The buffer of the kernel's frames, with a few calls.
pub fn schema() -> Schema {
    let named = CALLS[..4].iter().enumerate();
    let calls: Vec<_> = named.map(|(n, name)| format!("{name} = {n}")).collect();
    let source = include_str!("../../../../../kernel/src/kernel.frame");
    let source = format!("{source}\nenum Call : u16 {{ {} }}\n", calls.join(", "));
    ppt_frame_dsl::compile(source.as_bytes(), "kernel.frame").unwrap().schema
}

/// A frame of the kernel: its kind, its time, and its other fields.
#[derive(Debug, Clone)]
pub struct KernelFrame {
    kind: &'static str,
    pub at: i64,
    /// The CPU whose ring held its record.
    ring: i64,
    fields: Vec<(&'static str, i64)>,
}

impl KernelFrame {
    pub fn new(
        kind: &'static str,
        at: i64,
        thread: i64,
        cpu: i64,
        own: &[(&'static str, i64)],
    ) -> KernelFrame {
        let fields = [("thread", thread), ("cpu", cpu)].into_iter().chain(own.iter().copied());
        KernelFrame { kind, at, ring: cpu, fields: fields.collect() }
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

/// The true state of a thread at a ns: state, call, and what ended the wait or the wait before.
pub type ExpectedState = (&'static str, Option<&'static str>, Option<i64>);

#[derive(Default)]
pub struct KernelWorld {
    pub frames: Vec<KernelFrame>,
    /// From its beginning, by thread.
    pub truth: BTreeMap<i64, (i64, Vec<ExpectedState>)>,
    /// Thread, begin, length, name.
    pub calls: Vec<(i64, i64, Option<i64>, &'static str)>,
    pub faults: Vec<(i64, i64)>,
    pub end: i64,
}

/// How long things take is many ns: no two frames have the same time by their meaning.
pub const LONG: u64 = 40;

impl KernelWorld {
    pub fn new(dice: &mut Dice, threads: i64) -> KernelWorld {
        let mut world = KernelWorld::default();
        for n in 0..threads {
            let begin = 1000 + dice.below(LONG * 10) as i64;
            world.thread(dice, 100 + n, begin);
        }
        world.frames.sort_by_key(|state| state.at);
        world.end = world.frames.last().map_or(0, |state| state.at);
        world.frames.push(KernelFrame::new("watch_end", world.end, 0, 0, &[]));
        world
    }

    pub fn thread(&mut self, dice: &mut Dice, tid: i64, begin: i64) {
        let (mut now, mut truth, mut call) = (begin, Vec::new(), None);
        let mut last = |dice: &mut Dice, now: &mut i64, of: ExpectedState| {
            let ns = 1 + dice.below(LONG) as i64;
            truth.extend((0..ns).map(|_| of));
            *now += ns;
        };
        let told = &mut self.frames;
        told.push(KernelFrame::new("thread_start", now, tid, 0, &[("parent", 1)]));
        last(dice, &mut now, ("runnable", None, Some(1)));
        for _ in 0..5 + dice.below(20) {
            let cpu = dice.below(2) as i64;
            told.push(KernelFrame::new("switch_in", now, tid, cpu, &[]));
            last(dice, &mut now, ("running", None, None));
            for _ in 0..dice.below(4) {
                match call.take() {
                    Some(call) => {
                        let own = [("call", call as i64), ("result", now)];
                        told.push(KernelFrame::new("syscall_exit", now, tid, cpu, &own));
                        self.calls.last_mut().unwrap().2 = Some(now);
                    }
                    None if dice.chance(3) => {
                        let own = [("kind", 0), ("address", 4096)];
                        told.push(KernelFrame::new("page_fault", now, tid, cpu, &own));
                        self.faults.push((tid, now));
                    }
                    None => {
                        let entered = dice.below(4) as usize;
                        call = Some(entered);
                        let own = [("call", entered as i64)];
                        told.push(KernelFrame::new("syscall_enter", now, tid, cpu, &own));
                        self.calls.push((tid, now, None, CALLS[entered]));
                    }
                }
                last(dice, &mut now, ("running", None, None));
            }
            let preempted = dice.chance(2);
            let state = i64::from(!preempted);
            let next = [("state", state), ("next", 77)];
            told.push(KernelFrame::new("successor", now, tid, cpu, &next));
            told.push(KernelFrame::new(
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
            let mut wakeup = KernelFrame::new("wakeup", now, tid, dice.below(2) as i64, &own);
            // The waker may be on any CPU.
            wakeup.ring = dice.below(2) as i64;
            told.push(wakeup);
            last(dice, &mut now, ("runnable", None, Some(waker)));
        }
        told.push(KernelFrame::new("switch_in", now, tid, 0, &[]));
        last(dice, &mut now, ("running", None, None));
        told.push(KernelFrame::new("thread_end", now, tid, 0, &[]));
        self.truth.insert(tid, (begin, truth));
    }

    /// The kernel loses records of a CPU, and reports this later.
    pub fn kernel_loses(&mut self, dice: &mut Dice) {
        let (from, until) = self.sometime(dice);
        let cpu = dice.below(2) as i64;
        let before = self.frames.len();
        let last_seen = self
            .frames
            .iter()
            .filter(|state| state.ring == cpu && state.at <= from)
            .map(|state| state.at);
        let since = last_seen.max().unwrap_or(0);
        let is_lost =
            |state: &KernelFrame| state.ring == cpu && from < state.at && state.at < until;
        self.frames.retain(|state| state.kind == "watch_end" || !is_lost(state));
        let count = (before - self.frames.len()) as i64;
        if count == 0 {
            return;
        }
        // The loss is reported when the reader has finished what it took.
        let at = until + dice.below(LONG) as i64;
        let place = self.frames.partition_point(|state| state.at <= at);
        let at = self.frames.get(place.wrapping_sub(1)).map_or(at, |state| state.at.max(at));
        let at = self.frames.get(place).map_or(at, |state| state.at.min(at));
        let own = [("since", since), ("count", count)];
        // It is in no ring.
        self.frames
            .insert(place, KernelFrame { ring: -1, ..KernelFrame::new("lost", at, 0, cpu, &own) });
    }

    fn sometime(&self, dice: &mut Dice) -> (i64, i64) {
        let from = 1000 + dice.below((self.end - 1000) as u64) as i64;
        (from, from + 1 + dice.below(LONG * 8) as i64)
    }

    /// The frames as captures: `rotated` of them, some of them `left_out`; `drained` frames in a row
    /// are missing now and then.
    pub fn captures(
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
        for (n, told) in self.frames.iter().enumerate() {
            if n > 0 && n.is_multiple_of((self.frames.len() / files).max(1)) && all.len() < files {
                all.push(Vec::new());
            }
            if overruns && skip == 0 && dice.chance(60) {
                skip = 1 + dice.below(30);
            }
            // The frame that ends the watch is there, so nothing after it counts as missing.
            if skip > 0 && told.kind != "watch_end" {
                skip -= 1;
                lost.overrun += 1;
                seq += 1;
                if told.kind == "lost" {
                    // Its sequence numbers are missing, too.
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

pub fn capture(id: u8, kind: &str, schema: &Schema, chunks: &[(FramesHead, Vec<u8>)]) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [id; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    writer
        .clock(&[ClockReading::exact(ClockId::Monotonic, 1, ClockId::Realtime, REAL + 1)])
        .unwrap();
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
    let end = End::new(EndReason::Stopped, REAL + 99, 99);
    writer.end(&end).unwrap()
}
