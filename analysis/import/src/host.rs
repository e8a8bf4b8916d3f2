//! The host with the clocks of an input.

use std::path::Path;

use ppt_capture::{Capture, CaptureError, CaptureItem, Chunk, ClockTable};

/// The host with the clocks of an input.
#[derive(Debug, Clone, Default)]
pub struct ImportHost {
    /// The host name.
    pub name: String,
    /// The boot id of the clocks; empty if unknown.
    pub boot_id: String,
    /// CLOCK_REALTIME in ns when the monotonic clock was at 0.
    pub epoch_ns: u64,
    /// The boot-time clock minus the monotonic clock, in ns.
    pub asleep_ns: u64,
}

impl ImportHost {
    /// The host on which a capture was made. None if the capture lacks the boot id or
    /// CLOCK_REALTIME.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn from_capture(capture: &Path) -> Result<Option<ImportHost>, CaptureError> {
        let mut capture = Capture::open(capture)?;
        let header = capture.header().filter(|header| !header.boot_id.is_empty());
        let Some((name, boot_id)) =
            header.map(|header| (header.host.clone(), header.boot_id.clone()))
        else {
            return Ok(None);
        };
        let mut clocks = ClockTable::default();
        while let Some(item) = capture.read_heads()? {
            if let CaptureItem::Chunk(Chunk::Clock(readings)) = item {
                clocks.add(&readings);
            }
            if clocks.boottime_offset().is_some() {
                break;
            }
        }
        let Some(epoch_ns) =
            clocks.epoch_offset().and_then(|epoch_offset| u64::try_from(epoch_offset).ok())
        else {
            return Ok(None);
        };
        let asleep = clocks
            .boottime_offset()
            .map_or(0, |boottime_offset| i128::from(epoch_ns) - boottime_offset);
        let asleep_ns = u64::try_from(asleep).unwrap_or(0);
        Ok(Some(ImportHost { name, boot_id, epoch_ns, asleep_ns }))
    }
}
