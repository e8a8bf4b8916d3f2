//! The address at which metrics are served.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use crate::error::AddressError;

/// An address and a port. A port without an address means 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsAddress(pub SocketAddr);

impl MetricsAddress {
    /// Whether only programs of this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl FromStr for MetricsAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        // A name is not looked up, because its address may change.
        let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address = if is_port { port.parse().map(loopback).ok() } else { text.parse().ok() };
        address.map(MetricsAddress).ok_or_else(|| AddressError(text.to_owned()))
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        let read =
            |text: &str| text.parse::<MetricsAddress>().map(|address| address.to_string()).ok();
        for text in ["9464", ":9464", "localhost:9464", "127.0.0.1:9464"] {
            assert_eq!(read(text).as_deref(), Some("127.0.0.1:9464"), "{text}");
        }
        assert_eq!(read("[::1]:0").as_deref(), Some("[::1]:0"));
        for text in ["", ":", "65536", "-1", "127.0.0.1", "::1:9464", "host:9464", "1.2.3.4:x"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn other_machines_reach_what_is_no_loopback() {
        let is_loopback = |text: &str| text.parse::<MetricsAddress>().unwrap().is_loopback();
        let own = ["1", "127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"];
        assert!(own.into_iter().all(is_loopback));
        assert!(!["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[fe80::1]:1"].into_iter().any(is_loopback));
    }
}
