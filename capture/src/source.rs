//! A source: one buffer of one process, with the facts about both.

use ppt_clock::TimeNamespace;
use ppt_frame_dsl::Schema;
use serde::{Deserialize, Serialize};

use crate::bytes::{put_u32, u32_at};
use crate::error::DamageKind;
use crate::format::source;
use crate::thread_names::ProcessKey;

/// One buffer of one process.
///
/// Text comes from the target, so escape it before you show it. In paths, U+FFFD replaces bytes
/// that are not UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The schema's JSON exactly as the target holds it; at most 1 MiB.
    #[serde(skip)]
    pub schema_json: Vec<u8>,
    /// Hash of the schema; readers compute it again.
    #[serde(with = "hex64")]
    pub schema_hash: u64,
    /// The origin of the frames: empty for frames of the program, `kernel` for those in which ppt
    /// states what the kernel did with its threads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name of the buffer as spelled in its frame file.
    pub buffer: String,
    /// Path of the executable or library that holds the buffer.
    pub object: String,
    /// Build-id of that object, hex; may be empty.
    pub object_build_id: String,
    /// The process.
    pub process: Process,
    /// The segments whose frames are in the capture.
    pub segments: Vec<Segment>,
    /// The clock that stamps of `option time tsc` count in this session: `tick`, or `monotonic` if
    /// ticks cannot be trusted. Empty if the buffer has no such field. Each stamp states it, too.
    pub clock: String,
    /// Ticks per second, if the system states them (`cntfrq_el0`, the kernel's TSC rate).
    pub tick_hz: Option<u64>,
    /// Whether the program waited before its first frame until the session had begun, as programs
    /// started by `ppt run` do. False if unknown.
    #[serde(skip_serializing_if = "is_false")]
    pub from_start: bool,
    /// Metadata: the schema's tags, then those of the command line.
    pub tags: Vec<(String, String)>,
}

/// The process that wrote the frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// In the listener's namespace.
    pub pid: u32,
    /// In the target's innermost namespace.
    pub ns_pid: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/<pid>/stat`.
    pub start_time: u64,
    /// Effective user.
    pub uid: u32,
    /// `/proc/<pid>/comm`.
    pub comm: String,
    /// Path of the executable.
    pub exe: String,
    /// Build-id of the executable, hex; may be empty.
    pub build_id: String,
    /// Bytes of a page.
    pub page_size: u32,
    /// Namespaces by kind (`mnt`, `pid`, `time`, …) and inode.
    pub namespaces: Vec<(String, u64)>,
    /// Offsets of the time namespace in ns (`monotonic`, `boottime`): target minus host.
    pub time_offsets: Vec<(String, i64)>,
}

impl Process {
    /// The identity of the process.
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, start_ticks: self.start_time }
    }

    /// The offsets of its clocks from the host's clocks.
    pub fn time_namespace(&self) -> TimeNamespace {
        let offset = |clock: &str| {
            self.time_offsets.iter().find(|(name, _)| name == clock).map(|(_, ns)| *ns)
        };
        // Offsets are stated only for another namespace, each separately.
        let same = self.time_offsets.is_empty().then_some(0);
        let monotonic = offset("monotonic").unwrap_or(0);
        TimeNamespace { monotonic, boottime: offset("boottime").or(same) }
    }
}

/// A shared-memory segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segment {
    /// The random number that identifies it.
    #[serde(with = "hex64")]
    pub nonce: u64,
    /// Number of rings.
    pub rings: u32,
    /// Slots of each ring.
    pub slots: u32,
    /// Bytes of a slot.
    pub stride: u32,
}

impl Source {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, &'static str> {
        let meta = serde_json::to_vec(self).map_err(|_| "the source does not fit JSON")?;
        if meta.len() > source::MAX_TEXT || self.schema_json.len() > source::MAX_TEXT {
            return Err("a source or its schema takes more than 1 MiB");
        }
        let mut bytes = vec![0; source::TEXTS];
        put_u32(&mut bytes, source::META_LEN, meta.len() as u32);
        put_u32(&mut bytes, source::SCHEMA_LEN, self.schema_json.len() as u32);
        bytes.extend_from_slice(&meta);
        bytes.extend_from_slice(&self.schema_json);
        Ok(bytes)
    }

    /// The source and its checked schema.
    pub(crate) fn decode(payload: &[u8]) -> Result<(Source, Schema), DamageKind> {
        let (head, texts) = payload.split_at_checked(source::TEXTS).ok_or(DamageKind::Length)?;
        let meta_len = u32_at(head, source::META_LEN) as usize;
        let schema_len = u32_at(head, source::SCHEMA_LEN) as usize;
        if meta_len.max(schema_len) > source::MAX_TEXT || texts.len() != meta_len + schema_len {
            return Err(DamageKind::Length);
        }
        let (meta, json) = texts.split_at(meta_len);
        let mut source: Source = serde_json::from_slice(meta)
            .map_err(|_| DamageKind::Content("the source is not the JSON it should be"))?;
        let schema = Schema::from_json(json).map_err(|e| DamageKind::Schema(e.to_string()))?;
        if schema.hash() != source.schema_hash {
            return Err(DamageKind::Content("the schema does not have the hash that is stated"));
        }
        source.schema_json = json.to_vec();
        Ok((source, schema))
    }
}

/// Keeps captures of programs that did not wait unchanged.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// u64 as 16 hex digits, because some JSON readers lose precision beyond 2^53.
mod hex64 {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
