//! A server for a capture, and requests over TCP, for several tests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ppt_query::{CaptureSet, Engine};
use ppt_view_server::{Captures, ServeOptions, ViewServer};
use serde_json::{Value, json};

use crate::made::{self, Shop};

pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct ServedCapture {
    pub folder: tempfile::TempDir,
    pub captured: u64,
    pub server: ViewServer,
}

/// The status, the head and the body of an answer.
pub struct HttpAnswer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

pub fn options(path: PathBuf) -> ServeOptions {
    let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
    ServeOptions { captures, command: "ppt view shop.bin".into(), ..ServeOptions::default() }
}

pub fn shown_of(bytes: &[u8], captured: u64) -> ServedCapture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    std::fs::write(&path, bytes).unwrap();
    ServedCapture { server: ViewServer::start(options(path)).unwrap(), folder, captured }
}

pub fn shown(shop: &Shop) -> ServedCapture {
    let mut bytes = Vec::new();
    let captured = made::write(shop, &mut bytes);
    shown_of(&bytes, captured)
}

impl ServedCapture {
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("shop.bin")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn host(&self) -> String {
        self.server.address().to_string()
    }

    pub fn token(&self) -> String {
        format!("Bearer {}", self.server.token().text())
    }

    /// Sends a request with only these headers.
    pub fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> HttpAnswer {
        let mut stream = self.connect();
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let length = body.len();
        text += &format!("content-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        // The server may refuse before it has read the whole request.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer") + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if head.contains("transfer-encoding: chunked") {
            unchunked(&bytes[end..])
        } else {
            bytes[end..].to_vec()
        };
        HttpAnswer { status, head, body }
    }

    pub fn ask(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        let (host, token) = (self.host(), self.token());
        self.raw(method, path, &[("host", &host), ("authorization", &token)], body.as_bytes())
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    pub fn post(&self, path: &str, asked: &Value) -> Value {
        let answer = self.ask("POST", path, &asked.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// The answer of `/v1/about` after the index is built.
    pub fn about(&self) -> Value {
        let begun = Instant::now();
        loop {
            let about = self.get("/v1/about");
            if about["built"] == true {
                return about;
            }
            assert!(begun.elapsed() < PATIENCE, "{about}");
            std::thread::yield_now();
        }
    }

    pub fn window(&self, from: i64, to: i64, rows: &[&str], px: u32, phase: &str) -> Vec<Tile> {
        let asked = json!({
            "from": from.to_string(), "to": to.to_string(), "px": px, "rows": rows, "phase": phase,
        });
        let answer = self.ask("POST", "/v1/window", &asked.to_string());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        tiles(&answer.body)
    }

    /// An engine for the same captures, independent of the server.
    pub fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        sql_of(&self.path(), statement)
    }
}

/// The rows of a query about a capture.
pub fn sql_of(path: &Path, statement: &str) -> Vec<Vec<String>> {
    let set = CaptureSet::open(&[path.to_owned()]).unwrap();
    let engine = Engine::new(set, &ppt_query::EngineOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let batches =
        runtime.block_on(async { engine.sql(statement).await.unwrap().collect().await.unwrap() });
    let mut rows = Vec::new();
    for batch in &batches {
        let options = ppt_query::arrow::util::display::FormatOptions::default();
        let formatter = |column| {
            ppt_query::arrow::util::display::ArrayFormatter::try_new(column, &options).unwrap()
        };
        let columns: Vec<_> = batch.columns().iter().map(|column| formatter(column)).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect());
        }
    }
    rows
}

/// Joins the chunks of a body.
pub fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").expect("the length of a chunk");
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 4 + length..];
    }
}

/// A row of a window, read by the documented layout.
pub struct Tile {
    pub head: Value,
    pub columns: BTreeMap<&'static str, Vec<f64>>,
}

pub fn tiles(mut bytes: &[u8]) -> Vec<Tile> {
    let mut tiles = Vec::new();
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (head, columns) = (word(0), word(4));
        assert_eq!((8 + head) % 8, 0, "columns are aligned");
        let end = 8 + head + columns;
        tiles.push(tile(&bytes[8..8 + head], &bytes[8 + head..end]));
        bytes = &bytes[end..];
    }
    tiles
}

pub fn tile(head: &[u8], mut bytes: &[u8]) -> Tile {
    let head: Value = serde_json::from_slice(head).unwrap();
    let mut columns = BTreeMap::new();
    let mut take = |name: &'static str, width: usize, count: usize| {
        let all = width * count;
        let values = bytes[..all].chunks(width).map(|value| match width {
            8 => f64::from_le_bytes(value.try_into().unwrap()),
            4 => f64::from(u32::from_le_bytes(value.try_into().unwrap())),
            _ => f64::from(u16::from_le_bytes(value.try_into().unwrap())),
        });
        columns.insert(name, values.collect());
        bytes = &bytes[all.next_multiple_of(8)..];
    };
    let count = |name: &str| head[name].as_u64().unwrap_or(0) as usize;
    for name in ["from", "to", "busy", "longest", "count"] {
        take(name, 8, count("cells"));
    }
    for name in ["chunk", "frame", "best_name", "name"] {
        take(name, 4, count("cells"));
    }
    for name in ["share", "flags", "lane"] {
        take(name, 2, count("cells"));
    }
    for name in ["c_from", "c_to", "c_first", "c_min", "c_max", "c_last", "c_count"] {
        take(name, 8, count("counters"));
    }
    for name in ["l_from", "l_to", "l_count"] {
        take(name, 8, count("losses"));
    }
    take("cause", 4, count("losses"));
    assert!(bytes.is_empty());
    Tile { head, columns }
}

pub fn ns(value: &Value) -> i64 {
    value.as_str().unwrap().parse().unwrap()
}

pub fn ids(about: &Value, beginning: &str) -> Vec<String> {
    let rows = about["rows"].as_array().unwrap().iter();
    let ids = rows.map(|row| row["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id.starts_with(beginning)).collect()
}

/// Reads events until one has the name `name`.
pub fn wait_for_event(stream: &mut TcpStream, name: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(&format!("event: {name}\n")) {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the connection ended: {text}");
        text += std::str::from_utf8(&piece[..count]).unwrap();
    }
    text
}
