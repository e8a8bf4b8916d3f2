//! Answers: cells, frames, panels, queries.

use serde_json::{Value, json};

use crate::made::Shop;
use crate::served::client::*;

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
        // Adjacent windows have each slice once. Flag 1 marks a cell that begins before its window.
        let within = |flags: f64| flags as u16 & 1 == 0;
        let middle = from + (to - from) / 3;
        let parts = [(from, middle), (middle, to)]
            .map(|(from, to)| sum(&shown.window(from, to, &depths, 700, phase), "count", &within));
        assert_eq!(parts[0] + parts[1], count, "{phase}");
    }
    // Losses are in the rows of threads.
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
    // The key leads to the same frame.
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
    // The command has the same query.
    let ((from, to), text) = ((ns(&whole["from"]), ns(&whole["to"])), slowest["command"].as_str());
    let sql = text.unwrap().split('"').nth(1).unwrap();
    assert!(sql.contains(&format!("ts < to_timestamp_nanos({to})")), "{sql} from {from}");
    let asked: Vec<_> = shown.sql(sql).iter().map(|row| row[..2].to_vec()).collect();
    assert_eq!(asked, expected);
    let account = shown.post("/v1/panel", &json!({ "id": "account" }));
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
    // A view of SQL does not replace existing tables.
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
}

/// The edges of a frame are those of the table, and their ends have positions in the timeline.
#[test]
fn edges_are_those_that_sql_knows() {
    let (bytes, captured) = crate::every::write("");
    let shown = shown_of(&bytes, captured);
    shown.about();
    let keys = shown.sql(
        "SELECT dst_capture, dst_buffer, dst_segment, dst_ring, dst_seqno FROM edges \
         GROUP BY 1, 2, 3, 4, 5 ORDER BY count(*) DESC, 5, 4 LIMIT 3",
    );
    let key = |row: &[String]| {
        let ring: u32 = row[3].parse().unwrap();
        json!({ "capture": row[0], "buffer": row[1], "segment": row[2], "ring": ring, "seqno": row[4] })
    };
    let condition = |end: &str, row: &[String]| {
        format!(
            "({end}_capture = '{}' AND {end}_buffer = '{}' AND {end}_segment = '{}' \
             AND {end}_ring = {} AND {end}_seqno = {})",
            row[0], row[1], row[2], row[3], row[4]
        )
    };
    for asked in [&keys[..1], &keys[..]] {
        let frames: Vec<Value> = asked.iter().map(|row| key(row)).collect();
        let found = shown.post("/v1/edges", &json!({ "frames": frames }));
        let any: Vec<String> =
            asked.iter().flat_map(|row| ["src", "dst"].map(|end| condition(end, row))).collect();
        let expected = shown.sql(&format!(
            "SELECT kind, src_point, dst_point, certainty, latency, latency_lo, latency_hi, \
             CAST(src_ts AS BIGINT), CAST(dst_ts AS BIGINT) FROM edges WHERE {} ORDER BY 8, 9, 1",
            any.join(" OR ")
        ));
        let edges = found["edges"].as_array().unwrap();
        let mut actual: Vec<Vec<String>> = Vec::new();
        for edge in edges {
            let (cause, effect) = (&edge["cause"], &edge["effect"]);
            let texts = [
                &edge["relation"],
                &cause["name"],
                &effect["name"],
                &edge["certainty"],
                &edge["latency"],
                &edge["lo"],
                &edge["hi"],
                &cause["at"],
                &effect["at"],
            ];
            actual.push(texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect());
            for end in [cause, effect] {
                let frame = shown.post("/v1/frame", &end["key"]);
                assert_eq!(frame["row"], end["row"]);
                let place =
                    json!({ "view": 0, "chunk": end["place"][0], "frame": end["place"][1] });
                assert_eq!(shown.post("/v1/frame", &place)["key"], end["key"]);
            }
        }
        actual.sort_by_key(|row| (row[7].clone(), row[8].clone(), row[0].clone()));
        assert!(!expected.is_empty());
        assert_eq!(actual, expected);
        assert_eq!(found["truncated"], false);
    }
    let many: Vec<Value> = vec![key(&keys[0]); 65];
    for frames in [json!([]), json!(many)] {
        let refused = shown.ask("POST", "/v1/edges", &json!({ "frames": frames }).to_string());
        assert_eq!(refused.status, 400);
    }
}

/// The rows of a panel, as text.
fn rows_of(panel: &Value) -> Vec<Vec<String>> {
    let rows = panel["rows"].as_array().unwrap().iter();
    let text = |cell: &Value| cell.as_str().unwrap().to_owned();
    rows.map(|row| row["cells"].as_array().unwrap().iter().map(text).collect()).collect()
}

/// Answers about a range of time are those of SQL. The sums of adjacent ranges are those of the whole.
#[test]
fn panels_of_a_stretch_of_time_say_what_sql_says_of_it() {
    let shown = shown(&Shop { frames: 6000, threads: 3, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let gap = shown.sql("SELECT CAST(min(ts_lo) AS BIGINT), CAST(max(ts_hi) AS BIGINT) FROM gaps");
    let [lo, hi] = [0, 1].map(|column| gap[0][column].parse::<i64>().unwrap());
    // The ranges before the gap, around it, and after it.
    let cuts = [from - 1_000_000_000, lo - 1000, hi + 1000, to + 1_000_000_000];
    let mut captured = 0;
    let mut counts = 0;
    let mut lost = Vec::new();
    for part in cuts.windows(2) {
        let window =
            format!("CAST(ts AS BIGINT) >= {} AND CAST(ts AS BIGINT) < {}", part[0], part[1]);
        let panel = |id: &str| {
            let asked = json!({ "id": id, "from": part[0].to_string(), "to": part[1].to_string() });
            shown.post("/v1/panel", &asked)
        };
        let by_name = rows_of(&panel("time"));
        let expected = shown.sql(&format!(
            "SELECT name, count(*), sum(dur), sum(self), max(dur) FROM slices WHERE {window} \
             GROUP BY name ORDER BY 3 DESC"
        ));
        let found: Vec<_> =
            by_name.iter().map(|row| [0, 1, 2, 3, 5].map(|at| row[at].clone()).to_vec()).collect();
        assert_eq!(found, expected);
        counts += found.iter().map(|row| row[1].parse::<u64>().unwrap()).sum::<u64>();
        let slowest = rows_of(&panel("slowest"));
        let expected = shown.sql(&format!(
            "SELECT name, dur FROM slices WHERE {window} ORDER BY dur DESC, ts LIMIT 20"
        ));
        assert_eq!(slowest.iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>(), expected);
        let account = panel("account");
        let rows = rows_of(&account);
        let sum = |keep: &dyn Fn(&str) -> bool| -> u64 {
            let kept = rows.iter().filter(|row| keep(&row[2]));
            kept.map(|row| row[3].parse::<u64>().unwrap()).sum()
        };
        let frames = window.replace("CAST(ts AS BIGINT)", "CAST(coalesce(ts, drained) AS BIGINT)");
        let expected = shown.sql(&format!("SELECT count(*) FROM frames WHERE {frames}"));
        assert_eq!(sum(&|cause| cause == "captured").to_string(), expected[0][0], "{account}");
        captured += sum(&|cause| cause == "captured");
        lost.push(sum(&|cause| cause != "captured"));
    }
    assert_eq!(captured, shown.captured);
    assert_eq!(counts.to_string(), shown.sql("SELECT count(*) FROM slices")[0][0]);
    let all = about["captures"][0]["lost"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(all > 0);
    assert_eq!(lost, [0, all, 0], "the gap is in the middle");
}

/// Each of two sets has its own answers. The difference is that of their totals.
#[test]
fn two_sets_are_kept_apart_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let shops = [
        Shop { frames: 3000, threads: 2, gap: false, ..Shop::default() },
        Shop { frames: 5000, threads: 3, gap: false, ..Shop::default() },
    ];
    let mut captured = Vec::new();
    let paths = ["before.bin", "after.bin"].map(|name| folder.path().join(name));
    for (shop, path) in shops.iter().zip(&paths) {
        let mut bytes = Vec::new();
        captured.push(crate::made::write(shop, &mut bytes));
        std::fs::write(path, bytes).unwrap();
    }
    let second = options(paths[1].clone()).captures;
    let options =
        ppt_view_server::ServeOptions { second: Some(second), ..options(paths[0].clone()) };
    let server = ppt_view_server::ViewServer::start(options).unwrap();
    let shown = ServedCapture { server, folder, captured: captured[0] };
    let abouts = ["/v1/about", "/v1/second/about"].map(|path| shown.get(path));
    for (about, captured) in abouts.iter().zip(&captured) {
        assert_eq!(about["captures"][0]["captured"], captured.to_string());
        assert_eq!(about["sets"], 2);
    }
    // The first half of each set.
    let stretch = |about: &Value| {
        let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
        json!({ "from": from.to_string(), "to": (from + (to - from) / 2).to_string() })
    };
    let asked = json!({ "first": stretch(&abouts[0]), "second": stretch(&abouts[1]) });
    let answer = shown.post("/v1/compare", &asked);
    assert!(answer["note"].as_str().unwrap().contains("one run"), "{answer}");
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.len() >= 2, "{answer}");
    let mut last = i64::MAX;
    for row in rows {
        let mut totals = Vec::new();
        for (side, path, set) in [("first", &paths[0], "first"), ("second", &paths[1], "second")] {
            let expected = sql_of(
                path,
                &format!(
                    "SELECT count(*), sum(dur), avg(dur) FROM slices WHERE name = '{}' \
                     AND CAST(ts AS BIGINT) >= {} AND CAST(ts AS BIGINT) < {}",
                    row["name"].as_str().unwrap(),
                    ns(&asked[set]["from"]),
                    ns(&asked[set]["to"]),
                ),
            );
            assert_eq!(row[side]["count"], expected[0][0], "{row}");
            assert_eq!(row[side]["total"], expected[0][1], "{row}");
            totals.push(expected[0][1].parse::<i64>().unwrap());
            let mean = row["changes"][0]["values"][usize::from(side == "second")].as_f64().unwrap();
            let expected = expected[0][2].parse::<f64>().unwrap();
            assert!((mean / expected - 1.0).abs() < 1e-9, "{mean} {expected}");
        }
        let difference = ns(&row["difference"]);
        assert_eq!(difference, totals[1] - totals[0]);
        assert!(difference.abs() <= last, "the largest comes first");
        last = difference.abs();
    }
    let sql = answer["commands"][1].as_str().unwrap().split('"').nth(1).unwrap().to_owned();
    let actual = sql_of(&paths[1], &sql);
    assert_eq!(actual.len(), rows.iter().filter(|row| !row["second"].is_null()).count());
    // Panels of the second set are about the second set.
    let panel = |path: &str| rows_of(&shown.post(path, &json!({ "id": "time" })));
    let expected =
        sql_of(&paths[1], "SELECT name, count(*) FROM slices GROUP BY name ORDER BY sum(dur) DESC");
    let found: Vec<_> = panel("/v1/second/panel").iter().map(|row| row[..2].to_vec()).collect();
    assert_eq!(found, expected);
    assert_ne!(panel("/v1/panel"), panel("/v1/second/panel"));
    for path in ["/v1/second/compare", "/v1/second/nothing"] {
        assert_ne!(shown.ask("POST", path, "{}").status, 200, "{path}");
    }
    let wrong = json!({ "first": asked["first"], "second": { "from": "x", "to": "1" } });
    assert_eq!(shown.ask("POST", "/v1/compare", &wrong.to_string()).status, 400);
    // A single set has no second one.
    let alone = crate::served::client::shown(&Shop { frames: 500, ..Shop::default() });
    assert_eq!(alone.ask("POST", "/v1/compare", &asked.to_string()).status, 404);
    assert_eq!(alone.ask("GET", "/v1/second/about", "").status, 404);
}

/// Spans, chains and states of threads have rows with the cells of their tables.
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
    // Each row has the states of one thread, in requests with any other rows.
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

/// The slowest intervals of each range and their parts are those of `ppt why`.
#[test]
fn the_slowest_consist_of_what_ppt_why_says() {
    let (bytes, captured) = crate::every::write("");
    let shown = shown_of(&bytes, captured);
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    for (from, to) in [(from, to), (from + (to - from) / 3, from + (to - from) / 2)] {
        let asked = json!({ "from": from.to_string(), "to": to.to_string() });
        let answer = shown.post("/v1/why", &asked);
        let bound = |ns: i64| Some(ppt_query::Bound::Epoch(ns as u64));
        let window =
            ppt_query::Window { from: bound(from), to: bound(to - 1), ..Default::default() };
        let options = ppt_query::EngineOptions { window, ..Default::default() };
        let set = ppt_query::CaptureSet::open(&[shown.path()]).unwrap();
        let engine = ppt_query::Engine::new(set, &options).unwrap();
        let question = ppt_query::why::WhyQuestion { slowest: 20, ..Default::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        let expected = runtime.block_on(engine.why(&question)).unwrap().slowest;
        let slowest = answer["slowest"].as_array().unwrap();
        assert_eq!((slowest.len(), expected.len()), (20, 20));
        for (actual, slow) in slowest.iter().zip(&expected) {
            assert_eq!(actual["name"], slow.name);
            assert_eq!(actual["sentence"], slow.sentence());
            assert_eq!(ns(&actual["to"]) - ns(&actual["from"]), slow.dur);
            assert_eq!(actual["key"]["seqno"], slow.seqno.unwrap().to_string());
            let parts = actual["parts"].as_array().unwrap();
            let expected: Vec<(String, i64)> =
                slow.parts.iter().map(|part| (part.cause(), part.spent.ns)).collect();
            let actual: Vec<(String, i64)> = parts
                .iter()
                .map(|part| (part["cause"].as_str().unwrap().to_owned(), ns(&part["ns"])))
                .collect();
            assert_eq!(actual, expected);
            assert_eq!(actual.iter().map(|part| part.1).sum::<i64>(), slow.dur);
            for part in parts {
                assert!(ns(&part["from"]) >= slow.ts && ns(&part["to"]) <= slow.ts + slow.dur);
            }
        }
    }
    // Without frames of the kernel, the answer has advice.
    let plain = crate::served::client::shown(&Shop { frames: 900, ..Shop::default() });
    let about = plain.about();
    let asked = json!({ "from": about["from"], "to": about["to"] });
    let refused = plain.ask("POST", "/v1/why", &asked.to_string());
    assert_eq!(refused.status, 400);
    assert!(refused.error().contains("--kernel"), "{}", refused.error());
}

/// The paths between two points are those of `critical_path` and `paths`. Their steps have rows.
#[test]
fn ways_are_those_that_sql_knows() {
    let (bytes, captured) = crate::every::write("");
    let shown = shown_of(&bytes, captured);
    let about = shown.about();
    let points = shown.get("/v1/points");
    let names: Vec<String> = serde_json::from_value(points).unwrap();
    let known = shown.sql("SELECT DISTINCT src_point FROM edges ORDER BY 1");
    assert!(known.concat().iter().all(|name| names.contains(name)) && !known.is_empty());
    let (from, to) = ("encode", "encode");
    let answer = shown.post("/v1/paths", &json!({ "from": from, "to": to }));
    let expected = shown
        .sql(&format!("SELECT stage, place, count, time FROM critical_path('{from}', '{to}')"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let stages = answer["stages"].as_array().unwrap().iter();
    let actual: Vec<Vec<String>> = stages
        .map(|stage| ["stage", "place", "count", "time"].map(|name| text(&stage[name])).to_vec())
        .collect();
    assert!(!actual.is_empty());
    assert_eq!(actual, expected);
    let latencies = shown.sql(&format!(
        "SELECT latency FROM paths('{from}', '{to}') ORDER BY latency DESC LIMIT 20"
    ));
    let slowest = answer["slowest"].as_array().unwrap();
    let actual: Vec<String> = slowest.iter().map(|way| text(&way["latency"])).collect();
    assert_eq!(actual, latencies.concat());
    for way in slowest {
        let hops = way["hops"].as_array().unwrap();
        let sum: i64 = hops.iter().map(|hop| ns(&hop["end"]) - ns(&hop["begin"])).sum();
        assert_eq!(sum.to_string(), text(&way["latency"]));
        for hop in hops {
            let row = &hop["row"];
            assert!(about["rows"].as_array().unwrap().iter().any(|known| known["id"] == *row));
        }
    }
    let none = json!({ "from": "nothing", "to": to });
    assert_eq!(shown.ask("POST", "/v1/paths", &none.to_string()).status, 400);
}

/// A filter counts the matches of each thread as SQL does.
#[test]
fn a_filter_counts_what_sql_counts() {
    let shown = shown(&Shop { frames: 4000, threads: 3, ..Shop::default() });
    let about = shown.about();
    let (from, to) = (ns(&about["from"]), ns(&about["to"]) + 1);
    let name =
        shown.sql("SELECT name FROM slices GROUP BY name ORDER BY count(*) DESC")[0][0].clone();
    let (frame, field) = name.split_once('.').unwrap();
    let middle = shown.sql(&format!("SELECT CAST(median({field}) AS BIGINT) FROM {frame}"));
    let middle: i64 = middle[0][0].parse().unwrap();
    let (low, high) = (middle / 2, middle * 2);
    let between = format!("{field} BETWEEN {low}ns AND {high}ns");
    for (text, source, condition) in [
        (name.clone(), "slices", format!("name = '{name}'")),
        (format!("{name} >= {middle}ns"), frame, format!("{field} >= {middle}")),
        (format!("{frame}.{between}"), frame, format!("{field} BETWEEN {low} AND {high}")),
        (format!("{field} > 9999s"), frame, "false".to_owned()),
    ] {
        for (from, to) in [(from, to), (from + (to - from) / 3, from + (to - from) / 2)] {
            let asked = json!({ "text": text, "from": from.to_string(), "to": to.to_string() });
            let answer = shown.post("/v1/filter", &asked);
            let expected = shown.sql(&format!(
                "SELECT tid, count(*) FROM {source} WHERE {condition} \
                 AND CAST(ts AS BIGINT) >= {from} AND CAST(ts AS BIGINT) < {to} \
                 GROUP BY tid ORDER BY tid"
            ));
            let label = |row: &Value| {
                let rows = about["rows"].as_array().unwrap();
                rows.iter().find(|known| known["id"] == *row).unwrap()["label"].clone()
            };
            let rows = answer["rows"].as_array().unwrap().iter();
            let mut actual: Vec<(String, String)> = rows
                .map(|row| (label(&row["row"]).to_string(), row["count"].as_str().unwrap().into()))
                .collect();
            actual.sort();
            assert_eq!(actual.len(), expected.len(), "{text}");
            for ((label, count), row) in actual.iter().zip(&expected) {
                assert!(
                    label.contains(&row[0]) && *count == row[1],
                    "{text}: {actual:?} {expected:?}"
                );
            }
            let sum: i64 = expected.iter().map(|row| row[1].parse::<i64>().unwrap()).sum();
            assert_eq!(answer["count"], sum.to_string());
            let hits = shown.post("/v1/find", &asked)["hits"].as_array().unwrap().len() as i64;
            assert_eq!(hits, sum.min(500), "{text}");
            let command = answer["command"].as_str().unwrap();
            match source {
                "slices" => assert!(command.starts_with("ppt sql CAPTURE"), "{command}"),
                _ => assert!(command.contains("--where '"), "{command}"),
            }
        }
    }
    for bad in ["", "nosuch > 5", "job.", "a BETWEEN"] {
        let asked = json!({ "text": bad, "from": from.to_string(), "to": to.to_string() });
        let answer = shown.ask("POST", "/v1/filter", &asked.to_string());
        assert!(answer.status == 400 || answer.json()["count"] == "0", "{bad}: {}", answer.status);
    }
}
