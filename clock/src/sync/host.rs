//! Hosts.

use super::error::RecordError;
use super::limits::{MAX_HZ, is_name};

/// One host from boot to shutdown. After a reboot it counts as another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: String,
    boot_id: String,
    tick_hz: u64,
}

impl Host {
    /// A host with its name, its boot id, and the nominal rate of its ticks.
    ///
    /// # Errors
    /// Names are empty, too long or not printable, or the rate is outside the limits.
    pub fn new(name: &str, boot_id: &str, tick_hz: u64) -> Result<Self, RecordError> {
        if !is_name(name) {
            return Err(RecordError::Name { field: 2 });
        }
        if !is_name(boot_id) {
            return Err(RecordError::Name { field: 3 });
        }
        if !(1..=MAX_HZ).contains(&tick_hz) {
            return Err(RecordError::TickHz);
        }
        Ok(Self { name: name.to_owned(), boot_id: boot_id.to_owned(), tick_hz })
    }

    /// The name of the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's id of this boot.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// The nominal tick rate in Hz.
    pub fn tick_hz(&self) -> u64 {
        self.tick_hz
    }

    /// Whether both are the same boot of the same host.
    pub fn is(&self, other: &Self) -> bool {
        (&self.name, &self.boot_id) == (&other.name, &other.boot_id)
    }
}
