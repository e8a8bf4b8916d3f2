//! An object store (moto), and what stands between it and the exporter.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::support::{Bench, root};

/// The bucket and the prefix of all exports.
pub const ADDRESS: &str = "s3://frames/ex";

/// Whether ppt has a client of object stores.
pub fn is_built() -> bool {
    if cfg!(not(feature = "s3")) {
        eprintln!("skipped: built without --features s3");
    }
    cfg!(feature = "s3")
}

/// An object store. It ends with this.
pub struct Store {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub port: u16,
    fetched: usize,
}

impl Store {
    /// One with an empty bucket; None where moto is not installed, or ppt has no client.
    pub fn start() -> Option<Store> {
        Store::with(&[])
    }

    /// One that speaks TLS, with a key and its certificate in a file.
    pub fn with_tls(certificate: &str) -> Option<Store> {
        Store::with(&[certificate])
    }

    fn with(args: &[&str]) -> Option<Store> {
        if !is_built() {
            return None;
        }
        let python = root().join("target/oracles/bin/python");
        let there = Command::new(&python).args(["-c", "import boto3, moto.server"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: moto is not installed (analysis/oracles/install)");
            return None;
        }
        let mut child = Command::new(python)
            .arg(root().join("analysis/oracles/store.py"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("moto says its port");
        let mut store = Store { child, orders, answers, port, fetched: 0 };
        store.order("make frames");
        Some(store)
    }

    /// Has an order done.
    pub fn order(&mut self, order: &str) -> String {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{order}: moto ended");
        line.trim().to_owned()
    }

    /// Fetches what is below the prefix; says where it is.
    pub fn fetch(&mut self, bench: &Bench) -> std::path::PathBuf {
        self.fetched += 1;
        let folder = bench.path(&format!("fetched-{}", self.fetched));
        self.order(&format!("fetch frames ex {}", folder.display()));
        folder
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells a command where the store is.
pub fn reach(command: &mut Command, port: u16) -> &mut Command {
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_"))
    {
        command.env_remove(name);
    }
    command
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b")
        .env("AWS_REGION", "us-east-1")
        .env("no_proxy", "127.0.0.1")
}

/// Stands between the exporter and a store, which may be away for a while.
pub struct Line {
    pub port: u16,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    store: u16,
    /// Both ends of all connections; None: the line is cut.
    ends: Mutex<Option<Vec<TcpStream>>>,
    /// Answers that came, and each how many of them gets lost; 0 is none.
    answers: AtomicUsize,
    lost: AtomicUsize,
}

impl Line {
    pub fn to(store: u16) -> Line {
        let shared = Shared {
            store,
            ends: Mutex::new(None),
            answers: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        };
        let mut line = Line { port: 0, shared: Arc::new(shared), listening: None };
        line.mend();
        line
    }

    /// Nobody can connect, and what was connected is not.
    pub fn cut(&mut self) {
        let ends = self.shared.ends.lock().unwrap().take();
        for end in ends.into_iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
        // Whoever accepts looks whether the line is cut.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        self.listening.take().map(JoinHandle::join);
    }

    pub fn mend(&mut self) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        self.port = listener.local_addr().unwrap().port();
        *self.shared.ends.lock().unwrap() = Some(Vec::new());
        let shared = self.shared.clone();
        self.listening = Some(thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Some(ends) = &mut *shared.ends.lock().unwrap() else { return };
                let far = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.store)).unwrap();
                for stream in [&near, &far] {
                    ends.push(stream.try_clone().unwrap());
                }
                let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || pass(near, far, |_| true));
                let shared = shared.clone();
                thread::spawn(move || pass(far_too, near_too, |bytes| shared.passes(bytes)));
            }
        }));
    }

    /// One of `many` answers gets lost, with its connection; the store has done what it was asked for.
    pub fn lose_each(&self, many: usize) {
        self.shared.lost.store(many, SeqCst);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    /// Whether bytes from the store get through. A long answer comes in several pieces, of which only the
    /// first counts.
    fn passes(&self, bytes: &[u8]) -> bool {
        if !bytes.starts_with(b"HTTP/") {
            return true;
        }
        let (answer, lost) = (self.answers.fetch_add(1, SeqCst) + 1, self.lost.load(SeqCst));
        lost == 0 || answer % lost != 0
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !may_pass(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A store of another kind: it gives each request the answer that the function names.
pub struct OtherStore {
    pub port: u16,
}

impl OtherStore {
    /// The function gets the first line of a request, and has the status and the body of the answer.
    pub fn start(
        answer: impl Fn(&str) -> (&'static str, &'static str) + Send + 'static,
    ) -> OtherStore {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &answer);
            }
        });
        OtherStore { port }
    }
}

fn serve(
    stream: TcpStream,
    answer: &impl Fn(&str) -> (&'static str, &'static str),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let (status, body) = answer(&first);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nETag: \"1\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = reader.into_inner();
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
