//! Moving by keys, clicks and links.

use crate::browser::Browser;
use crate::every;
use crate::made::Shop;
use crate::page::shown::{HOSTILE, ROWS, asked, shop, shown};

#[test]
fn one_walks_by_keys_and_clicks() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let glance = browser.text("document.getElementById('glance').innerText");
    assert!(glance.contains("3 threads") && glance.contains("missing"), "{glance}");
    assert!(browser.text(ROWS).contains("thread 4212"));
    // The slowest intervals have links to the timeline.
    browser.value("document.getElementById('tab-slowest').click()");
    browser.wait_for("document.querySelectorAll('#panel td button').length === 20");
    let slowest = browser.text("document.querySelector('#panel tr:nth-child(2)').innerText");
    browser.value("document.querySelector('#panel td button').click()");
    browser
        .wait_for("document.getElementById('tab-frame').getAttribute('aria-selected') === 'true'");
    let took = slowest.split('\t').nth(1).unwrap().trim().to_owned();
    browser.wait_for("document.querySelector('#panel h2')?.innerText.includes(' of ')");
    let fields = browser.text("document.getElementById('panel').innerText");
    assert!(fields.contains(&took), "{took} is in {fields}");
    browser.wait_for("location.hash.includes('pick=')");
    let link = browser.text("location.hash");
    // A link leads there in another page with the token.
    let url = format!("{}&{}", shown.server.url(), &link[1..]);
    let mut other = Browser::open(&url, 1280, 800).unwrap();
    other.wait_for("document.querySelector('#panel h2')?.innerText.includes(' of ')");
    assert!(other.text("document.getElementById('panel').innerText").contains(&took));
    // Keys.
    let seen = "document.getElementById('overview').getAttribute('aria-valuetext')";
    for key in ["w", "d", "a", "s", "0"] {
        let before = browser.text(seen);
        browser.press(key);
        browser.wait_for(&format!("{seen} !== '{before}'"));
    }
    let whole = browser.text(seen);
    browser.press("u");
    browser.wait_for(&format!("{seen} !== '{whole}'"));
    browser.press("?");
    browser.wait_for("document.querySelector('dialog[open]')?.innerText.includes('zoom in')");
    browser.value("document.querySelector('dialog button').click()");
    browser.wait_for("document.querySelector('dialog[open]') === null");
    browser.press("t");
    browser
        .wait_for("document.querySelector('dialog[open]')?.innerText.includes('What is visible')");
    browser.value("document.querySelector('dialog button').click()");
    // A click chooses a bar, and a key its neighbour.
    browser.press("0");
    let row = "document.getElementById('row-depth.0.0').getBoundingClientRect()";
    let y = browser.value(&format!("{row}.top + {row}.height - 3")).as_f64().unwrap();
    let cells = browser
        .value("document.getElementById('cells').getBoundingClientRect().left")
        .as_f64()
        .unwrap();
    let picked = "document.body.dataset.pick !== undefined";
    browser.press("Escape");
    browser.click(cells + 60.0, y);
    browser.wait_for(picked);
    browser.value("delete document.body.dataset.pick");
    browser.press("ArrowRight");
    browser.wait_for(picked);
    assert_ne!(browser.text("document.getElementById('live').textContent"), "");
    // Finding moves from one match to the next.
    browser.press("Escape");
    browser.wait_for("document.getElementById('panel').innerText.includes('Click a bar')");
    browser.press("/");
    browser.value("document.getElementById('find').value = 'request'");
    browser.value("document.getElementById('find-form').requestSubmit()");
    browser.wait_for("/^1 of 500\\+/.test(document.getElementById('find-count').textContent)");
    browser.wait_for(picked);
    // A query in SQL, and one that is refused.
    for (sql, answer) in [("SELECT 41 + 1 AS n", "42"), ("DROP TABLE slices", "here, SQL asks")] {
        browser.value("document.getElementById('tab-sql').click()");
        browser.wait_for("document.querySelector('textarea') !== null");
        browser.value(&format!("document.querySelector('textarea').value = '{sql}'"));
        browser.value("document.querySelector('#panel form').requestSubmit()");
        browser
            .wait_for(&format!("document.getElementById('panel').innerText.includes('{answer}')"));
    }
    let refusals = |complaint: &String| !complaint.contains("400 (Bad Request)");
    let complaints: Vec<&String> =
        browser.complaints.iter().filter(|complaint| refusals(complaint)).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    // The page reports the end of the server.
    drop(shown);
    browser
        .wait_for("document.getElementById('notice').innerText.includes('The server has ended')");
}

/// The arrows of a frame are the edges in its panel. Another hop has more of them.
#[test]
fn arrows_lead_from_frame_to_frame() {
    for text in ["", HOSTILE] {
        let shown = shown(&every::write(text).0);
        let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
        // The first of three in a row.
        let sql = "SELECT one.src_capture, one.src_buffer, one.src_segment, one.src_ring, \
                   one.src_seqno FROM edges AS one JOIN edges AS two \
                   ON one.dst_buffer = two.src_buffer AND one.dst_ring = two.src_ring \
                   AND one.dst_seqno = two.src_seqno ORDER BY one.src_ts LIMIT 1";
        let found = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        let key: Vec<&str> =
            (0..5).map(|column| found["rows"][0][column].as_str().unwrap()).collect();
        let url = format!("{}&pick={}", shown.server.url(), key.join("/").replace(' ', "%20"));
        browser.another(&url);
        browser.wait_for("document.getElementById('panel').innerText.includes('It leads to')");
        let arrows = "Number(document.getElementById('cells').dataset.arrows)";
        let listed = browser.value("document.querySelectorAll('#panel td button').length");
        assert!(listed.as_f64().unwrap() > 0.0);
        browser.wait_for(&format!("{arrows} === {listed}"));
        browser.press(".");
        browser.wait_for(&format!("{arrows} > {listed}"));
        // Moves to the effect and back.
        let pick = "document.body.dataset.pick";
        let chosen = browser.text(pick);
        browser.value("document.body.dataset.pick = ''");
        browser.press("]");
        browser.wait_for(&format!("{pick} !== ''"));
        browser.wait_for("document.getElementById('panel').innerText.includes('It follows from')");
        assert_ne!(browser.text(pick), chosen);
        browser.press("[");
        browser.wait_for(&format!("{pick} === '{chosen}'"));
        // Its number in the list has the same effect as a bracket.
        browser.wait_for(&format!("{arrows} === {listed}"));
        let lines =
            "[...document.querySelectorAll('#panel td button')].map((it) => it.textContent)";
        let lines: Vec<String> = serde_json::from_value(browser.value(lines)).unwrap();
        for (number, line) in (1..=9).zip(&lines) {
            assert!(line.starts_with(&format!("{number}. ")), "{lines:?}");
            browser.press(&number.to_string());
            browser.wait_for(&format!("{pick} !== '{chosen}'"));
            let by_key = browser.text(pick);
            browser.another(&url);
            browser.wait_for("document.querySelector('#panel td button') !== null");
            let click =
                format!("document.querySelectorAll('#panel td button')[{number} - 1].click()");
            browser.value(&click);
            browser.wait_for(&format!("{pick} === '{by_key}'"));
            browser.another(&url);
            browser.wait_for(&format!("{arrows} === {listed} && {pick} === '{chosen}'"));
        }
        browser.press("Escape");
        browser.wait_for(&format!("{arrows} === 0"));
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}
