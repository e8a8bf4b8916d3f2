//! Filtered rows. Their numbers and lengths of slices are those of SQL.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::made::Shop;
use crate::served::client::*;

/// The count and the total length of slices, by thread and depth.
type Rows = BTreeMap<(String, String), (u64, u64)>;

/// The rows of a window with the filter `wanted`.
fn filtered(
    shown: &ServedCapture,
    (from, to): (i64, i64),
    rows: &[String],
    px: u32,
    wanted: &str,
) -> Vec<Tile> {
    let asked = json!({ "from": from.to_string(), "to": to.to_string(), "px": px, "rows": rows,
        "phase": "index", "where": wanted });
    let answer = shown.ask("POST", "/v1/window", &asked.to_string());
    assert_eq!(answer.status, 200, "{wanted}: {}", String::from_utf8_lossy(&answer.body));
    tiles(&answer.body)
}

/// The numbers of threads by their rows.
fn threads(about: &Value) -> BTreeMap<String, String> {
    let rows = about["rows"].as_array().unwrap().iter();
    let threads = rows.filter_map(|row| {
        let number = row["id"].as_str()?.strip_prefix("thread.")?;
        let tid = row["label"].as_str()?.split(' ').next()?;
        Some((number.to_owned(), tid.to_owned()))
    });
    threads.collect()
}

fn sum(tile: &Tile, name: &str) -> u64 {
    tile.columns[name].iter().map(|value| *value as u64).sum()
}

fn by_row(tiles: &[Tile], tids: &BTreeMap<String, String>) -> Rows {
    let row = |tile: &Tile| {
        let id = tile.head["row"].as_str().unwrap().split('.').collect::<Vec<_>>();
        let sums = (sum(tile, "count"), sum(tile, "busy"));
        ((tids[id[1]].clone(), id[2].to_owned()), sums)
    };
    tiles.iter().map(row).filter(|row| row.1.0 > 0).collect()
}

fn rows_by_key(rows: Vec<Vec<String>>) -> Rows {
    let row = |row: Vec<String>| {
        let [tid, depth, count, busy] = <[String; 4]>::try_from(row).unwrap();
        ((tid, depth), (count.parse().unwrap(), busy.parse().unwrap()))
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn rows_have_what_was_looked_for_and_nothing_else() {
    let shown = shown(&Shop { frames: 6000, threads: 3, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let (tids, depths) = (threads(&about), ids(&about, "depth."));
    let keys = ["capture", "buffer", "segment", "ring", "seqno"]
        .map(|key| format!("slices.{key} = own.{key}"))
        .join(" AND ");
    // The typed text, the kind of frames, and the condition in SQL.
    let conditions = [
        ("handle > 10ms", "request", "handle > 10ms"),
        ("request.handle > 10ms", "request", "handle > 10ms"),
        ("kind = 'PAY' AND handle > 1ms", "request", "kind = 'PAY' AND handle > 1ms"),
        ("kind = ORDER", "request", "kind = 'ORDER'"),
        ("rows BETWEEN 3 AND 30", "query", "rows BETWEEN 3 AND 30"),
        ("query.tid = 4212 OR rows = 0", "query", "tid = 4212 OR rows = 0"),
        ("size >= 0", "request", "size >= 0"),
        ("size < 0", "request", "size < 0"),
    ];
    for (typed, frame, condition) in conditions {
        let own = format!(
            "(SELECT capture, buffer, segment, ring, seqno FROM {frame} WHERE {condition})"
        );
        let expected = rows_by_key(shown.sql(&format!(
            "SELECT slices.tid, depth, count(*), sum(dur) FROM slices JOIN {own} AS own ON {keys} GROUP BY 1, 2"
        )));
        assert_eq!(expected.is_empty(), typed == "size < 0", "{typed}");
        // One pixel for the whole range, and more pixels than slices.
        for px in [1, 300, 4096] {
            let found = filtered(&shown, (from, to), &depths, px, typed);
            assert_eq!(by_row(&found, &tids), expected, "{typed} in {px} px");
        }
        // Adjacent windows have each slice once. Flag 1 marks a cell that begins before its window.
        let middle = from + (to - from) / 3;
        let count = |window| -> u64 {
            let tiles = filtered(&shown, window, &depths, 500, typed);
            let cells = tiles.iter().flat_map(|tile| {
                let columns = &tile.columns;
                columns["count"].iter().zip(&columns["flags"])
            });
            cells.filter(|(_, flags)| **flags as u16 & 1 == 0).map(|(count, _)| *count as u64).sum()
        };
        let all: u64 = expected.values().map(|row| row.0).sum();
        assert_eq!(count((from, middle)) + count((middle, to)), all, "{typed}");
        // The cells of threads count the frames that match.
        let rows = ids(&about, "thread.");
        let frames = filtered(&shown, (from, to), &rows, 300, typed);
        let by_hand = shown.sql(&format!("SELECT count(*) FROM {frame} WHERE {condition}"));
        let found: u64 = frames.iter().map(|tile| sum(tile, "count")).sum();
        assert_eq!(found.to_string(), by_hand[0][0], "{typed}");
        let lost: u64 = frames.iter().map(|tile| sum(tile, "l_count")).sum();
        assert_eq!(about["captures"][0]["lost"], lost.to_string(), "losses stay");
    }
    for part in ["query.run", "handle", "run"] {
        let expected = rows_by_key(shown.sql(&format!(
            "SELECT tid, depth, count(*), sum(dur) FROM slices WHERE strpos(name, '{part}') > 0 GROUP BY 1, 2"
        )));
        let found = filtered(&shown, (from, to), &depths, 300, part);
        assert_eq!(by_row(&found, &tids), expected, "{part}");
    }
    let none = filtered(&shown, (from, to), &depths, 300, "no such name");
    assert_eq!(by_row(&none, &tids), Rows::new());
    let asked = |wanted: &str| json!({ "from": "0", "to": "9", "px": 1, "rows": [], "phase": "index", "where": wanted });
    for wrong in ["", "nothing_of_that_name > 5", "handle > 'long'", "AND handle >"] {
        let refused = shown.ask("POST", "/v1/window", &asked(wrong).to_string());
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(!refused.error().is_empty());
    }
}

/// Frames that are about other threads than the one that wrote them, several buffers, spans and the kernel.
#[test]
fn everything_that_can_be_captured_can_be_looked_for() {
    let (bytes, captured) = crate::every::write("");
    let shown = shown_of(&bytes, captured);
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let rows: Vec<String> = ["depth.", "moments.", "thread.", "counter."]
        .iter()
        .flat_map(|kind| ids(&about, kind))
        .collect();
    let plain =
        shown.window(from, to, &rows.iter().map(|id| &**id).collect::<Vec<_>>(), 800, "frames");
    // A condition that is always true leaves all slices.
    let all = filtered(&shown, (from, to), &rows, 800, "seqno >= 0");
    for (one, other) in all.iter().zip(&plain) {
        assert_eq!(one.head["row"], other.head["row"]);
        for column in ["count", "busy", "c_count", "l_count"] {
            assert_eq!(sum(one, column), sum(other, column), "{}: {column}", one.head["row"]);
        }
    }
    let puts = filtered(&shown, (from, to), &ids(&about, "depth."), 800, "verb = PUT");
    let slices: u64 = puts.iter().map(|tile| sum(tile, "count")).sum();
    let expected = shown.sql("SELECT count(handle) FROM job WHERE verb = 'PUT'");
    assert_eq!(slices.to_string(), expected[0][0]);
}
