//! What a faster part is worth, from frames to a prediction: a server whose queue is known to the ns.

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    CaptureWriter, Cause, ClockId, ClockReading, End, EndReason, FileHeader, FramesHead, Gap,
    Process, Segment, Source,
};
use ppt_query::Engine;
use ppt_query::whatif::retime::{
    BlockBootstrap, Metric, MetricUnavailable, RetimeModel, RetimeRefusal, SpeedWorth, Speeds,
};

use crate::random::Dice;
use crate::support::{Files, number, runtime, with_pushdown};

/// How many frames a chunk has.
const CHUNK: usize = 100;

const MONO: u64 = 5_000_000_000_000;
const REAL: u64 = 1_700_000_000_000_000_000;
/// From put to take by an idle worker, from one job to the next, and from take to work.
const WAKE: u64 = 50;
const NEXT: u64 = 20;
const START: u64 = 10;

/// When jobs are sent, and how long each takes.
fn jobs(dice: &mut Dice, count: u64) -> Vec<(u64, u64)> {
    let mut now = 1000;
    let mut job = |_| {
        now += 1 + dice.below(2000);
        (now, 100 + dice.below(1600))
    };
    (0..count).map(&mut job).collect()
}

/// When each job is taken, and when it is done.
fn served(jobs: &[(u64, u64)], times: f64) -> Vec<(u64, u64)> {
    let mut free = 0;
    let serve = |&(sent, service): &(u64, u64)| {
        let taken = if free == 0 { sent + WAKE } else { (sent + WAKE).max(free + NEXT) };
        free = taken + START + (service as f64 / times).round() as u64;
        (taken, free)
    };
    jobs.iter().map(serve).collect()
}

struct TestRing<'a> {
    schema: &'a Schema,
    frames: Vec<(u16, u64, Vec<u8>)>,
}

impl TestRing<'_> {
    fn write(&mut self, kind: &str, at: u64, values: &[(&str, u64)]) {
        let id = self.schema.frames.iter().position(|frame| frame.name == kind).unwrap();
        let mut bytes = vec![0; self.schema.stride as usize];
        bytes[..8].copy_from_slice(&(self.frames.len() as u64 + 1).to_le_bytes());
        bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
        for &(name, value) in values {
            let mut fields = self.schema.frames[id].fields.iter();
            let field = fields.find(|field| field.name == name).unwrap();
            let len = field.bytes(self.schema) as usize;
            bytes[field.offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        self.frames.push((id as u16, at, bytes));
    }

    /// A point; stamps of the monotonic clock have the highest bit.
    fn point(&mut self, kind: &str, at: u64, id: u64) {
        self.write(kind, MONO + at, &[("id", id), ("at", (MONO + at) | 1 << 63)]);
    }
}

/// How to capture a shop.
#[derive(Debug, Clone)]
struct Shop {
    /// The frames of the server that are lost, in their order.
    lost: Vec<std::ops::Range<usize>>,
    /// Whether each job has an identity of its own.
    named: bool,
    /// Whether the shop was captured from its start.
    from_start: bool,
    /// The edge line of the capture.
    edge: &'static str,
}

const FROM_START: Shop =
    Shop { lost: Vec::new(), named: true, from_start: true, edge: "edge sent -> taken fifo;" };

/// The frames that a client and a server write.
fn capture(jobs: &[(u64, u64)], shop: Shop) -> Vec<u8> {
    let Shop { lost, named, from_start, edge } = shop;
    let text = "emit C; buffer shop; option time ns monotonic;\n\
                frame sent @point { hash id @out(job) @raw; }\n\
                frame taken @point { hash id @in(job) @raw; }\n\
                frame job { interval time handle @at; }\n\
                EDGE"
        .replace("EDGE", edge);
    let schema = ppt_frame_dsl::compile(text.as_bytes(), "shop.frame").unwrap().schema;
    let mut rings = [0, 1].map(|_| TestRing { schema: &schema, frames: Vec::new() });
    let [client, server] = &mut rings;
    for ((id, &(sent, _)), (taken, done)) in (1..).zip(jobs).zip(served(jobs, 1.0)) {
        let id = if named { id } else { 1 };
        client.point("sent", sent, id);
        server.point("taken", taken, id);
        let from = MONO + taken + START;
        let values = [("handle_start", from), ("handle_end", MONO + done)];
        server.write("job", MONO + done, &values);
    }
    let header = FileHeader {
        capture_id: [1; 16],
        host: "host".to_owned(),
        boot_id: "boot".to_owned(),
        created_realtime_ns: REAL,
        created_mono_ns: MONO,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    let mono = ClockReading::exact(ClockId::Monotonic, MONO, ClockId::Realtime, REAL);
    writer.clock(&[mono]).unwrap();
    let stride = schema.stride;
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: "shop".to_owned(),
        process: Process {
            pid: 9,
            start_time: 7,
            exe: "/bin/shop".to_owned(),
            ..Process::default()
        },
        segments: vec![Segment { nonce: 7, rings: 2, slots: 16, stride }],
        clock: "tick".to_owned(),
        from_start,
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let mut end = MONO;
    for (ring, frames) in (0..).zip(&rings) {
        let lost = if ring == 1 { &lost[..] } else { &[] };
        let mut parts = Vec::new();
        let mut next = 0;
        let all = frames.frames.len();
        for lost in lost.iter().cloned().chain(std::iter::once(all..all)) {
            parts.push((next, &frames.frames[next..lost.start]));
            next = lost.end;
            if !lost.is_empty() {
                let (first_seq, count) = (lost.start as u64 + 1, lost.len() as u64);
                let gap =
                    Gap { source: 0, nonce: 7, ring, first_seq, count, cause: Cause::Overrun };
                writer.gap(&gap).unwrap();
            }
        }
        let chunks = parts
            .iter()
            .flat_map(|&(first, part)| (first..).step_by(CHUNK).zip(part.chunks(CHUNK)));
        for (first, part) in chunks {
            let Some((_, last, _)) = part.last() else { continue };
            end = end.max(*last);
            let head = FramesHead {
                source: 0,
                nonce: 7,
                ring,
                tid: 101 + ring,
                first_seq: first as u64 + 1,
                count: part.len() as u32,
                stride,
                drained_mono_ns: *last,
                t_min: part[0].1 | 1 << 63,
                t_max: *last | 1 << 63,
                frame_mask: part.iter().fold(0, |mask, entry| mask | 1 << entry.0),
                ..FramesHead::default()
            };
            let payload: Vec<u8> = part.iter().flat_map(|entry| entry.2.iter().copied()).collect();
            writer.frames(&head, &payload).unwrap();
        }
    }
    let end = End::new(EndReason::Stopped, REAL + (end - MONO), end + 1);
    writer.end(&end).unwrap()
}

fn ask(engine: &Engine, metric: &str, speed: &str) -> Result<SpeedWorth, RetimeRefusal> {
    let run = runtime().block_on(engine.load_run()).unwrap();
    let metric: Metric = metric.parse().unwrap();
    run.evidence(&metric).judge()?;
    let model = RetimeModel::new(run.recording)?;
    let speeds = Speeds::new(vec![speed.parse().unwrap()]).unwrap();
    let speeds = model.speeds(&speeds).unwrap();
    let asked = model.ask(&metric).map_err(|error| match error {
        MetricUnavailable::Refused(refusal) => refusal,
        other => panic!("{other}"),
    })?;
    model.answer(&asked, &speeds, BlockBootstrap::default())
}

#[test]
fn a_faster_server_is_predicted_to_the_ns() {
    let jobs = jobs(&mut Dice::new(1), 3000);
    let files = Files::new(&[capture(&jobs, FROM_START)]);
    let engine = files.engine(&with_pushdown());
    let mean = |of: &dyn Fn(u64, u64, u64) -> u64, times: f64| {
        let served = served(&jobs, times);
        let all = jobs.iter().zip(served).map(|(job, (taken, done))| of(job.0, taken, done));
        all.sum::<u64>() as f64 / jobs.len() as f64
    };
    for times in [1.0, 1.5, 2.0, 8.0] {
        let speed = format!("handle={times}x");
        let handle = ask(&engine, "job.handle", &speed).unwrap();
        assert_eq!(handle.was.mean, mean(&|_, taken, done| done - taken - START, 1.0));
        assert_eq!(handle.predicted.mean, mean(&|_, taken, done| done - taken - START, times));
        let waits = ask(&engine, "path(sent, taken)", &speed).unwrap();
        assert_eq!(waits.was.mean, mean(&|sent, taken, _| taken - sent, 1.0));
        assert_eq!(waits.predicted.mean, mean(&|sent, taken, _| taken - sent, times));
    }
    let waits = ask(&engine, "path(shop.sent, taken)", "handle=2x").unwrap();
    assert!(waits.critical_share > 0.5 && waits.gain() > 0.5, "{waits:?}");
}

/// Predictions for a run with missing frames, and for the same run with all frames.
fn beside(jobs: &[(u64, u64)], shop: Shop, metric: &str) -> (SpeedWorth, SpeedWorth) {
    let whole = Shop { lost: Vec::new(), ..shop.clone() };
    let [lossy, whole] = [shop, whole].map(|shop| {
        let files = Files::new(&[capture(jobs, shop)]);
        ask(&files.engine(&with_pushdown()), metric, "handle=2x").unwrap()
    });
    assert!(lossy.missing_share > 0.0 && lossy.was.n < whole.was.n, "{lossy:?}");
    assert_eq!(whole.missing_share, 0.0);
    (lossy, whole)
}

#[test]
fn jobs_with_names_are_known_behind_what_is_lost() {
    for seed in 0..2 {
        let mut dice = Dice::new(seed);
        let jobs = jobs(&mut dice, 3000);
        let burst = |at: u64| {
            let from = (at * 1500 + dice.below(1000)) as usize;
            from..from + 1 + dice.below(100) as usize
        };
        let lost: Vec<_> = (0..4).map(burst).collect();
        for metric in ["path(sent, taken)", "job.handle", "rate(job.handle)"] {
            let shop = Shop { lost: lost.clone(), ..FROM_START };
            let (lossy, whole) = beside(&jobs, shop, metric);
            let (low, high) = lossy.mean_interval.unwrap();
            assert!(low <= whole.predicted.mean && whole.predicted.mean <= high, "{lossy:?}");
        }
    }
}

#[test]
fn equal_jobs_are_known_until_some_are_lost() {
    let jobs = jobs(&mut Dice::new(2), 1000);
    let equal = |lost| Shop { lost: vec![lost], named: false, ..FROM_START };
    // Two frames of the server belong to each job: the first 80 % are known.
    let (lossy, whole) = beside(&jobs, equal(1600..1620), "path(sent, taken)");
    assert!((0.15..0.25).contains(&lossy.missing_share), "{lossy:?}");
    let (low, high) = lossy.mean_interval.unwrap();
    assert!(low <= whole.predicted.mean && whole.predicted.mean <= high, "{lossy:?}");
    let files = Files::new(&[capture(&jobs, equal(600..620))]);
    let refused = ask(&files.engine(&with_pushdown()), "path(sent, taken)", "handle=2x");
    let share = match refused {
        Err(RetimeRefusal::TooMuchMissing { share, .. }) => share,
        other => panic!("{other:?}"),
    };
    assert!((0.6..0.8).contains(&share), "{share}");
}

#[test]
fn a_pause_brings_equal_jobs_back_into_step() {
    let mut pause = 0;
    let mut jobs = jobs(&mut Dice::new(4), 2000);
    for (n, job) in jobs.iter_mut().enumerate() {
        // No job waits for 60 µs, and sometimes no job comes for longer than that.
        pause += if n % 50 == 0 { 400_000 } else { 0 };
        job.0 += pause;
    }
    let edge = "edge sent -> taken within 200us fifo;";
    let lost = vec![600..620, 2000..2050];
    let shop = Shop { lost, named: false, edge, ..FROM_START };
    let (lossy, whole) = beside(&jobs, shop, "path(sent, taken)");
    assert!(lossy.missing_share < 0.15, "{lossy:?}");
    let (low, high) = lossy.mean_interval.unwrap();
    assert!(low <= whole.predicted.mean && whole.predicted.mean <= high, "{lossy:?}");
}

#[test]
fn a_point_that_never_was_is_missing() {
    let files = Files::new(&[capture(&jobs(&mut Dice::new(2), 300), FROM_START)]);
    let refused = ask(&files.engine(&with_pushdown()), "path(nowhere, sent)", "handle=2x");
    assert_eq!(refused, Err(RetimeRefusal::Missing { point: "nowhere".to_owned() }));
}

#[test]
fn a_queue_that_was_there_before_the_capture_is_uncertain() {
    let jobs = jobs(&mut Dice::new(3), 300);
    let attached = Shop { from_start: false, ..FROM_START };
    let certainties = |shop: Shop| {
        let files = Files::new(&[capture(&jobs, shop)]);
        let count = |certainty: &str| {
            let of = format!("SELECT count(*) FROM edges WHERE certainty = '{certainty}'");
            number(&files.engine(&with_pushdown()), &of)
        };
        (count("certain"), count("possible"))
    };
    let all = jobs.len() as i64;
    assert_eq!(certainties(FROM_START), (all, 0));
    assert_eq!(certainties(attached.clone()), (0, all));
    // Nobody waits longer than that: after so much time in the capture, each queue is empty.
    let within = "edge sent -> taken within 5us fifo;";
    let (certain, possible) = certainties(Shop { edge: within, ..attached.clone() });
    assert!(certain > 0 && possible > 0, "{certain} {possible}");
    let files = Files::new(&[capture(&jobs, attached)]);
    let refused = ask(&files.engine(&with_pushdown()), "job.handle", "handle=2x").unwrap_err();
    assert!(matches!(refused, RetimeRefusal::Ambiguous { .. }), "{refused:?}");
}
