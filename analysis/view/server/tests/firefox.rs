//! The page in Firefox: what differs between browsers is drawing, keys, streams and the policy of content.

#[path = "../../../report/tests/made/mod.rs"]
mod made;

#[path = "support/firefox.rs"]
mod firefox;

use std::path::PathBuf;

use firefox::Firefox;
use made::Shop;
use ppt_view_server::{Captures, ServeOptions, ViewServer};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u{202e}";

/// Firefox; None: there is none, which is said.
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

const PAINTED: &str = "(() => { const canvas = document.getElementById('cells');
    const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(bytes.buffer)).size > 3; })()";

/// Keys do what they do in the other browser.
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
