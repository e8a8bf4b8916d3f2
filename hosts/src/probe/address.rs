//! The address of a host: `NAME`, `NAME:PORT`, `ADDRESS`, `[ADDRESS]:PORT`.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use ppt_text::escaped;

use super::server::PORT;

/// Why a host's address is unknown.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is neither an address nor a name with a port.
    #[error("`{}` is not HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT", escaped(.0))]
    Form(String),
    /// The system cannot resolve the name.
    #[error("cannot find the host `{}`: {cause}", escaped(name))]
    Unknown {
        /// The name.
        name: String,
        /// The system's message.
        cause: io::Error,
    },
}

/// The addresses of a host, at least one. The port is [`PORT`] unless the text gives one.
///
/// # Errors
/// The text is no address, or the name cannot be resolved.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, AddressError> {
    let form = || AddressError::Form(text.to_owned());
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Some(address) = bare {
        let address: Ipv6Addr = address.parse().map_err(|_| form())?;
        return Ok(vec![(address, PORT).into()]);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(vec![(address, PORT).into()]);
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| form())?),
        None => (text, PORT),
    };
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(form());
    }
    let unknown = |cause| AddressError::Unknown { name: name.to_owned(), cause };
    let mut found = Vec::new();
    for address in (name, port).to_socket_addrs().map_err(unknown)? {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() { Err(unknown(io::ErrorKind::NotFound.into())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_these_forms() {
        for (text, address) in [
            ("10.1.2.3", "10.1.2.3:7787"),
            ("10.1.2.3:5", "10.1.2.3:5"),
            ("::1", "[::1]:7787"),
            ("[::1]", "[::1]:7787"),
            ("[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(resolve(text).unwrap(), [address.parse().unwrap()], "{text}");
        }
        for text in ["", ":5", "host:", "host:x", "host:70000", "[host]", "a b", "a:1:2"] {
            assert!(matches!(resolve(text), Err(AddressError::Form(_))), "{text}");
        }
    }
}
