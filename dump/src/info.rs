//! The account of a whole capture.
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
    /// The offset at which it was truncated, or at which it is still being written.
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
    /// The end of the capture. None if it has none.
    pub end: Option<EndInfo>,
    /// The position in a series. None for the first file of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesInfo>,
    /// Frames that were written between another capture and this one and are in no given capture,
    /// for each such capture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AbsentInfo>,
    /// The storage of frames.
    pub stored: StoredInfo,
    /// Why the flight recorder wrote this window: the first 2,000 triggers. Empty for a capture
    /// that is not a window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerInfo>,
    /// The number of its further triggers.
    #[serde(skip_serializing_if = "is_zero")]
    pub triggers_not_listed: u64,
    /// The enabled and disabled names: the first 50,000 changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<MaskInfo>,
    /// The last name of each of the first 50,000 threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadInfo>,
    /// The code mappings of processes, each file and address once: the first 10,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleInfo>,
    /// The number of further mappings, which the capture does not contain.
    #[serde(skip_serializing_if = "is_zero")]
    pub modules_left_out: u64,
    /// Every buffer.
    pub buffers: Vec<BufferInfo>,
    /// The clocks.
    pub clock: ClockInfo,
    /// The process of the first buffer.
    pub target: Option<Process>,
    /// Every process, in the order of attaching.
    pub targets: Vec<Process>,
}

/// The position of a file in its series, which is the files of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeriesInfo {
    /// The id of the first file, hex.
    pub id: String,
    /// The id of the previous file, hex.
    pub previous: String,
    /// The number of this file, from 2.
    pub number: u32,
    /// The number of files that are kept (`--keep`); 0: all.
    pub keep: u32,
    /// The number of files, from the first on, that `--keep` removed when this file became the
    /// current one.
    pub removed: u32,
    /// Frames captured in all files before this one.
    pub captured_before: u64,
}

/// Frames between two captures that no capture contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentInfo {
    /// The id of the capture before them, hex.
    pub after: String,
    /// The number of frames, over all rings.
    pub frames: u64,
    /// The files that should hold them, if both captures are of one series.
    pub files: Option<AbsentFilesInfo>,
}

/// Files of a series that were not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbsentFilesInfo {
    /// The number of the first one.
    pub first: u32,
    /// The number of the last one.
    pub last: u32,
    /// The number of missing files from the first to the last.
    pub count: u32,
    /// Whether `--keep` has removed all of them.
    pub removed: bool,
}

/// The storage of the frames of a capture.
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
    /// The time of the trigger, ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// `on`, `gap`, `exit`, `counter` or `hand`.
    pub why: &'static str,
    /// The expression that held, or empty.
    pub expression: String,
    /// The buffer that it came from.
    pub buffer: Option<String>,
    /// Nonce of the segment, 16 hex digits.
    pub segment: Option<String>,
    /// The ring of that segment.
    pub ring: Option<u32>,
    /// Sequence number of the frame, or of the first lost one.
    pub seqno: Option<u64>,
    /// Further information.
    pub note: String,
    /// The requested start of the window, ns.
    pub from_ns: u64,
    /// The requested end of the window, ns.
    pub to_ns: u64,
    /// Since when every drained frame was in memory.
    pub held_from_ns: u64,
    /// Until when.
    pub held_to_ns: u64,
}

/// The last name of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadInfo {
    /// The process of the thread.
    pub pid: u32,
    /// Kernel id, in the target's own pid namespace.
    pub tid: u32,
    /// The name. U+FFFD replaces bytes that are not UTF-8.
    pub name: String,
    /// CLOCK_MONOTONIC when that name was first read, ns.
    pub mono_ns: u64,
    /// The number of earlier names.
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
    /// The end address, exclusive, 16 hex digits.
    pub end: String,
    /// The mapping's offset in the file, in bytes.
    pub offset: u64,
    /// The path as the process saw it. U+FFFD replaces bytes that are not UTF-8.
    pub path: String,
    /// Build id, hex; empty if the file has none, or it could not be read.
    pub build_id: String,
    /// Whether the file had been deleted or replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// CLOCK_MONOTONIC when it was first seen, ns.
    pub mono_ns: u64,
}

/// A frame, a counter or a histogram that was enabled or disabled in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaskInfo {
    /// CLOCK_MONOTONIC before the change, ns.
    pub mono_ns: u64,
    /// The process.
    pub pid: u32,
    /// The buffer.
    pub buffer: String,
    /// Nonce of the segment, 16 hex digits.
    pub segment: String,
    /// The name of the frame, counter or histogram.
    pub name: String,
    /// Whether it was enabled.
    pub enabled: bool,
    /// For a frame, each claimed ring.
    pub rings: Vec<MaskRingInfo>,
}

/// The sequence number in a ring at which a mask takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MaskRingInfo {
    /// The ring.
    pub ring: u32,
    /// Enabled: no such frame has a smaller number. Disabled: no such frame has this number or a
    /// larger one, until it is enabled again.
    pub first_seq: u64,
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamageInfo {
    /// The offset from the first byte of the capture.
    pub offset: u64,
    /// A description of the damage.
    pub what: String,
}

/// The content of the file header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureInfo {
    /// Random id, hex.
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
    /// The time from the creation to the end, or to the last drain if the capture was truncated, ns.
    pub duration_ns: u64,
}

/// How a capture ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndInfo {
    /// `stopped`, `exited`, ….
    pub reason: &'static str,
    /// Further information about the reason.
    pub message: String,
    /// CLOCK_REALTIME, ns.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: u64,
}

/// One buffer of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferInfo {
    /// `NAME[#hash8][@object]`, with as many parts as needed.
    pub name: String,
    /// 16 hex digits.
    pub schema_hash: String,
    /// Frames that are in the capture and can be read.
    pub frames: u64,
    /// Frames that had a sequence number and are not in the capture. Damage to the file counts.
    pub lost: u64,
    /// The lost frames by cause; damage is `corrupt`.
    pub lost_by: Lost,
    /// The part of `lost` that damage to the file caused.
    pub damaged: u64,
    /// Frames that the writers refused.
    pub dropped: Dropped,
    /// Frames that the capture leaves out because `--where` excluded them.
    pub left_out: u64,
    /// Frames, counters and histograms that were disabled at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// Frames between sessions. No other sum contains them.
    pub unattended: u64,
    /// Frames that were written between another capture and this one and are in no given capture.
    /// No other sum contains them.
    #[serde(skip_serializing_if = "is_zero")]
    pub absent: u64,
    /// Path of the executable or library that contains it.
    pub object: String,
    /// The process.
    pub pid: u32,
    /// Whether the process waited before its first frame until the session had begun.
    #[serde(skip_serializing_if = "is_false")]
    pub from_start: bool,
    /// The clock of its stamps of `option time tsc`: `tick` or `monotonic`. Empty if it has no such
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
    /// Adds and observations that were lost, because the target could not map the segment.
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
    /// The name of the kind of frames.
    pub kind: String,
    /// The fields, without the standard ones: `seqno`, `ring`, `tid`, `pid`, `ts` and `drained`.
    pub fields: Vec<FieldInfo>,
}

/// A field of a kind of frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldInfo {
    /// The name of the field.
    pub name: String,
    /// The type, in words.
    #[serde(rename = "type")]
    pub ty: String,
    /// The unit; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A counter: the sum added in this capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CounterInfo {
    /// The name of the counter.
    pub name: String,
    /// The sum of all adds.
    pub value: i128,
    /// The unit; may be empty.
    pub unit: String,
}

/// A histogram: the values observed in this capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistogramInfo {
    /// The name of the histogram.
    pub name: String,
    /// The number of values.
    pub count: u64,
    /// Their sum, modulo 2^64.
    pub sum: i128,
    /// The bucket of the median.
    pub p50: BucketInfo,
    /// The bucket of the 99th percentile.
    pub p99: BucketInfo,
    /// The highest bucket with a value.
    pub max: BucketInfo,
    /// The unit of the values.
    pub unit: String,
}

/// A bucket: `lo ≤ value < hi`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BucketInfo {
    /// Null: there are no values, or the bucket is below all others.
    pub lo: Option<i128>,
    /// Null: there are no values, or the bucket is above all others.
    pub hi: Option<i128>,
}

/// One ring: `frames + lost + left_out == next_seq - first_seq`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RingInfo {
    /// The number of the ring in the segment.
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
    /// Unattended frames before `first_seq`.
    #[serde(skip_serializing_if = "is_zero")]
    pub unattended: u64,
    /// Sequence numbers before those, back to the previous capture, that no capture contains.
    #[serde(skip_serializing_if = "is_zero")]
    pub absent: u64,
}

/// The clocks of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClockInfo {
    /// The clock that the target was set to use.
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
    /// CLOCK_MONOTONIC since which the system has not trusted the CPU's counter, in ns.
    pub ticks_distrusted_ns: Option<u64>,
}

/// One jump of the CPU's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TickStepInfo {
    /// The last reading before it, CLOCK_MONOTONIC ns.
    pub after_mono_ns: u64,
    /// The first reading after it, CLOCK_MONOTONIC ns.
    pub before_mono_ns: u64,
    /// The size of the step in ns, converted from ticks.
    pub by_ns: i64,
}

/// One step of realtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepInfo {
    /// CLOCK_MONOTONIC at which it was seen, in ns.
    pub mono_ns: u64,
    /// The size of the step, ns.
    pub by_ns: i64,
}

impl Info {
    /// Writes the JSON, and a line feed.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write_json(&self, out: impl Write) -> io::Result<()> {
        write_plain(&serde_json::to_string(self)?, out)
    }

    /// Writes an array of accounts, and a line feed.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write_json_array(all: &[Info], out: impl Write) -> io::Result<()> {
        write_plain(&serde_json::to_string(all)?, out)
    }
}

/// Writes JSON with unsafe characters escaped, which JSON allows but a terminal may obey.
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
