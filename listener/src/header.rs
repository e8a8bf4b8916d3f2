//! The header of a capture: host and time.

use std::fs;

use nix::time::{ClockId, clock_gettime};
use ppt_capture::FileHeader;
use rustix::rand::GetRandomFlags;

/// A header for a capture that begins now, on this machine, by `tool` (name and version).
pub fn header(tool: &str) -> FileHeader {
    let kernel = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let now = |clock| {
        clock_gettime(clock)
            .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
    };
    let mut capture_id = [0; 16];
    let random = rustix::rand::getrandom(&mut capture_id, GetRandomFlags::empty());
    if random != Ok(capture_id.len()) {
        // The id only has to be unique.
        capture_id[..8].copy_from_slice(&now(ClockId::CLOCK_REALTIME).to_le_bytes());
        capture_id[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    FileHeader {
        capture_id,
        host: kernel("hostname"),
        boot_id: kernel("random/boot_id"),
        tool: tool.to_owned(),
        created_realtime_ns: now(ClockId::CLOCK_REALTIME),
        created_mono_ns: now(ClockId::CLOCK_MONOTONIC),
    }
}
