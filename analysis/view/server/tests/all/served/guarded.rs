//! Access control, and refused requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::made::Shop;
use crate::served::client::*;

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

/// Foreign names that point here by DNS, foreign pages, and forms in them.
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
    let saved = |format: &str, from: &str, to: &str, table: Value| {
        json!({ "format": format, "from": from, "to": to, "table": table }).to_string()
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
        ("/v1/export", saved("perfetto", "5", "5", Value::Null), 400, "nothing is between"),
        ("/v1/export", saved("perfetto", "-9", "0", Value::Null), 400, "before 1970"),
        ("/v1/export", saved("perfetto", "x", "5", Value::Null), 400, "`x` is no time"),
        ("/v1/export", saved("perfetto", "1", "5", json!("nix")), 400, "nix"),
        ("/v1/export", saved("parquet", "1", "5", Value::Null), 400, "`table` names what"),
        ("/v1/export", saved("parquet", "1", "5", json!("nix")), 400, "nix"),
        ("/v1/export", saved("parquet", "1", "5", json!("captures")), 400, "captures"),
        ("/v1/export", saved("csv", "1", "5", Value::Null), 400, "unknown variant"),
        ("/v1/panel", json!({"id": "none"}).to_string(), 400, "no such panel"),
        ("/v1/find", json!({"text": "", "from": "0", "to": "1"}).to_string(), 400, "type a name"),
        (
            "/v1/find",
            json!({"text": "nix > 1", "from": "0", "to": "1"}).to_string(),
            400,
            "no column `nix`",
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
    // An unknown row does not affect the others.
    let (from, to) = (ns(&about["from"]), ns(&about["to"]));
    let tiles = shown.window(from, to, &["depth.0.99", "thread.0"], 10, "index");
    assert!(tiles[0].head["error"].as_str().unwrap().contains("no row `depth.0.99`"));
    assert_eq!(tiles[1].head["row"], "thread.0");
}

/// Requests with any times get an answer, and so does the next request.
#[test]
fn times_at_their_limits_end_nothing() {
    let (bytes, captured) = crate::every::write("");
    let shown = shown_of(&bytes, captured);
    let about = shown.about();
    let rows = ids(&about, "");
    let rows: Vec<&str> = rows.iter().map(|id| &**id).collect();
    let limits = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    for (at, &from) in limits.iter().enumerate() {
        for &to in &limits[at + 1..] {
            for px in [1, 4096] {
                let tiles = shown.window(from, to, &rows, px, "frames");
                assert_eq!(tiles.len(), rows.len(), "{from} to {to}");
            }
            let (from, to) = (from.to_string(), to.to_string());
            for (path, asked) in [
                ("/v1/lengths", json!({ "row": rows[0], "from": from, "to": to })),
                ("/v1/find", json!({ "text": "a", "from": from, "to": to })),
                ("/v1/panel", json!({ "id": "slowest", "from": from, "to": to })),
                ("/v1/entry", json!({ "row": rows[0], "at": from })),
            ] {
                let status = shown.ask("POST", path, &asked.to_string()).status;
                assert!([200, 400, 404].contains(&status), "{path} {asked}: {status}");
            }
        }
    }
    for &from in &limits[..6] {
        let asked = json!({
            "format": "perfetto", "from": from.to_string(), "to": i64::MAX.to_string(),
        });
        assert_eq!(shown.ask("POST", "/v1/export", &asked.to_string()).status, 200, "{from}");
    }
    // One row, repeated up to the limit of a request.
    let tiles = shown.window(0, i64::MAX, &[rows[0]; 256], 4096, "frames");
    assert_eq!(tiles.len(), 256);
    assert_eq!(shown.about()["captures"], about["captures"]);
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
    // The server accepts 64 connections, and no more until one is free.
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
        // The server may not have accepted all of them yet.
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
