//! The page draws captures of many kinds, and runs no code in them.

use std::path::Path;

use crate::browser::Browser;
use crate::every;
use crate::made::Shop;
use crate::page::many;
use crate::page::shown::{HOSTILE, shop, shown, shown_together};

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
    let Some(mut browser) = Browser::empty(1280, 800) else { return };
    for (bytes, captured) in all {
        let shown = shown(&bytes);
        for (width, height) in [(1280, 800), (420, 700)] {
            browser.resize(width, height);
            browser.visit(&shown.server.url());
            assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
            assert!(browser.text("document.body.innerText").contains("What was captured"));
            assert_ne!(browser.text("document.title"), "owned", "a script of the target ran");
            assert_eq!(browser.value("document.images.length"), 0, "text of the target is text");
            assert!(!browser.text("document.body.innerText").contains('\u{202e}'));
            let overflow = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(browser.value(overflow), false, "{width} px are enough");
            // The address does not show the token.
            assert!(!browser.text("location.href").contains("token"));
            assert_eq!(browser.complaints, Vec::<String>::new());
            browser.navigate("about:blank");
        }
    }
}

/// For captures of all shapes, the page shows their content, and no elements overlap.
#[test]
fn captures_of_every_shape_have_room() {
    let empty = every::write("").0[..4096].to_vec();
    let hosts: Vec<Vec<u8>> = (0..90).map(|host| many::capture(host, 1, 1, 3)).collect();
    let all = [
        ("empty", vec![empty], "0 frames of 0 threads"),
        ("one-frame", vec![many::capture(0, 1, 1, 1)], "1 frame of 1 thread"),
        ("one-thread", vec![many::capture(0, 1, 1, 200)], "200 frames of 1 thread"),
        ("threads", vec![many::capture(0, 1, 10_000, 2)], "20,000 frames of 10,000 threads"),
        ("sources", vec![many::capture(0, 4096, 1, 2)], "8,192 frames of 4,096 threads"),
        ("hosts", hosts, "270 frames of 90 threads"),
    ];
    let Some(mut browser) = Browser::empty(1280, 800) else { return };
    for (name, captures, glance) in all {
        let shown = shown_together(&captures);
        browser.visit(&shown.server.url());
        let said = browser.text("document.getElementById('glance').innerText");
        assert!(said.contains(glance), "{name}: {said}");
        for (width, height) in [(1280, 800), (420, 700)] {
            browser.resize(width, height);
            browser.wait_for(&format!("innerWidth === {width}"));
            browser.wait_for("!document.getElementById('panel').innerText.includes('Reading')");
            let overflow = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(browser.value(overflow), false, "{name}: {width} px are enough");
            let covered = browser.value(
                "[...document.querySelectorAll('.row')].map((row) => row.getBoundingClientRect())
                    .filter((row, at, all) => at > 0 && row.top < all[at - 1].bottom - 1).length",
            );
            assert_eq!(covered, 0, "{name}: rows lie on each other");
            keep(&mut browser, &format!("{name}-{width}"));
        }
        // Scrolls to the last row, and back.
        browser.value("document.getElementById('scroller').scrollTop = 1e9");
        let last = "Number([...document.querySelectorAll('.row')].at(-1)?.ariaRowIndex ?? 0) === \
                    Number(document.getElementById('labels').ariaRowCount)";
        browser.wait_for(last);
        keep(&mut browser, &format!("{name}-last"));
        assert_eq!(browser.complaints, Vec::<String>::new(), "{name}");
        // Before its server ends.
        browser.navigate("about:blank");
    }
}

/// Writes a picture for people into the folder `PPT_PICTURES`.
fn keep(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PPT_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), browser.picture()).unwrap();
    }
}
