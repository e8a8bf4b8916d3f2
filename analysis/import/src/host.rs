//! The host with the clocks of an input.

use std::path::Path;

use ppt_capture::{Capture, CaptureError, Chunk, ClockTable, Item};

/// The host with the clocks of an input.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The boot id of the clocks; empty if unknown.
    pub boot_id: String,
    /// CLOCK_REALTIME in ns when the monotonic clock was at 0.
    pub epoch_ns: u64,
    /// How far the boot-time clock was ahead of the monotonic clock, in ns.
    pub asleep_ns: u64,
}

impl Host {
    /// The host on which a capture was made. None if the capture lacks the boot id or
    /// CLOCK_REALTIME.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn of(capture: &Path) -> Result<Option<Host>, CaptureError> {
        let mut capture = Capture::open(capture)?;
        let header = capture.header().filter(|it| !it.boot_id.is_empty());
        let Some((name, boot_id)) = header.map(|it| (it.host.clone(), it.boot_id.clone())) else {
            return Ok(None);
        };
        let mut clocks = ClockTable::default();
        while let Some(item) = capture.read_heads()? {
            if let Item::Chunk(Chunk::Clock(readings)) = item {
                clocks.add(&readings);
            }
            if clocks.boottime_offset().is_some() {
                break; // all that is asked for
            }
        }
        let Some(epoch_ns) = clocks.epoch_offset().and_then(|it| u64::try_from(it).ok()) else {
            return Ok(None);
        };
        let asleep = clocks.boottime_offset().map_or(0, |it| i128::from(epoch_ns) - it);
        let asleep_ns = u64::try_from(asleep).unwrap_or(0);
        Ok(Some(Host { name, boot_id, epoch_ns, asleep_ns }))
    }
}
