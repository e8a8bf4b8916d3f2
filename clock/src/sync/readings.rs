//! The readings of all hosts in files.

use std::collections::{BTreeMap, HashMap};

use super::error::{RecordError, SyncError};
use super::host::Host;
use super::limits::MAX_HOSTS;
use super::record::{HEADER, OneWay, Probe, Pulse, Record, TimeSourceReport};
use crate::ClockReading;

/// The readings of one or more files.
///
/// A host in two files is one host if its name and its boot id are the same in both. Records of
/// Readings identify hosts by their index in [`ClockReadings::hosts`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockReadings {
    hosts: Vec<Host>,
    /// By host.
    clocks: Vec<Vec<ClockReading>>,
    probes: Vec<Probe>,
    one_ways: Vec<OneWay>,
    pulses: Vec<Pulse>,
    reports: Vec<TimeSourceReport>,
    counts: BTreeMap<String, u64>,
    unknown: u64,
    cut: u64,
}

impl ClockReadings {
    /// Adds the readings of a file.
    ///
    /// # Errors
    /// The bytes are not a `.sync` file, or one of its lines is wrong. Then nothing is added.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), SyncError> {
        let mut file = Self::default();
        let mut indices = HashMap::new();
        for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let Some(line) = line.strip_suffix(b"\n") else {
                if number == 0 && !begins_as_header(line) {
                    return Err(SyncError::NotSync);
                }
                file.cut += 1;
                break;
            };
            if number == 0 {
                header(line)?;
                continue;
            }
            let added = Record::parse(line).and_then(|option| match option {
                Some(record) => file.add(record, &mut indices),
                None => {
                    file.unknown += 1;
                    Ok(())
                }
            });
            added.map_err(|error| SyncError::Line { line: number + 1, error })?;
        }
        let lines = bytes.split(|&byte| byte == b'\n').count();
        self.merge(file).map_err(|error| SyncError::Line { line: lines, error })
    }

    fn add(&mut self, record: Record, indices: &mut HashMap<u32, u32>) -> Result<(), RecordError> {
        let own_index = |host| indices.get(&host).copied().ok_or(RecordError::UnknownHost { host });
        match record {
            Record::Host(index, host) => {
                if indices.contains_key(&index) {
                    return Err(RecordError::Redeclared { host: index });
                }
                let own_index = self.add_host(host)?;
                indices.insert(index, own_index);
            }
            Record::Clock(host, reading) => self.clocks[own_index(host)? as usize].push(reading),
            Record::Probe(probe) => {
                let (from, to) = different(own_index(probe.from)?, own_index(probe.to)?)?;
                self.probes.push(Probe { from, to, ..probe });
            }
            Record::OneWay(way) => {
                let (from, to) = different(own_index(way.from)?, own_index(way.to)?)?;
                self.one_ways.push(OneWay { from, to, ..way });
            }
            Record::Pulse(pulse) => {
                self.pulses.push(Pulse { host: own_index(pulse.host)?, ..pulse });
            }
            Record::Reported(report) => {
                self.reports.push(TimeSourceReport { host: own_index(report.host)?, ..report });
            }
            Record::Count(what, n) => {
                let sum = self.counts.entry(what).or_default();
                *sum = sum.saturating_add(n);
            }
        }
        Ok(())
    }

    /// The index of a host, which is added if it is new.
    fn add_host(&mut self, host: Host) -> Result<u32, RecordError> {
        if let Some(index) = self.hosts.iter().position(|entered| entered.is(&host)) {
            return Ok(index as u32);
        }
        if self.hosts.len() == MAX_HOSTS {
            return Err(RecordError::TooManyHosts);
        }
        self.hosts.push(host);
        self.clocks.push(Vec::new());
        Ok(self.hosts.len() as u32 - 1)
    }

    /// Adds all of a file or nothing.
    fn merge(&mut self, file: Self) -> Result<(), RecordError> {
        let old_count = self.hosts.len();
        let own_indices: Result<Vec<_>, _> =
            file.hosts.into_iter().map(|host| self.add_host(host)).collect();
        let own_indices = own_indices.inspect_err(|_| {
            self.hosts.truncate(old_count);
            self.clocks.truncate(old_count);
        })?;
        let own_index = |host: u32| own_indices[host as usize];
        for (readings, &own_index) in file.clocks.into_iter().zip(&own_indices) {
            self.clocks[own_index as usize].extend(readings);
        }
        let probe =
            |probe: Probe| Probe { from: own_index(probe.from), to: own_index(probe.to), ..probe };
        self.probes.extend(file.probes.into_iter().map(probe));
        let one_way =
            |way: OneWay| OneWay { from: own_index(way.from), to: own_index(way.to), ..way };
        self.one_ways.extend(file.one_ways.into_iter().map(one_way));
        let pulse = |pulse: Pulse| Pulse { host: own_index(pulse.host), ..pulse };
        self.pulses.extend(file.pulses.into_iter().map(pulse));
        let reports =
            |report: TimeSourceReport| TimeSourceReport { host: own_index(report.host), ..report };
        self.reports.extend(file.reports.into_iter().map(reports));
        for (what, n) in file.counts {
            let sum = self.counts.entry(what).or_default();
            *sum = sum.saturating_add(n);
        }
        self.unknown += file.unknown;
        self.cut += file.cut;
        Ok(())
    }

    /// The hosts, in the order in which they were first declared.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The readings of the clocks of one host, in the order of the files. Empty for an index
    /// without a host.
    pub fn clocks(&self, host: usize) -> &[ClockReading] {
        self.clocks.get(host).map_or(&[], Vec::as_slice)
    }

    /// All probes.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// All one-way messages.
    pub fn one_ways(&self) -> &[OneWay] {
        &self.one_ways
    }

    /// All edges of signals.
    pub fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }

    /// The reports of other programs.
    pub fn time_sources(&self) -> &[TimeSourceReport] {
        &self.reports
    }

    /// The number of packets that did not count as readings, by cause.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(what, &n)| (what.as_str(), n))
    }

    /// The number of ignored lines of a later version.
    pub fn unknown_lines(&self) -> u64 {
        self.unknown
    }

    /// The number of truncated last lines, which are ignored: at most one per file.
    pub fn cut_lines(&self) -> u64 {
        self.cut
    }
}

/// Fails if both indices declare the same host.
fn different(from: u32, to: u32) -> Result<(u32, u32), RecordError> {
    if from == to { Err(RecordError::SameHost { host: from }) } else { Ok((from, to)) }
}

const BEFORE_VERSION: &str = "ppt sync ";

fn header(line: &[u8]) -> Result<(), SyncError> {
    if line == HEADER.as_bytes() {
        return Ok(());
    }
    let version = line.strip_prefix(BEFORE_VERSION.as_bytes());
    let found = version.and_then(|version| std::str::from_utf8(version).ok()?.parse().ok());
    Err(found
        .filter(|&found| found > 1)
        .map_or(SyncError::NotSync, |found| SyncError::Newer { found }))
}

/// Whether a truncated line may be a header.
fn begins_as_header(line: &[u8]) -> bool {
    let word = BEFORE_VERSION.as_bytes();
    line.starts_with(word) || word.starts_with(line)
}
