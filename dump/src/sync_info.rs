//! Evaluates clock readings (`.sync` files) for their hosts.
//!
//! The structs below are the JSON of `ppt info --sync --json`. Keys may be added, but never
//! changed.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ppt_capture::sync::{ClockReadings, SyncError};
use ppt_capture::times::{ClockModel, ClockStep, Loop, Times, TimesError};
use serde::Serialize;
use thiserror::Error;

/// Number of moments at which widths are reported.
const MOMENTS: u64 = 10;
/// Number of moments over which the minimum, median and maximum width are taken.
const SAMPLES: u64 = 1000;
/// Most steps and loops that are reported.
const MAX_ROWS: usize = 1000;

/// The evaluation of clock readings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SyncInfo {
    /// Version of this JSON.
    pub format: u32,
    /// The host whose clock is the reference.
    pub reference: String,
    /// All hosts.
    pub hosts: Vec<HostInfo>,
    /// Pairs of hosts that exchanged packets.
    pub pairs: Vec<PairInfo>,
    /// Clock changes that exceed the model: the first 1,000.
    pub steps: Vec<StepInfo>,
    /// Pairs that are also compared through other hosts: the first 1,000.
    pub loops: Vec<LoopInfo>,
    /// Stamps that were not used because CLOCK_REALTIME was stepped near them.
    pub stepped: u64,
    /// Stamps that were not used because no reading of the host's clocks is near.
    pub far: u64,
    /// Number of lines of later versions.
    pub unknown_lines: u64,
    /// Number of truncated last lines.
    pub cut_lines: u64,
    /// Number of packets that are not readings, by cause.
    pub counts: BTreeMap<String, u64>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostInfo {
    /// The name of the host.
    pub name: String,
    /// The id of its boot.
    pub boot_id: String,
    /// The nominal tick rate in Hz.
    pub tick_hz: u64,
    /// Readings of its clocks.
    pub readings: usize,
    /// Time from its first to its last tick that was read, in ns.
    pub span_ns: u64,
    /// Number of observed edges of a pulse per second.
    pub pulses: usize,
    /// Number of reports of other programs about its time.
    pub said: usize,
    /// The excess of its tick rate over that of the reference, in ppm of the nominal rates; null if
    /// unknown, or if there was a step.
    pub ppm: Option<f64>,
    /// The minimum, median and maximum width of the bounds, in ns; null if unknown.
    pub width_ns: Option<[u64; 3]>,
    /// The fraction of the time without bounds.
    pub unknown: f64,
    /// The width of the bounds over time.
    pub widths: Vec<WidthInfo>,
    /// The accuracy of true time on the host; null if no pulse and no other program reports it.
    pub true_time: Option<TrueTimeInfo>,
    /// Whether its readings contradict those of other hosts.
    pub contradicted: bool,
}

/// The accuracy of true time on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TrueTimeInfo {
    /// The minimum, median and maximum width of the bounds, in ns.
    pub width_ns: [u64; 3],
    /// Whether the bounds use reports of other programs, and depend on their correctness.
    pub said: bool,
}

/// The width of bounds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WidthInfo {
    /// Time since the host's first reading.
    pub at_ns: u64,
    /// null if there are no bounds.
    pub width_ns: Option<u64>,
}

/// Two hosts that exchanged packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairInfo {
    /// The host that sent probes.
    pub from: String,
    /// The host that answered.
    pub to: String,
    /// Number of probes with all stamps.
    pub probes: u64,
    /// Number of one-way messages.
    pub one_ways: u64,
    /// The minimum round-trip time, ns.
    pub least_ns: Option<u64>,
}

/// A step of the ticks of a host, or of true time (null).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepInfo {
    /// One of the hosts.
    pub from: Option<String>,
    /// The other one. It stepped, or the first one stepped in the opposite direction.
    pub to: Option<String>,
    /// Times before and after the step, since the first reading of `from`, in ns.
    pub between_ns: (i128, i128),
    /// The minimum and the maximum of the step.
    pub by_ns: (i64, i64),
}

/// The difference between two ways to compare the same hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopInfo {
    /// One of the hosts.
    pub from: Option<String>,
    /// The other one.
    pub to: Option<String>,
    /// The mean.
    pub mean_ns: f64,
    /// The maximum.
    pub worst_ns: f64,
}

/// Why clock readings cannot be evaluated.
#[derive(Debug, Error)]
pub enum SyncInfoError {
    /// A file cannot be read.
    #[error("{}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// A file does not contain readings.
    #[error("{}: {cause}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: SyncError,
    },
    /// No host has this name.
    #[error("no reading is of a host `{name}`; there are: {}", available.join(", "))]
    NoHost {
        /// The requested name.
        name: String,
        /// The existing names.
        available: Vec<String>,
    },
    /// There is no host at all.
    #[error("the files have no readings")]
    Empty,
    /// No times can be derived.
    #[error(transparent)]
    Times(#[from] TimesError),
}

impl SyncInfoError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        match self {
            SyncInfoError::Read { .. } => "cannot-read",
            SyncInfoError::NoHost { .. } => "no-such-host",
            _ => "bad-sync",
        }
    }
}

impl SyncInfo {
    /// Whether a file begins like a `.sync` file.
    pub fn is_sync(path: &Path) -> bool {
        let mut begin = Vec::new();
        // Bytes read from a pipe are lost.
        if !path.is_file() {
            return false;
        }
        let read = std::fs::File::open(path).and_then(|file| file.take(9).read_to_end(&mut begin));
        read.is_ok() && begin == b"ppt sync "
    }

    /// Evaluates the readings of all files by the clock of `reference`, or else of the first host.
    ///
    /// # Errors
    /// A file cannot be read or is not a `.sync` file, or no host is called `reference`.
    pub fn read(files: &[PathBuf], reference: Option<&str>) -> Result<Self, SyncInfoError> {
        let mut readings = ClockReadings::default();
        for path in files {
            let bytes = std::fs::read(path);
            let bytes = bytes.map_err(|cause| SyncInfoError::Read { path: path.clone(), cause })?;
            let read = readings.read(&bytes);
            read.map_err(|cause| SyncInfoError::Content { path: path.clone(), cause })?;
        }
        if readings.hosts().is_empty() {
            return Err(SyncInfoError::Empty);
        }
        let place = match reference {
            None => 0,
            Some(name) => {
                let found = readings.hosts().iter().position(|host| host.name() == name);
                let available =
                    || readings.hosts().iter().map(|host| host.name().to_owned()).collect();
                found.ok_or_else(|| SyncInfoError::NoHost {
                    name: name.to_owned(),
                    available: available(),
                })?
            }
        };
        Ok(Self::from_readings(&readings, place)?)
    }

    /// Evaluates readings by the clock of the host with index `reference`.
    ///
    /// # Errors
    /// There is no such host.
    pub fn from_readings(readings: &ClockReadings, reference: usize) -> Result<Self, TimesError> {
        let times = Times::between_hosts(readings, reference, &ClockModel::default())?;
        // Reports of other programs are used only if no host observed true time itself.
        let said = readings.pulses().is_empty();
        let model = ClockModel { trusts_reports: said, ..ClockModel::default() };
        let truth = Times::of_truth(readings, &model).ok();
        let truth = truth.as_ref().map(|times| (times, said));
        let spans = spans(readings);
        let name = |host: usize| readings.hosts()[host].name().to_owned();
        let step = |step: &ClockStep| {
            let first =
                step.from.and_then(|host| Some((spans[host]?.0, readings.hosts()[host].tick_hz())));
            let (first, hz) = first.unwrap_or((0, 1_000_000_000));
            let ns =
                |tick: i128| (tick - i128::from(first)) * 1_000_000_000 / i128::from(hz.max(1));
            StepInfo {
                from: step.from.map(name),
                to: step.to.map(name),
                between_ns: (ns(step.between.0), ns(step.between.1)),
                by_ns: step.by_ns,
            }
        };
        let turn = |turn: &Loop| LoopInfo {
            from: turn.from.map(name),
            to: turn.to.map(name),
            mean_ns: turn.mean_ns,
            worst_ns: turn.worst_ns,
        };
        Ok(Self {
            format: 1,
            reference: name(reference),
            hosts: (0..spans.len())
                .map(|index| host(readings, &times, truth, (reference, index), spans[index]))
                .collect(),
            pairs: pairs(readings),
            steps: times.steps().iter().take(MAX_ROWS).map(step).collect(),
            loops: times.loops().iter().take(MAX_ROWS).map(turn).collect(),
            stepped: times.unused().stepped,
            far: times.unused().far,
            unknown_lines: readings.unknown_lines(),
            cut_lines: readings.cut_lines(),
            counts: readings.counts().map(|(what, count)| (what.to_owned(), count)).collect(),
        })
    }
}

/// The first and the last read tick of each host.
fn spans(readings: &ClockReadings) -> Vec<Option<(u64, u64)>> {
    let mut spans: Vec<Option<(u64, u64)>> = vec![None; readings.hosts().len()];
    let mut see = |host: u32, tick: u64| {
        let span = spans[host as usize].get_or_insert((tick, tick));
        *span = (span.0.min(tick), span.1.max(tick));
    };
    for probe in readings.probes() {
        see(probe.from, probe.from_tick);
        see(probe.to, probe.to_tick);
    }
    for one_way in readings.one_ways() {
        see(one_way.from, one_way.from_tick);
        see(one_way.to, one_way.to_tick);
    }
    for pulse in readings.pulses() {
        see(pulse.host, pulse.tick_before);
    }
    for time_source in readings.time_sources() {
        see(time_source.host, time_source.tick);
    }
    spans
}

fn host(
    readings: &ClockReadings,
    times: &Times,
    truth: Option<(&Times, bool)>,
    (reference, number): (usize, usize),
    span: Option<(u64, u64)>,
) -> HostInfo {
    let host = &readings.hosts()[number];
    let is_its = |n: u32| n as usize == number;
    let ns =
        |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(host.tick_hz().max(1))) as u64;
    let (first, last) = span.unwrap_or_default();
    let at = |part: u64, of: u64| {
        first + ((u128::from(last - first) * u128::from(part)) / u128::from(of.max(1))) as u64
    };
    let hz = u128::from(readings.hosts()[reference].tick_hz().max(1));
    let width_by = |times: &Times, hz: u128, tick: u64| {
        let bounds = times.at(number, tick)?;
        Some(((bounds.hi - bounds.lo).max(0) as u128 * 1_000_000_000 / hz) as u64)
    };
    let width = |tick: u64| width_by(times, hz, tick);
    let sorted = |width: &dyn Fn(u64) -> Option<u64>| {
        let mut known: Vec<u64> =
            (0..=SAMPLES).filter_map(|number| width(at(number, SAMPLES))).collect();
        known.sort_unstable();
        known
    };
    let spread = |known: &[u64]| {
        let ends = span.and(known.first().zip(known.last()));
        ends.map(|(&least, &most)| [least, known[known.len() / 2], most])
    };
    let known = sorted(&width);
    // Its ticks are ns.
    let true_time = truth.and_then(|(times, said)| {
        let width_ns = spread(&sorted(&|tick| width_by(times, 1_000_000_000, tick)))?;
        Some(TrueTimeInfo { width_ns, said })
    });
    let width_of = |tick: u64| WidthInfo { at_ns: ns(tick - first), width_ns: width(tick) };
    HostInfo {
        name: host.name().to_owned(),
        boot_id: host.boot_id().to_owned(),
        tick_hz: host.tick_hz(),
        readings: readings.clocks(number).len(),
        span_ns: ns(last - first),
        pulses: readings.pulses().iter().filter(|pulse| is_its(pulse.host)).count(),
        said: readings.time_sources().iter().filter(|time_source| is_its(time_source.host)).count(),
        ppm: faster(times, (reference, number), (first, last), readings),
        width_ns: spread(&known),
        unknown: 1.0 - known.len() as f64 / (SAMPLES + 1) as f64,
        widths: (0..=MOMENTS)
            .map(|number| width_of(at(number, MOMENTS)))
            .filter(|_| span.is_some())
            .collect(),
        true_time,
        contradicted: times.contradicted().contains(&number),
    }
}

/// The excess of a host's tick rate over that of the reference, in ppm.
fn faster(
    times: &Times,
    (reference, number): (usize, usize),
    (first, last): (u64, u64),
    readings: &ClockReadings,
) -> Option<f64> {
    let stepped = |step: &ClockStep| [step.from, step.to].contains(&Some(number));
    if times.steps().iter().any(stepped) {
        return None;
    }
    let (from, to) = (times.at(number, first)?, times.at(number, last)?);
    let hz = |host: usize| readings.hosts()[host].tick_hz() as f64;
    let own_seconds = (last - first) as f64 / hz(number);
    let reference_seconds = (to.mid - from.mid) as f64 / hz(reference);
    (reference_seconds > 0.0).then(|| (own_seconds / reference_seconds - 1.0) * 1e6)
}

fn pairs(readings: &ClockReadings) -> Vec<PairInfo> {
    let mut pairs: BTreeMap<(u32, u32), (u64, u64, Option<u64>)> = BTreeMap::new();
    for probe in readings.probes() {
        let pair = pairs.entry((probe.from, probe.to)).or_default();
        pair.0 += 1;
        let way = i128::from(probe.t4)
            - i128::from(probe.t1)
            - (i128::from(probe.t3) - i128::from(probe.t2));
        // If CLOCK_REALTIME was stepped in between, the difference is not a round-trip time.
        if let Ok(way) = u64::try_from(way) {
            pair.2 = Some(pair.2.map_or(way, |least| least.min(way)));
        }
    }
    for one_way in readings.one_ways() {
        pairs.entry((one_way.from, one_way.to)).or_default().1 += 1;
    }
    let name = |host: u32| readings.hosts()[host as usize].name().to_owned();
    let pair = |((from, to), (probes, one_ways, least_ns))| PairInfo {
        from: name(from),
        to: name(to),
        probes,
        one_ways,
        least_ns,
    };
    pairs.into_iter().map(pair).collect()
}
