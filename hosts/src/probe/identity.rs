//! Who this host is.

use std::{fs, io};

use ppt_clock::sync::{Host, RecordError};
use ppt_text::escaped;

use super::clock::HostClock;
use super::packet::Identity;

/// Where the kernel says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why nobody knows who this host is.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The kernel does not say.
    #[error("cannot read {BOOT_ID}: {0}")]
    System(#[source] io::Error),
    /// What it says is no name.
    #[error("\"{}\" is no name for a host: {cause}", escaped(name))]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: RecordError,
    },
}

impl Identity {
    /// This host: by `name`, or by what the system calls it.
    ///
    /// # Errors
    /// The name is too long or unsafe to show, or the boot id cannot be read.
    pub fn of_this_host(name: Option<&str>, clock: &HostClock) -> Result<Self, IdentityError> {
        let system = rustix::system::uname();
        let name = name.map_or_else(|| system.nodename().to_string_lossy(), Into::into);
        let boot = fs::read_to_string(BOOT_ID).map_err(IdentityError::System)?;
        let host = Host::new(&name, boot.trim_end(), clock.tick_hz());
        let host = host.map_err(|cause| IdentityError::Name { name: name.into(), cause })?;
        Ok(Self { host, program: env!("CARGO_PKG_VERSION").to_owned() })
    }
}
