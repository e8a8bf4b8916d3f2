//! Tests the server over raw TCP: its responses, and that no client can block it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ppt_metrics::{MetricsAddress, MetricsServer, answer};

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and the maker of its texts.
struct Served {
    address: SocketAddr,
    /// How many texts were made.
    made: Arc<AtomicUsize>,
    socket: Arc<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Served {
    /// `make` returns the text with this number.
    fn new(make: impl Fn(usize) -> String + Send + 'static) -> Served {
        let (source, socket) = UnixStream::pair().unwrap();
        let (socket, made) = (Arc::new(socket), Arc::new(AtomicUsize::new(0)));
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), source).unwrap();
        let address = server.address().unwrap();
        let serve = std::thread::spawn(move || server.run());
        let (texts, count) = (socket.clone(), made.clone());
        let texts = std::thread::spawn(move || {
            let _ = answer(&texts, || make(count.fetch_add(1, SeqCst)));
        });
        Served { address, made, socket, threads: vec![serve, texts] }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The status and the body of a response.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read(&mut stream)
    }

    /// The body of a scrape, as soon as there is room for it.
    fn scrape(&self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let (status, body) = self.ask(GET);
            if status == "200" {
                return body;
            }
            assert!(Instant::now() < end, "{status}");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// Everything received until the server closes.
fn read(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    // A refused response may be truncated.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    (head.split(' ').nth(1).unwrap_or_default().to_owned(), body.to_owned())
}

fn small(number: usize) -> String {
    format!("text {number}\n# EOF\n")
}

#[test]
fn a_scrape_gets_the_text_of_its_moment() {
    let served = Served::new(small);
    let mut stream = served.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "text 0\n# EOF\n");
    let head: Vec<&str> = head.lines().collect();
    assert_eq!(head[0], "HTTP/1.1 200 OK");
    for line in [
        "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        "Content-Length: 13",
        "Connection: close",
        "X-Content-Type-Options: nosniff",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(&line), "{line}: {head:?}");
    }
    std::thread::sleep(Duration::from_millis(21));
    assert_eq!(served.scrape(), "text 1\n# EOF\n", "it is not kept");
    let asked = served.ask("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(asked, ("200".into(), String::new()));
}

#[test]
fn what_is_no_scrape_is_refused() {
    let served = Served::new(small);
    let status = |request: &str| served.ask(request).0;
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "404");
    assert_eq!(status("PUT /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), "405");
    assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421");
    assert_eq!(status("\u{16}\u{3}\u{1} nonsense\r\n\r\n"), "400");
    let large = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nx: {}", "y".repeat(1 << 16));
    assert!(["431", ""].contains(&status(&large).as_str()), "it may be cut off");
    assert_eq!(served.made.load(SeqCst), 0, "the capture was not asked");
    assert_eq!(served.scrape(), "text 0\n# EOF\n");
}

#[test]
fn a_thousand_idle_connections_displace_no_scraper() {
    let served = Served::new(small);
    let mut idle: Vec<TcpStream> = (0..1000).map(|_| served.connect()).collect();
    served.scrape();
    // Most of them are closed by now, and none stays for long.
    for stream in &mut idle {
        read(stream);
    }
    served.scrape();
}

#[test]
fn a_request_that_never_ends_is_given_up() {
    let served = Served::new(small);
    let mut half = served.connect();
    half.write_all(b"GET /metrics HTTP/1.1\r\nHost: lo").unwrap();
    let began = Instant::now();
    assert_eq!(served.scrape(), "text 0\n# EOF\n", "others do not wait for it");
    assert_eq!(read(&mut half).0, "");
    assert!(began.elapsed() >= Duration::from_secs(4), "it had time");
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let served = Served::new(|number| format!("{number} {}", "x".repeat(8 << 20)));
    // The part of a response that identifies its text.
    let begin = || {
        let mut stream = served.connect();
        stream.write_all(GET.as_bytes()).unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream.read_exact(&mut byte).unwrap();
        (stream, byte[0] - b'0')
    };
    let (mut slow, end) = (Vec::new(), Instant::now() + PATIENCE);
    while slow.len() < 4 {
        let (stream, number) = begin();
        // Other clients get the same text for a while, and leave.
        if usize::from(number) == slow.len() {
            slow.push(stream);
        }
        assert!(Instant::now() < end);
    }
    // Memory is bounded: slow readers keep four texts, and others get the latest of them.
    for _ in 0..40 {
        assert_eq!(begin().1, 3);
    }
    assert_eq!(served.made.load(SeqCst), 4);
    assert!(served.scrape().len() > 8 << 20);
    drop(slow);
    while served.scrape().starts_with("3 ") {
        assert!(Instant::now() < end, "what nobody reads is not kept");
    }
}

#[test]
fn the_wait_for_a_text_is_limited() {
    let (source, silent) = UnixStream::pair().unwrap();
    let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), source).unwrap();
    let address = server.address().unwrap();
    let threads = vec![std::thread::spawn(move || server.run())];
    let served = Served { address, made: Arc::default(), socket: Arc::new(silent), threads };
    assert_eq!(served.ask(GET).0, "503");
    assert_eq!(served.ask(GET).0, "503");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let bind = |address| {
        let (source, _other) = UnixStream::pair().unwrap();
        MetricsServer::bind(MetricsAddress(address), source).err().unwrap()
    };
    let error = bind(address);
    assert_eq!(error.code(), "port-in-use");
    let port = address.port();
    let text = format!(
        "port {port} of 127.0.0.1 is in use; choose another one, or port 0 for any that is free"
    );
    assert_eq!(error.to_string(), text);
    // A documentation network: no machine has this address.
    assert_eq!(bind("192.0.2.1:0".parse().unwrap()).code(), "bad-address");
}
