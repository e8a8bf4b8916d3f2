//! Saving the visible content.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::browser::{Browser, program};
use crate::made::Shop;
use crate::page::shown::{HOSTILE, shop, shown};

/// Waits for the file that the browser saves.
fn download(folder: &Path, name: &str) -> Vec<u8> {
    let begun = Instant::now();
    loop {
        // The file has another name until it is complete.
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
            // The packets of a trace are field 1 of a message.
            _ => assert_eq!(bytes[0], 0x0a),
        }
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    // The marked time takes precedence over the visible time.
    browser.value("document.querySelector('dialog button').click()");
    browser.wait_for("document.querySelector('dialog[open]') === null");
    let axis = browser.value("document.getElementById('axis').getBoundingClientRect().top + 10");
    let axis = axis.as_f64().unwrap();
    browser.drag((500.0, axis), (700.0, axis));
    browser.value("document.getElementById('save-button').click()");
    browser
        .wait_for("document.querySelector('dialog[open]')?.innerText.includes('what is marked')");
}

/// The XML parser of Python accepts a picture, and texts of programs stay texts.
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
