//! The page in a browser, and its modules in node.

#[path = "../../../report/tests/made/kinds.rs"]
mod every;
#[path = "../../../report/tests/made/mod.rs"]
mod made;

use std::path::{Path, PathBuf};
use std::process::Command;

use made::Shop;
use ppt_view_server::{Captures, Options, Server};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u{202e}";

fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// What a browser makes of captures, once the first picture is there.
fn seen(browser: &Path, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    std::fs::write(&path, bytes).unwrap();
    let captures = Captures { paths: vec![path], threads: 2, ..Captures::default() };
    let server = Server::start(Options { captures, ..Options::default() }).unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"])
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(server.url())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("Content Security Policy"), "{said}");
    assert!(!said.contains("Uncaught"), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_browser_draws_the_page_and_runs_nothing_else() {
    let Some(browser) = program(&["chromium", "chromium-browser", "google-chrome"]) else {
        println!("skipped: no chromium: apt-get install chromium");
        return;
    };
    let mut all = Vec::new();
    for shop in [
        Shop { frames: 900, threads: 3, ..Shop::default() },
        Shop { frames: 900, threads: 3, text: HOSTILE.to_owned(), ..Shop::default() },
        Shop { frames: 20_000, threads: 300, ..Shop::default() },
    ] {
        let mut bytes = Vec::new();
        let captured = made::write(&shop, &mut bytes);
        all.push((bytes, captured));
    }
    all.push(every::write(HOSTILE));
    for (bytes, captured) in all {
        let seen = seen(&browser, &bytes);
        assert!(seen.contains("data-ready=\"1\""), "{seen:.3000}");
        assert!(seen.contains(&format!("data-frames=\"{captured}\"")), "{seen:.3000}");
        assert!(seen.contains("What was captured") && seen.contains("role=\"row\""));
        assert!(!seen.contains("<title>owned</title>"), "a script of the target ran");
        assert!(!seen.contains("<img") && !seen.contains('\u{202e}'), "text of the target is text");
    }
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
    assert!(said.contains("pass 6"), "{said}");
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
