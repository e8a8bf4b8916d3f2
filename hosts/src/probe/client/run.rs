//! The course of a measurement.

use std::io;
use std::mem::discriminant;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use ppt_clock::ClockId;
use ppt_clock::sync::{Host, Probe, Record};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{MeasureError, Measurement, ProbeEvent, ProbedHost, RATES, RecordSink};
use crate::probe::link::{Learnt, LinkCounts, ProbeLink};
use crate::probe::packet::OTHER_CLOCKS;
use crate::probe::random::random;
use crate::probe::true_time::{SourceReading, TimeSourceError, TimeSources};

const SECOND_NS: u64 = 1_000_000_000;
/// Interval between readings of the other clocks. Across a step of CLOCK_REALTIME, the probes
/// between two readings are lost.
const CLOCKS_NS: u64 = SECOND_NS / 4;
/// Interval between hellos to a host that does not answer.
const AGAIN_NS: u64 = SECOND_NS / 4;
/// A host that is silent for this long is greeted again, because it may have been restarted.
const SILENT_NS: u64 = 3 * SECOND_NS;
/// The interval at which the last question is sent, and the time that it waits for its answer, ns.
const LAST_NS: u64 = SECOND_NS / 10;
const LAST_TRIES: u32 = 3;
/// The number of probes in a burst.
const PAIR: u32 = 2;

impl Measurement<'_> {
    /// Measures until the time is over or `stop` is set. Returns the counts of each host.
    ///
    /// Nothing is written to `sink` until every host has answered once.
    ///
    /// # Errors
    /// A host does not answer the first time or answers with another version, the clock cannot be
    /// trusted, or `sink` fails.
    pub fn run(
        &self,
        stop: &AtomicBool,
        sink: &mut dyn RecordSink,
        report: &mut dyn FnMut(ProbeEvent),
    ) -> Result<Vec<LinkCounts>, MeasureError> {
        let every_ns =
            (SECOND_NS as f64 / self.options.rate.clamp(*RATES.start(), *RATES.end())) as u64;
        let now_ns = ppt_now::monotonic();
        let count = self.hosts.len() as u64;
        let hosts = self.hosts.iter().zip(0..).map(|(asked, place): (_, u64)| MeasuredHost {
            asked,
            link: ProbeLink::new(asked.addresses.clone()),
            index: None,
            // Hosts are probed in turn, so that their packets do not collide.
            due_ns: now_ns + every_ns * place / count,
            greet_ns: now_ns,
            heard_ns: now_ns,
            is_silent: false,
            is_refused: false,
        });
        let (hosts, file_hosts) = (hosts.collect(), vec![self.me.host.clone()]);
        let sources = &self.options.sources;
        let (stop_sources, hz) = (AtomicBool::new(false), self.me.host.tick_hz());
        thread::scope(|scope| {
            let watch = TimeSources::start(sources, self.clock, hz, &stop_sources, scope)?;
            let left_out = vec![None; sources.len()];
            let mut run = ProbeRun {
                measurement: self,
                hosts,
                file_hosts,
                every_ns,
                watch,
                left_out,
                dropped_readings: 0,
                sink,
                report,
            };
            run.greet(stop)?;
            if !stop.load(Relaxed) {
                run.measure(stop)?;
            }
            Ok(run.hosts.iter().map(|host| host.link.counts).collect())
        })
    }
}

/// A host that is measured.
struct MeasuredHost<'a> {
    asked: &'a ProbedHost,
    link: ProbeLink,
    /// The index of the host in the file. None until it has answered.
    index: Option<u32>,
    /// The time of the next burst.
    due_ns: u64,
    /// The time of the next hello, while it has not answered.
    greet_ns: u64,
    /// The time of the last answer.
    heard_ns: u64,
    is_silent: bool,
    is_refused: bool,
}

struct ProbeRun<'a> {
    measurement: &'a Measurement<'a>,
    hosts: Vec<MeasuredHost<'a>>,
    /// The hosts of the file, by their index.
    file_hosts: Vec<Host>,
    every_ns: u64,
    watch: TimeSources<'a>,
    /// For each source of true time, why its last reading was dropped.
    left_out: Vec<Option<TimeSourceError>>,
    dropped_readings: u64,
    sink: &'a mut dyn RecordSink,
    report: &'a mut dyn FnMut(ProbeEvent),
}

impl ProbeRun<'_> {
    /// Runs until all hosts have answered.
    fn greet(&mut self, stop: &AtomicBool) -> Result<(), MeasureError> {
        let end_ns = ppt_now::monotonic()
            .saturating_add(self.measurement.options.patience.as_nanos() as u64);
        // Before all hosts have answered, they only send their identities.
        let mut records = Vec::new();
        while self.hosts.iter().any(|host| !host.link.is_open()) {
            let now_ns = ppt_now::monotonic();
            if stop.load(Relaxed) {
                return Ok(());
            }
            if let Some(measured_host) = self.hosts.iter().find(|host| !host.link.is_open())
                && now_ns >= end_ns
            {
                let (name, address) =
                    (measured_host.asked.name.clone(), measured_host.link.address());
                let (is_refused, foreign) =
                    (measured_host.is_refused, measured_host.link.counts.foreign);
                return Err(MeasureError::NoAnswer { name, address, is_refused, foreign });
            }
            self.greet_due(now_ns)?;
            let next_ns = self.hosts.iter().map(|host| host.greet_ns).min().unwrap_or(end_ns);
            self.wait(next_ns.min(end_ns))?;
            self.receive(&mut records)?;
        }
        self.put(&Record::Host(0, self.measurement.me.host.clone()))?;
        for (index, host) in (1..).zip(self.file_hosts.clone().into_iter().skip(1)) {
            self.put(&Record::Host(index, host))?;
        }
        Ok(())
    }

    /// Sends a hello to each host that has not answered.
    fn greet_due(&mut self, now_ns: u64) -> Result<(), MeasureError> {
        for host in &mut self.hosts {
            if !host.link.is_open() && now_ns >= host.greet_ns {
                let greeted = host.link.greet(
                    self.measurement.me,
                    self.measurement.key,
                    self.measurement.clock,
                );
                // An address that is unreachable now may become reachable later.
                greeted.or_else(|error| match error.kind() {
                    io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkDown => Ok(()),
                    _ => Err(MeasureError::System(error)),
                })?;
                host.greet_ns = now_ns + AGAIN_NS;
            }
        }
        Ok(())
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<(), MeasureError> {
        let start_ns = ppt_now::monotonic();
        let end_ns = self
            .measurement
            .options
            .duration
            .map(|duration| start_ns.saturating_add(duration.as_nanos() as u64));
        let (mut clocks_ns, mut second_ns) = (start_ns, start_ns + SECOND_NS);
        loop {
            let now_ns = ppt_now::monotonic();
            if stop.load(Relaxed) || end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
                break;
            }
            if now_ns >= clocks_ns {
                self.other_clocks()?;
                clocks_ns = now_ns + CLOCKS_NS;
            }
            if now_ns >= second_ns {
                self.each_second(now_ns)?;
                second_ns = now_ns + SECOND_NS;
            }
            self.greet_due(now_ns)?;
            self.ask_due(now_ns)?;
            let due = self
                .hosts
                .iter()
                .map(|host| if host.link.is_open() { host.due_ns } else { host.greet_ns });
            let next_ns =
                due.chain([clocks_ns, second_ns]).chain(end_ns).min().unwrap_or(clocks_ns);
            self.wait(next_ns)?;
            self.receive_and_put()?;
            self.put_readings()?;
        }
        self.finish()
    }

    /// Sends one more question; its answer reports when those before it left.
    fn finish(&mut self) -> Result<(), MeasureError> {
        self.other_clocks()?;
        for _ in 0..LAST_TRIES {
            self.hosts.iter_mut().for_each(|host| {
                host.link.probe_last(self.measurement.key, self.measurement.clock);
            });
            let end_ns = ppt_now::monotonic() + LAST_NS;
            while ppt_now::monotonic() < end_ns
                && self.hosts.iter().any(|host| host.link.is_incomplete())
            {
                self.wait(end_ns)?;
                self.receive_and_put()?;
            }
            if !self.hosts.iter().any(|host| host.link.is_incomplete()) {
                break;
            }
        }
        self.read_clocks()?;
        for host in &mut self.hosts {
            host.link.close();
        }
        for (what, n) in self.sums() {
            self.put(&Record::Count(what.to_owned(), n))?;
        }
        self.sink.keep().map_err(MeasureError::Write)
    }

    /// The name of each count in the file, and its sum over all hosts.
    fn sums(&self) -> Vec<(&'static str, u64)> {
        let sum = |count: fn(&LinkCounts) -> u64| {
            self.hosts.iter().map(|host| count(&host.link.counts)).sum()
        };
        let lost_there = |counts: &LinkCounts| counts.lost_there.min(counts.unanswered);
        vec![
            ("lost_there", sum(lost_there)),
            (
                "lost_back",
                self.hosts
                    .iter()
                    .map(|host| host.link.counts.unanswered - lost_there(&host.link.counts))
                    .sum(),
            ),
            ("unstamped", sum(|counts| counts.unstamped)),
            ("foreign", sum(|counts| counts.foreign)),
            ("replayed", sum(|counts| counts.replayed)),
            ("late", sum(|counts| counts.late)),
            ("unsent", sum(|counts| counts.unsent)),
            ("unsaid", self.dropped_readings),
        ]
    }

    /// Writes the readings that the sources of true time have made.
    fn put_readings(&mut self) -> Result<(), MeasureError> {
        let readings: Vec<_> = self.watch.take().collect();
        for SourceReading { source: place, record } in readings {
            match record {
                Ok(record) => {
                    self.left_out[place] = None;
                    self.put(&record)?;
                }
                Err(error) => {
                    self.dropped_readings += 1;
                    let last = self.left_out[place].replace(error.clone());
                    if last.as_ref().map(discriminant) != Some(discriminant(&error)) {
                        (self.report)(ProbeEvent::LeftOut { place, error });
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the other clocks of all hosts.
    fn other_clocks(&mut self) -> Result<(), MeasureError> {
        self.read_clocks()?;
        for (a, b) in OTHER_CLOCKS {
            let reading = self.measurement.clock.reading(a, b);
            self.put(&Record::Clock(0, reading))?;
        }
        self.hosts.iter_mut().for_each(|host| host.link.ask_clocks(self.measurement.key));
        Ok(())
    }

    fn each_second(&mut self, now_ns: u64) -> Result<(), MeasureError> {
        self.measurement.clock.check()?;
        for (place, host) in self.hosts.iter_mut().enumerate() {
            host.link.give_up(now_ns);
            if host.link.is_open() && now_ns.saturating_sub(host.heard_ns) >= SILENT_NS {
                if !std::mem::replace(&mut host.is_silent, true) {
                    (self.report)(ProbeEvent::Silent { place });
                }
                host.link.close();
                host.greet_ns = now_ns;
            }
        }
        self.sink.keep().map_err(MeasureError::Write)?;
        let counts = self.hosts.iter().map(|host| host.link.counts).collect();
        (self.report)(ProbeEvent::Second(counts));
        Ok(())
    }

    /// Reads ticks and REALTIME of this host.
    fn read_clocks(&mut self) -> Result<(), MeasureError> {
        let reading = self.measurement.clock.reading(ClockId::Tick, ClockId::Realtime);
        self.put(&Record::Clock(0, reading))
    }

    /// Sends a burst to each host that is due.
    fn ask_due(&mut self, now_ns: u64) -> Result<(), MeasureError> {
        for place in 0..self.hosts.len() {
            let host = &self.hosts[place];
            if !host.link.is_open() || now_ns < host.due_ns {
                continue;
            }
            self.read_clocks()?;
            let host = &mut self.hosts[place];
            for _ in 0..PAIR {
                host.link.probe(self.measurement.key, self.measurement.clock);
            }
            // Random interval of 0.9 to 1.1 periods, so that the bursts meet periodic activity at
            // all phases.
            let jitter = random() % (self.every_ns / 5 + 1);
            host.due_ns = now_ns + self.every_ns - self.every_ns / 10 + jitter;
        }
        Ok(())
    }

    /// Waits for a packet, or until this time.
    fn wait(&mut self, until_ns: u64) -> Result<(), MeasureError> {
        let left_ns = until_ns.saturating_sub(ppt_now::monotonic()).min(SECOND_NS / 4);
        let timeout = Timespec { tv_sec: 0, tv_nsec: left_ns as i64 };
        let sockets = self.hosts.iter().filter_map(|host| host.link.socket());
        let mut fds: Vec<_> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(MeasureError::System(error.into())),
        }
    }

    fn receive_and_put(&mut self) -> Result<(), MeasureError> {
        let mut records = Vec::new();
        if self.receive(&mut records)? {
            // The arrival lies between this reading and the one before the burst.
            self.read_clocks()?;
        }
        records.iter().try_for_each(|record| self.put(record))
    }

    /// Receives the packets that have arrived; returns whether there were any.
    fn receive(&mut self, records: &mut Vec<Record>) -> Result<bool, MeasureError> {
        let mut has_received = false;
        for place in 0..self.hosts.len() {
            let mut learnt = Vec::new();
            let host = &mut self.hosts[place];
            let received =
                host.link.receive(self.measurement.key, &mut |record| learnt.push(record));
            if received.map_err(MeasureError::System)? {
                has_received = true;
            }
            for learnt in learnt {
                self.learn(place, learnt, records)?;
            }
        }
        Ok(has_received)
    }

    fn learn(
        &mut self,
        place: usize,
        learnt: Learnt,
        records: &mut Vec<Record>,
    ) -> Result<(), MeasureError> {
        let host = &mut self.hosts[place];
        match learnt {
            Learnt::Identity(identity) => {
                let index = self.index(place, &identity.host, records)?;
                let host = &mut self.hosts[place];
                let address = host.link.address();
                (host.index, host.is_silent, host.is_refused) = (Some(index), false, false);
                host.heard_ns = ppt_now::monotonic();
                (self.report)(ProbeEvent::Answered { place, address, identity });
            }
            Learnt::Reading(reading) => {
                host.heard_ns = ppt_now::monotonic();
                records.extend(host.index.map(|index| Record::Clock(index, reading)));
            }
            Learnt::Probe(probe) => {
                records.extend(host.index.map(|to| Record::Probe(Probe { from: 0, to, ..probe })));
            }
            Learnt::OtherVersion(version) => {
                let name = host.asked.name.clone();
                return Err(MeasureError::OtherVersion { name, version });
            }
            Learnt::Refused => host.is_refused = true,
        }
        Ok(())
    }

    /// The index of a host in the file, assigned now if it has none.
    fn index(
        &mut self,
        place: usize,
        host: &Host,
        records: &mut Vec<Record>,
    ) -> Result<u32, MeasureError> {
        let name = self.hosts[place].asked.name.clone();
        if host.is(&self.file_hosts[0]) {
            return Err(MeasureError::Oneself { name, host: host.name().to_owned() });
        }
        // The host may have been another boot of itself before.
        let others = self.hosts.iter().enumerate().filter(|entry| entry.0 != place);
        let mut others = others
            .filter_map(|(_, host)| Some((host.asked, &self.file_hosts[host.index? as usize])));
        let me = Some(("this host", &self.file_hosts[0]));
        let others = others.by_ref().map(|(asked, host)| (&*asked.name, host)).chain(me);
        for (first, other) in others {
            if other.name() == host.name() && other.boot_id() != host.boot_id() {
                let (host, first) = (host.name().to_owned(), first.to_owned());
                return Err(MeasureError::OneName { host, first, second: name });
            }
        }
        if let Some(index) = self.file_hosts.iter().position(|entered| entered.is(host)) {
            return Ok(index as u32);
        }
        let index = self.file_hosts.len() as u32;
        self.file_hosts.push(host.clone());
        records.push(Record::Host(index, host.clone()));
        Ok(index)
    }

    fn put(&mut self, record: &Record) -> Result<(), MeasureError> {
        self.sink.put(record).map_err(MeasureError::Write)
    }
}
