//! The page in Firefox. Drawing, keys, streams and the content policy differ between browsers.

mod driver;

use std::path::{Path, PathBuf};

use ppt_view_server::{Captures, ServeOptions, ViewServer};

use self::driver::Firefox;
use crate::made::{self, Shop};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u{202e}";

/// Starts Firefox. Prints a message and returns None if it is not installed.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| ["firefox-esr", "firefox"].map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        println!("skipped: no firefox: apt-get install firefox-esr");
    }
    found
}

#[test]
fn firefox_draws_the_page_takes_keys_and_complains_of_nothing() {
    let Some(program) = program() else { return };
    for text in ["", HOSTILE] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.bin");
        let mut bytes = Vec::new();
        let shop = Shop { frames: 4000, threads: 3, text: text.to_owned(), ..Shop::default() };
        let captured = made::write(&shop, &mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
        let options = ServeOptions { captures, ..ServeOptions::default() };
        let server = ViewServer::start(options).unwrap();
        let mut page = Firefox::open(&program, &server.url());
        assert_eq!(page.text("document.body.dataset.frames"), captured.to_string());
        assert_ne!(page.text("document.title"), "owned", "a script of the target ran");
        assert_eq!(page.value("document.images.length"), 0, "text of the target is text");
        assert!(!page.text("location.href").contains("token"));
        assert_eq!(page.value("document.documentElement.scrollWidth > innerWidth"), false);
        assert_eq!(page.value(PAINTED), true, "the cells have pixels");
        walk(&mut page);
        assert_eq!(page.complaints(), Vec::<String>::new());
        drop(server);
        page.wait_for("document.getElementById('notice').innerText.includes('The server has')");
    }
}

/// A page of a generated capture.
fn shown(program: &Path, threads: u32) -> (Firefox, ViewServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    let mut bytes = Vec::new();
    made::write(&Shop { frames: 4000, threads, ..Shop::default() }, &mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
    let server = ViewServer::start(ServeOptions { captures, ..ServeOptions::default() }).unwrap();
    (Firefox::open(program, &server.url()), server, folder)
}

/// The page in light and dark colours, at twice the size, and on a screen of 420 px.
#[test]
fn firefox_has_the_colours_and_sizes_that_one_likes() {
    let Some(program) = program() else { return };
    let (mut page, _server, _folder) = shown(&program, 3);
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        page.prefer_scheme(scheme);
        // Canvases follow the colours: the corner of the axis has the background of labels.
        page.wait_for(
            "(() => { const style = getComputedStyle(document.documentElement);
                const raised = style.getPropertyValue('--raised').trim();
                const pixel = document.getElementById('axis').getContext('2d').getImageData(2, 2, 1, 1).data;
                return raised === '#' + [...pixel.slice(0, 3)].map((it) => it.toString(16).padStart(2, '0')).join(''); })()",
        );
        grounds.push(page.text("getComputedStyle(document.body).backgroundColor"));
        for (width, zoom) in [(1280, 1), (1280, 2), (840, 2)] {
            page.resize(width, 900, zoom);
            // The cells have the resolution of the screen.
            page.wait_for(
                "(() => { const cells = document.getElementById('cells');
                    const ratio = Math.min(devicePixelRatio, 2);
                    return Math.abs(cells.width - cells.clientWidth * ratio) <= ratio; })()",
            );
            page.wait_for(PAINTED);
            let overflow = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(page.value(overflow), false, "{scheme}: {width} px, {zoom} times as large");
            let least = "Math.min(...[...document.querySelectorAll('header button, #tabs button, #labels button')]
                .map((button) => button.getBoundingClientRect().height))";
            assert!(page.value(least).as_f64().unwrap() >= 23.9, "targets have 24 px");
        }
        page.resize(1280, 900, 1);
    }
    assert_ne!(grounds[0], grounds[1]);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Fingers zoom, move and choose.
#[test]
fn firefox_takes_fingers() {
    let Some(program) = program() else { return };
    let (mut page, _server, _folder) = shown(&program, 3);
    let number = |page: &mut Firefox, what: &str| page.value(what).as_f64().unwrap();
    let cells = "document.getElementById('cells').getBoundingClientRect()";
    let (left, wide) =
        (number(&mut page, &format!("{cells}.left")), number(&mut page, &format!("{cells}.width")));
    let row = "document.getElementById('row-depth.0.0').getBoundingClientRect().bottom - 3";
    let y = number(&mut page, row);
    let word =
        |name: &str| format!("Number(new URLSearchParams(location.hash.slice(1)).get('{name}'))");
    let length = format!("({} - {})", word("to"), word("from"));
    // A key updates the address.
    page.press("0");
    page.wait_for(&format!("{length} > 0"));
    let whole = number(&mut page, &length);
    let middle = left + wide / 2.0;
    // Two fingers move apart and zoom by three.
    page.touch(&[
        [(middle - 40.0, y), (middle - 120.0, y)],
        [(middle + 40.0, y), (middle + 120.0, y)],
    ]);
    page.wait_for(&format!("Math.abs({length} / {whole} - 1 / 3) < 0.05"));
    // One finger moves the window and keeps its length.
    let (now, from) = (number(&mut page, &length), number(&mut page, &word("from")));
    page.touch(&[[(middle, y), (middle + 80.0, y)]]);
    let moved = 80.0 / wide * now;
    page.wait_for(&format!("Math.abs({from} - {} - {moved}) < {moved} / 10", word("from")));
    // A tap chooses a frame.
    page.touch(&[[(middle, y), (middle, y)]]);
    page.wait_for("document.querySelector('.row.picked').id === 'row-depth.0.0'");
    // A drag on the axis marks a range.
    let axis = "document.getElementById('axis').getBoundingClientRect().top + 10";
    let axis = number(&mut page, axis);
    page.touch(&[[(middle, axis), (middle + 100.0, axis)]]);
    page.wait_for("location.hash.includes('marked=')");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

const PAINTED: &str = "(() => { const canvas = document.getElementById('cells');
    const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(bytes.buffer)).size > 3; })()";

/// Keys have the same actions as in Chromium.
fn walk(page: &mut Firefox) {
    let seen = "document.getElementById('overview').getAttribute('aria-valuetext')";
    for key in ["w", "d", "a", "w", "s", "0"] {
        let before = page.text(seen);
        page.press(key);
        page.wait_for(&format!("{seen} !== '{before}'"));
    }
    for (key, heading) in [("?", "Keys"), ("t", "What is visible"), ("e", "Save")] {
        page.press(key);
        page.wait_for(&format!(
            "document.querySelector('dialog[open] h2')?.innerText === '{heading}'"
        ));
        page.press("Escape");
        page.wait_for("document.querySelector('dialog[open]') === null");
    }
    let chosen = "document.querySelector('.row.picked')?.id";
    while page.text(chosen) != "row-depth.0.0" {
        let before = page.text(chosen);
        page.press("ArrowDown");
        page.wait_for(&format!("{chosen} !== '{before}'"));
    }
    page.press("ArrowRight");
    page.wait_for("document.body.dataset.pick !== undefined");
    page.wait_for("document.querySelector('#panel h2')?.innerText.includes(' of ')");
    page.press("Escape");
    page.wait_for("document.body.dataset.pick === undefined");
    page.press("/");
    page.wait_for("document.activeElement.id === 'find'");
    for key in ["r", "e", "q", "u", "e", "s", "t", "Enter"] {
        page.press(key);
    }
    page.wait_for("/^1 of /.test(document.getElementById('find-count').textContent)");
}
