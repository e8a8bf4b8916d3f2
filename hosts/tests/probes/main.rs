//! Probes between hosts, with real sockets, processes and namespaces.

mod hostile;
mod killed;
mod relay;
mod true_time;
mod truth;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use ppt_clock::sync::{ClockReadings, HEADER, Record};
use ppt_hosts::probe::{
    Counts, HostClock, LinkCounts, MeasureError, Measurement, PeerIdentity, ProbeEvent,
    ProbeOptions, ProbeServer, ProbedHost, RecordSink, ServeError, ServerEvent, SharedKey,
};

fn key() -> SharedKey {
    SharedKey::new(b"what only they know").unwrap()
}

/// Hosts on this machine, which differ by their names.
fn identity(name: &str, clock: &HostClock) -> PeerIdentity {
    PeerIdentity::of_this_host(Some(name), clock).unwrap()
}

/// A server in a thread, until it is dropped.
struct Serving {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    events: Receiver<ServerEvent>,
    thread: Option<JoinHandle<Result<Counts, ServeError>>>,
}

impl Serving {
    fn new(name: &str) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), name, HostClock::default(), || {})
    }

    /// A server in a thread that first calls a function, which may enter another namespace.
    fn at(
        address: SocketAddr,
        name: &str,
        clock: HostClock,
        first: impl FnOnce() + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (identity, stopped) = (identity(name, &clock), stop.clone());
        let (tell, events) = channel();
        let (ready, is_ready) = channel();
        let thread = thread::spawn(move || {
            first();
            let mut server = ProbeServer::bind(address, key(), identity, clock)?;
            ready.send(server.address().unwrap()).unwrap();
            server.run(&stopped, &mut |event| drop(tell.send(event)))
        });
        let address = is_ready.recv().unwrap();
        Self { address, stop, events, thread: Some(thread) }
    }

    fn finish(mut self) -> Counts {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            panic!("the server");
        }
    }
}

/// The lines of a measurement, as in its file.
#[derive(Default)]
struct ProbeLines {
    text: Vec<u8>,
    kept: usize,
}

impl RecordSink for ProbeLines {
    fn put(&mut self, record: &Record) -> io::Result<()> {
        if self.text.is_empty() {
            self.text = format!("{HEADER}\n").into_bytes();
        }
        record.write_to(&mut self.text)
    }

    fn keep(&mut self) -> io::Result<()> {
        self.kept = self.text.len();
        Ok(())
    }
}

impl ProbeLines {
    fn readings(&self) -> ClockReadings {
        let mut readings = ClockReadings::default();
        readings.read(&self.text).unwrap();
        assert_eq!((readings.cut_lines(), readings.unknown_lines()), (0, 0));
        readings
    }
}

fn asked(address: SocketAddr) -> ProbedHost {
    ProbedHost { name: address.to_string(), addresses: vec![address] }
}

/// Asks until `complete` probes are complete at every host, however long that takes.
fn ask(
    hosts: &[ProbedHost],
    rate: f64,
    complete: u64,
) -> (ProbeLines, Vec<LinkCounts>, Vec<ProbeEvent>) {
    let (stop, mut lines, mut events) = (AtomicBool::new(false), ProbeLines::default(), Vec::new());
    let clock = HostClock::default();
    let me = identity("asks", &clock);
    let patience = Duration::from_secs(600);
    let options = ProbeOptions { duration: None, rate, patience, ..ProbeOptions::default() };
    let measurement = Measurement { hosts, key: &key(), me: &me, clock: &clock, options: &options };
    let mut tell = |event| {
        if let ProbeEvent::Second(counts) = &event {
            stop.store(counts.iter().all(|count| count.complete >= complete), Relaxed);
        }
        events.push(event);
    };
    let counts = measurement.run(&stop, &mut lines, &mut tell).unwrap();
    assert_eq!(lines.kept, lines.text.len());
    (lines, counts, events)
}

/// Asks once, with a short time limit.
fn ask_in_vain(
    hosts: &[ProbedHost],
    name: &str,
    key: &SharedKey,
    patience: Duration,
) -> MeasureError {
    let (mut lines, clock) = (ProbeLines::default(), HostClock::default());
    let me = identity(name, &clock);
    let options = ProbeOptions { duration: None, patience, ..ProbeOptions::default() };
    let measurement = Measurement { hosts, key, me: &me, clock: &clock, options: &options };
    let error = measurement.run(&AtomicBool::new(false), &mut lines, &mut |_| ()).unwrap_err();
    assert!(lines.text.is_empty());
    error
}
