//! Captures of several hosts on the clock of one of them, by the readings of `.sync` files.

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

/// So long before the first reading of a capture, and after the last one, times still have bounds.
const BEYOND_S: u64 = 60;

impl CaptureSet {
    /// Tells all times by the clock of one host: of `reference`, which may be any host that has a capture or
    /// readings, else of the first capture.
    ///
    /// The readings are those of `files`, and of all `*.sync` in the folders of captures of several hosts.
    /// Captures of a host that no reading joins with the reference stay as they are, and their times cannot
    /// be compared with others.
    ///
    /// # Errors
    /// A file cannot be read or is none; one of `files` is of other hosts or boots; no host is called
    /// `reference`.
    pub fn align(self, files: &[PathBuf], reference: Option<&str>) -> Result<Self, SetError> {
        let hosts: BTreeSet<_> = self.captures().iter().map(Opened::host_and_boot).collect();
        let alone = files.is_empty() && hosts.len() < 2;
        let readings = if alone { ClockReadings::default() } else { readings(&self, files)? };
        if let Some(name) = reference {
            let captured = hosts.into_iter().map(|(name, _)| name);
            let read = readings.hosts().iter().map(|host| host.name().to_owned());
            let there: BTreeSet<String> = captured.chain(read).collect();
            if !there.contains(name) {
                let there = there.into_iter().collect();
                return Err(SetError::Reference { name: name.to_owned(), there });
            }
        }
        if alone {
            return Ok(self);
        }
        let found: Vec<Option<usize>> =
            self.captures().iter().map(|capture| host_of(capture, &readings)).collect();
        let called = |name: &str| {
            let mut captured = self.captures().iter().zip(&found);
            let own = captured
                .find_map(|(opened, &found)| found.filter(|_| opened.host_and_boot().0 == name));
            let is_captured =
                || self.captures().iter().any(|capture| capture.host_and_boot().0 == name);
            // Of several boots of a host without a capture, the last one that was read counts.
            let read = || readings.hosts().iter().rposition(|host| host.name() == name);
            own.or_else(|| if is_captured() { None } else { read() })
        };
        let reference = match reference {
            Some(name) => called(name),
            None => found.iter().flatten().next().copied(),
        };
        match reference {
            Some(reference) => self.told_by(reference, &readings, &found),
            None => Ok(self),
        }
    }

    /// `found`: the host of each capture, by its place in the readings.
    fn told_by(
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
                let of = OfCapture { capture, host: host?, readings, times: &times, table: &table };
                // What has no bounds at all cannot be compared.
                let alignment = Alignment::new(of.known())
                    .filter(|alignment| unknown(alignment, &of.span()) < 1.0);
                alignment.map(Arc::new)
            })
            .collect();
        let mut unbounded: BTreeMap<String, f64> = BTreeMap::new();
        for ((capture, alignment), &host) in self.captures().iter().zip(&alignments).zip(found) {
            if let (Some(alignment), Some(host)) = (alignment, host) {
                let of = OfCapture { capture, host, readings, times: &times, table: &table };
                let part = unbounded.entry(capture.host_and_boot().0).or_default();
                *part = part.max(unknown(alignment, &of.span()));
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
        let of = self.captures().iter().zip(&alignments).zip(found);
        let of = (0..).zip(of).map(clock).collect();
        let name = readings.hosts()[reference].name().to_owned();
        let clocks = Clocks::new(of, self.captures().iter().map(|capture| capture.id.clone()))
            .told_by(name, unbounded);
        Ok(self.with_clocks(clocks, alignments))
    }
}

/// The part of a span of own times, from 0 to 1, for which nothing is known of the bounds.
fn unknown(alignment: &Alignment, span: &Range<i64>) -> f64 {
    let known = alignment.times().windows(2).filter(|window| !window[0].gap);
    let known =
        known.map(|pair| pair[1].own.min(span.end).saturating_sub(pair[0].own.max(span.start)));
    let known: i64 = known.filter(|&number| number > 0).sum();
    match span.end.saturating_sub(span.start) {
        // A moment.
        ..=0 => f64::from(u8::from(known == 0 && alignment.times().iter().all(|time| time.gap))),
        length => 1.0 - known as f64 / length as f64,
    }
}

/// The readings of files that are named, and of those beside the captures.
fn readings(set: &CaptureSet, files: &[PathBuf]) -> Result<ClockReadings, SetError> {
    let mut all = ClockReadings::default();
    for path in files {
        let bytes = read(path)?;
        if !concerns(set, path, &bytes)? {
            let mut own = ClockReadings::default();
            add(&mut own, path, &bytes)?;
            let host = |name: &str, boot: &str| format!("{name} (boot {boot})");
            let readings = own.hosts().iter().map(|it| host(it.name(), it.boot_id())).collect();
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
    for path in beside(set) {
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

/// Whether it has readings of a host of the set.
fn concerns(set: &CaptureSet, path: &Path, bytes: &[u8]) -> Result<bool, SetError> {
    let mut own = ClockReadings::default();
    add(&mut own, path, bytes)?;
    Ok(set.captures().iter().any(|capture| host_of(capture, &own).is_some()))
}

/// The `.sync` files in the folders of captures, in the order of their names.
fn beside(set: &CaptureSet) -> BTreeSet<PathBuf> {
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

/// The host of a capture among those of readings: of the same boot, and of the same name where several have
/// that boot.
fn host_of(capture: &Opened, readings: &ClockReadings) -> Option<usize> {
    let (name, boot) = capture.host_and_boot();
    let mut same = (0..).zip(readings.hosts()).filter(|entry| entry.1.boot_id() == boot);
    let (first, more) = (same.next()?, same.next());
    let called = || {
        (0..)
            .zip(readings.hosts())
            .find(|entry| entry.1.boot_id() == boot && entry.1.name() == name)
    };
    match more {
        None => Some(first.0),
        Some(_) => called().map(|called| called.0),
    }
}

/// What the ticks of a host are: as its capture says, and outside of it as its readings say.
fn table_of(own: Option<&Catalog>, readings: &ClockReadings, host: usize) -> ClockTable {
    let mut table = ClockTable::default();
    table.set_tick_hz(readings.hosts()[host].tick_hz());
    let captured = own.map_or(&[][..], |catalog| &catalog.clock_readings);
    let read = readings.clocks(host);
    // The first offset to realtime counts.
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

/// What a reading of ticks against realtime says of the monotonic clock: a host without a capture has no
/// reading of these two.
fn offset_of(reading: &ClockReading, table: &ClockTable) -> Option<ClockReading> {
    if (reading.a, reading.b) != (ClockId::Tick, ClockId::Realtime) {
        return None;
    }
    let mono = |tick| u64::try_from(table.tick_to_monotonic(tick, u64::MAX)?).ok();
    let (a_before, a_after) = (mono(reading.a_before)?, mono(reading.a_after)?);
    Some(ClockReading { a: ClockId::Monotonic, a_before, a_after, ..*reading })
}

/// A capture, and what its times are found by.
struct OfCapture<'a> {
    capture: &'a Opened,
    /// The place of its host in the readings.
    host: usize,
    readings: &'a ClockReadings,
    times: &'a Times,
    /// The ticks of the reference.
    table: &'a ClockTable,
}

impl OfCapture<'_> {
    /// From its first to its last reading of clocks, by its own clock, in ns since the epoch.
    fn span(&self) -> Range<i64> {
        let catalog = self.capture.catalog();
        let times = catalog.clocks.tick_points().map(|tick_point| tick_point.0);
        let own = |tick| {
            let mono = catalog.clocks.tick_to_monotonic(tick, u64::MAX)?;
            i64::try_from(mono + catalog.offset()?).ok()
        };
        let times: Vec<i64> = times.filter_map(own).collect();
        let ends = times.iter().min().zip(times.iter().max());
        // What was imported has no ticks.
        ends.map_or(i64::MIN..i64::MIN, |(&first, &last)| first..last)
    }

    /// What is known of its times.
    fn known(&self) -> Vec<Aligned> {
        let catalog = self.capture.catalog();
        // What was imported has no ticks: those of its host count.
        let of_host = table_of(None, self.readings, self.host);
        let has_ticks = catalog.clocks.tick_readings() > 0;
        let clocks = if has_ticks { &catalog.clocks } else { &of_host };
        let exact = has_ticks && only_ticks(catalog);
        let doubt = if exact { 0 } else { self.capture.time_error() };
        let mut known: Vec<Aligned> = Vec::new();
        let mut run: Vec<u64> = Vec::new();
        for (tick, _, jumps) in clocks.tick_points() {
            run.push(tick);
            if jumps {
                for (tick, ends) in self.ticks(&run) {
                    match self.at(tick, clocks, doubt) {
                        Some(time) => known.push(Aligned { gap: ends, ..time }),
                        None => known
                            .iter_mut()
                            .last()
                            .into_iter()
                            .for_each(|aligned| aligned.gap = true),
                    }
                }
                known.iter_mut().last().into_iter().for_each(|aligned| aligned.gap = true);
                run.clear();
            }
        }
        known
    }

    /// Ticks between which times are on lines, and whether nothing is known behind one. In the readings of
    /// `run`, the counter did not jump.
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

    fn at(&self, tick: u64, clocks: &ClockTable, doubt: i64) -> Option<Aligned> {
        let near = u64::MAX;
        let mono = clocks.tick_to_monotonic(tick, near)?;
        let own = i64::try_from(mono + self.capture.catalog().offset()?).ok()?;
        let between = self.times.at(self.host, tick)?;
        let epoch = |tick: i128| self.table.tick_to_epoch(u64::try_from(tick).ok()?, near);
        // A time between two ticks is rounded down.
        let lo = epoch(between.lo)?.saturating_sub(doubt).saturating_sub(1);
        let hi = epoch(between.hi)?.saturating_add(doubt).saturating_add(1);
        Some(Aligned { own, lo, ts: epoch(between.mid)?, hi, gap: false })
    }
}

/// Whether all times of its frames are ticks: then readings of them leave no doubt.
fn only_ticks(catalog: &Catalog) -> bool {
    catalog.clocks.distrusted().is_none()
        && catalog.sources.iter().all(|info| {
            let mut times =
                info.schema.frames.iter().filter_map(|frame| frame.at().and_then(Time::from_field));
            info.source.clock == "tick" && times.all(|time| time.scale() == TimeScale::Ticks)
        })
}
