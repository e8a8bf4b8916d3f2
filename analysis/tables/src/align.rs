//! Converts the times of several hosts' captures to the clock of one host, by the readings of `.sync` files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ppt_capture::columns::{Time, TimeScale};
use ppt_capture::sync::ClockReadings;
use ppt_capture::times::{ClockModel, Times};
use ppt_capture::{Aligned, Alignment, ClockId, ClockReading, ClockTable};

use crate::builder::Dictionary;
use crate::catalog::Catalog;
use crate::error::{SetError, SyncFault};
use crate::hosts::{CaptureClock, Clocks, TimeBounds};
use crate::set::{CaptureSet, Opened};

/// Seconds before the first reading of a capture and after the last one in which times still have bounds.
const BEYOND_S: u64 = 60;

impl CaptureSet {
    /// Converts all times to the clock of one host: `reference`, which may be any host with a capture or
    /// readings, or else the host of the first capture.
    ///
    /// The readings are those of `files`, and of all `*.sync` in the folders of captures of several hosts.
    /// Captures of a host that no reading relates to the reference stay as they are, and their times cannot
    /// be compared with others.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, one of `files` is of other hosts or boots, or no host has the
    /// name `reference`.
    pub fn align(self, files: &[PathBuf], reference: Option<&str>) -> Result<Self, SetError> {
        let hosts: BTreeSet<_> = self.captures().iter().map(Opened::host_and_boot).collect();
        let alone = files.is_empty() && hosts.len() < 2;
        let readings = if alone { ClockReadings::default() } else { readings(&self, files)? };
        if let Some(name) = reference {
            let captured = hosts.into_iter().map(|(name, _)| name);
            let read = readings.hosts().iter().map(|host| host.name().to_owned());
            let hosts_found: BTreeSet<String> = captured.chain(read).collect();
            if !hosts_found.contains(name) {
                let hosts_found = hosts_found.into_iter().collect();
                return Err(SetError::Reference { name: name.to_owned(), hosts_found });
            }
        }
        if alone {
            return Ok(self);
        }
        let found: Vec<Option<usize>> =
            self.captures().iter().map(|capture| host_of(capture, &readings)).collect();
        let host_named = |name: &str| {
            let mut captured = self.captures().iter().zip(&found);
            let own = captured
                .find_map(|(opened, &found)| found.filter(|_| opened.host_and_boot().0 == name));
            let is_captured =
                || self.captures().iter().any(|capture| capture.host_and_boot().0 == name);
            // If a host without a capture has several boots, the last one in the readings counts.
            let read = || readings.hosts().iter().rposition(|host| host.name() == name);
            own.or_else(|| if is_captured() { None } else { read() })
        };
        let reference = match reference {
            Some(name) => host_named(name),
            None => found.iter().flatten().next().copied(),
        };
        match reference {
            Some(reference) => self.aligned_to(reference, &readings, &found),
            None => Ok(self),
        }
    }

    /// `found`: for each capture, the index of its host in the readings.
    fn aligned_to(
        self,
        reference: usize,
        readings: &ClockReadings,
        found: &[Option<usize>],
    ) -> Result<Self, SetError> {
        let times = Times::between_hosts(readings, reference, &ClockModel::default())
            .map_err(SetError::Times)?;
        let own = self.captures().iter().zip(found).find(|entry| *entry.1 == Some(reference));
        let table = table_of(own.map(|entry| entry.0.catalog().as_ref()), readings, reference);
        let alignments: Vec<Option<Arc<Alignment>>> = (self.captures().iter().zip(found))
            .map(|(capture, &host)| {
                let capture_times =
                    CaptureTimes { capture, host: host?, readings, times: &times, table: &table };
                // Times without any bounds cannot be compared.
                let alignment = Alignment::new(capture_times.points())
                    .filter(|alignment| unknown(alignment, &capture_times.span()) < 1.0);
                alignment.map(Arc::new)
            })
            .collect();
        let mut unbounded: BTreeMap<String, f64> = BTreeMap::new();
        for ((capture, alignment), &host) in self.captures().iter().zip(&alignments).zip(found) {
            if let (Some(alignment), Some(host)) = (alignment, host) {
                let capture_times =
                    CaptureTimes { capture, host, readings, times: &times, table: &table };
                let part = unbounded.entry(capture.host_and_boot().0).or_default();
                *part = part.max(unknown(alignment, &capture_times.span()));
            }
        }
        unbounded.retain(|_, part| *part > 0.0);
        let mut boots = Dictionary::default();
        let hosts = readings.hosts().len() as u32;
        let clock = |(number, ((capture, alignment), host)): (
            u32,
            ((&Opened, &Option<_>), &Option<usize>),
        )| {
            let boot = hosts + boots.key(&capture.host_and_boot().1) as u32;
            match (alignment, host) {
                (Some(alignment), Some(host)) => {
                    let host = *host as u32;
                    let bounds = TimeBounds::Aligned(Arc::clone(alignment));
                    CaptureClock { number: host, host, scale: 0, bounds }
                }
                _ => CaptureClock {
                    number: hosts + number,
                    host: boot,
                    scale: boot,
                    bounds: TimeBounds::Error(capture.time_error()),
                },
            }
        };
        let captures = self.captures().iter().zip(&alignments).zip(found);
        let clocks_of_captures = (0..).zip(captures).map(clock).collect();
        let name = readings.hosts()[reference].name().to_owned();
        let clocks = Clocks::new(
            clocks_of_captures,
            self.captures().iter().map(|capture| capture.id.clone()),
        )
        .with_reference(name, unbounded);
        Ok(self.with_clocks(clocks, alignments))
    }
}

/// The part of a span of the host's own times, from 0 to 1, in which times have no bounds.
fn unknown(alignment: &Alignment, span: &Range<i64>) -> f64 {
    let known = alignment.times().windows(2).filter(|window| !window[0].gap);
    let known =
        known.map(|pair| pair[1].own.min(span.end).saturating_sub(pair[0].own.max(span.start)));
    let known: i64 = known.filter(|&number| number > 0).sum();
    match span.end.saturating_sub(span.start) {
        // An empty span.
        ..=0 => f64::from(u8::from(known == 0 && alignment.times().iter().all(|time| time.gap))),
        length => 1.0 - known as f64 / length as f64,
    }
}

/// The readings of `files`, and of the `.sync` files in the folders of captures.
fn readings(set: &CaptureSet, files: &[PathBuf]) -> Result<ClockReadings, SetError> {
    let mut all = ClockReadings::default();
    for path in files {
        let bytes = read(path)?;
        if !concerns(set, path, &bytes)? {
            let mut own = ClockReadings::default();
            add(&mut own, path, &bytes)?;
            let host = |name: &str, boot: &str| format!("{name} (boot {boot})");
            let readings =
                own.hosts().iter().map(|read| host(read.name(), read.boot_id())).collect();
            let captures = set.captures().iter().map(Opened::host_and_boot);
            let captures: BTreeSet<_> =
                captures.map(|capture| host(&capture.0, &capture.1)).collect();
            let captures = captures.into_iter().collect();
            return Err(SetError::OtherBoot { path: path.clone(), readings, captures });
        }
        add(&mut all, path, &bytes)?;
    }
    let named: BTreeSet<PathBuf> =
        files.iter().filter_map(|file| file.canonicalize().ok()).collect();
    for path in sync_files_near(set) {
        let is_named = path.canonicalize().is_ok_and(|path| named.contains(&path));
        if !is_named {
            let bytes = read(&path)?;
            if concerns(set, &path, &bytes)? {
                add(&mut all, &path, &bytes)?;
            }
        }
    }
    Ok(all)
}

fn read(path: &Path) -> Result<Vec<u8>, SetError> {
    let fault = |error| SetError::Sync { path: path.to_owned(), fault: SyncFault::Read(error) };
    std::fs::read(path).map_err(fault)
}

fn add(to: &mut ClockReadings, path: &Path, bytes: &[u8]) -> Result<(), SetError> {
    let fault = |error| SetError::Sync { path: path.to_owned(), fault: SyncFault::Content(error) };
    to.read(bytes).map_err(fault)
}

/// Whether a `.sync` file has readings of a host of the set.
fn concerns(set: &CaptureSet, path: &Path, bytes: &[u8]) -> Result<bool, SetError> {
    let mut own = ClockReadings::default();
    add(&mut own, path, bytes)?;
    Ok(set.captures().iter().any(|capture| host_of(capture, &own).is_some()))
}

/// The `.sync` files in the folders of captures, sorted by name.
fn sync_files_near(set: &CaptureSet) -> BTreeSet<PathBuf> {
    let folder = |opened: &Opened| opened.path.parent().map(Path::to_owned);
    let folders: BTreeSet<PathBuf> = set.captures().iter().filter_map(folder).collect();
    let files = folders.iter().flat_map(|folder| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    });
    files
        .filter(|file| {
            file.extension().is_some_and(|extension| extension == "sync") && file.is_file()
        })
        .collect()
}

/// The index of a capture's host in the readings: the host with its boot, and with its name if several
/// hosts have that boot.
fn host_of(capture: &Opened, readings: &ClockReadings) -> Option<usize> {
    let (name, boot) = capture.host_and_boot();
    let mut same = (0..).zip(readings.hosts()).filter(|entry| entry.1.boot_id() == boot);
    let (first, more) = (same.next()?, same.next());
    match more {
        None => Some(first.0),
        Some(_) => {
            let mut hosts = readings.hosts().iter();
            hosts.position(|host| host.boot_id() == boot && host.name() == name)
        }
    }
}

/// The clock table of a host: from its capture, and outside of the capture's period from the readings.
fn table_of(own: Option<&Catalog>, readings: &ClockReadings, host: usize) -> ClockTable {
    let mut table = ClockTable::default();
    table.set_tick_hz(readings.hosts()[host].tick_hz());
    let captured = own.map_or(&[][..], |catalog| &catalog.clock_readings);
    let read = readings.clocks(host);
    // The table uses the first offset to realtime.
    let is_offset =
        |reading: &&ClockReading| reading.a != ClockId::Tick && reading.b != ClockId::Tick;
    table.add(&captured.iter().chain(read).filter(is_offset).copied().collect::<Vec<_>>());
    let mono = |reading: &ClockReading| match (reading.a, reading.b) {
        (ClockId::Tick, ClockId::Monotonic) => Some(reading.b_value),
        (ClockId::Monotonic, ClockId::Tick) => Some(reading.a_middle()),
        _ => None,
    };
    let times = captured.iter().filter_map(mono);
    let range = times.clone().min().zip(times.max());
    let outside = |reading: &&ClockReading| {
        const SECOND: u64 = 1_000_000_000;
        mono(reading).is_some_and(|at| {
            range.is_none_or(|(from, to)| at + SECOND < from || at > to.saturating_add(SECOND))
        })
    };
    let mut all: Vec<ClockReading> =
        captured.iter().filter(|reading| mono(reading).is_some()).copied().collect();
    all.extend(read.iter().filter(outside));
    all.sort_by_key(mono);
    table.add(&all);
    if table.epoch_offset().is_none() {
        let offset = read.iter().find_map(|reading| offset_of(reading, &table));
        table.add(offset.as_slice());
    }
    table
}

/// A reading of the monotonic clock against realtime, from one of ticks against realtime. A host without a
/// capture has no direct reading.
fn offset_of(reading: &ClockReading, table: &ClockTable) -> Option<ClockReading> {
    if (reading.a, reading.b) != (ClockId::Tick, ClockId::Realtime) {
        return None;
    }
    let mono = |tick| u64::try_from(table.tick_to_monotonic(tick, u64::MAX)?).ok();
    let (a_before, a_after) = (mono(reading.a_before)?, mono(reading.a_after)?);
    Some(ClockReading { a: ClockId::Monotonic, a_before, a_after, ..*reading })
}

/// The times of a capture, and the input of their conversion.
struct CaptureTimes<'a> {
    capture: &'a Opened,
    /// Index of its host in the readings.
    host: usize,
    readings: &'a ClockReadings,
    times: &'a Times,
    /// The clock table of the reference host.
    table: &'a ClockTable,
}

impl CaptureTimes<'_> {
    /// The period from its first to its last reading of clocks, on its own clock, in ns since the epoch.
    fn span(&self) -> Range<i64> {
        let catalog = self.capture.catalog();
        let times = catalog.clocks.tick_points().map(|tick_point| tick_point.0);
        let own = |tick| {
            let mono = catalog.clocks.tick_to_monotonic(tick, u64::MAX)?;
            i64::try_from(mono + catalog.offset()?).ok()
        };
        let times: Vec<i64> = times.filter_map(own).collect();
        let ends = times.iter().min().zip(times.iter().max());
        // Imported captures have no ticks.
        ends.map_or(i64::MIN..i64::MIN, |(&first, &last)| first..last)
    }

    /// Points between which its times are interpolated.
    fn points(&self) -> Vec<Aligned> {
        let catalog = self.capture.catalog();
        // Imported captures have no ticks: those of the host are used.
        let of_host = table_of(None, self.readings, self.host);
        let has_ticks = catalog.clocks.tick_readings() > 0;
        let clocks = if has_ticks { &catalog.clocks } else { &of_host };
        let exact = has_ticks && only_ticks(catalog);
        let error = if exact { 0 } else { self.capture.time_error() };
        let mut points: Vec<Aligned> = Vec::new();
        let mut run: Vec<u64> = Vec::new();
        for (tick, _, jumps) in clocks.tick_points() {
            run.push(tick);
            if jumps {
                for (tick, ends) in self.ticks(&run) {
                    match self.at(tick, clocks, error) {
                        Some(time) => points.push(Aligned { gap: ends, ..time }),
                        None => points.last_mut().into_iter().for_each(|last| last.gap = true),
                    }
                }
                points.last_mut().into_iter().for_each(|last| last.gap = true);
                run.clear();
            }
        }
        points
    }

    /// Ticks between which times are interpolated, each with whether a gap without bounds follows. `run`:
    /// readings between which the counter did not jump.
    fn ticks(&self, run: &[u64]) -> BTreeMap<u64, bool> {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return BTreeMap::new() };
        let beyond = self.readings.hosts()[self.host].tick_hz().saturating_mul(BEYOND_S);
        let (first, last) = (first.saturating_sub(beyond).max(1), last.saturating_add(beyond));
        let mut ticks: BTreeMap<u64, bool> =
            run.iter().copied().chain([first, last]).map(|tick| (tick, false)).collect();
        for part in self.times.parts(self.host) {
            let Some(end) = part.last() else { continue };
            ticks.extend(part.iter().map(|knot| (knot.tick, knot.tick == end.tick)));
        }
        ticks.retain(|tick, _| (first..=last).contains(tick));
        ticks
    }

    /// The aligned time of a tick; None if it has no bounds.
    fn at(&self, tick: u64, clocks: &ClockTable, error: i64) -> Option<Aligned> {
        let near = u64::MAX;
        let mono = clocks.tick_to_monotonic(tick, near)?;
        let own = i64::try_from(mono + self.capture.catalog().offset()?).ok()?;
        let between = self.times.at(self.host, tick)?;
        let epoch = |tick: i128| self.table.tick_to_epoch(u64::try_from(tick).ok()?, near);
        // Ticks are rounded down to ns.
        let lo = epoch(between.lo)?.saturating_sub(error).saturating_sub(1);
        let hi = epoch(between.hi)?.saturating_add(error).saturating_add(1);
        Some(Aligned { own, lo, ts: epoch(between.mid)?, hi, gap: false })
    }
}

/// Whether all times of its frames are trusted ticks, whose readings have no further error.
fn only_ticks(catalog: &Catalog) -> bool {
    catalog.clocks.distrusted().is_none()
        && catalog.sources.iter().all(|info| {
            let mut times =
                info.schema.frames.iter().filter_map(|frame| frame.at().and_then(Time::from_field));
            info.source.clock == "tick" && times.all(|time| time.scale() == TimeScale::Ticks)
        })
}
