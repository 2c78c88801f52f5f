//! From a target to an open connection: resolve, check every address, dial a checked one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hookstead_domain::ErrorClass;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::address::AllowList;
use crate::failure::{self, Cause};
use crate::resolver::Resolver;
use crate::target::{Target, TargetHost};

/// How long one address is dialled before the next is dialled as well (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Most addresses of one name that are dialled. Each is checked, however many there are.
const MAX_DIALLED: usize = 8;

/// Room for unread bytes in the kernel. Answers are small, and what a hostile one sends
/// beyond the limit waits here.
const RECEIVE_BUFFER_BYTES: u32 = 64 * 1024;

/// The addresses to dial, each of them checked.
pub(crate) async fn addresses(
    target: &Target,
    allowed: &AllowList,
    resolver: &dyn Resolver,
) -> Result<Vec<SocketAddr>, Cause> {
    let found = match target.host() {
        TargetHost::Addresses(addresses) => addresses.clone(),
        TargetHost::Name(name) => {
            let found = resolver.resolve(name).await;
            found.map_err(|_| Cause::new(ErrorClass::DnsFailure, failure::DNS))?
        }
    };
    if found.is_empty() {
        return Err(Cause::new(ErrorClass::DnsFailure, failure::DNS_EMPTY));
    }
    // One bad address spoils the name: which one is dialled is a matter of luck.
    if !found.iter().all(|address| allowed.permits(*address)) {
        let class = ErrorClass::AddressNotAllowed;
        return Err(Cause::new(class, failure::DNS_ADDRESS));
    }
    let mut dialled: Vec<IpAddr> = Vec::with_capacity(MAX_DIALLED.min(found.len()));
    for address in found.into_iter().map(|address| address.to_canonical()) {
        if dialled.len() < MAX_DIALLED && !dialled.contains(&address) {
            dialled.push(address);
        }
    }
    let port = target.port();
    let dialled = dialled.into_iter();
    Ok(dialled.map(|ip| SocketAddr::new(ip, port)).collect())
}

/// Connects to whichever address answers first. They are tried in order, each with a
/// short head start on the next.
pub(crate) async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Cause> {
    let mut waiting = addresses.into_iter();
    let mut tries = JoinSet::new();
    let mut failed: Option<ErrorClass> = None;
    loop {
        match waiting.next() {
            Some(address) => {
                tries.spawn(connect_one(address));
            }
            None if tries.is_empty() => {
                let class = failed.unwrap_or(ErrorClass::Unreachable);
                return Err(Cause::new(class, failure::CONNECT));
            }
            None => {}
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(tried) = tries.join_next() => match tried {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => note(&mut failed, failure::class_of_kind(error.kind())),
                Err(_) => note(&mut failed, ErrorClass::Internal),
            },
            () = sleep(HEAD_START), if more => {}
        }
    }
}

/// A host without IPv6 cannot reach an IPv6 address, which says nothing about the
/// destination: any other failure says more.
fn note(failed: &mut Option<ErrorClass>, class: ErrorClass) {
    if failed.is_none() || class != ErrorClass::Unreachable {
        *failed = Some(class);
    }
}

async fn connect_one(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6().map_err(without_ipv6)?,
    };
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    let stream = socket.connect(address).await?;
    // Requests are written whole: waiting for more of them only costs time.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A machine built without IPv6 fails earlier than one that has no way to it.
fn without_ipv6(error: io::Error) -> io::Error {
    /// EAFNOSUPPORT, on Linux and on macOS. The standard library has no name for it.
    const NO_SUCH_FAMILY: [i32; 2] = [97, 47];
    match error.raw_os_error() {
        Some(code) if NO_SUCH_FAMILY.contains(&code) => io::ErrorKind::NetworkUnreachable.into(),
        _ => error,
    }
}
