//! Addresses to listen on, as people write them.

use std::net::{SocketAddr, ToSocketAddrs as _};

/// An address as numbers, or with a name such as `localhost`.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| "write an address with its port, such as 127.0.0.1:8080".to_owned())
}
