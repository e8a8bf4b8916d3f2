//! What is answered: cells, frames, panels, questions.

use serde_json::{Value, json};

use crate::client::*;
use crate::made::Shop;

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

/// Spans, chains and what the kernel did have rows, whose cells are those of the tables.
#[test]
fn spans_and_states_have_rows() {
    let (bytes, captured) = crate::every::write("");
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
    // Each row has the states of one thread, whichever rows it is asked with.
    let threads = shown.sql(&format!(
        "SELECT count(*), sum(dur) FROM thread_states WHERE dur IS NOT NULL \
         AND ts < to_timestamp_nanos({to}) AND CAST(ts AS BIGINT) + dur >= {from} GROUP BY host, pid, tid"
    ));
    for (id, tile) in states.iter().zip(&tiles) {
        let sum = |name: &str| tile.columns[name].iter().sum::<f64>().to_string();
        let own = vec![sum("count"), sum("busy")];
        assert!(own[0] == "0" || threads.contains(&own), "{id}: {own:?} of {threads:?}");
        let alone = shown.window(from, to, &["states.99", id], 4096, "index");
        assert!(alone[0].head["error"].as_str().unwrap().contains("states.99"));
        assert_eq!(alone[1].columns, tile.columns, "{id}");
    }
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
