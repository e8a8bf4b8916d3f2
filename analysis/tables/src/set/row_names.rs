//! The dictionaries of the columns that identify a row.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use ppt_capture::SourceInfo;

use super::opened::Opened;
use crate::builder::Dictionary;

/// The dictionaries of the columns that identify a row.
#[derive(Debug)]
pub(crate) struct RowNames {
    pub captures: Arc<StringArray>,
    pub buffers: Arc<StringArray>,
    pub segments: Arc<StringArray>,
    pub hosts: Arc<StringArray>,
    buffer_keys: Dictionary,
    segment_keys: HashMap<u64, i32>,
    host_keys: Dictionary,
    pub(super) processes: HashMap<HostProcess, i32>,
}

impl RowNames {
    pub(super) fn new(captures: &[Opened]) -> RowNames {
        let (mut buffer_keys, mut host_keys) = (Dictionary::default(), Dictionary::default());
        let (mut segments, mut segment_keys) = (Dictionary::default(), HashMap::new());
        let mut processes = HashMap::new();
        for capture in captures {
            let catalog = &capture.by_heads;
            host_keys.key(catalog.host());
            for info in &catalog.sources {
                buffer_keys.key(&info.source.buffer);
                for segment in &info.source.segments {
                    let key = segments.key(&format!("{:016x}", segment.nonce));
                    segment_keys.insert(segment.nonce, key);
                }
                let next = processes.len() as i32;
                processes.entry(process(capture, info)).or_insert(next);
            }
        }
        let ids = captures.iter().map(|capture| &capture.id);
        RowNames {
            captures: Arc::new(StringArray::from_iter_values(ids)),
            buffers: buffer_keys.array(),
            segments: segments.array(),
            hosts: host_keys.array(),
            buffer_keys,
            segment_keys,
            host_keys,
            processes,
        }
    }

    pub fn buffer(&self, name: &str) -> i32 {
        self.buffer_keys.get(name).unwrap_or(0)
    }

    pub fn host(&self, name: &str) -> i32 {
        self.host_keys.get(name).unwrap_or(0)
    }

    pub fn segment(&self, nonce: u64) -> i32 {
        self.segment_keys.get(&nonce).copied().unwrap_or(0)
    }
}

/// A process of any host and boot. Pids are reused, and hosts that share a boot are namespaces with pids of
/// their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HostProcess {
    host: String,
    boot: String,
    pid: u32,
    start: u64,
}

pub(super) fn process(capture: &Opened, info: &SourceInfo) -> HostProcess {
    let (host, boot) = capture.host_and_boot();
    let process = &info.source.process;
    HostProcess { host, boot, pid: process.pid, start: process.start_time }
}
