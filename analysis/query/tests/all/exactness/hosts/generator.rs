//! Captures of hosts whose clocks differ, the readings between them, and when everything really was.

use std::fmt::Write;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    CaptureWriter, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Process, Segment,
    Source,
};

use crate::random::Dice;

const SECOND: u64 = 1_000_000_000;
/// The clocks of the first host at the beginning.
pub const MONO: u64 = 5_000 * SECOND;
pub const REAL: u64 = 1_700_000_000 * SECOND;
const STRIDE: usize = 40;
/// How long the world lasts, in seconds.
const LONG: u64 = 12;

/// A host, and how its clocks differ from true time.
#[derive(Debug, Clone, Copy)]
struct GeneratedHost {
    /// The nominal frequency of its counter, Hz.
    hz: u64,
    /// By how much its counter is faster than that.
    ppm: f64,
    /// Its counter at the beginning.
    ticks: u64,
    mono: u64,
    real: u64,
}

impl GeneratedHost {
    /// The counter at a true time, ns since the beginning.
    fn tick(&self, t: u64) -> u64 {
        let ticks = t as f64 * (self.hz as f64 / 1e9) * (1.0 + self.ppm * 1e-6);
        self.ticks + ticks.round() as u64
    }
}

pub struct HostsWorld {
    pub captures: Vec<Vec<u8>>,
    /// The text of a `.sync` file.
    pub readings: String,
    /// How many messages went from host to host, and as many within each.
    pub messages: u64,
}

/// The frames of a host: true time, kind, identity.
type Event = (u64, u16, u64);

const KINDS: [(&str, &str); 4] = [("sent", "out"), ("got", "in"), ("put", "out"), ("took", "in")];

fn schema() -> Schema {
    let frames = KINDS.map(|(name, side)| {
        let of = if name == "sent" || name == "got" { "net" } else { "queue" };
        format!(
            r#"{{"name":"{name}","kind":"point","size":40,"fields":[
                {{"name":"id","type":"u64","offset":16,"hash":"xxh3","{side}":"{of}"}},
                {{"name":"truth","type":"u64","offset":24}},
                {{"name":"at","type":"tsc","offset":32,"at":true,"stamp":true}}]}}"#
        )
    });
    let text = format!(
        r#"{{"v":1,"buffer":"flow","slots":16,"stride":40,"frames":[{}],"enums":[],"edges":[]}}"#,
        frames.join(",")
    );
    Schema::from_json(text.as_bytes()).unwrap()
}

fn hosts(dice: &mut Dice, count: usize) -> Vec<GeneratedHost> {
    let first =
        GeneratedHost { hz: 2_000_000_000, ppm: 0.0, ticks: 77 * SECOND, mono: MONO, real: REAL };
    let more = (1..count).map(|_| GeneratedHost {
        hz: 1_000_000_000 + dice.below(2 * SECOND),
        ppm: dice.below(401) as f64 - 200.0,
        ticks: SECOND + dice.below(1 << 50),
        mono: SECOND + dice.below(1 << 50),
        real: REAL + dice.below(20 * SECOND) - 10 * SECOND,
    });
    [first].into_iter().chain(more).collect()
}

/// How many messages go through a world: `usual`, or PPT_MESSAGES.
pub fn messages(usual: u64) -> u64 {
    let more = std::env::var("PPT_MESSAGES").ok().map(|text| text.parse().expect("a number"));
    more.unwrap_or(usual)
}

/// A world of some hosts. `delay`: what a message takes at least; some take ten times as long.
pub fn world(dice: &mut Dice, count: usize, messages: u64, delay: u64) -> HostsWorld {
    let hosts = hosts(dice, count);
    let mut events: Vec<Vec<Event>> = vec![Vec::new(); count];
    for n in 0..messages {
        let at = SECOND + dice.below((LONG - 2) * SECOND);
        let from = dice.below(count as u64) as usize;
        let to = (from + 1 + dice.below(count as u64 - 1) as usize) % count;
        let arrives = at + delay + dice.below(9 * delay);
        let id = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        events[from].push((at, 0, id));
        events[to].push((arrives, 1, id));
        // And messages within the host.
        events[from].push((at + 5, 2, id));
        events[from].push((at + 6 + dice.below(50), 3, id));
    }
    let captures = (0..count).map(|number| capture(number, &hosts[number], &mut events[number]));
    let captures = captures.collect();
    HostsWorld { captures, readings: readings(dice, &hosts, delay), messages }
}

fn readings(dice: &mut Dice, hosts: &[GeneratedHost], delay: u64) -> String {
    let mut text = String::from("ppt sync 1\n");
    for (number, host) in hosts.iter().enumerate() {
        writeln!(text, "host\t{number}\th{number}\tboot{number}\t{}", host.hz).unwrap();
    }
    let bracket = |text: &mut String, number: usize, t: u64| {
        let host = &hosts[number];
        let (before, at, after) = (host.tick(t), t + 40, host.tick(t + 80));
        writeln!(text, "clock\t{number}\ttick\trealtime\t{before}\t{}\t{after}", host.real + at)
            .unwrap();
    };
    let mono = |text: &mut String, number: usize, t: u64| {
        let host = &hosts[number];
        let (before, at, after) = (host.tick(t), t + 40, host.tick(t + 80));
        writeln!(text, "clock\t{number}\ttick\tmonotonic\t{before}\t{}\t{after}", host.mono + at)
            .unwrap();
    };
    for turn in 0..LONG * 20 {
        let t = turn * SECOND / 20 + 1_000_000;
        for number in 1..hosts.len() {
            let (a, b) = (&hosts[0], &hosts[number]);
            let mut hop = || delay + dice.below(3) * dice.below(9 * delay);
            let (t1, t2) = (t + 10_000, t + 10_000 + hop());
            let (t3, t4) = (t2 + 30_000, t2 + 30_000 + hop());
            bracket(&mut text, 0, t);
            bracket(&mut text, number, t2 + 5_000);
            writeln!(
                text,
                "probe\t0\t{number}\t{}\t{}\t{}\t{}\t{}\t{}",
                a.tick(t + 9_000),
                b.tick(t2 + 4_000),
                a.real + t1,
                b.real + t2,
                b.real + t3,
                a.real + t4
            )
            .unwrap();
            bracket(&mut text, number, t3 + 2_000);
            bracket(&mut text, 0, t4 + 3_000);
            mono(&mut text, 0, t4 + 4_000);
        }
    }
    text
}

fn capture(number: usize, host: &GeneratedHost, events: &mut [Event]) -> Vec<u8> {
    let header = FileHeader {
        capture_id: [number as u8 + 1; 16],
        host: format!("h{number}"),
        boot_id: format!("boot{number}"),
        created_realtime_ns: host.real,
        created_mono_ns: host.mono,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let real = ClockReading::exact(ClockId::Monotonic, host.mono, ClockId::Realtime, host.real);
    writer.clock(&[real]).unwrap();
    let tick = |t: u64| ClockReading {
        a: ClockId::Tick,
        a_before: host.tick(t),
        b: ClockId::Monotonic,
        b_value: host.mono + t + 30,
        a_after: host.tick(t + 60),
        distrusted: false,
    };
    for second in 0..=LONG {
        writer.clock(&[tick(second * SECOND)]).unwrap();
    }
    let (schema, nonce) = (schema(), 7_000 + number as u64);
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: "flow".to_owned(),
        process: Process { pid: 40, start_time: 7, ..Process::default() },
        segments: vec![Segment { nonce, rings: 4, slots: 16, stride: STRIDE as u32 }],
        clock: "tick".to_owned(),
        tick_hz: Some(host.hz),
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    events.sort_unstable();
    let mut seq = 1;
    for some in events.chunks(256) {
        let mut payload = Vec::new();
        for (&(t, kind, id), seq) in some.iter().zip(seq..) {
            for word in [seq, u64::from(kind), id, REAL + t, host.tick(t)] {
                payload.extend(u64::to_le_bytes(word));
            }
        }
        let (first, last) = (some[0].0, some[some.len() - 1].0);
        let head = FramesHead {
            source: 0,
            nonce,
            ring: 0,
            tid: 100,
            first_seq: seq,
            count: some.len() as u32,
            stride: STRIDE as u32,
            drained_mono_ns: host.mono + last,
            t_min: host.tick(first),
            t_max: host.tick(last),
            frame_mask: some.iter().fold(0, |mask, entry| mask | 1 << entry.1),
            ..FramesHead::default()
        };
        writer.frames(&head, &payload).unwrap();
        seq += some.len() as u64;
    }
    let end = End::new(EndReason::Stopped, host.real + LONG * SECOND, host.mono + LONG * SECOND);
    writer.end(&end).unwrap()
}
