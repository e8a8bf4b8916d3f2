//! The two programs of a phase that measures clocks. One answers probes. The other probes all hosts
//! until their clocks are known well enough, and then continues.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ppt_clock::sync::{ClockReadings, HEADER, Probe, Record};
use ppt_clock::times::{ClockModel, Times};
use ppt_output::Rules;
use ppt_text::exit::ExitStatus;

use super::error::{HostError, cannot};
use crate::probe::{
    HostClock, Measurement, PORT, PeerIdentity, ProbeEvent, ProbeOptions, ProbeServer, ProbedHost,
    RecordSink, SharedKey, SyncFile, resolve,
};

/// Line that the asking program writes when all clocks are known.
pub(super) const KNOWN: &str = "all clocks are known";
/// Line that the answering program writes when it is ready.
pub(super) const ANSWERS: &str = "answers probes";
/// The number of probes of a host among which the fastest gives its REALTIME.
const LATEST: usize = 40;

fn failed<E: std::error::Error + Send + Sync + 'static>(
    what: &'static str,
) -> impl Fn(E) -> HostError {
    move |error| cannot(what)(io::Error::other(error))
}

/// The identity and clocks of this host, and the key.
fn own_clock(name: &str, key: &str) -> Result<(PeerIdentity, HostClock, SharedKey), HostError> {
    let clock = HostClock::of_this_host().map_err(failed("use the clocks of this host"))?;
    let identity =
        PeerIdentity::of_this_host(Some(name), &clock).map_err(failed("name this host"))?;
    let key = SharedKey::read(Path::new(key)).map_err(failed("read the key"))?;
    Ok((identity, clock, key))
}

fn addresses(address: &str) -> Result<Vec<SocketAddr>, HostError> {
    resolve(address).map_err(failed("find a host"))
}

/// Answers probes until it is ended.
pub(super) fn answer(name: &str, key: &str, address: &str) -> Result<ExitStatus, HostError> {
    let (identity, clock, key) = own_clock(name, key)?;
    // The name that others use for this host may resolve to another address here, such as
    // 127.0.1.1.
    let address = address.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let address = SocketAddr::new(address, PORT);
    let server = ProbeServer::bind(address, key, identity, clock);
    let mut server = server.map_err(failed("answer probes"))?;
    println!("{ANSWERS}");
    server.run(&AtomicBool::new(false), &mut |_| {}).map_err(failed("answer probes"))?;
    Ok(ExitStatus::DONE)
}

/// Probes hosts (NAME=ADDRESS) until it is ended, or until it is clear that their clocks cannot be
/// measured well enough.
pub(super) fn ask(
    name: &str,
    key: &str,
    file: &str,
    until: Duration,
    give_up: Duration,
    others: &[&str],
) -> Result<ExitStatus, HostError> {
    let (me, clock, key) = own_clock(name, key)?;
    let mut hosts = Vec::new();
    for other in others {
        let (name, address) = other.split_once('=').ok_or(HostError::Arguments)?;
        hosts.push(ProbedHost { name: name.to_owned(), addresses: addresses(address)? });
    }
    let created = SyncFile::create(Path::new(file), &Rules::default());
    let mut file = created.map_err(failed("write the readings"))?;
    let heard = RefCell::new(ClockReport::new(until, give_up));
    let options = ProbeOptions { duration: None, ..ProbeOptions::default() };
    let measurement =
        Measurement { hosts: &hosts, key: &key, me: &me, clock: &clock, options: &options };
    let mut sink = Both { file: &mut file, heard: &heard };
    let stop = AtomicBool::new(false);
    let measured = measurement.run(&stop, &mut sink, &mut |event| {
        if let ProbeEvent::Second(_) = event
            && heard.borrow_mut().second() == ClockVerdict::GivenUp
        {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    measured.map_err(failed("ask other hosts"))?;
    Ok(ExitStatus::FAILED)
}

/// The file of readings, and the clocks known so far.
struct Both<'a> {
    file: &'a mut SyncFile,
    heard: &'a RefCell<ClockReport>,
}

impl RecordSink for Both<'_> {
    fn put(&mut self, record: &Record) -> io::Result<()> {
        self.heard.borrow_mut().put(record)?;
        self.file.put(record)
    }

    fn keep(&mut self) -> io::Result<()> {
        self.file.keep()
    }
}

#[derive(PartialEq)]
enum ClockVerdict {
    Unknown,
    Known,
    GivenUp,
}

/// The measurements so far.
struct ClockReport {
    until: Duration,
    give_up: Instant,
    is_known: bool,
    /// All lines, as long as they are needed.
    text: Vec<u8>,
    /// Host names, by their numbers in the file.
    names: Vec<(u32, String)>,
    /// The latest probes of each host.
    latest: Vec<VecDeque<Probe>>,
}

impl ClockReport {
    fn new(until: Duration, give_up: Duration) -> Self {
        let text = format!("{HEADER}\n").into_bytes();
        let give_up = Instant::now() + give_up;
        Self { until, give_up, is_known: false, text, names: Vec::new(), latest: Vec::new() }
    }

    fn put(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Host(0, _) => {}
            Record::Host(number, host) => {
                self.names.push((*number, host.name().to_owned()));
                self.latest.push(VecDeque::new());
            }
            Record::Probe(probe) => {
                let at = self.names.iter().position(|name| name.0 == probe.to);
                if let Some(latest) = at.and_then(|index| self.latest.get_mut(index)) {
                    latest.push_back(*probe);
                    if latest.len() > LATEST {
                        latest.pop_front();
                    }
                }
            }
            _ => {}
        }
        if self.is_known { Ok(()) } else { record.write_to(&mut self.text) }
    }

    /// Reports the known clocks after another second.
    fn second(&mut self) -> ClockVerdict {
        for ((_, name), latest) in self.names.iter().zip(&self.latest) {
            // The fastest probe has the narrowest bounds.
            if let Some((offset, half)) = latest.iter().map(offset).min_by_key(|entry| entry.1) {
                println!("offset {name} {offset} {half}");
            }
        }
        if self.is_known {
            return ClockVerdict::Known;
        }
        let bounds: Vec<_> = self.bounds();
        for ((_, name), bound) in self.names.iter().zip(&bounds) {
            match bound {
                Some(bound) => println!("the clock of {name} is known within {bound:?}"),
                None => println!("the clock of {name} is not known"),
            }
        }
        let is_good =
            |duration: &Option<Duration>| duration.is_some_and(|duration| duration <= self.until);
        if !bounds.is_empty() && bounds.iter().all(is_good) {
            self.is_known = true;
            self.text = Vec::new();
            println!("{KNOWN}");
            return ClockVerdict::Known;
        }
        if Instant::now() > self.give_up {
            println!("that is not within {:?}", self.until);
            return ClockVerdict::GivenUp;
        }
        ClockVerdict::Unknown
    }

    /// The uncertainty of each host's clock: half the distance between its bounds.
    fn bounds(&self) -> Vec<Option<Duration>> {
        let mut readings = ClockReadings::default();
        let times = readings.read(&self.text).ok();
        let times =
            times.and_then(|()| Times::between_hosts(&readings, 0, &ClockModel::default()).ok());
        let bound = |(at, (_, name)): (usize, &(u32, String))| {
            let host = readings.hosts().iter().position(|host| host.name() == name)?;
            let tick = self.latest[at].back()?.to_tick;
            let between = times.as_ref()?.at(host, tick)?;
            let hz = readings.hosts().first()?.tick_hz() as f64;
            Some(Duration::from_secs_f64((between.hi - between.lo) as f64 / 2.0 / hz))
        };
        self.names.iter().enumerate().map(bound).collect()
    }
}

/// REALTIME of the other host minus that of this one, and its uncertainty, in ns.
fn offset(probe: &Probe) -> (i64, i64) {
    let difference = |a: u64, b: u64| i128::from(a) - i128::from(b);
    let (outward, back) = (difference(probe.t2, probe.t1), difference(probe.t3, probe.t4));
    let ns = |number: i128| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    (ns((outward + back) / 2), ns((outward - back + 1) / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_within_half_of_the_way() {
        // The other clock is 1,000 ns ahead; the way there takes 300 ns, the way back 100 ns.
        let (from, to, from_tick, to_tick) = (0, 1, 0, 0);
        let probe = Probe { from, to, from_tick, to_tick, t1: 50, t2: 1350, t3: 1400, t4: 500 };
        let (offset, half) = offset(&probe);
        assert_eq!((offset, half), (1100, 200));
        assert!((1000 - offset).abs() <= half);
    }
}
