//! Answers next to the timeline.

use std::time::{Duration, Instant};

use crate::browser::Browser;
use crate::every;
use crate::made::Shop;
use crate::page::shown::{HOSTILE, asked, cells, shop, shown};

/// The sum of parts is the length that is shown. Each part links to the timeline.
#[test]
fn the_slowest_say_what_they_consist_of() {
    for text in ["", HOSTILE] {
        let shown = shown(&every::write(text).0);
        let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
        browser.value("document.getElementById('tab-why').click()");
        browser.wait_for("document.querySelectorAll('#panel .why > li').length === 20");
        let actual = browser.value(
            "[...document.querySelectorAll('#panel .why > li')].map((slow) => [slow.dataset.ns,
                ...[...slow.querySelectorAll('tr')].map((part) => part.dataset.ns)])",
        );
        let actual: Vec<Vec<String>> = serde_json::from_value(actual).unwrap();
        for numbers in &actual {
            let numbers: Vec<i64> = numbers.iter().map(|ns| ns.parse().unwrap()).collect();
            assert_eq!(numbers[0], numbers[1..].iter().sum::<i64>());
        }
        let sql = "SELECT greatest((SELECT max(dur) FROM slices), \
                   (SELECT max(dur) FROM request_spans)) AS longest";
        let longest = asked(&mut browser, "/v1/sql", &serde_json::json!({ "sql": sql }));
        assert_eq!(longest["rows"][0][0], actual[0][0]);
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

/// A path is shown step by step, and everything else is dimmed.
#[test]
fn a_path_stands_out_from_all_else() {
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
        let actual = |browser: &mut Browser| -> Vec<Vec<String>> {
            let rows = cells(browser, "#panel").into_iter();
            rows.map(|row| vec![row[0].clone(), row[1].replace(',', "")]).collect()
        };
        let begun = Instant::now();
        while actual(&mut browser) != expected {
            assert!(begun.elapsed() < Duration::from_secs(60), "{expected:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!expected.is_empty() && actual(&mut browser) != all);
        // The account has the same range of time.
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
