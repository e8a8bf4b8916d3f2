//! The account of a capture as a whole.
//!
//! The structs below are the JSON of `ppt info --json`. Keys may be added, but never changed.

use std::io::{self, Write};

use ppt_capture::{Dropped, Lost, Process};
use serde::{Serialize, Serializer};

/// The account of a capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// Version of this JSON.
    pub format: u32,
    /// Whether the capture ends with an end chunk.
    pub complete: bool,
    /// The offset at which it was cut off, or at which it is still being written.
    pub cut: Option<u64>,
    /// The first 1,000 damaged places, which were skipped.
    pub damaged: Vec<DamageInfo>,
    /// The number of all damaged places.
    pub damages: u64,
    /// The number of rings of an undamaged capture for which the end chunk disagrees with the other
    /// chunks.
    pub mismatches: u64,
    /// The capture, or null if its file header is damaged.
    pub capture: Option<CaptureInfo>,
    /// How it ended.
    pub end: Option<EndInfo>,
    /// Its place in a series, if it is not the first file of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesInfo>,
    /// Frames that were written between another capture and this one, and are in none that is read with
    /// it: for each such capture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AbsentInfo>,
    /// How frames are stored.
    pub stored: StoredInfo,
    /// Why the flight recorder wrote this window: the first 2,000 triggers. A capture that is no window
    /// has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerInfo>,
    /// The number of its further triggers.
    #[serde(skip_serializing_if = "is_zero")]
    pub triggers_not_listed: u64,
    /// What was enabled and disabled: the first 50,000 times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<MaskInfo>,
    /// The last name of each thread: of the first 50,000 threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadInfo>,
    /// What processes had mapped as code, each file and place once: the first 10,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleInfo>,
    /// Further mappings, which the capture does not hold.
    #[serde(skip_serializing_if = "is_zero")]
    pub modules_left_out: u64,
    /// Every buffer.
    pub buffers: Vec<BufferInfo>,
    /// The clocks.
    pub clock: ClockInfo,
    /// The process of the first buffer.
    pub target: Option<Process>,
    /// Every process, in the order in which they were attached to.
    pub targets: Vec<Process>,
}

/// The place of a file in its series: the files in which one capture continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeriesInfo {
    /// The id of the first file, hex.
    pub id: String,
    /// The id of the file before this one, hex.
    pub previous: String,
    /// The number of this file, from 2.
    pub number: u32,
    /// How many files stay (`--keep`); 0: all.
    pub keep: u32,
    /// How many files, from the first on, `--keep` removed when this file became the current one.
    pub removed: u32,
    /// Frames captured in all files before this one.
    pub captured_before: u64,
}

/// Frames between two captures that none holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentInfo {
    /// The id of the capture before them, hex.
    pub after: String,
    /// How many there are, over all rings.
    pub frames: u64,
    /// The files that should hold them, if both captures are of one series.
    pub files: Option<AbsentFilesInfo>,
}

/// Files of a series that are not among the captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbsentFilesInfo {
    /// The number of the first one.
    pub first: u32,
    /// The number of the last one.
    pub last: u32,
    /// How many of the files from the first to the last are missing.
    pub count: u32,
    /// Whether `--keep` has removed all of them.
    pub removed: bool,
}

/// How the frames of a capture are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoredInfo {
    /// Names of the codecs of compressed chunks.
    pub codecs: Vec<&'static str>,
    /// Bytes of all frames in the file, without headers.
    pub bytes: u64,
    /// Bytes of all frames uncompressed.
    pub raw_bytes: u64,
}

/// A trigger of the flight recorder. All times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerInfo {
    /// When it triggered.
    pub mono_ns: u64,
    /// `on`, `gap`, `exit`, `counter` or `hand`.
    pub why: &'static str,
    /// The expression that was true, or nothing.
    pub expression: String,
    /// The buffer that it came from.
    pub buffer: Option<String>,
    /// Nonce of the segment, 16 hex digits.
    pub segment: Option<String>,
    /// The ring of that segment.
    pub ring: Option<u32>,
    /// Sequence number of the frame, or of the first lost one.
    pub seqno: Option<u64>,
    /// More about it.
    pub note: String,
    /// When the window should begin.
    pub from_ns: u64,
    /// When it should end.
    pub to_ns: u64,
    /// From when on the recorder held every frame that was drained.
    pub held_from_ns: u64,
    /// Up to when.
    pub held_to_ns: u64,
}

/// The last name of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadInfo {
    /// Its process.
    pub pid: u32,
    /// Kernel id, in the target's own pid namespace.
    pub tid: u32,
    /// The name. U+FFFD replaces bytes that are not UTF-8.
    pub name: String,
    /// CLOCK_MONOTONIC when that name was read first, ns.
    pub mono_ns: u64,
    /// The number of names that it had before.
    #[serde(skip_serializing_if = "is_zero")]
    pub former_names: u64,
}

/// A file that a process had mapped as code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleInfo {
    /// The process.
    pub pid: u32,
    /// First address, 16 hex digits.
    pub start: String,
    /// The address behind it, 16 hex digits.
    pub end: String,
    /// Where the mapping begins in the file, in bytes.
    pub offset: u64,
    /// The path as the process saw it. U+FFFD replaces bytes that are not UTF-8.
    pub path: String,
    /// Build id, hex; empty if the file has none, or it could not be read.
    pub build_id: String,
    /// Whether the file had been deleted or replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// CLOCK_MONOTONIC when it was seen first, ns.
    pub mono_ns: u64,
}

/// A frame, a counter or a histogram that was enabled or disabled in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaskInfo {
    /// CLOCK_MONOTONIC before that, ns.
    pub mono_ns: u64,
    /// The process.
    pub pid: u32,
    /// The buffer.
    pub buffer: String,
    /// Nonce of the segment, 16 hex digits.
    pub segment: String,
    /// Its name.
    pub name: String,
    /// Whether it was enabled.
    pub enabled: bool,
    /// Of a frame, each ring that somebody had claimed.
    pub rings: Vec<MaskRingInfo>,
}

/// From where on a ring is as a mask says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MaskRingInfo {
    /// The ring.
    pub ring: u32,
    /// Enabled: no such frame has a smaller number. Disabled: none has this number or a larger one,
    /// until it is enabled again.
    pub first_seq: u64,
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamageInfo {
    /// Its offset from the first byte.
    pub offset: u64,
    /// What is damaged.
    pub what: String,
}

/// What the file header says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureInfo {
    /// Random name, hex.
    pub id: String,
    /// Name of the host.
    pub host: String,
    /// The boot id of the host.
    pub boot_id: String,
    /// The program that wrote it.
    pub tool: String,
    /// CLOCK_REALTIME, ns.
    pub created_realtime_ns: u64,
    /// CLOCK_MONOTONIC, ns.
    pub created_mono_ns: u64,
    /// The time from the creation to the end, or to the last drain if the capture was cut off.
    pub duration_ns: u64,
}

/// How a capture ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndInfo {
    /// `stopped`, `exited`, ….
    pub reason: &'static str,
    /// More about the reason.
    pub message: String,
    /// CLOCK_REALTIME, ns.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: u64,
}

/// One buffer of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferInfo {
    /// `NAME[#hash8][@object]`, as much as it takes.
    pub name: String,
    /// 16 hex digits.
    pub schema_hash: String,
    /// Frames that are in the capture and can be read.
    pub frames: u64,
    /// Frames that had a sequence number and are not in the capture. Damage to the file counts.
    pub lost: u64,
    /// The same by cause; damage is `corrupt`.
    pub lost_by: Lost,
    /// The part of `lost` that damage to the file caused.
    pub damaged: u64,
    /// Frames that the writers refused.
    pub dropped: Dropped,
    /// Frames that the capture leaves out, because `--where` did not ask for them.
    pub left_out: u64,
    /// Frames, counters and histograms that were disabled at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// Frames between sessions. No other sum contains them.
    pub unattended: u64,
    /// Frames that were written between another capture and this one, and are in none that is read with
    /// it. No other sum contains them.
    #[serde(skip_serializing_if = "is_zero")]
    pub absent: u64,
    /// Path of the executable or library that holds it.
    pub object: String,
    /// The process.
    pub pid: u32,
    /// Whether the process waited before its first frame until the session had begun.
    #[serde(skip_serializing_if = "is_false")]
    pub from_start: bool,
    /// What its stamps of `option time tsc` count: `tick` or `monotonic`. Empty if it has no such
    /// stamps.
    pub clock: String,
    /// Names of its kinds of frames.
    pub kinds: Vec<String>,
    /// The fields of each kind, as `--where` names them.
    pub fields: Vec<KindFieldsInfo>,
    /// Counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterInfo>,
    /// Histograms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<HistogramInfo>,
    /// Adds and observations that are nowhere, because the target could not map the segment.
    #[serde(skip_serializing_if = "is_zero")]
    pub adds_not_mapped: u64,
    /// Metadata.
    #[serde(serialize_with = "as_map")]
    pub tags: Vec<(String, String)>,
    /// Each ring that was drained.
    pub rings: Vec<RingInfo>,
}

/// The fields of a kind of frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindFieldsInfo {
    /// Its name.
    pub kind: String,
    /// Its fields, without those of every frame: `seqno`, `ring`, `tid`, `pid`, `ts` and `drained`.
    pub fields: Vec<FieldInfo>,
}

/// A field of a kind of frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// What it compares with, in words.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its unit, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A counter: what was added in this capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CounterInfo {
    /// Its name.
    pub name: String,
    /// The sum of all adds.
    pub value: i128,
    /// Its unit, or nothing.
    pub unit: String,
}

/// A histogram: what was observed in this capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistogramInfo {
    /// Its name.
    pub name: String,
    /// The number of values.
    pub count: u64,
    /// Their sum, modulo 2^64.
    pub sum: i128,
    /// The bucket of the median.
    pub p50: BucketInfo,
    /// The bucket that 99 % of the values are not above.
    pub p99: BucketInfo,
    /// The highest bucket with a value.
    pub max: BucketInfo,
    /// The unit of the values.
    pub unit: String,
}

/// A bucket: `lo ≤ value < hi`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BucketInfo {
    /// Null: there is no value, or it is below all buckets.
    pub lo: Option<i128>,
    /// Null: there is no value, or it is above all buckets.
    pub hi: Option<i128>,
}

/// One ring: `frames + lost + left_out == next_seq - first_seq`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RingInfo {
    /// Its number in the segment.
    pub ring: u32,
    /// Nonce of the segment, 16 hex digits.
    pub segment: String,
    /// First sequence number of the session.
    pub first_seq: u64,
    /// The sequence number after the last.
    pub next_seq: u64,
    /// Frames that are in the capture and can be read.
    pub frames: u64,
    /// Frames that are lost.
    pub lost: u64,
    /// Frames that the capture leaves out.
    pub left_out: u64,
    /// Frames before `first_seq` that nobody attended.
    #[serde(skip_serializing_if = "is_zero")]
    pub unattended: u64,
    /// Numbers before those, back to the capture before, that no capture holds.
    #[serde(skip_serializing_if = "is_zero")]
    pub absent: u64,
}

/// The clocks of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClockInfo {
    /// The clock that the target was told to use.
    pub target: String,
    /// Ticks per second, if the system states them.
    pub tick_hz: Option<u64>,
    /// Readings of ticks against monotonic time.
    pub tick_readings: usize,
    /// Realtime − monotonic at the start, ns.
    pub epoch_offset_ns: Option<i64>,
    /// Steps of realtime.
    pub steps: Vec<StepInfo>,
    /// The largest error of a time converted from ticks, relative to CLOCK_REALTIME, in ns. Null if
    /// there are too few readings.
    pub tick_error_ns: Option<u64>,
    /// The largest error of a time converted from CLOCK_MONOTONIC, in ns.
    pub monotonic_error_ns: Option<u64>,
    /// Jumps of the CPU's counter.
    pub tick_steps: Vec<TickStepInfo>,
    /// CLOCK_MONOTONIC from which the system no longer trusted the CPU's counter, in ns.
    pub ticks_distrusted_ns: Option<u64>,
}

/// One jump of the CPU's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TickStepInfo {
    /// The last reading before it, CLOCK_MONOTONIC ns.
    pub after_mono_ns: u64,
    /// The first reading after it, CLOCK_MONOTONIC ns.
    pub before_mono_ns: u64,
    /// Its size in ns, converted from ticks.
    pub by_ns: i64,
}

/// One step of realtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepInfo {
    /// CLOCK_MONOTONIC at which it was seen, in ns.
    pub mono_ns: u64,
    /// Its size, ns.
    pub by_ns: i64,
}

impl Info {
    /// Writes the JSON, and a line feed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: impl Write) -> io::Result<()> {
        write_plain(&serde_json::to_string(self)?, out)
    }

    /// Writes an array of accounts, and a line feed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json_array(all: &[Info], out: impl Write) -> io::Result<()> {
        write_plain(&serde_json::to_string(all)?, out)
    }
}

/// Writes JSON without the characters that it allows and a terminal may obey.
fn write_plain(json: &str, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "{}", ppt_text::escaped_json(json))
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn as_map<S: Serializer>(tags: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tags.iter().map(|(name, value)| (name, value)))
}
