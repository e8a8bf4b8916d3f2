//! `ppt view`: what is printed, what is refused, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::Bench;

struct Shown {
    child: Child,
    url: String,
    /// What it says on stderr, up to the line that says how it ends.
    said: String,
}

fn shown(bench: &Bench, args: &[&str]) -> Shown {
    let mut command = bench.command(&[&["view", "out.bin", "--no-open"], args].concat());
    for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    command.env("XDG_CACHE_HOME", bench.path("cache"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.as_mut().unwrap());
    while !said.contains("Ctrl-C ends it") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    Shown { child, url: url.trim().to_owned(), said }
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

/// The body of an answer.
fn ask(url: &str, path: &str) -> String {
    let address = address(url);
    let token = url.split_once("#token=").unwrap().1;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn it_answers_until_a_signal_ends_it() {
    let bench = Bench::new();
    for signal in ["INT", "TERM"] {
        let mut shown = shown(&bench, &[]);
        let address = address(&shown.url).to_owned();
        let port = address.strip_prefix("127.0.0.1:").unwrap();
        let hint = format!("ssh -L {port}:127.0.0.1:{port} THIS-HOST");
        assert!(shown.said.contains(&hint), "{}", shown.said);
        assert!(shown.said.contains("whoever knows the address sees the captures"));
        let about: serde_json::Value = serde_json::from_str(&ask(&shown.url, "/v1/about")).unwrap();
        let rows = bench.rows("SELECT sum(count) AS n FROM account WHERE cause = 'captured'");
        assert_eq!(about["captures"][0]["captured"], rows[0]["n"].to_string());
        assert_eq!(about["command"], "ppt view out.bin --no-open");
        let pid = shown.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success());
        assert_eq!(shown.child.wait().unwrap().code(), Some(0), "{signal}");
        assert!(TcpStream::connect(address).is_err());
    }
    // The index is kept where caches are, for its user alone.
    use std::os::unix::fs::PermissionsExt;
    let cache = bench.path("cache/ppt/view");
    assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let bench = Bench::new();
    let (said, code) = bench.fails(&["view", "none.bin"]);
    assert!(said.contains("none.bin"), "{said}");
    assert_eq!(code, 1);
    bench.write("text.bin", "text");
    let (said, code) = bench.fails(&["view", "text.bin"]);
    assert!(said.contains("text.bin") && code == 1, "{said}");
    let (said, code) = bench.fails(&["view", "out.bin", "--index", "x", "--no-index"]);
    assert!(said.contains("cannot be used with") && code == 2, "{said}");
    let mut first = shown(&bench, &["--no-index"]);
    let port = address(&first.url).rsplit(':').next().unwrap().to_owned();
    let (said, code) = bench.fails(&["view", "out.bin", "--no-index", "--port", &port]);
    let expected = format!("port {port} of 127.0.0.1 cannot be used: ");
    assert!(said.contains(&expected) && code == 1, "{said}");
    assert!(said.contains("leave --port out, and any free one is taken"), "{said}");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(!bench.path("cache").exists(), "--no-index keeps nothing");
}
