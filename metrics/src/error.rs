//! Errors before metrics are served.

use std::io;
use std::net::SocketAddr;

/// An invalid address.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no address to serve metrics at: write ADDRESS:PORT in numbers, such as 127.0.0.1:9464 or \
     [::1]:9464"
)]
pub struct AddressError(pub(crate) String);

impl AddressError {
    /// The name of the message.
    pub fn code(&self) -> &'static str {
        "bad-address"
    }
}

/// An address at which metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program uses it.
    #[error(
        "port {} of {} is in use; choose another one, or port 0 for any that is free",
        address.port(), address.ip()
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system reserves it.
    #[error(
        "port {} of {} cannot be used: {source}; ports below 1024 are for root, and metrics are served \
         without root's rights", address.port(), address.ip()
    )]
    Denied {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The address is not one of this machine.
    #[error("metrics cannot be served at {address}: {source}")]
    Other {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl BindError {
    pub(crate) fn new(address: SocketAddr, source: io::Error) -> BindError {
        match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address },
            io::ErrorKind::PermissionDenied => BindError::Denied { address, source },
            _ => BindError::Other { address, source },
        }
    }

    /// The name of the message.
    pub fn code(&self) -> &'static str {
        match self {
            BindError::InUse { .. } => "port-in-use",
            BindError::Denied { .. } => "port-denied",
            BindError::Other { .. } => "bad-address",
        }
    }
}
