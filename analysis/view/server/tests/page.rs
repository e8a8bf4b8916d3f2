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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    std::fs::write(&path, bytes).unwrap();
    let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
    let server = ViewServer::start(ServeOptions { captures, ..ServeOptions::default() }).unwrap();
    Shown { server, _folder: folder }
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
    // The chosen row and tab are not told by a colour of the page.
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
