//! The server as a browser, a script and an attacker meet it: by TCP.

#[path = "../../../report/tests/made/mod.rs"]
mod made;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use made::Shop;
use ppt_query::{CaptureSet, Engine};
use ppt_view_server::{Captures, Options, ServeError, Server};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

struct Shown {
    folder: tempfile::TempDir,
    captured: u64,
    server: Server,
}

/// An answer: status, head, body.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

fn options(path: PathBuf) -> Options {
    let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
    Options { captures, command: "ppt view shop.bin".into(), ..Options::default() }
}

fn shown_of(bytes: &[u8], captured: u64) -> Shown {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    std::fs::write(&path, bytes).unwrap();
    Shown { server: Server::start(options(path)).unwrap(), folder, captured }
}

fn shown(shop: &Shop) -> Shown {
    let mut bytes = Vec::new();
    let captured = made::write(shop, &mut bytes);
    shown_of(&bytes, captured)
}

impl Shown {
    fn path(&self) -> PathBuf {
        self.folder.path().join("shop.bin")
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn host(&self) -> String {
        self.server.address().to_string()
    }

    fn token(&self) -> String {
        format!("Bearer {}", self.server.token().text())
    }

    /// Sends these very headers.
    fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let length = body.len();
        text += &format!("content-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        // The server may refuse before it has read all.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer") + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = match head.contains("transfer-encoding: chunked") {
            true => unchunked(&bytes[end..]),
            false => bytes[end..].to_vec(),
        };
        Answer { status, head, body }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let (host, token) = (self.host(), self.token());
        self.raw(method, path, &[("host", &host), ("authorization", &token)], body.as_bytes())
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    fn post(&self, path: &str, asked: &Value) -> Value {
        let answer = self.ask("POST", path, &asked.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// What `about` says once the index is built.
    fn about(&self) -> Value {
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

    fn window(&self, from: i64, to: i64, rows: &[&str], px: u32, phase: &str) -> Vec<Tile> {
        let asked = json!({
            "from": from.to_string(), "to": to.to_string(), "px": px, "rows": rows, "phase": phase,
        });
        let answer = self.ask("POST", "/v1/window", &asked.to_string());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        tiles(&answer.body)
    }

    /// An answer of the same captures by another way than the server's.
    fn sql(&self, statement: &str) -> Vec<Vec<String>> {
        let set = CaptureSet::open(&[self.path()]).unwrap();
        let engine = Engine::new(set, &ppt_query::Options::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        let batches = runtime
            .block_on(async { engine.sql(statement).await.unwrap().collect().await.unwrap() });
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
}

/// A body that came in chunks.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
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

/// A row of a window, read by the description of its layout.
struct Tile {
    head: Value,
    columns: BTreeMap<&'static str, Vec<f64>>,
}

fn tiles(mut bytes: &[u8]) -> Vec<Tile> {
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

fn tile(head: &[u8], mut bytes: &[u8]) -> Tile {
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

fn ns(value: &Value) -> i64 {
    value.as_str().unwrap().parse().unwrap()
}

fn ids(about: &Value, beginning: &str) -> Vec<String> {
    let rows = about["rows"].as_array().unwrap().iter();
    let ids = rows.map(|row| row["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id.starts_with(beginning)).collect()
}

#[test]
fn the_page_needs_no_token_and_data_does() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let host = shown.host();
    let page = shown.raw("GET", "/", &[("host", &host)], b"");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "require-trusted-types-for 'script'",
        "cross-origin-resource-policy: same-origin",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header} is not in {}", page.head);
    }
    assert!(!page.head.contains("access-control") && !page.head.contains("set-cookie"));
    for script in
        String::from_utf8(page.body).unwrap().split('"').filter(|word| word.starts_with('/'))
    {
        assert_eq!(shown.raw("GET", script, &[("host", &host)], b"").status, 200, "{script}");
    }
    let wrong = format!("Bearer {}", "0".repeat(32));
    for headers in [&[("host", &*host)][..], &[("host", &*host), ("authorization", &wrong)]] {
        for (method, path) in [("GET", "/v1/about"), ("POST", "/v1/sql"), ("GET", "/v1/events")] {
            let answer = shown.raw(method, path, headers, b"{}");
            assert_eq!(answer.status, 401, "{path}");
            assert!(answer.error().contains("the token is missing or wrong"));
        }
    }
    assert_eq!(shown.server.url(), format!("http://{host}/#token={}", shown.server.token().text()));
}

/// Names that point here by somebody's DNS, pages of others, and forms in them.
#[test]
fn others_get_nothing() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let (host, token) = (shown.host(), shown.token());
    let own = [("host", &*host), ("authorization", &*token)];
    let ask = |more: &[(&str, &str)]| shown.raw("GET", "/v1/about", &[&own, more].concat(), b"");
    assert_eq!(ask(&[]).status, 200);
    assert_eq!(ask(&[("origin", &format!("http://{host}"))]).status, 200);
    for more in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let answer = ask(&[more]);
        assert_eq!(answer.status, 403, "{more:?}");
        assert_eq!(answer.error(), "this server answers to its own page only");
    }
    for name in ["evil.example", "127.0.0.1", "localhost:1"] {
        let answer = shown.raw("GET", "/v1/about", &[("host", name), own[1]], b"");
        assert_eq!(answer.status, 421, "{name}");
        assert!(answer.error().contains("127.0.0.1 and localhost only"));
    }
    let preflight = shown.raw("OPTIONS", "/v1/sql", &own, b"");
    assert_eq!(preflight.status, 405);
    assert!(!preflight.head.contains("access-control"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let about = shown.about();
    let window = |from: &str, to: &str, px: u64, rows: Value, phase: &str| {
        json!({ "from": from, "to": to, "px": px, "rows": rows, "phase": phase }).to_string()
    };
    let many: Vec<String> = (0..257).map(|number| format!("thread.{number}")).collect();
    for (path, body, status, why) in [
        ("/v1/nothing", String::new(), 404, "there is nothing here"),
        ("/v1/window", "{".into(), 400, "EOF"),
        ("/v1/window", "{}".into(), 400, "missing field"),
        ("/v1/window", window("x", "1", 1, json!([]), "index"), 400, "`x` is no time"),
        ("/v1/window", window("5", "5", 1, json!([]), "index"), 400, "ends after it begins"),
        ("/v1/window", window("1", "5", 0, json!([]), "index"), 400, "1 to 4096 pixels"),
        ("/v1/window", window("1", "5", 4097, json!([]), "index"), 400, "1 to 4096 pixels"),
        ("/v1/window", window("1", "5", 1, json!(many), "index"), 400, "at most 256 rows"),
        ("/v1/window", window("1", "5", 1, json!(["row.1"]), "index"), 404, "no row `row.1`"),
        ("/v1/window", window("1", "5", 1, json!([]), "all"), 400, "unknown variant"),
        ("/v1/lengths", json!({"row": "x", "from": "0", "to": "1"}).to_string(), 404, "no row"),
        ("/v1/frame", json!({"view": 7, "chunk": 0, "frame": 0}).to_string(), 409, "has grown"),
        (
            "/v1/frame",
            json!({"view": 0, "chunk": 9999, "frame": 0}).to_string(),
            404,
            "no such frame",
        ),
        ("/v1/sql", json!({"sql": "COPY (SELECT 1) TO '/tmp/x.csv'"}).to_string(), 400, "SQL asks"),
        ("/v1/sql", json!({"sql": "SELECT * FROM nowhere"}).to_string(), 400, "no table `nowhere`"),
        ("/v1/panel", json!({"id": "none"}).to_string(), 400, "no such panel"),
        ("/v1/find", json!({"text": "", "from": "0", "to": "1"}).to_string(), 400, "type a name"),
        (
            "/v1/find",
            json!({"text": "nix > 1", "from": "0", "to": "1"}).to_string(),
            400,
            "a field `nix`",
        ),
    ] {
        let answer = shown.ask("POST", path, &body);
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.error());
        assert!(answer.error().contains(why), "{path} {body}: {}", answer.error());
    }
    assert_eq!(shown.ask("GET", "/v1/window", "").status, 405);
    assert_eq!(shown.ask("POST", "/v1/about", "{}").status, 405);
    let large = shown.ask("POST", "/v1/sql", &" ".repeat((1 << 20) + 1));
    assert_eq!((large.status, large.error()), (413, "a request has 1 MiB at most".into()));
    // A row that is not there spoils no other one.
    let (from, to) = (ns(&about["from"]), ns(&about["to"]));
    let tiles = shown.window(from, to, &["depth.0.99", "thread.0"], 10, "index");
    assert!(tiles[0].head["error"].as_str().unwrap().contains("no row `depth.0.99`"));
    assert_eq!(tiles[1].head["row"], "thread.0");
}

#[test]
fn clients_that_do_not_read_or_write_disturb_nobody() {
    let shown = shown(&Shop { frames: 500, ..Shop::default() });
    let mut half = shown.connect();
    half.write_all(b"GET /v1/about HT").unwrap();
    let (host, token) = (shown.host(), shown.token());
    let mut deaf = shown.connect();
    let asked =
        format!("GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n");
    deaf.write_all(asked.as_bytes()).unwrap();
    let about = shown.about();
    assert_eq!(about["captures"][0]["captured"], shown.captured.to_string());
    // Up to 64 connections, then no more, until one is free.
    let mut held: Vec<TcpStream> = (0..62).map(|_| shown.connect()).collect();
    let begun = Instant::now();
    loop {
        let mut one_more = shown.connect();
        let mut text = String::new();
        let _ = write!(one_more, "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let _ = one_more.read_to_string(&mut text);
        if text.starts_with("HTTP/1.1 503") {
            break;
        }
        // The server has not seen all of them yet.
        assert!(begun.elapsed() < PATIENCE, "{text}");
    }
    held.pop();
    let begun = Instant::now();
    while std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shown.get("/v1/panels")))
        .is_err()
    {
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn cells_add_up_to_what_sql_counts() {
    let shown = shown(&Shop { frames: 6000, threads: 3, ..Shop::default() });
    let about = shown.about();
    assert_eq!(about["captures"][0]["captured"], shown.captured.to_string());
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let threads = ids(&about, "thread.");
    let heads =
        shown.window(from, to, &threads.iter().map(|id| &**id).collect::<Vec<_>>(), 500, "index");
    let sum = |tiles: &[Tile], name: &str, keep: &dyn Fn(f64) -> bool| -> f64 {
        let kept = tiles.iter().flat_map(|tile| {
            tile.columns[name].iter().zip(&tile.columns["flags"]).filter(|(_, flags)| keep(**flags))
        });
        kept.map(|(value, _)| *value).sum()
    };
    assert_eq!(sum(&heads, "count", &|_| true), shown.captured as f64);
    let depths = ids(&about, "depth.");
    let depths: Vec<&str> = depths.iter().map(|id| &**id).collect();
    assert!(depths.len() > 3, "intervals are nested");
    let expected = shown.sql("SELECT count(*), sum(dur) FROM slices");
    let [count, busy] = [0, 1].map(|column| expected[0][column].parse::<f64>().unwrap());
    for phase in ["index", "frames"] {
        let whole = shown.window(from, to, &depths, 700, phase);
        assert_eq!(sum(&whole, "count", &|_| true), count, "{phase}");
        assert_eq!(sum(&whole, "busy", &|_| true), busy, "{phase}");
        // Windows side by side have each slice once: 1 says that a cell begins before its window.
        let within = |flags: f64| flags as u16 & 1 == 0;
        let middle = from + (to - from) / 3;
        let parts = [(from, middle), (middle, to)]
            .map(|(from, to)| sum(&shown.window(from, to, &depths, 700, phase), "count", &within));
        assert_eq!(parts[0] + parts[1], count, "{phase}");
    }
    // What is lost lies in the rows of threads.
    let lost: f64 = heads.iter().flat_map(|tile| &tile.columns["l_count"]).sum();
    assert_eq!(about["captures"][0]["lost"], (lost as u64).to_string());
    let by_hand = shown.sql("SELECT sum(count) FROM account WHERE cause <> 'captured'");
    assert_eq!(by_hand[0][0], (lost as u64).to_string());
}

#[test]
fn a_cell_leads_to_its_frame() {
    let shown = shown(&Shop { frames: 3000, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let tiles = shown.window(from, to, &["depth.0.0"], 50, "index");
    let at = tiles[0].columns["longest"].iter().enumerate();
    let (at, longest) = at.max_by(|one, other| one.1.total_cmp(other.1)).unwrap();
    let [chunk, frame] = ["chunk", "frame"].map(|name| tiles[0].columns[name][at] as u64);
    let found = shown.post("/v1/frame", &json!({ "view": 0, "chunk": chunk, "frame": frame }));
    let key = &found["key"];
    let slice = shown.sql(&format!(
        "SELECT name, dur FROM slices WHERE ring = {} AND seqno = {} AND dur = {longest}",
        key["ring"],
        key["seqno"].as_str().unwrap(),
    ));
    assert_eq!(slice.len(), 1, "{found}");
    assert!(slice[0][0].starts_with(&format!("{}.", found["name"].as_str().unwrap())));
    let lengths = found["fields"].as_array().unwrap().iter();
    let mut lengths = lengths.filter(|field| field["type"] == "duration");
    assert!(lengths.any(|field| field["text"] == *format!("{longest}")), "{found}");
    // By its key it is the same.
    assert_eq!(shown.post("/v1/frame", key), found);
    assert!(about["rows"].as_array().unwrap().iter().any(|row| row["id"] == found["row"]));
    let none = json!({ "capture": key["capture"], "buffer": "none", "segment": "0", "ring": 0, "seqno": "1" });
    assert_eq!(shown.ask("POST", "/v1/frame", &none.to_string()).status, 404);
    let lengths = shown.post(
        "/v1/lengths",
        &json!({
            "row": "depth.0.0", "from": from.to_string(), "to": to.to_string(),
        }),
    );
    let all: u64 =
        lengths["buckets"].as_array().unwrap().iter().map(|count| ns(count) as u64).sum();
    assert_eq!(all, tiles[0].columns["count"].iter().sum::<f64>() as u64);
}

#[test]
fn panels_and_questions_say_what_sql_says() {
    let shown = shown(&Shop { frames: 4000, ..Shop::default() });
    let about = shown.about();
    let whole = json!({ "from": about["from"], "to": (ns(&about["to"]) + 1).to_string() });
    let panel = |id: &str| {
        let asked = json!({ "id": id, "from": whole["from"], "to": whole["to"] });
        shown.post("/v1/panel", &asked)
    };
    let cells = |panel: &Value| -> Vec<Vec<String>> {
        let rows = panel["rows"].as_array().unwrap().iter();
        let text = |cell: &Value| cell.as_str().unwrap().to_owned();
        rows.map(|row| row["cells"].as_array().unwrap().iter().map(text).collect()).collect()
    };
    let by_name = cells(&panel("time"));
    let expected = shown
        .sql("SELECT name, count(*), sum(dur), max(dur) FROM slices GROUP BY name ORDER BY 3 DESC");
    let found: Vec<_> =
        by_name.iter().map(|row| [0, 1, 2, 5].map(|at| row[at].clone()).to_vec()).collect();
    assert_eq!(found, expected);
    let slowest = panel("slowest");
    let expected = shown.sql("SELECT name, dur FROM slices ORDER BY dur DESC, ts LIMIT 20");
    let found: Vec<_> = cells(&slowest).iter().map(|row| row[..2].to_vec()).collect();
    assert_eq!(found, expected);
    let first = &slowest["rows"][0];
    let [begin, end] = [0, 1].map(|at| ns(&first["span"][at]));
    assert_eq!((end - begin).to_string(), expected[0][1]);
    assert_eq!(shown.post("/v1/frame", &first["frame"])["key"], first["frame"]);
    let account = panel("account");
    let sum: u64 = cells(&account)
        .iter()
        .filter(|row| row[2] == "captured")
        .map(|row| row[3].parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, shown.captured);
    let listed = shown.get("/v1/panels");
    let listed: Vec<_> =
        listed.as_array().unwrap().iter().map(|panel| panel["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ["time", "slowest", "account"]);

    let answer =
        shown.post("/v1/sql", &json!({ "sql": "SELECT count(*) AS n, max(ts) AS at FROM slices" }));
    assert_eq!(
        answer["columns"],
        json!([{"name": "n", "type": "number"}, {"name": "at", "type": "time"}])
    );
    assert_eq!(answer["rows"][0][0], shown.sql("SELECT count(*) FROM slices")[0][0]);
    // A view is for the page that made it; nothing that is there changes.
    shown.post(
        "/v1/sql",
        &json!({ "sql": "CREATE VIEW long AS SELECT * FROM slices WHERE dur > 1ms" }),
    );
    let counted = shown.post("/v1/sql", &json!({ "sql": "SELECT count(*) FROM long" }));
    let expected_count = shown.sql("SELECT count(*) FROM slices WHERE dur > 1ms");
    assert_eq!(counted["rows"][0][0], expected_count[0][0]);
    for (sql, status) in [
        ("CREATE VIEW slices AS SELECT 1 AS dur", 400),
        ("CREATE OR REPLACE VIEW slices AS SELECT 1 AS dur", 400),
        ("CREATE VIEW ppt.slices AS SELECT 1 AS dur", 400),
    ] {
        let answer = shown.ask("POST", "/v1/sql", &json!({ "sql": sql }).to_string());
        assert_eq!(answer.status, status, "{sql}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(panel("slowest"), slowest);
    let all = shown.post("/v1/sql", &json!({ "sql": "SELECT * FROM slices" }));
    assert_eq!((all["rows"].as_array().unwrap().len(), &all["truncated"]), (500, &json!(true)));

    let name = &expected[0][0];
    let (frame, field) = name.split_once('.').unwrap();
    let find = |text: &str| {
        shown.post("/v1/find", &json!({ "text": text, "from": whole["from"], "to": whole["to"] }))
    };
    let half: i64 = expected[10][1].parse().unwrap();
    let found = find(&format!("{frame}.{field} >= {half}ns"));
    let counted =
        shown.sql(&format!("SELECT count(*) FROM slices WHERE name = '{name}' AND dur >= {half}"));
    assert_eq!(found["hits"].as_array().unwrap().len().to_string(), counted[0][0]);
    let hit = &found["hits"][0];
    assert!(ns(&hit["to"]) - ns(&hit["from"]) >= half, "{hit}");
    assert_eq!(find(name)["truncated"], true);
    assert_eq!(find("no such name")["hits"], json!([]));
    let edges = shown.post("/v1/edges", &first["frame"]);
    assert!(edges["causes"].is_array() && edges["effects"].is_array());
}

/// Reads events until one is called `name`.
fn wait_for_event(stream: &mut TcpStream, name: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(&format!("event: {name}\n")) {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the connection ended: {text}");
        text += std::str::from_utf8(&piece[..count]).unwrap();
    }
    text
}

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
    let told = wait_for_event(&mut events, "ended");
    assert!(told.contains("event: grown\ndata: {\"view\":1}"), "{told}");
    let about = shown.about();
    assert_eq!((&about["live"], &about["view"]), (&json!(false), &json!(1)));
    assert_eq!(about["captures"][0]["captured"], captured.to_string());
    // As if it had been whole from the beginning.
    let whole = shown_of(&bytes, captured).about();
    assert_eq!(about["rows"], whole["rows"]);
    // Numbers of the former view mean nothing any more.
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
    let told = wait_for_event(&mut events, "trouble");
    assert!(told.contains("not a capture"), "{told}");
    // What was there is still shown.
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
    // The index is there; frames that nobody has looked at are gone.
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
    let error = Server::start(options(folder.path().join("none.bin"))).unwrap_err();
    assert_eq!(error.code(), "cannot-read", "{error}");
    let text = folder.path().join("text.bin");
    std::fs::write(&text, "text").unwrap();
    let error = Server::start(options(text)).unwrap_err();
    assert_eq!(error.code(), "not-a-capture", "{error}");
    let taken = shown(&Shop { frames: 500, ..Shop::default() });
    let port = taken.server.address().port();
    let error = Server::start(Options { port, ..options(taken.path()) }).unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }));
    assert_eq!(error.code(), "port-in-use");
    assert!(error.to_string().contains("leave --port out"), "{error}");
}

#[path = "../../../report/tests/made/kinds.rs"]
mod every;

/// Spans, chains and what the kernel did have rows, whose cells are those of the tables.
#[test]
fn spans_and_states_have_rows() {
    let (bytes, captured) = every::write("");
    let shown = shown_of(&bytes, captured);
    let about = shown.about();
    let (from, to) = (ns(&about["from"]) - 1_000_000, ns(&about["to"]) + 1_000_000_000);
    let spans = ids(&about, "spans.");
    assert!(spans.len() >= 2, "a span and a chain: {}", about["rows"]);
    for id in &spans {
        let table = id.strip_prefix("spans.").unwrap().rsplit_once('.').unwrap().0;
        let length = if table.ends_with("_chains") { "total" } else { "dur" };
        let expected = shown.sql(&format!(
            "SELECT count(*), sum({length}), min(CAST(ts AS BIGINT)) FROM {table} WHERE {length} IS NOT NULL"
        ));
        for px in [1, 50, 4096] {
            let tiles = shown.window(from, to, &[id], px, "index");
            let columns = &tiles[0].columns;
            let sum = |name: &str| columns[name].iter().sum::<f64>();
            assert_eq!(sum("count").to_string(), expected[0][0], "{id} at {px}: {}", tiles[0].head);
            assert_eq!(sum("busy").to_string(), expected[0][1], "{id} at {px}");
        }
        let entry = shown.post("/v1/entry", &json!({ "row": id, "at": expected[0][2] }));
        assert!(
            entry["fields"].as_array().unwrap().iter().any(|field| field["name"] == length),
            "{entry}"
        );
        assert!(entry["key"]["seqno"].is_string(), "{entry}");
    }
    let states = ids(&about, "states.");
    assert!(!states.is_empty(), "{}", about["rows"]);
    let expected = shown.sql("SELECT count(*), sum(dur) FROM thread_states WHERE dur IS NOT NULL");
    let rows: Vec<&str> = states.iter().map(|id| &**id).collect();
    let tiles = shown.window(from, to, &rows, 4096, "index");
    let sum = |name: &str| tiles.iter().flat_map(|tile| &tile.columns[name]).sum::<f64>();
    assert!(sum("count") > 0.0 && sum("count") <= expected[0][0].parse::<f64>().unwrap());
    let names = about["names"].as_array().unwrap();
    for tile in &tiles {
        for name in &tile.columns["name"] {
            let name = names[*name as usize]["name"].as_str().unwrap();
            assert!(["running", "runnable", "blocked", "unknown"].contains(&name), "{name}");
        }
    }
    for (row, at, status) in [
        ("spans.none.0", "1", 404),
        ("states.99", "1", 404),
        ("x", "1", 404),
        (&*spans[0], "1", 404),
    ] {
        let asked = json!({ "row": row, "at": at }).to_string();
        assert_eq!(shown.ask("POST", "/v1/entry", &asked).status, status, "{row}");
    }
    let tiles = shown.window(from, to, &["states.99"], 10, "index");
    assert!(tiles[0].head["error"].as_str().unwrap().contains("states.99"));
}
