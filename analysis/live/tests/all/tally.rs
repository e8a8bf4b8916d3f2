//! Tallies of generated captures contain the known values.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{
    Capture, CaptureItem, CaptureWriter, Cause, CellRows, CellsHead, Chunk, ClockId, ClockReading,
    ClockTable, Dropped, End, EndReason, FileHeader, FramesHead, Gap, Lost, Process, Segment,
    Source, ThreadName, ThreadNames,
};
use ppt_live::{
    CapturePhase, ClockBound, LiveReader, MeasuredValues, MetricPicture, Picture, Tally, TallyRange,
};

/// Two kinds of frames: `job` with an interval, a number, an enum and a text; `tick` with a number.
const SCHEMA: &str = r#"{"v":1,"buffer":"dve","slots":16,"stride":64,"enums":[
    {"name":"Kind","type":"u8","values":[["LOGIN",1],["UPDATE",2]]}],"frames":[
    {"name":"job","kind":"plain","size":64,"fields":[
    {"name":"start","type":"ns","clock":"realtime","interval":{"name":"handle","edge":"start"},"offset":16},
    {"name":"end","type":"ns","clock":"realtime","interval":{"name":"handle","edge":"end"},"at":true,"offset":24},
    {"name":"who","type":"i32","offset":32},
    {"name":"kind","type":"enum","enum":"Kind","offset":36},
    {"name":"name","type":"char","len":16,"offset":40}]},
    {"name":"tick","kind":"plain","size":64,"fields":[{"name":"load","type":"f64","offset":16}]}]}"#;

const STRIDE: usize = 64;
const SECOND: u64 = 1_000_000_000;

/// Frame number `seq`: each fifth one is a tick.
fn frame(seq: u64) -> [u8; STRIDE] {
    let mut bytes = [0; STRIDE];
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    let is_tick = seq.is_multiple_of(5);
    bytes[8..10].copy_from_slice(&u16::from(is_tick).to_le_bytes());
    if is_tick {
        bytes[16..24].copy_from_slice(&(seq as f64 / 2.0).to_le_bytes());
        return bytes;
    }
    bytes[16..24].copy_from_slice(&(SECOND + seq).to_le_bytes());
    bytes[24..32].copy_from_slice(&(SECOND + seq + 1000 * (seq % 100)).to_le_bytes());
    bytes[32..36].copy_from_slice(&(seq as i32 % 7 - 3).to_le_bytes());
    bytes[36] = if seq.is_multiple_of(4) { 1 } else { 2 };
    bytes[40..45].copy_from_slice(b"a\x1b[1m");
    bytes
}

fn source(pid: u32) -> Source {
    let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
    Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        process: Process { pid, comm: format!("server{pid}"), ..Process::default() },
        segments: vec![Segment { nonce: 7, rings: 2, slots: 16, stride: STRIDE as u32 }],
        ..Source::default()
    }
}

fn head(ring: u32, first_seq: u64, count: u32, drained_mono_ns: u64) -> FramesHead {
    let (stride, nonce, tid) = (STRIDE as u32, 7, 100 + ring);
    FramesHead {
        nonce,
        ring,
        tid,
        first_seq,
        count,
        stride,
        drained_mono_ns,
        ..FramesHead::default()
    }
}

fn chunk(writer: &mut CaptureWriter<impl Write>, head: &FramesHead) {
    let numbers = head.first_seq..head.first_seq + u64::from(head.count);
    let bytes: Vec<u8> = numbers.flat_map(frame).collect();
    writer.frames(head, &bytes).unwrap();
}

fn end(writer: &mut CaptureWriter<impl Write>) {
    let dropped = Dropped { nested: 4, ..Dropped::default() };
    let end = End {
        reason: EndReason::Stopped,
        message: String::new(),
        rings: Vec::new(),
        drops: vec![(0, dropped)],
        realtime_ns: 9,
        mono_ns: 9,
    };
    writer.finish(&end).unwrap();
}

/// Ten seconds of 1,000 frames each on one ring, and losses of every type.
fn capture(path: &Path) {
    let file = File::create(path).unwrap();
    let header = FileHeader { capture_id: [3; 16], host: "h".into(), ..FileHeader::default() };
    let mut writer = CaptureWriter::create(file, &header).unwrap();
    writer.source(0, &source(5)).unwrap();
    let reading = |b, b_value| ClockReading {
        a: ClockId::Monotonic,
        a_before: 100 * SECOND,
        b,
        b_value,
        a_after: 100 * SECOND,
        distrusted: false,
    };
    writer.clock(&[reading(ClockId::Realtime, 500 * SECOND)]).unwrap();
    for second in 0..10 {
        let mut head = head(0, 1 + second * 1000, 1000, (100 + second) * SECOND);
        if second == 5 {
            head.first_seq += 10;
            head.count -= 10;
            head.lost_before = Lost { overrun: 7, disk: 3, corrupt: 0 };
        }
        chunk(&mut writer, &head);
    }
    chunk(&mut writer, &head(1, 1, 20, 109 * SECOND));
    let gap =
        |first_seq, count, cause| Gap { source: 0, nonce: 7, ring: 1, first_seq, count, cause };
    writer.gap(&gap(21, 5, Cause::Corrupt)).unwrap();
    writer.gap(&gap(26, 100, Cause::Unattended)).unwrap();
    end(&mut writer);
}

fn field<'a>(picture: &'a Picture, kind: &str, name: &str) -> &'a ppt_live::FieldPicture {
    let kind = picture.kinds.iter().find(|picture| picture.name == kind).unwrap();
    kind.fields.iter().find(|field| field.name == name).unwrap()
}

#[test]
fn all_of_a_capture_is_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    capture(&path);
    let tally = Tally::from_capture(&path).unwrap();
    let picture = tally.picture(tally.last());
    assert_eq!((picture.captured, picture.damages, picture.host.as_str()), (10_010, 0, "h"));
    assert_eq!(
        picture.missing,
        [(Cause::Overrun, 7), (Cause::Disk, 3), (Cause::Corrupt, 5), (Cause::Nested, 4)]
    );
    assert_eq!((picture.missing_in_all(), picture.unattended), (19, 100));
    assert_eq!(picture.processes, [(5, "server5".to_owned())]);
    // Every frame, type and thread appears once.
    let numbers = (1..=10_000_u64).filter(|number| !(5001..=5010).contains(number)).chain(1..=20);
    let jobs: Vec<u64> = numbers.clone().filter(|number| number % 5 != 0).collect();
    let kinds: Vec<_> = picture.kinds.iter().map(|kind| (kind.name.as_str(), kind.count)).collect();
    assert_eq!(kinds, [("job", jobs.len() as u64), ("tick", 10_010 - jobs.len() as u64)]);
    let mut threads: Vec<_> =
        picture.threads.iter().map(|thread| (thread.tid, thread.count, thread.lost)).collect();
    threads.sort_unstable();
    assert_eq!(threads, [(100, 9990, 10), (101, 20, 5)]);

    let mut lengths: Vec<u64> = jobs.iter().map(|job| 1000 * (job % 100)).collect();
    lengths.sort_unstable();
    let handle = field(&picture, "job", "handle");
    assert!(handle.is_interval && handle.unit == "ns");
    let spread = handle.numbers.unwrap();
    assert_eq!((spread.count, spread.max), (jobs.len() as u64, 99_000.0));
    for (share, value) in [(0.5, spread.p50), (0.99, spread.p99)] {
        let exact = lengths[((lengths.len() - 1) as f64 * share) as usize] as f64;
        assert!((value - exact).abs() <= exact / 500.0 + 1000.0, "{share}: {value} for {exact}");
    }
    let sum: u64 = lengths.iter().sum();
    let busy = sum as f64 / (9 * SECOND) as f64;
    assert!((spread.busy.unwrap() / busy - 1.0).abs() < 1e-9);

    let words = field(&picture, "job", "kind").words.as_ref().unwrap();
    let share = |word: &str| words.shares.iter().find(|share| share.0 == word).unwrap().1;
    assert!((share("UPDATE") - 0.75).abs() < 0.05 && (share("LOGIN") - 0.25).abs() < 0.05);
    let name = field(&picture, "job", "name").words.as_ref().unwrap();
    assert_eq!(
        name.shares,
        [("a\x1b[1m".to_owned(), 1.0)],
        "as it is: whoever shows it escapes it"
    );
    assert_eq!(field(&picture, "tick", "load").numbers.unwrap().max, 5000.0);
    assert!(field(&picture, "job", "who").numbers.is_some());
    assert!(
        !picture.kinds[0].fields.iter().any(|field| field.name == "start"),
        "points say little"
    );
}

#[test]
fn the_latest_frames_are_a_capture_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    capture(&path);
    let mut tally = Tally::new(TallyRange::Latest, 3000 * STRIDE);
    let mut capture = Capture::open(&path).unwrap();
    tally.begin(capture.header());
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(chunk) = item {
            tally.add_chunk(&chunk);
        }
    }
    let latest = tally.latest();
    let mut bytes = Vec::new();
    latest.write(&mut bytes, "ppt 1").unwrap();
    assert!(bytes.len() < 3100 * STRIDE + 8192);
    let mut again = Capture::from_reader(std::io::Cursor::new(bytes)).unwrap();
    assert_ne!(again.header().unwrap().capture_id, [3; 16]);
    assert_eq!(again.header().unwrap().host, "h");
    let mut seqs = Vec::new();
    while let Some(item) = again.read().unwrap() {
        match item {
            CaptureItem::Chunk(Chunk::Frames(frames)) => {
                seqs.extend(frames.iter().map(|frame| frame.0));
            }
            CaptureItem::Chunk(_) => {}
            CaptureItem::Damage(damage) => panic!("{damage}"),
        }
    }
    assert_eq!(seqs.len() as u64, latest.frames());
    assert_eq!(seqs, (8001..=10_000).chain(1..=20).collect::<Vec<_>>());
    assert!(again.finish().end.is_some());
}

#[test]
fn rates_and_values_are_of_what_came_lately() {
    let mut tally = Tally::new(TallyRange::Latest, 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    capture(&path);
    let mut capture = Capture::open(&path).unwrap();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(chunk) = item {
            tally.add_chunk(&chunk);
        }
    }
    let picture = tally.picture(109 * SECOND + SECOND / 2);
    assert!((picture.rate - 2020.0 / 1.5).abs() < 1.0, "{}", picture.rate);
    let soon = tally.picture(111 * SECOND);
    assert_eq!(field(&soon, "job", "handle").numbers.unwrap().count, 4 * 998 + 16);
    assert_eq!(picture.history.len(), 60);
    assert_eq!(picture.history[51..], [1000, 1000, 1000, 1000, 1000, 990, 1000, 1000, 1000]);
    let later = tally.picture(200 * SECOND);
    assert_eq!((later.rate, later.captured), (0.0, 10_010));
    assert_eq!(field(&later, "job", "handle").numbers, None, "nothing came lately");
}

#[test]
fn a_capture_is_watched_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    assert!(LiveReader::start(&path, 0).is_err(), "there is none");
    fs::write(&path, "no capture, and long enough to tell").unwrap();
    assert!(LiveReader::start(&path, 0).is_err());
    assert!(LiveReader::start(folder.path(), 0).is_err());

    let file = File::create(&path).unwrap();
    let watch = LiveReader::start(&path, 1 << 20).unwrap();
    assert_eq!(watch.look().1, CapturePhase::Waiting, "it is empty");
    let mut writer = CaptureWriter::create(file, &FileHeader::default()).unwrap();
    writer.source(0, &source(5)).unwrap();
    let wait = |what: &dyn Fn(&(Picture, CapturePhase)) -> bool| {
        let began = Instant::now();
        while !what(&watch.look()) {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", watch.look());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for part in 0..3 {
        chunk(&mut writer, &head(0, 1 + part * 100, 100, (1 + part) * SECOND));
        wait(&|entry| entry.0.captured == (part + 1) * 100);
        assert_eq!(watch.look().1, CapturePhase::Running);
    }
    end(&mut writer);
    wait(&|entry| entry.1 == CapturePhase::Ended("stopped".into()));
    assert_eq!(watch.look().0.missing, [(Cause::Nested, 4)]);
    assert_eq!(watch.latest().frames(), 300);
}

#[test]
fn memory_does_not_grow_with_what_comes() {
    let mut tally = Tally::new(TallyRange::Latest, 1 << 16);
    // With this number of sources, some threads and types are not distinguished.
    let mut bytes = Vec::new();
    let mut writer = CaptureWriter::create(&mut bytes, &FileHeader::default()).unwrap();
    for id in 0..4096 {
        writer.source(id, &source(u32::from(id) + 1)).unwrap();
        for ring in 0..2 {
            let head = FramesHead { source: id, ..head(ring, 1, 3, SECOND) };
            chunk(&mut writer, &head);
        }
    }
    let mut capture = Capture::from_reader(std::io::Cursor::new(bytes)).unwrap();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(chunk) = item {
            tally.add_chunk(&chunk);
        }
    }
    let picture = tally.picture(tally.last());
    assert_eq!((picture.captured, picture.process_count), (4096 * 6, 4096));
    assert_eq!((picture.threads.len(), picture.processes.len()), (4096, 8));
    assert_eq!(picture.other_threads, 4096 * 3);
    assert_eq!(picture.kinds.len(), 2);
    assert!(tally.latest().frames() * STRIDE as u64 <= 1 << 16);
}

/// The schema of a program with spans, counters and histograms.
const WORK: &str = "
buffer work;
option time ns monotonic;
frame request @span { u32 id @key; char who[4] @key; }
frame retry @span(process, fifo) { u32 id @key; }
counter bytes_in @unit(\"B\");
counter inflight : i64;
histogram handling : duration;
";

/// A capture of twenty seconds. In each second, 100 requests begin, and 90 end after 1 to 90 ms. Another
/// ring has the ends, and some of them are read before their begins. Retries of one key begin twice and end
/// twice. Metrics add the same amount each second.
fn working(path: &Path) -> Vec<i64> {
    let schema = ppt_frame_dsl::compile(WORK.as_bytes(), "work.frame").unwrap().schema;
    let header = FileHeader { capture_id: [4; 16], ..FileHeader::default() };
    let mut writer = CaptureWriter::create(File::create(path).unwrap(), &header).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        process: Process { pid: 5, ..Process::default() },
        segments: vec![Segment { nonce: 7, rings: 2, slots: 16, stride: schema.stride }],
        clock: "tick".to_owned(),
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let reading = |a, b, b_value, at| ClockReading {
        a,
        a_before: at,
        b,
        b_value,
        a_after: at,
        distrusted: false,
    };
    // A tick is one ns.
    let ticks = |at| reading(ClockId::Tick, ClockId::Monotonic, at, at);
    let real = reading(ClockId::Monotonic, ClockId::Realtime, 700 * SECOND, SECOND);
    writer.clock(&[real, ticks(SECOND), ticks(200 * SECOND)]).unwrap();
    let frame = |kind: usize, seq: u64, edge: u64, id: u64, at: u64| {
        let frame = &schema.frames[kind];
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&seq.to_le_bytes());
        bytes[8..10].copy_from_slice(&(kind as u16).to_le_bytes());
        let mut put = |name: &str, value: u64| {
            let Some(field) = frame.fields.iter().find(|field| field.name == name) else { return };
            let len = field.ty.size(&schema) as usize;
            let value = value.to_le_bytes();
            bytes[field.offset as usize..][..len].copy_from_slice(&value[..len]);
        };
        put("id", id);
        // Bytes after the end of a text are ignored.
        put("who", u64::from(u32::from_le_bytes([b'a', 0, edge as u8, 9])));
        put("edge", edge);
        put("at", at);
        bytes
    };
    let (mut seqs, mut lengths) = ([1, 1], Vec::new());
    for second in 0..20 {
        let now = (100 + second) * SECOND;
        let mut rings: [Vec<Vec<u8>>; 2] = Default::default();
        for n in 0..100 {
            let (id, at) = (second << 8 | n, now + n * 1_000_000);
            rings[0].push(frame(0, 0, 0, id, at));
            if n < 90 {
                let length = (n + 1) * 1_000_000;
                rings[1].push(frame(0, 0, 1, id, at + length));
                lengths.push(length as i64);
            }
        }
        // In order of time, the first begin belongs to the first end: 10 and 12 ms.
        for (edge, at) in [(0, 1), (0, 3), (1, 11), (1, 15)] {
            rings[0].push(frame(1, 0, edge, 1, now + at * 1_000_000));
        }
        let drained = now + SECOND;
        let order = if second % 2 == 0 { [0, 1] } else { [1, 0] };
        for ring in order {
            let frames = std::mem::take(&mut rings[ring]);
            let first_seq = seqs[ring];
            let numbered = (first_seq..).zip(frames).map(|(seq, mut frame): (u64, Vec<u8>)| {
                frame[..8].copy_from_slice(&seq.to_le_bytes());
                frame
            });
            let frames: Vec<Vec<u8>> = numbered.collect();
            let head = FramesHead {
                stride: schema.stride,
                ..head(ring as u32, first_seq, frames.len() as u32, drained)
            };
            seqs[ring] += frames.len() as u64;
            writer.frames(&head, &frames.concat()).unwrap();
        }
        let first = |name: &str| {
            let metrics = schema.metrics();
            metrics.iter().find(|metric| metric.name == name).unwrap().cells.start
        };
        let since = second + 1;
        let level = -(since as i64);
        // Each second 90 values of about 1 µs, and 10 in a far bucket.
        let cells = [
            (first("bytes_in"), 1_000 * since),
            (first("inflight"), level as u64),
            (first("handling"), 5_000 * since),
            (first("handling") + 100, 90 * since),
            (first("handling") + 400, 10 * since),
        ];
        let mut rows = CellRows::default();
        rows.push(Some(0), 100, cells);
        // Another thread adds the same amount.
        rows.push(None, 0, [(first("bytes_in"), 500 * since)]);
        let head = CellsHead { nonce: 7, mono_ns: drained, ..CellsHead::default() };
        writer.cells(&head, &rows).unwrap();
    }
    end(&mut writer);
    lengths
}

#[test]
fn spans_counters_and_histograms_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    let mut lengths = working(&path);
    lengths.sort_unstable();
    let whole = Tally::from_capture(&path).unwrap();
    let whole = whole.picture(whole.last());
    let spans = |picture: &Picture, name: &str| {
        picture.kinds.iter().find(|kind| kind.name == name).unwrap().spans.unwrap()
    };
    let near = |found: f64, truth: f64| (found - truth).abs() <= truth.abs() / 100.0;
    let requests = spans(&whole, "request");
    assert_eq!((requests.count, requests.open), (1_800, 200));
    let spread = requests.lengths.unwrap();
    assert!(near(spread.p50, lengths[lengths.len() / 2] as f64), "{spread:?}");
    assert!(near(spread.p99, lengths[lengths.len() * 99 / 100] as f64), "{spread:?}");
    assert_eq!(spread.max, 90e6);
    let retries = spans(&whole, "retry");
    assert_eq!((retries.count, retries.open), (40, 0));
    assert_eq!(retries.lengths.unwrap().max, 12e6, "the first begin belongs to the first end");
    let metric = |picture: &Picture, name: &str| -> MetricPicture {
        picture.metrics.iter().find(|metric| metric.name == name).unwrap().clone()
    };
    let bytes = metric(&whole, "bytes_in");
    assert_eq!((bytes.value, bytes.unit.as_str()), (MeasuredValues::Counter(30_000), "B"));
    assert_eq!(metric(&whole, "inflight").value, MeasuredValues::Counter(-20));
    let MeasuredValues::Histogram { count, latest, is_time } = metric(&whole, "handling").value
    else {
        panic!("no histogram")
    };
    assert_eq!((count, latest.count, is_time, latest.buckets.len()), (2_000, 2_000, true, 2));

    // The latest values cover two periods of 5 seconds.
    let mut tally = Tally::new(TallyRange::Latest, 0);
    let mut capture = Capture::open(&path).unwrap();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(chunk) = item {
            tally.add_chunk(&chunk);
        }
    }
    let lately = tally.picture(120 * SECOND);
    let bytes = metric(&lately, "bytes_in");
    assert_eq!((bytes.rate, bytes.value), (1_500.0, MeasuredValues::Counter(30_000)));
    assert_eq!(metric(&lately, "inflight").rate, -1.0);
    let handling = metric(&lately, "handling");
    assert_eq!(handling.rate, 100.0);
    let MeasuredValues::Histogram { count, latest, .. } = &handling.value else {
        panic!("no histogram")
    };
    assert_eq!(*count, 2_000);
    assert!((500..1_000).contains(&latest.count), "{}", latest.count);
    assert_eq!(latest.quantile(0.9), Some((latest.buckets[0].0, latest.buckets[0].1)));
    assert_eq!(latest.quantile(0.91), Some((latest.buckets[1].0, latest.buckets[1].1)));
    // No more data arrive.
    let silent = tally.picture(140 * SECOND);
    assert_eq!(metric(&silent, "bytes_in").rate, 0.0);
    assert_eq!(spans(&silent, "request").open, 200);
}

/// The begin and the end of a span are drained before the second reading of the counter.
#[test]
fn ticks_are_converted_by_readings_that_come_later() {
    let schema = r#"{"v":1,"buffer":"net","slots":16,"stride":24,"frames":[
        {"name":"request","kind":"span","size":24,"across":"process","fields":[
        {"name":"id","type":"u8","offset":10,"key":true},
        {"name":"edge","type":"enum","enum":"Edge","offset":11,"edge":true},
        {"name":"at","type":"tsc","offset":16,"at":true,"stamp":true}]}],
        "enums":[{"name":"Edge","type":"u8","values":[["begin",0],["end",1]]}]}"#;
    let schema = Schema::from_json(schema.as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let mut writer =
        CaptureWriter::create(File::create(&path).unwrap(), &FileHeader::default()).unwrap();
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: 24 }],
        clock: "tick".to_owned(),
        ..source(5)
    };
    writer.source(0, &source).unwrap();
    let named = |mono_ns, text: &[u8]| {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text);
        let names = vec![ThreadName { tid: 100, mono_ns, name }];
        ThreadNames { source: 0, is_base: false, names }
    };
    writer.thread_names(&named(5, b"main")).unwrap();
    writer.thread_names(&named(9, b"worker\xff")).unwrap();
    // Two ticks are a nanosecond.
    let reading = |a, a_value, b, b_value| ClockReading {
        a,
        a_before: a_value,
        b,
        b_value,
        a_after: a_value,
        distrusted: false,
    };
    let at = |ns: u64| {
        let realtime = reading(ClockId::Monotonic, ns, ClockId::Realtime, 500 * SECOND + ns);
        [realtime, reading(ClockId::Tick, 2 * ns, ClockId::Monotonic, ns)]
    };
    writer.clock(&at(SECOND)).unwrap();
    let mut frames = Vec::new();
    for (seq, edge, ns) in [(1u64, 0, SECOND + 1_000), (2, 1, SECOND + 3_000)] {
        frames.extend(seq.to_le_bytes());
        frames.extend([0, 0, 9, edge, 0, 0, 0, 0]);
        frames.extend((2 * ns).to_le_bytes());
    }
    let head = FramesHead { stride: 24, ..head(0, 1, 2, SECOND + 5_000) };
    writer.frames(&head, &frames).unwrap();
    writer.clock(&at(2 * SECOND)).unwrap();
    end(&mut writer);
    let check = |picture: &Picture| {
        let spans = picture.kinds[0].spans.as_ref().unwrap();
        let longest = spans.lengths.map(|lengths| lengths.max);
        assert_eq!((spans.count, spans.open, longest), (1, 0, Some(2_000.0)));
        let names: Vec<_> = picture.threads.iter().map(|thread| thread.name.as_deref()).collect();
        assert_eq!(names, [Some("worker\u{fffd}")]);
        let mut clocks = ClockTable::default();
        clocks.add(&[at(SECOND), at(2 * SECOND)].concat());
        assert_eq!(picture.clock, clocks.tick_error_ns().map(ClockBound::Within));
    };
    let tally = Tally::from_capture(&path).unwrap();
    check(&tally.picture(tally.last()));
    let watch = LiveReader::start(&path, 0).unwrap();
    let begun = Instant::now();
    let picture = loop {
        let (picture, phase) = watch.look();
        if matches!(phase, CapturePhase::Ended(_)) {
            break picture;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{phase:?}");
        std::thread::yield_now();
    };
    check(&picture);
}

/// The error bound covers all readings, although only the latest are remembered.
#[test]
fn the_worst_reading_counts_for_as_long_as_it_matters() {
    let reading = |ns: u64, width: u64, b, b_value| ClockReading {
        a: ClockId::Monotonic,
        a_before: ns,
        b,
        b_value,
        a_after: ns + width,
        distrusted: false,
    };
    let mut tally = Tally::new(TallyRange::Latest, 0);
    let stamped = Source { clock: "monotonic".to_owned(), ..source(5) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    let mut writer =
        CaptureWriter::create(File::create(&path).unwrap(), &FileHeader::default()).unwrap();
    writer.source(0, &stamped).unwrap();
    for second in 1..30_000 {
        // The first reading is wide.
        let width = if second == 1 { 4_000 } else { 100 };
        let (ns, half) = (second * SECOND, width / 2);
        let read = reading(ns, width, ClockId::Realtime, 500 * SECOND + ns + half);
        writer.clock(&[read]).unwrap();
    }
    end(&mut writer);
    let mut capture = Capture::open(&path).unwrap();
    let mut clocks = 0;
    while let Some(item) = capture.read().unwrap() {
        let CaptureItem::Chunk(chunk) = item else { panic!("damaged") };
        clocks += u32::from(matches!(chunk, Chunk::Clock(_)));
        tally.add_chunk(&chunk);
        let expected =
            if clocks == 0 { ClockBound::TooFewReadings } else { ClockBound::Within(2_000) };
        assert_eq!(tally.picture(0).clock, Some(expected));
    }
    assert_eq!(clocks, 29_999);
    assert_eq!(Tally::new(TallyRange::Latest, 0).picture(0).clock, None);
}
