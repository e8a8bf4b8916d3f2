//! A search is a filter.

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{HOSTILE, asked, shop, shown};

/// A typed or brushed condition leaves the rows with matches, with the counts of SQL.
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
        // The share of the rows of intervals that has bars.
        let painted = "(() => { const cells = document.getElementById('cells');
            const pen = cells.getContext('2d');
            const top = cells.getBoundingClientRect().top;
            const rows = [...document.querySelectorAll('.row.depth')].map((row) => row.getBoundingClientRect());
            return rows.reduce((all, row) => all + pen.getImageData(0, row.top - top, cells.width, row.height)
                .data.filter((byte, at) => at % 4 === 3 && byte > 0).length, 0); })()";
        let all = browser.value(painted).as_f64().unwrap();
        browser.press("F");
        let shown_count = "document.getElementById('find-count').textContent";
        browser.wait_for(&format!("{shown_count}.startsWith('{found} in {rows} thread')"));
        browser.wait_for(&format!("{threads} === {rows}"));
        browser.wait_for("location.hash.includes('where=')");
        browser.wait_for(&format!("{painted} > 0 && {painted} < {all} / 10"));
        // The command with the same answer, shown because the browser does not allow copying.
        browser.value(
            "navigator.clipboard ? navigator.clipboard.writeText = () => Promise.reject() : 0",
        );
        browser.press("y");
        browser.wait_for("document.getElementById('notice').innerText.includes(\"--where '\")");
        let link = browser.text("location.hash");
        let mut other =
            Browser::open(&format!("{}&{}", shown.server.url(), &link[1..]), 1280, 800).unwrap();
        other.wait_for(&format!("{threads} === {rows}"));
        other.wait_for(&format!("{painted} > 0 && {painted} < {all} / 10"));
        browser.press("Escape");
        browser.wait_for(&format!("{threads} === 3"));
        browser.wait_for(&format!("{painted} > {all} / 2"));
        // Chooses a part of the histogram.
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
        browser.wait_for(&format!("{shown_count}.startsWith('{found} in {rows} thread')"));
        assert!(found != "0" && rows > 0);
        // The keyboard chooses from the first bar to the last one.
        browser.value("document.getElementById('tab-lengths').click()");
        browser.wait_for("document.querySelectorAll('.bars button').length > 1");
        browser.value("document.querySelector('.bars button').click()");
        browser.wait_for(&format!("document.getElementById('find').value !== '{brushed}'"));
        assert_eq!(browser.value("document.images.length"), 0);
        // The test itself reads canvases more than once.
        for page in [&mut browser, &mut other] {
            page.complaints.retain(|complaint| !complaint.contains("willReadFrequently"));
        }
        assert_eq!(browser.complaints, Vec::<String>::new());
        assert_eq!(other.complaints, Vec::<String>::new());
    }
}
