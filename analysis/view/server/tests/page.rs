//! The page in a browser, and its modules in node.

#[path = "../../../report/tests/made/kinds.rs"]
mod every;
#[path = "../../../report/tests/made/mod.rs"]
mod made;

#[path = "support/browser.rs"]
mod browser;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use browser::{Browser, program};
use made::Shop;
use ppt_view_server::{Captures, ServeOptions, ViewServer};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u{202e}";

struct Shown {
    server: ViewServer,
    _folder: tempfile::TempDir,
}

fn shown(bytes: &[u8]) -> Shown {
    shown_beside(bytes, None)
}

fn shown_beside(bytes: &[u8], second: Option<&[u8]>) -> Shown {
    let folder = tempfile::tempdir().unwrap();
    let captures = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Captures { paths: vec![path], threads: 2, ..Captures::default() }
    };
    let second = second.map(|bytes| captures("after.bin", bytes));
    let captures = captures("shop.bin", bytes);
    let options = ServeOptions { captures, second, ..ServeOptions::default() };
    Shown { server: ViewServer::start(options).unwrap(), _folder: folder }
}

/// What a route answers, asked by the page itself.
fn asked(browser: &mut Browser, path: &str, body: &serde_json::Value) -> serde_json::Value {
    browser.value(&format!(
        "fetch('{path}', {{ method: 'POST', body: JSON.stringify({body}), headers: {{
            authorization: `Bearer ${{sessionStorage.getItem('ppt-view-token')}}` }} }})
            .then((answer) => answer.json())"
    ))
}

/// The cells of a table of the page.
fn cells(browser: &mut Browser, place: &str) -> Vec<Vec<String>> {
    let rows = browser.value(&format!(
        "[...document.querySelectorAll('{place} tr')].slice(1)
            .map((row) => [...row.cells].map((cell) => cell.textContent))"
    ));
    serde_json::from_value(rows).unwrap()
}

fn shop(shop: &Shop) -> (Vec<u8>, u64) {
    let mut bytes = Vec::new();
    let captured = made::write(shop, &mut bytes);
    (bytes, captured)
}

const ROWS: &str = "document.getElementById('labels').innerText";

#[test]
fn a_browser_draws_the_page_and_runs_nothing_else() {
    let empty = every::write("").0;
    let all = [
        shop(&Shop { frames: 900, threads: 3, ..Shop::default() }),
        shop(&Shop { frames: 900, threads: 3, text: HOSTILE.to_owned(), ..Shop::default() }),
        shop(&Shop { frames: 20_000, threads: 300, ..Shop::default() }),
        every::write(HOSTILE),
        // Nothing but the head.
        (empty[..empty.len().min(4096)].to_vec(), 0),
    ];
    for (bytes, captured) in all {
        let shown = shown(&bytes);
        for (width, height) in [(1280, 800), (420, 700)] {
            let Some(mut browser) = Browser::open(&shown.server.url(), width, height) else {
                return;
            };
            assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
            assert!(browser.text("document.body.innerText").contains("What was captured"));
            assert_ne!(browser.text("document.title"), "owned", "a script of the target ran");
            assert_eq!(browser.value("document.images.length"), 0, "text of the target is text");
            assert!(!browser.text("document.body.innerText").contains('\u{202e}'));
            let overflow = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(browser.value(overflow), false, "{width} px are enough");
            // The token is gone from what others may see over the shoulder.
            assert!(!browser.text("location.href").contains("token"));
            assert_eq!(browser.complaints, Vec::<String>::new());
        }
    }
}

#[test]
fn one_walks_by_keys_and_clicks() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let glance = browser.text("document.getElementById('glance').innerText");
    assert!(glance.contains("3 threads") && glance.contains("missing"), "{glance}");
    assert!(browser.text(ROWS).contains("thread 4212"));
    // The slowest lead to their places.
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
    // A link leads there, in another page that knows the token.
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
    // A click on a bar, and its neighbour by the keyboard.
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
    // Finding steps from one to the next.
    browser.press("Escape");
    browser.wait_for("document.getElementById('panel').innerText.includes('Click a bar')");
    browser.press("/");
    browser.value("document.getElementById('find').value = 'request'");
    browser.value("document.getElementById('find-form').requestSubmit()");
    browser.wait_for("/^1 of 500\\+/.test(document.getElementById('find-count').textContent)");
    browser.wait_for(picked);
    // A question in SQL, and one that is refused.
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
    // When the server is gone, the page says so.
    drop(shown);
    browser
        .wait_for("document.getElementById('notice').innerText.includes('The server has ended')");
}

/// The arrows of a frame are the edges that its panel lists, and one more hop has more of them.
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
        // To the effect and back.
        let pick = "document.body.dataset.pick";
        let chosen = browser.text(pick);
        browser.value("document.body.dataset.pick = ''");
        browser.press("]");
        browser.wait_for(&format!("{pick} !== ''"));
        browser.wait_for("document.getElementById('panel').innerText.includes('It follows from')");
        assert_ne!(browser.text(pick), chosen);
        browser.press("[");
        browser.wait_for(&format!("{pick} === '{chosen}'"));
        browser.press("Escape");
        browser.wait_for(&format!("{arrows} === 0"));
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// Parts add up to the length that is shown, and lead to their places.
#[test]
fn the_slowest_say_what_they_consist_of() {
    for text in ["", HOSTILE] {
        let shown = shown(&every::write(text).0);
        let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
        browser.value("document.getElementById('tab-why').click()");
        browser.wait_for("document.querySelectorAll('#panel .why > li').length === 20");
        let told = browser.value(
            "[...document.querySelectorAll('#panel .why > li')].map((slow) => [slow.dataset.ns,
                ...[...slow.querySelectorAll('tr')].map((part) => part.dataset.ns)])",
        );
        let told: Vec<Vec<String>> = serde_json::from_value(told).unwrap();
        for numbers in &told {
            let numbers: Vec<i64> = numbers.iter().map(|ns| ns.parse().unwrap()).collect();
            assert_eq!(numbers[0], numbers[1..].iter().sum::<i64>());
        }
        let sql = "SELECT greatest((SELECT max(dur) FROM slices), \
                   (SELECT max(dur) FROM request_spans)) AS longest";
        let longest = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        assert_eq!(longest["rows"][0][0], told[0][0]);
        let seen = "document.getElementById('overview').getAttribute('aria-valuetext')";
        let before = browser.text(seen);
        browser.value("document.querySelector('#panel .why td button').click()");
        browser.wait_for(&format!("{seen} !== '{before}'"));
        browser.press("0");
        browser.wait_for(&format!("{seen} === '{before}'"));
        browser.wait_for("document.querySelectorAll('#panel .why > li').length === 20");
        browser.value("document.querySelector('#panel .why .head').click()");
        browser.wait_for("document.body.dataset.pick !== undefined");
        assert_eq!(browser.value("document.images.length"), 0);
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// A way is shown step by step, and all else is dimmed.
#[test]
fn a_way_is_told_from_all_else() {
    for text in ["", HOSTILE] {
        let shown = shown(&every::write(text).0);
        let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
        browser.value("document.getElementById('tab-paths').click()");
        browser.wait_for("document.querySelectorAll('#panel select').length === 2");
        let steps = "Number(document.getElementById('cells').dataset.steps)";
        assert_eq!(browser.value(steps), 0);
        browser.value(
            "for (const select of document.querySelectorAll('#panel select')) {
                select.value = 'encode';
                select.dispatchEvent(new Event('change'));
            }",
        );
        browser.value("document.querySelector('#panel form').requestSubmit()");
        browser.wait_for("document.querySelectorAll('#panel table').length === 2");
        browser.value("document.querySelector('#panel table:nth-of-type(2) button').click()");
        browser.wait_for("document.querySelectorAll('#panel table').length === 3");
        let listed = "document.querySelectorAll('#panel div table button').length";
        browser.wait_for(&format!("{listed} > 0 && {steps} > 0"));
        browser.press("Escape");
        browser.wait_for(&format!("{steps} === 0"));
        assert_eq!(browser.value("document.images.length"), 0);
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// What is typed, and what is brushed, leaves the rows that have it, as often as SQL says.
#[test]
fn what_one_finds_is_a_filter() {
    for text in ["", HOSTILE] {
        let text = text.to_owned();
        let (bytes, _) = shop(&Shop { frames: 4000, threads: 3, text, ..Shop::default() });
        let shown = shown(&bytes);
        let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
        let count = |browser: &mut Browser, condition: &str| -> (String, usize) {
            let (frame, condition) = condition.split_once('.').unwrap();
            let sql = format!("SELECT tid, count(*) FROM {frame} WHERE {condition} GROUP BY tid");
            let found = asked(browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
            let rows = found["rows"].as_array().unwrap();
            let sum = rows.iter().map(|row| row[1].as_str().unwrap().parse::<u64>().unwrap()).sum();
            (ppt_text::grouped(sum), rows.len())
        };
        let sql = "SELECT name, max(dur) FROM slices GROUP BY name ORDER BY 2 DESC LIMIT 1";
        let longest = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        let name = longest["rows"][0][0].as_str().unwrap().to_owned();
        let typed = format!("{name} >= {}ns", longest["rows"][0][1].as_str().unwrap());
        let threads = "document.querySelectorAll('#labels .row.thread').length";
        assert_eq!(browser.value(threads), 3);
        browser.value(&format!("document.getElementById('find').value = '{typed}'"));
        let (found, rows) = count(&mut browser, &typed);
        assert!(rows < 3, "{found} in {rows} threads");
        browser.press("F");
        let told = "document.getElementById('find-count').textContent";
        browser.wait_for(&format!("{told}.startsWith('{found} in {rows} thread')"));
        browser.wait_for(&format!("{threads} === {rows}"));
        browser.wait_for("location.hash.includes('where=')");
        // The command that answers the same, where the browser does not let the page copy.
        browser.value(
            "navigator.clipboard ? navigator.clipboard.writeText = () => Promise.reject() : 0",
        );
        browser.press("y");
        browser.wait_for("document.getElementById('notice').innerText.includes(\"--where '\")");
        let link = browser.text("location.hash");
        let mut other =
            Browser::open(&format!("{}&{}", shown.server.url(), &link[1..]), 1280, 800).unwrap();
        other.wait_for(&format!("{threads} === {rows}"));
        browser.press("Escape");
        browser.wait_for(&format!("{threads} === 3"));
        // A part of the histogram.
        browser.value("document.getElementById('tab-lengths').click()");
        browser.wait_for("document.querySelectorAll('.bars button').length > 1");
        let place = |at: &str| {
            format!(
                "(() => {{ const box = document.querySelector('.bars').getBoundingClientRect();
                return {at}; }})()"
            )
        };
        let number = |browser: &mut Browser, at: &str| browser.value(&place(at)).as_f64().unwrap();
        let (left, right, y) = (
            number(&mut browser, "box.left + 2"),
            number(&mut browser, "box.left + box.width / 2"),
            number(&mut browser, "box.bottom - 5"),
        );
        browser.drag((left, y), (right, y));
        browser.wait_for("document.getElementById('find').value.includes(' BETWEEN ')");
        let brushed = browser.text("document.getElementById('find').value");
        let (found, rows) = count(&mut browser, &brushed);
        browser.wait_for(&format!("{told}.startsWith('{found} in {rows} thread')"));
        assert!(found != "0" && rows > 0);
        // The same by the keyboard: from the first bar to the last one.
        browser.value("document.getElementById('tab-lengths').click()");
        browser.wait_for("document.querySelectorAll('.bars button').length > 1");
        browser.value("document.querySelector('.bars button').click()");
        browser.wait_for(&format!("document.getElementById('find').value !== '{brushed}'"));
        assert_eq!(browser.value("document.images.length"), 0);
        assert_eq!(browser.complaints, Vec::<String>::new());
        assert_eq!(other.complaints, Vec::<String>::new());
    }
}

/// A pinned row stays at the top, whatever is scrolled, and a link keeps it.
#[test]
fn a_pinned_row_stays_in_sight() {
    let text = HOSTILE.to_owned();
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 40, text, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let rows = "[...document.querySelectorAll('#labels .row')]";
    let id =
        browser.text(&format!("{rows}.filter((row) => row.matches('.thread'))[1].dataset.row"));
    let place = |id: &str| {
        format!(
            "(document.getElementById('row-{id}')?.getBoundingClientRect().top \
             - document.getElementById('labels').getBoundingClientRect().top)"
        )
    };
    // By a click on the row, and a key.
    browser.value(&format!("document.getElementById('row-{id}').click()"));
    browser.press("p");
    browser.wait_for(&format!("{} === 0", place(&id)));
    browser.value("document.getElementById('scroller').scrollTop = 600");
    browser.wait_for(&format!("!{rows}.some((row) => row.dataset.row === 'process.0')"));
    browser.wait_for(&format!("{} === 0", place(&id)));
    // No other row lies below it, in whole or in part.
    let pinned = format!("document.getElementById('row-{id}').getBoundingClientRect().bottom");
    let free = format!(
        "{rows}.every((row) => row.dataset.row === '{id}' \
         || row.getBoundingClientRect().top >= {pinned} - 1)"
    );
    assert_eq!(browser.value(&free), true);
    // A click on its cells is about it.
    let middle = |what: &str| {
        format!(
            "(() => {{ const box = document.getElementById('{what}').getBoundingClientRect(); \
                 return box.top + 12; }})()"
        )
    };
    let y = browser.value(&middle("cells")).as_f64().unwrap();
    browser.press("ArrowDown");
    browser.wait_for(&format!("!document.getElementById('row-{id}').matches('.picked')"));
    browser.click(600.0, y);
    browser.wait_for(&format!("document.getElementById('row-{id}').matches('.picked')"));
    browser.wait_for("location.hash.includes('pinned=')");
    let link = browser.text("location.hash");
    let url = format!("{}&{}", shown.server.url(), &link[1..]);
    let mut other = Browser::open(&url, 1280, 800).unwrap();
    other.wait_for(&format!("{} === 0", place(&id)));
    assert_eq!(other.complaints, Vec::<String>::new());
    // By the pointer, it goes where it was.
    browser
        .value(&format!("document.querySelector('#row-' + CSS.escape('{id}') + ' .pin').click()"));
    browser.value("document.getElementById('scroller').scrollTop = 0");
    browser.wait_for(&format!("{} > 0", place(&id)));
    browser.wait_for("!location.hash.includes('pinned=')");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn one_reads_it_at_twice_the_size_and_in_forced_colours() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    browser.zoomed_in_forced_colours(1280, 800);
    browser.wait_for("innerWidth === 640 && matchMedia('(forced-colors: active)').matches");
    // The cells are drawn again, with as many pixels as the screen has.
    browser.wait_for(
        "(() => { const cells = document.getElementById('cells');
            return cells.width === Math.round(cells.clientWidth * 2); })()",
    );
    let painted = "(() => { const cells = document.getElementById('cells');
        const bytes = cells.getContext('2d').getImageData(0, 0, cells.width, cells.height).data;
        return new Set(new Uint32Array(bytes.buffer)).size > 3; })()";
    browser.wait_for(painted);
    assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false);
    // The chosen row and tab do not depend on a colour of the page.
    let colour = "getComputedStyle(document.querySelector('.row.picked')).backgroundColor !== \
                  getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.value(colour), true);
    // Otherwise the browser puts a ground behind the text, of the colour of the text.
    let adjusted =
        "getComputedStyle(document.querySelector('.row.picked .text')).forcedColorAdjust";
    assert_eq!(browser.text(adjusted), "none");
    let lines = "new Set([...document.querySelectorAll('#tabs button')]
        .map((tab) => getComputedStyle(tab).borderBottomColor)).size";
    assert_eq!(browser.value(lines), 2, "one tab has a line");
    let least =
        "Math.min(...[...document.querySelectorAll('header button, #tabs button, #labels button')]
        .map((button) => button.getBoundingClientRect().height))";
    assert!(browser.value(least).as_f64().unwrap() >= 24.0, "targets have 24 px");
    browser.press("e");
    browser.wait_for("document.querySelector('dialog[open]') !== null");
    let fits = "(() => { const box = document.querySelector('dialog').getBoundingClientRect();
        return box.left >= 0 && box.right <= innerWidth; })()";
    assert_eq!(browser.value(fits), true);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn answers_are_about_what_is_marked() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    browser.value("document.getElementById('tab-time').click()");
    browser.wait_for("document.querySelectorAll('#panel td').length > 0");
    let all = cells(&mut browser, "#panel");
    let top = |browser: &mut Browser, id: &str| {
        let place = format!("document.getElementById('{id}').getBoundingClientRect().top + 10");
        browser.value(&place).as_f64().unwrap()
    };
    let (axis, rows) = (top(&mut browser, "axis"), top(&mut browser, "cells"));
    for (y, by_shift) in [(axis, false), (rows, true)] {
        if by_shift {
            browser.shift_drag((450.0, y), (520.0, y));
        } else {
            browser.drag((500.0, y), (700.0, y));
        }
        browser.wait_for("document.getElementById('panel').innerText.includes('are marked')");
        browser.wait_for("location.hash.includes('marked=')");
        let marked = browser.text("new URLSearchParams(location.hash.slice(1)).get('marked')");
        let (from, to) = marked.split_once('/').unwrap();
        let window = format!("CAST(ts AS BIGINT) >= {from} AND CAST(ts AS BIGINT) < {to}");
        let sql = format!(
            "SELECT name, count(*) FROM slices WHERE {window} GROUP BY name ORDER BY sum(dur) DESC"
        );
        let expected = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        let expected: Vec<Vec<String>> = serde_json::from_value(expected["rows"].clone()).unwrap();
        let told = |browser: &mut Browser| -> Vec<Vec<String>> {
            let rows = cells(browser, "#panel").into_iter();
            rows.map(|row| vec![row[0].clone(), row[1].replace(',', "")]).collect()
        };
        let begun = Instant::now();
        while told(&mut browser) != expected {
            assert!(begun.elapsed() < Duration::from_secs(60), "{expected:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!expected.is_empty() && told(&mut browser) != all);
        // The account of the same time.
        browser.value("document.getElementById('tab-account').click()");
        let frames = window.replace("ts", "coalesce(ts, drained)");
        let sql = format!("SELECT count(*) FROM frames WHERE {frames}");
        let count = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        let count = ppt_text::grouped(count["rows"][0][0].as_str().unwrap().parse().unwrap());
        browser.wait_for(&format!(
            "[...document.querySelectorAll('#panel td')].some((it) => it.textContent === '{count}')"
        ));
        browser.value("document.querySelector('#panel p button').click()");
        browser.wait_for("document.getElementById('panel').innerText.includes('ppt info')");
        browser.value("document.getElementById('tab-time').click()");
        browser.wait_for("document.getElementById('panel').innerText.includes('are visible')");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn two_sets_stand_side_by_side() {
    let text = HOSTILE.to_owned();
    let (before, _) = shop(&Shop { frames: 2000, threads: 2, text, ..Shop::default() });
    let (after, captured) = shop(&Shop { frames: 3000, threads: 3, ..Shop::default() });
    let shown = shown_beside(&before, Some(&after));
    let url = shown.server.url();
    let Some(mut browser) = Browser::open(&url, 1280, 800) else { return };
    // One scale: as wide, and both drawn.
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
    // What differs is what the server says, and what it says is what SQL says (tests/served).
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
    let told = cells(&mut browser, "#differences");
    let listed = answer["rows"].as_array().unwrap();
    assert_eq!(told.len(), listed.len(), "{told:?}");
    for (told, row) in told.iter().zip(listed) {
        let count = |side: &str| {
            ppt_text::grouped(row[side]["count"].as_str().unwrap_or("0").parse().unwrap())
        };
        assert_eq!(
            told[..3],
            [row["name"].as_str().unwrap().into(), count("first"), count("second")]
        );
        let sign = if row["difference"].as_str().unwrap().starts_with('-') { '−' } else { '+' };
        assert!(told[5].starts_with(sign), "{told:?}");
    }
    // Answers are about one of them; a key turns to the other.
    assert_eq!(
        browser.text("document.getElementById('set-0').getAttribute('aria-pressed')"),
        "true"
    );
    browser.press("o");
    browser.wait_for("document.getElementById('set-1').getAttribute('aria-pressed') === 'true'");
    assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
    // The slowest of each, one below the other.
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
    // A click chooses a frame of the pane it is in, and a link leads there.
    browser.press("Escape");
    let place = "document.getElementById('cells-second').getBoundingClientRect().left";
    let left = browser.value(place).as_f64().unwrap();
    browser.wait_for("document.getElementById('row-depth.0.0') !== null");
    let row = "document.getElementById('row-depth.0.0').getBoundingClientRect()";
    let y = browser.value(&format!("{row}.top + {row}.height - 3")).as_f64().unwrap();
    // Its cells come a moment after the frame is let go.
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

/// A browser has six connections to a server, and each page listens.
#[test]
fn more_tabs_than_connections_are_answered() {
    let (bytes, captured) = shop(&Shop { frames: 900, threads: 2, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 800, 600) else { return };
    for _ in 0..9 {
        browser.another(&shown.server.url());
        assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
        browser.value("document.getElementById('tab-slowest').click()");
        browser.wait_for("document.querySelectorAll('#panel td button').length === 20");
    }
}

/// What the browser has saved, once it is there.
fn download(folder: &Path, name: &str) -> Vec<u8> {
    let begun = Instant::now();
    loop {
        // It has another name until it is whole.
        match std::fs::read(folder.join(name)) {
            Ok(bytes) if !bytes.is_empty() => return bytes,
            _ => assert!(begun.elapsed() < Duration::from_secs(60), "{name}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_saves_what_one_sees() {
    let (bytes, _) =
        shop(&Shop { frames: 900, threads: 3, text: HOSTILE.to_owned(), ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.save_into(folder.path());
    browser.press("e");
    browser.wait_for("document.querySelectorAll('dialog[open] p button').length === 3");
    let said = browser.text("document.querySelector('dialog').innerText");
    assert!(said.contains("Saves what is seen") && said.contains("ppt export"), "{said}");
    for (button, name) in [(0, "pftrace"), (1, "parquet"), (2, "svg")] {
        let click = format!("document.querySelectorAll('dialog[open] p button')[{button}].click()");
        browser.value(&click);
        let bytes = download(folder.path(), &format!("selection.{name}"));
        browser
            .wait_for("/ bytes$/.test(document.querySelector('dialog [role=status]').innerText)");
        match name {
            "parquet" => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")),
            "svg" => picture(&folder.path().join("selection.svg")),
            // Packets of a trace: field 1 of a message.
            _ => assert_eq!(bytes[0], 0x0a),
        }
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    // What is marked goes before what is seen.
    browser.value("document.querySelector('dialog button').click()");
    browser.wait_for("document.querySelector('dialog[open]') === null");
    let axis = browser.value("document.getElementById('axis').getBoundingClientRect().top + 10");
    let axis = axis.as_f64().unwrap();
    browser.drag((500.0, axis), (700.0, axis));
    browser.value("document.getElementById('save-button').click()");
    browser
        .wait_for("document.querySelector('dialog[open]')?.innerText.includes('what is marked')");
}

/// Python's reader of XML takes a picture, in which programs' names are names.
fn picture(path: &Path) {
    let Some(python) = program(&["python3"]) else {
        println!("skipped: no python3");
        return;
    };
    let script = "import sys, xml.etree.ElementTree as tree\n\
                  root = tree.parse(sys.argv[1]).getroot()\n\
                  print(*sorted({it.tag.split('}')[1] for it in root.iter()}))\n\
                  print(sum(it.tag.endswith('rect') for it in root.iter()))";
    let output = Command::new(python).args(["-c", script]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let (tags, count) = said.trim().split_once('\n').unwrap();
    assert_eq!(tags, "clipPath defs g line rect svg text title");
    assert!(count.parse::<u32>().unwrap() > 50, "{count} bars");
}

/// The modules that need no browser, by node's own test runner.
#[test]
fn modules_do_what_they_say() {
    let Some(node) = program(&["node", "nodejs"]) else {
        println!("skipped: no node: apt-get install nodejs");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // So that node takes them for modules.
    std::fs::write(folder.path().join("package.json"), "{\"type\": \"module\"}").unwrap();
    for from in ["page", "tests/modules"] {
        for file in std::fs::read_dir(here.join(from)).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let output = Command::new(node).arg("--test").current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\n# fail 0\n") && !said.contains("\n# pass 0\n"), "{said}");
}

/// The page's own list of keys, and what docs/view.md says of them.
#[test]
fn the_manual_has_every_key() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let keys = std::fs::read_to_string(here.join("page/keys.js")).unwrap();
    let manual = std::fs::read_to_string(here.join("../../../docs/view.md")).unwrap();
    let lines: Vec<&str> = keys.lines().filter(|line| line.starts_with("  ['")).collect();
    assert!(lines.len() > 20);
    for line in lines {
        let mut words = line.split('\'').skip(1).step_by(2);
        let (key, what) = (words.next().unwrap(), words.next().unwrap());
        assert!(manual.contains(&format!("| `{key}` | {what} |")), "| `{key}` | {what} |");
    }
}
