//! Rows that stay in place while others are scrolled.

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{HOSTILE, shop, shown};

/// A pinned row stays at the top at each scroll position, and a link keeps it.
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
    // Pins a row with a click and a key.
    browser.value(&format!("document.getElementById('row-{id}').click()"));
    browser.press("p");
    browser.wait_for(&format!("{} === 0", place(&id)));
    browser.value("document.getElementById('scroller').scrollTop = 600");
    browser.wait_for("document.getElementById('row-process.0').matches('.stuck')");
    browser.wait_for(&format!("{} === 0", place(&id)));
    // The pinned row covers no part of another row.
    let pinned = format!("document.getElementById('row-{id}').getBoundingClientRect().bottom");
    let free = format!(
        "{rows}.every((row) => row.dataset.row === '{id}' \
         || row.getBoundingClientRect().top >= {pinned} - 1)"
    );
    assert_eq!(browser.value(&free), true);
    // A click on its cells chooses its frame.
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
    // The pointer unpins it to its old position.
    browser
        .value(&format!("document.querySelector('#row-' + CSS.escape('{id}') + ' .pin').click()"));
    browser.value("document.getElementById('scroller').scrollTop = 0");
    browser.wait_for(&format!("{} > 0", place(&id)));
    browser.wait_for("!location.hash.includes('pinned=')");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// At each scroll position, the heads of the visible rows are visible.
#[test]
fn heads_stay_above_their_rows() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 40, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let seen = "[...document.querySelectorAll('.row')].map((row) => row.dataset.row)";
    for scrolled in [40, 300, 777, 1500, 0] {
        browser.value(&format!("document.getElementById('scroller').scrollTop = {scrolled}"));
        let first = if scrolled == 0 { "!" } else { "" };
        let stuck = "document.getElementById('row-process.0')?.matches('.stuck') === true";
        browser.wait_for(&format!("{first}({stuck})"));
        let rows: Vec<String> = serde_json::from_value(browser.value(seen)).unwrap();
        assert_eq!(rows[0], "process.0", "at {scrolled}: {rows:?}");
    }
    // Heads do not cover a row that is scrolled to.
    let mut threads = 0;
    for _ in 0..40 {
        browser.press("ArrowDown");
    }
    browser.wait_for("document.querySelectorAll('.row.stuck').length > 0");
    for _ in 0..60 {
        let chosen = "document.querySelector('.row.picked')?.dataset.row";
        let before = browser.text(chosen);
        browser.press("ArrowUp");
        browser.wait_for(&format!("{chosen} !== '{before}' && {chosen} !== undefined"));
        let is_free = browser.value(
            "(() => { const own = document.querySelector('.row.picked');
                const bottom = Math.max(0, ...[...document.querySelectorAll('.row.stuck')]
                    .filter((row) => row !== own).map((row) => row.getBoundingClientRect().bottom));
                return own.matches('.stuck') || own.getBoundingClientRect().top >= bottom - 1; })()",
        );
        assert_eq!(is_free, true, "{}", browser.text(chosen));
        threads += u32::from(browser.text(chosen).starts_with("thread."));
        if browser.text(chosen) == "process.0" {
            break;
        }
    }
    assert!(threads > 5, "{threads}");
    // A click on a head that stays is about it.
    for scrolled in (300..400).step_by(8) {
        let scroll = format!("document.getElementById('scroller').scrollTop = {scrolled}");
        browser.value(&format!("{scroll}; {TWO_PICTURES}"));
        if browser.value("document.querySelector('.row.thread.stuck') !== null") == true {
            break;
        }
    }
    let id = browser.text("document.querySelector('.row.thread.stuck').dataset.row");
    let y = browser
        .value("document.querySelector('.row.thread.stuck').getBoundingClientRect().top + 12");
    browser.click(700.0, y.as_f64().unwrap());
    browser.wait_for(&format!("document.querySelector('.row.picked').dataset.row === '{id}'"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// What was asked for is drawn in the one or the other.
const TWO_PICTURES: &str =
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
