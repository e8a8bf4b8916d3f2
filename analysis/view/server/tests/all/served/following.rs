//! Captures that grow, are replaced or removed, and the end of the server.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ppt_view_server::{ServeError, ServeOptions, ViewServer};
use serde_json::json;

use crate::made::{self, Shop};
use crate::served::client::*;

#[test]
fn a_capture_that_grows_is_followed() {
    let mut bytes = Vec::new();
    let captured = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    // A capture that is being written has no end yet.
    let shown = shown_of(&bytes[..bytes.len() / 2], captured);
    let first = shown.about();
    assert_eq!(first["live"], true);
    let before: u64 = first["captures"][0]["captured"].as_str().unwrap().parse().unwrap();
    assert!(0 < before && before < captured, "{before} of {captured}");
    let mut events = shown.connect();
    let (host, token) = (shown.host(), shown.token());
    write!(events, "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n")
        .unwrap();
    let mut file = OpenOptions::new().append(true).open(shown.path()).unwrap();
    file.write_all(&bytes[bytes.len() / 2..]).unwrap();
    let event = wait_for_event(&mut events, "ended");
    assert!(event.contains("event: grown\ndata: {\"view\":1}"), "{event}");
    let about = shown.about();
    assert_eq!((&about["live"], &about["view"]), (&json!(false), &json!(1)));
    assert_eq!(about["captures"][0]["captured"], captured.to_string());
    // The answers are those of a capture that was complete from the beginning.
    let whole = shown_of(&bytes, captured).about();
    assert_eq!(about["rows"], whole["rows"]);
    // Numbers of the former view are not valid any more.
    let old = json!({ "view": 0, "chunk": 0, "frame": 0 });
    assert_eq!(shown.ask("POST", "/v1/frame", &old.to_string()).status, 409);
}

#[test]
fn another_capture_in_its_place_is_not_taken_for_it() {
    let mut bytes = Vec::new();
    let captured = made::write(&Shop { frames: 6000, ..Shop::default() }, &mut bytes);
    let shown = shown_of(&bytes[..bytes.len() / 2], captured);
    shown.about();
    let mut events = shown.connect();
    let (host, token) = (shown.host(), shown.token());
    write!(events, "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n")
        .unwrap();
    let other = shown.folder.path().join("other");
    std::fs::write(&other, b"no capture at all").unwrap();
    std::fs::rename(&other, shown.path()).unwrap();
    let event = wait_for_event(&mut events, "trouble");
    assert!(event.contains("not a capture"), "{event}");
    // The earlier content is still shown.
    assert!(!shown.about()["troubles"].as_array().unwrap().is_empty());
}

#[test]
fn a_deleted_capture_is_shown_to_its_end_and_a_cut_one_says_so() {
    let shown = shown(&Shop { frames: 6000, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let narrow = (from, from + (to - from) / 50);
    let rows = ["depth.0.0"];
    let before: f64 =
        shown.window(narrow.0, narrow.1, &rows, 1000, "frames")[0].columns["count"].iter().sum();
    // The index is built. Frames that were not read are lost.
    OpenOptions::new().write(true).open(shown.path()).unwrap().set_len(4096).unwrap();
    std::fs::remove_file(shown.path()).unwrap();
    for _ in 0..2 {
        let tiles = shown.window(from, to, &rows, 1000, "index");
        assert!(tiles[0].columns["count"].iter().sum::<f64>() > 0.0 && before > 0.0);
    }
    let count = |phase: &str| -> f64 {
        let tiles = shown.window(from, to, &["depth.1.0"], 4096, phase);
        tiles[0].columns["count"].iter().sum()
    };
    assert_eq!(count("frames"), count("index"), "the index says what there was");
    let troubles = shown.get("/v1/about")["troubles"].to_string();
    assert!(troubles.contains("shop.bin: damaged"), "{troubles}");
    assert_eq!(shown.get("/v1/about")["captures"][0]["captured"], shown.captured.to_string());
}

#[test]
fn it_ends_at_once() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let address = shown.server.address();
    let mut events = shown.connect();
    let (host, token) = (shown.host(), shown.token());
    write!(events, "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n")
        .unwrap();
    let begun = Instant::now();
    drop(shown.server);
    let mut rest = Vec::new();
    let _ = events.read_to_end(&mut rest);
    assert!(begun.elapsed() < Duration::from_secs(10));
    while TcpStream::connect(address).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the port is still open");
    }
}

#[test]
fn what_cannot_be_opened_has_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let error = ViewServer::start(options(folder.path().join("none.bin"))).unwrap_err();
    assert_eq!(error.code(), "cannot-read", "{error}");
    let text = folder.path().join("text.bin");
    std::fs::write(&text, "text").unwrap();
    let error = ViewServer::start(options(text)).unwrap_err();
    assert_eq!(error.code(), "not-a-capture", "{error}");
    let taken = shown(&Shop { frames: 500, ..Shop::default() });
    let port = taken.server.address().port();
    let error = ViewServer::start(ServeOptions { port, ..options(taken.path()) }).unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }));
    assert_eq!(error.code(), "port-in-use");
    assert!(error.to_string().contains("leave --port out"), "{error}");
}
