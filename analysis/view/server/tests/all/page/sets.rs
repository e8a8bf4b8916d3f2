//! Two sets of captures.

use std::time::{Duration, Instant};

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{HOSTILE, ROWS, asked, cells, shop, shown_beside};

#[test]
fn two_sets_stand_side_by_side() {
    let text = HOSTILE.to_owned();
    let (before, _) = shop(&Shop { frames: 2000, threads: 2, text, ..Shop::default() });
    let (after, captured) = shop(&Shop { frames: 3000, threads: 3, ..Shop::default() });
    let shown = shown_beside(&before, Some(&after));
    let url = shown.server.url();
    let Some(mut browser) = Browser::open(&url, 1280, 800) else { return };
    // Both panes are drawn, with one scale.
    let drawn = |id: &str| {
        format!(
            "(() => {{ const cells = document.getElementById('{id}');
            const bytes = cells.getContext('2d').getImageData(0, 0, cells.width, cells.height).data;
            return new Set(new Uint32Array(bytes.buffer)).size > 3; }})()"
        )
    };
    for id in ["cells", "cells-second"] {
        browser.wait_for(&drawn(id));
    }
    let same = "document.getElementById('cells').width === \
                document.getElementById('cells-second').width";
    assert_eq!(browser.value(same), true);
    let rows = browser.text(ROWS);
    assert!(rows.contains("thread 4211 · 4211") || rows.contains("thread 4211\n"), "{rows}");
    assert!(rows.contains("(only after)"), "the third thread: {rows}");
    // The differences are those of the server, which tests/all/served compares with SQL.
    browser.wait_for("document.querySelectorAll('#differences td').length > 8");
    let stretch = |browser: &mut Browser, path: &str| {
        let sql = "SELECT CAST(min(ts) AS BIGINT), CAST(max(ts) AS BIGINT) + 1 FROM slices";
        let found = asked(browser, path, &serde_json::json!({ "sql": sql }));
        serde_json::json!({ "from": found["rows"][0][0], "to": found["rows"][0][1] })
    };
    let first = stretch(&mut browser, "/v1/sql");
    let second = stretch(&mut browser, "/v1/second/sql");
    let body = serde_json::json!({ "first": first, "second": second });
    let answer = asked(&mut browser, "/v1/compare", &body);
    let actual = cells(&mut browser, "#differences");
    let listed = answer["rows"].as_array().unwrap();
    assert_eq!(actual.len(), listed.len(), "{actual:?}");
    for (actual, row) in actual.iter().zip(listed) {
        let count = |side: &str| {
            ppt_text::grouped(row[side]["count"].as_str().unwrap_or("0").parse().unwrap())
        };
        assert_eq!(
            actual[..3],
            [row["name"].as_str().unwrap().into(), count("first"), count("second")]
        );
        let sign = if row["difference"].as_str().unwrap().starts_with('-') { '−' } else { '+' };
        assert!(actual[5].starts_with(sign), "{actual:?}");
    }
    // Answers are about one set. A key switches to the other one.
    assert_eq!(
        browser.text("document.getElementById('set-0').getAttribute('aria-pressed')"),
        "true"
    );
    browser.press("o");
    browser.wait_for("document.getElementById('set-1').getAttribute('aria-pressed') === 'true'");
    assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
    // The slowest intervals of both sets.
    let mut times = Vec::new();
    for (set, path) in [("set-1", "/v1/second/panel"), ("set-0", "/v1/panel")] {
        let slowest = asked(&mut browser, path, &serde_json::json!({ "id": "slowest" }));
        times.push(slowest["rows"][0]["span"][0].as_str().unwrap().parse::<i64>().unwrap());
        browser.value("document.getElementById('tab-start').click()");
        browser.value(&format!("document.getElementById('{set}').click()"));
        browser.press("0");
        browser.value("document.getElementById('tab-slowest').click()");
        browser.wait_for("document.querySelectorAll('#panel td button').length > 0");
        browser.value("delete document.body.dataset.pick");
        browser.value("document.querySelector('#panel td button').click()");
        browser.wait_for("document.body.dataset.pick !== undefined");
    }
    let apart = "String(BigInt(document.getElementById('cells-second').dataset.zero) - \
                 BigInt(document.getElementById('cells').dataset.zero))";
    let choose = |browser: &mut Browser, way: &str| {
        browser.value(&format!(
            "(() => {{ const it = document.getElementById('align'); it.value = '{way}';
                it.dispatchEvent(new Event('change')); }})()"
        ));
    };
    choose(&mut browser, "chosen");
    browser.wait_for(&format!("{apart} === '{}'", times[0] - times[1]));
    choose(&mut browser, "clock");
    browser.wait_for(&format!("{apart} === '0'"));
    choose(&mut browser, "trigger");
    browser.wait_for("document.getElementById('notice').innerText.includes('no trigger')");
    // A click chooses a frame of its pane, and a link keeps it.
    browser.press("Escape");
    let place = "document.getElementById('cells-second').getBoundingClientRect().left";
    let left = browser.value(place).as_f64().unwrap();
    browser.wait_for("document.getElementById('row-depth.0.0') !== null");
    let row = "document.getElementById('row-depth.0.0').getBoundingClientRect()";
    let y = browser.value(&format!("{row}.top + {row}.height - 3")).as_f64().unwrap();
    // The cells arrive a moment after the frame is released.
    let chosen = "location.hash.includes('pick=') && location.hash.includes('set=1')";
    let begun = Instant::now();
    while browser.value(chosen) != true {
        assert!(begun.elapsed() < Duration::from_secs(60), "{rows}");
        browser.click(left + 60.0, y);
        std::thread::sleep(Duration::from_millis(400));
    }
    let link = browser.text("location.hash");
    let mut other = Browser::open(&format!("{url}&{}", &link[1..]), 1280, 800).unwrap();
    other.wait_for("document.getElementById('set-1').getAttribute('aria-pressed') === 'true'");
    other.wait_for("document.body.dataset.pick !== undefined");
    browser.resize(420, 700);
    browser.wait_for("innerWidth === 420 && document.documentElement.scrollWidth <= innerWidth");
    // The test itself reads canvases more than once.
    browser.complaints.retain(|complaint| !complaint.contains("willReadFrequently"));
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert_eq!(other.complaints, Vec::<String>::new());
}
