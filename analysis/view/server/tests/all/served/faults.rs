//! Faults of captures and of the server while a page is open.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use ppt_capture::{
    CaptureWriter, End, EndReason, FileHeader, FramesHead, Segment, SeriesPart, Source,
};
use ppt_frame_dsl::schema::Schema;
use ppt_view_server::{Captures, ServeOptions, ViewServer};
use serde_json::{Value, json};

use crate::made::{self, Shop};
use crate::served::client::*;

const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
    "kind":"plain","size":16,"fields":[{"name":"said","type":"u64","offset":8}]}]}"#;
/// The number of frames in each file of a series.
const FRAMES: u32 = 10;

/// File `number` of a series, without an end if `end` is None.
fn part(number: u32, end: Option<EndReason>) -> Vec<u8> {
    let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
    let header = FileHeader {
        capture_id: [number as u8; 16],
        created_mono_ns: u64::from(number) * 1_000_000,
        created_realtime_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    if number > 1 {
        let part = SeriesPart {
            series: [1; 16],
            previous: [number as u8 - 1; 16],
            number,
            keep: 2,
            captured_before: u64::from((number - 1) * FRAMES),
        };
        writer.series(&part).unwrap();
    }
    let source = Source {
        schema_json: schema.to_json().into_bytes(),
        schema_hash: schema.hash(),
        buffer: schema.buffer.clone(),
        segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: 16 }],
        ..Source::default()
    };
    writer.source(0, &source).unwrap();
    let first_seq = u64::from((number - 1) * FRAMES + 1);
    let drained_mono_ns = header.created_mono_ns + 500_000;
    let head = FramesHead {
        nonce: 7,
        tid: 77,
        stride: 16,
        count: FRAMES,
        first_seq,
        drained_mono_ns,
        ..FramesHead::default()
    };
    let seqs = first_seq..first_seq + u64::from(FRAMES);
    let payload: Vec<u8> = seqs.flat_map(|seq| [seq, 7]).flat_map(u64::to_le_bytes).collect();
    writer.frames(&head, &payload).unwrap();
    let end = End::new(
        end.unwrap_or(EndReason::Stopped),
        header.created_realtime_ns + 900_000,
        header.created_mono_ns + 900_000,
    );
    let without = writer.bytes() as usize;
    let mut bytes = writer.end(&end).unwrap();
    if end.reason == EndReason::Stopped && number < 3 {
        bytes.truncate(without);
    }
    bytes
}

/// Replaces a file in one step.
fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let before = folder.join("before");
    fs::write(&before, bytes).unwrap();
    fs::rename(before, folder.join(name)).unwrap();
}

/// Waits until `/v1/about` meets a condition.
fn wait(shown: &ServedCapture, is_it: impl Fn(&Value) -> bool) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let about = shown.about();
        if is_it(&about) {
            return about;
        }
        assert!(begun.elapsed() < PATIENCE, "{about}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The number of frames in all files.
fn captured(about: &Value) -> u64 {
    let files = about["captures"].as_array().unwrap().iter();
    files.map(|file| file["captured"].as_str().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_series_is_followed_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "out.000001.bin", &part(1, None));
    let server = ViewServer::start(options(folder.path().join("out.bin"))).unwrap();
    let shown = ServedCapture { server, folder, captured: 0 };
    let folder = shown.folder.path();
    let each = u64::from(FRAMES);
    assert_eq!(captured(&shown.about()), each);
    // The file is full and has its end. The next file does not exist yet.
    put(folder, "out.000001.bin", &part(1, Some(EndReason::Rotated)));
    let about = wait(&shown, |about| about["captures"][0]["ended"] == true);
    assert_eq!(about["live"], true, "it goes on");
    // A new file that does not belong to the series changes nothing.
    let view = about["view"].clone();
    put(folder, "other.txt", b"other");
    put(folder, "out.000002.bin", &part(2, None));
    let about = wait(&shown, |about| captured(about) == 2 * each);
    assert_eq!(about["view"].as_u64(), view.as_u64().map(|view| view + 1));
    // `--keep` removes the oldest file.
    put(folder, "out.000002.bin", &part(2, Some(EndReason::Rotated)));
    fs::remove_file(folder.join("out.000001.bin")).unwrap();
    let about = wait(&shown, |about| captured(about) == each);
    assert_eq!(about["live"], true);
    put(folder, "out.000003.bin", &part(3, None));
    let about = wait(&shown, |about| captured(about) == 2 * each && about["live"] == false);
    let troubles = about["troubles"].to_string();
    assert!(troubles.contains("out.000001.bin and perhaps others were removed"), "{troubles}");
    let rows = shown.post("/v1/sql", &json!({ "sql": "SELECT count(*), min(seqno) FROM frames" }));
    assert_eq!(rows["rows"][0], json!([(2 * each).to_string(), (each + 1).to_string()]));
}

#[test]
fn a_capture_that_gets_shorter_while_it_is_viewed_is_reported() {
    let mut bytes = Vec::new();
    let all = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    // A file without an end is still written.
    let cut = bytes.len() - 600;
    let shown = shown_of(&bytes[..cut], all);
    let before = captured(&shown.about());
    assert!(before > 0);
    let file = fs::OpenOptions::new().write(true).open(shown.path()).unwrap();
    file.set_len(cut as u64 / 2).unwrap();
    let half = captured(&wait(&shown, |about| captured(about) < before));
    assert!(half > 0, "what is left is shown");
    let mut events = listening(&shown);
    file.set_len(0).unwrap();
    let event = wait_for_event(&mut events, "trouble");
    assert!(event.contains("shop.bin"), "{event}");
    // Earlier rows and numbers stay.
    assert_eq!(captured(&shown.get("/v1/about")), half);
    assert!(shown.get("/v1/panels").is_array());
}

fn listening(shown: &ServedCapture) -> std::net::TcpStream {
    let mut events = shown.connect();
    let (host, token) = (shown.host(), shown.token());
    write!(events, "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n")
        .unwrap();
    events
}

#[test]
fn a_good_capture_in_the_place_of_another_is_not_taken_for_it() {
    let mut bytes = Vec::new();
    let all = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    let shown = shown_of(&bytes[..bytes.len() / 2], all);
    let before = shown.about();
    let mut events = listening(&shown);
    put(shown.folder.path(), "shop.bin", &part(3, None));
    let event = wait_for_event(&mut events, "trouble");
    assert!(event.contains("replaced by another one"), "{event}");
    let after = shown.get("/v1/about");
    assert_eq!((&after["rows"], &after["captures"]), (&before["rows"], &before["captures"]));
    let (from, to) = (ns(&after["from"]), ns(&after["to"]) + 1);
    let tiles = shown.window(from, to, &["depth.0.0"], 400, "index");
    assert!(tiles[0].columns["count"].iter().sum::<f64>() > 0.0);
}

#[test]
fn a_live_capture_that_is_deleted_stays_on_the_page() {
    let mut bytes = Vec::new();
    let all = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    let shown = shown_of(&bytes[..bytes.len() / 2], all);
    let before = shown.about();
    let (from, to) = (ns(&before["from"]), ns(&before["to"]) + 1);
    let cells = |shown: &ServedCapture| -> f64 {
        let tiles = shown.window(from, to, &["depth.0.0"], 4000, "frames");
        tiles[0].columns["count"].iter().sum()
    };
    let expected = cells(&shown);
    let mut events = listening(&shown);
    fs::remove_file(shown.path()).unwrap();
    let event = wait_for_event(&mut events, "trouble");
    assert!(event.contains("shop.bin"), "{event}");
    assert_eq!(cells(&shown), expected);
}

#[test]
fn an_index_that_cannot_be_written_is_reported_and_answers_stay() {
    let mut bytes = Vec::new();
    let all = made::write(&Shop { frames: 3000, ..Shop::default() }, &mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    fs::write(&path, &bytes).unwrap();
    let index = Some("/proc/ppt-view".into());
    let server = ViewServer::start(ServeOptions { index, ..options(path) }).unwrap();
    let shown = ServedCapture { server, folder, captured: all };
    let about = shown.about();
    let troubles = about["troubles"].to_string();
    assert!(troubles.contains("/proc/ppt-view"), "{troubles}");
    assert_eq!(about["rows"], shown_of(&bytes, all).about()["rows"]);
}

/// A growing capture causes the same error each time.
#[test]
fn a_repeated_error_is_reported_once() {
    let mut bytes = Vec::new();
    let all = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    let parts = [bytes.len() / 3, bytes.len() * 2 / 3, bytes.len()];
    fs::write(&path, &bytes[..parts[0]]).unwrap();
    let index = Some("/proc/ppt-view".into());
    let server = ViewServer::start(ServeOptions { index, ..options(path.clone()) }).unwrap();
    let shown = ServedCapture { server, folder, captured: all };
    let mut before = captured(&shown.about());
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    for part in parts.windows(2) {
        file.write_all(&bytes[part[0]..part[1]]).unwrap();
        let about = wait(&shown, |about| about["built"] == true && captured(about) > before);
        before = captured(&about);
    }
    assert_eq!(before, all);
    let about = wait(&shown, |about| about["live"] == false && about["built"] == true);
    let troubles = about["troubles"].as_array().unwrap();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].as_str().unwrap().starts_with("the index is not kept, "), "{troubles:?}");
}

#[test]
fn two_views_of_one_capture_share_its_index() {
    let mut bytes = Vec::new();
    made::write(&Shop { frames: 12_000, ..Shop::default() }, &mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    fs::write(&path, &bytes).unwrap();
    let index = folder.path().join("index");
    let start = || {
        let index = Some(index.clone());
        ViewServer::start(ServeOptions { index, ..options(path.clone()) }).unwrap()
    };
    let servers = [start(), start(), start()];
    let kept = || -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(&index).unwrap().map(Result::unwrap);
        let name = |file: &fs::DirEntry| file.file_name().into_string().unwrap();
        files.map(|file| (name(&file), fs::read(file.path()).unwrap())).collect()
    };
    let mut answers = Vec::new();
    for server in servers {
        let folder = tempfile::tempdir().unwrap();
        let shown = ServedCapture { server, folder, captured: 0 };
        let about = shown.about();
        assert_eq!(about["troubles"], json!([]));
        let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
        let tiles = shown.window(from, to, &["depth.0.0", "depth.1.0"], 900, "frames");
        answers.push(tiles.into_iter().map(|tile| tile.columns).collect::<Vec<_>>());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    // The folder has one complete file and no other.
    let first = kept();
    assert_eq!(first.len(), 1, "{:?}", first.iter().map(|file| &file.0).collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let shown = ServedCapture { server: start(), folder, captured: 0 };
    shown.about();
    drop(shown);
    assert!(kept() == first, "who comes later writes the same");
}

#[test]
fn fifty_pages_are_answered_and_too_many_are_refused() {
    let shown = shown(&Shop { frames: 6000, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let expected = shown.window(from, to, &["depth.0.0"], 800, "frames").remove(0).columns;
    // Each client listens to events.
    let pages: Vec<_> = (0..50).map(|_| listening(&shown)).collect();
    // All clients send requests at once, limited by the number of connections.
    std::thread::scope(|scope| {
        let one = || shown.window(from, to, &["depth.0.0"], 800, "frames").remove(0).columns;
        let asked: Vec<_> = (0..10).map(|_| scope.spawn(one)).collect();
        for answer in asked {
            assert!(answer.join().unwrap() == expected);
        }
    });
    let mut more: Vec<_> = (0..30).map(|_| listening(&shown)).collect();
    let mut is_refused = |stream: &mut std::net::TcpStream| {
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        begin == *b"HTTP/1.1 503"
    };
    // All connections stay open until each has its answer.
    let refused = more.iter_mut().map(&mut is_refused).filter(|refused| *refused).count();
    assert!((16..=30).contains(&refused), "64 connections at a time: {refused}");
    drop((pages, more));
    // Closed connections leave room for others.
    let begun = std::time::Instant::now();
    while shown.ask("GET", "/v1/panels", "").status != 200 {
        assert!(begun.elapsed() < PATIENCE);
    }
}

/// If the second set cannot be opened, the server does not start with the first alone.
#[test]
fn a_second_set_that_is_not_there_is_refused() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let second = Captures { paths: vec!["none.bin".into()], ..Captures::default() };
    let refused = ViewServer::start(ServeOptions { second: Some(second), ..options(shown.path()) });
    assert_eq!(refused.unwrap_err().code(), "cannot-read");
}
