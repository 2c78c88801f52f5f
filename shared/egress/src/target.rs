//! Where a request goes: a URL that was checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hookstead_domain::ErrorClass;
use http::Uri;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::address::AllowList;

/// Longest URL that is called. Servers commonly refuse a request line over 8 KiB, and
/// no endpoint needs a quarter of it.
pub const MAX_URL_BYTES: usize = 2048;

/// A URL that may be called, as far as that can be told without asking for its name.
///
/// The same parser reads a URL when it is saved and when it is called, so there is no
/// spelling of an address that one of the two takes for something else. Names are
/// resolved when a request is sent, and every address is checked then.
///
/// Debug output has nothing of the URL: people put tokens into paths and queries.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: TargetHost,
    port: u16,
}

/// The host as it is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetHost {
    /// A name to be resolved, without a dot at its end.
    Name(String),
    /// One or two addresses; each may be called.
    Addresses(Vec<IpAddr>),
}

/// Why a URL may not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TargetError {
    /// It is no URL, or longer than [`MAX_URL_BYTES`].
    #[error("must be a URL of at most 2048 bytes, without blanks or backslashes")]
    InvalidUrl,
    /// Its scheme is neither https nor http.
    #[error("must be an https URL")]
    UnknownScheme,
    /// It is http and that was not allowed.
    #[error("must be https; http has to be allowed expressly")]
    NotHttps,
    /// It holds a user or a password.
    #[error("must not hold a user or password")]
    HasUserinfo,
    /// It holds a fragment, which is never sent.
    #[error("must not hold a fragment")]
    HasFragment,
    /// Its host is no name that can be resolved and no address.
    #[error("must name a host")]
    InvalidHost,
    /// Its port is 0.
    #[error("must not name port 0")]
    InvalidPort,
    /// Its host is an address that is neither public nor allowed.
    #[error("must not lead to an address that is not public")]
    AddressNotAllowed,
}

impl TargetError {
    /// Every reason, for the reference page.
    pub const ALL: [Self; 8] = [
        Self::InvalidUrl,
        Self::UnknownScheme,
        Self::NotHttps,
        Self::HasUserinfo,
        Self::HasFragment,
        Self::InvalidHost,
        Self::InvalidPort,
        Self::AddressNotAllowed,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::UnknownScheme => "unknown_scheme",
            Self::NotHttps => "not_https",
            Self::HasUserinfo => "has_userinfo",
            Self::HasFragment => "has_fragment",
            Self::InvalidHost => "invalid_host",
            Self::InvalidPort => "invalid_port",
            Self::AddressNotAllowed => "address_not_allowed",
        }
    }

    /// The class of an attempt that ends here.
    #[must_use]
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::AddressNotAllowed => ErrorClass::AddressNotAllowed,
            _ => ErrorClass::InvalidDestination,
        }
    }
}

impl Target {
    /// Reads a URL that must lead to the public internet. `allow_http` lets http through.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong, and repeats nothing of the URL.
    pub fn parse(url: &str, allow_http: bool) -> Result<Self, TargetError> {
        Self::parse_allowing(url, allow_http, &AllowList::none())
    }

    /// Reads a URL, with the operator's exceptions from the rule of public addresses.
    ///
    /// # Errors
    ///
    /// As for [`Target::parse`].
    pub fn parse_allowing(
        url: &str,
        allow_http: bool,
        allowed: &AllowList,
    ) -> Result<Self, TargetError> {
        // The parser would quietly drop the one and turn the other into slashes.
        let odd = |c: char| c.is_ascii_control() || c.is_whitespace() || c == '\\';
        if url.len() > MAX_URL_BYTES || url.contains(odd) {
            return Err(TargetError::InvalidUrl);
        }
        let url = Url::parse(url).map_err(|error| match error {
            url::ParseError::EmptyHost => TargetError::InvalidHost,
            _ => TargetError::InvalidUrl,
        })?;
        match url.scheme() {
            "https" => {}
            "http" if allow_http => {}
            "http" => return Err(TargetError::NotHttps),
            _ => return Err(TargetError::UnknownScheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::HasUserinfo);
        }
        if url.fragment().is_some() {
            return Err(TargetError::HasFragment);
        }
        let port = url.port_or_known_default().filter(|port| *port != 0);
        let port = port.ok_or(TargetError::InvalidPort)?;
        let host = host(&url, allowed)?;
        let target = Self { url, host, port };
        target.request_uri()?;
        Ok(target)
    }

    /// Whether the way there is encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn host(&self) -> &TargetHost {
        &self.host
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The host as it stands in the URL, normalised; IPv6 in brackets.
    pub(crate) fn host_text(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The value of the header `Host`: with the port where it is not the scheme's own.
    pub(crate) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host_text()),
            None => self.host_text().to_owned(),
        }
    }

    /// Path and query, as they stand on the request line.
    pub(crate) fn request_uri(&self) -> Result<Uri, TargetError> {
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        path.parse().map_err(|_| TargetError::InvalidUrl)
    }

    /// The name that the certificate must be for.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, TargetError> {
        match self.url.host() {
            Some(Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::V4(address))),
            Some(Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::V6(address))),
            Some(Host::Domain(name)) => server_name(name),
            None => Err(TargetError::InvalidHost),
        }
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, TargetError> {
    let name = without_root(name).to_owned();
    ServerName::try_from(name).map_err(|_| TargetError::InvalidHost)
}

/// `example.com.` is `example.com`, from the root of the name space.
fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn host(url: &Url, allowed: &AllowList) -> Result<TargetHost, TargetError> {
    let literal = match url.host().ok_or(TargetError::InvalidHost)? {
        Host::Ipv4(address) => vec![IpAddr::V4(address)],
        Host::Ipv6(address) => vec![IpAddr::V6(address)],
        Host::Domain(name) => {
            server_name(name)?;
            let name = without_root(name);
            if name != "localhost" && !name.ends_with(".localhost") {
                return Ok(TargetHost::Name(name.to_owned()));
            }
            // These names mean this machine and nothing else (RFC 6761): no resolver is asked.
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
    };
    let permitted = literal.into_iter().filter(|one| allowed.permits(*one));
    let addresses: Vec<IpAddr> = permitted.map(|one| one.to_canonical()).collect();
    if addresses.is_empty() {
        return Err(TargetError::AddressNotAllowed);
    }
    Ok(TargetHost::Addresses(addresses))
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::is_public;
    use http::HeaderValue;
    use proptest::prelude::*;

    /// Pieces of URLs, in combinations that people would not think of.
    fn urls() -> impl Strategy<Value = String> {
        let host = prop_oneof![
            "[0-9a-fx.]{1,18}",
            "\\[[0-9a-f:.]{2,30}\\]",
            "[a-z0-9_.-]{1,20}",
            "\\PC{1,10}",
            any::<[u8; 4]>().prop_map(|bytes| Ipv4Addr::from(bytes).to_string()),
            any::<u32>().prop_map(|bits| format!("{bits:#x}")),
            any::<u32>().prop_map(|bits| bits.to_string()),
            any::<u128>().prop_map(|bits| format!("[{}]", Ipv6Addr::from_bits(bits))),
            any::<u32>().prop_map(|bits| format!("[::ffff:{}]", Ipv4Addr::from_bits(bits))),
            any::<u32>().prop_map(|bits| format!("[64:ff9b::{}]", Ipv4Addr::from_bits(bits))),
        ];
        let rest = prop_oneof![
            Just(String::new()),
            "(:[0-9]{1,5})?/\\PC{0,20}",
            "\\PC{0,20}"
        ];
        (prop_oneof![Just("https://"), Just("http://")], host, rest)
            .prop_map(|(scheme, host, rest)| format!("{scheme}{host}{rest}"))
    }

    proptest! {
        #[test]
        fn what_passes_is_public_and_can_be_written(url in urls()) {
            let Ok(target) = Target::parse(&url, true) else { return Ok(()) };
            if let TargetHost::Addresses(addresses) = target.host() {
                prop_assert!(addresses.iter().all(|address| is_public(*address)));
            }
            prop_assert!(target.request_uri().is_ok());
            prop_assert!(target.server_name().is_ok());
            let authority = target.authority();
            prop_assert!(HeaderValue::from_str(&authority).is_ok());
            // What is written on the wire names the same place.
            let again = format!("{}://{authority}/", target.url.scheme());
            let again = Target::parse(&again, true);
            prop_assert_eq!(again.map(|again| again.host), Ok(target.host));
        }

        #[test]
        fn no_text_breaks_the_parser(text in "\\PC{0,60}|[\\x00-\\x7f]{0,60}") {
            let https = text.to_ascii_lowercase().starts_with("https:");
            prop_assert!(https || Target::parse(&text, false).is_err());
        }
    }
}
