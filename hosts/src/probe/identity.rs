//! The identity of this host.

use std::{fs, io};

use ppt_clock::sync::{Host, RecordError};
use ppt_text::escaped;

use super::clock::HostClock;
use super::packet::PeerIdentity;

/// The file with the kernel's boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why the identity of this host is unknown.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The kernel gives no boot id.
    #[error("cannot read {BOOT_ID}: {0}")]
    System(#[source] io::Error),
    /// The name is invalid.
    #[error("\"{}\" is no name for a host: {cause}", escaped(name))]
    Name {
        /// The name.
        name: String,
        /// The reason.
        cause: RecordError,
    },
}

impl PeerIdentity {
    /// This host, named `name` or by its host name.
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
