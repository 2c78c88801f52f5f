//! Blocks of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A block of addresses, for example `10.20.0.0/16`, `fd00:1::/64` or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix_len: u8,
}

/// A text that is no block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a block such as 10.20.0.0/16 or fd00:1::/64, with no bit set after the prefix")]
pub struct InvalidCidr;

impl Cidr {
    pub(crate) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix_len: u8) -> Self {
        Self {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix_len,
        }
    }

    /// A block by the first three groups of its address.
    pub(crate) const fn v6(a: u16, b: u16, c: u16, prefix_len: u8) -> Self {
        Self {
            network: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)),
            prefix_len,
        }
    }

    /// Whether the block holds the address. The two families never hold one another.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (network, address, width) = match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits().into(), address.to_bits().into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits(), address.to_bits(), 128)
            }
            _ => return false,
        };
        (network ^ address) & mask(self.prefix_len, width) == 0
    }
}

/// The bits of a prefix within an address of `width` bits.
fn mask(prefix_len: u8, width: u8) -> u128 {
    let all = u128::MAX >> (128 - u32::from(width));
    let after = u32::from(width.saturating_sub(prefix_len));
    all.checked_shl(after).unwrap_or(0) & all
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    /// A mapped IPv6 block (`::ffff:10.0.0.0/104`) is the IPv4 block inside it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix_len) = match text.split_once('/') {
            Some((address, prefix_len)) => (address, Some(prefix_len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidCidr)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix_len = match prefix_len {
            // `+8` is a number to Rust and no prefix to anybody else.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| InvalidCidr)?
            }
            Some(_) => return Err(InvalidCidr),
            None => width,
        };
        if prefix_len > width {
            return Err(InvalidCidr);
        }
        let block = Self {
            network: address,
            prefix_len,
        };
        // The address itself must be the first of its block: anything else is a typing error.
        let bits = match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        if bits & !mask(prefix_len, width) != 0 {
            return Err(InvalidCidr);
        }
        Ok(block.unmapped())
    }
}

impl Cidr {
    fn unmapped(self) -> Self {
        match self.network {
            IpAddr::V6(network) if self.prefix_len >= 96 => match network.to_ipv4_mapped() {
                Some(inner) => Self {
                    network: IpAddr::V4(inner),
                    prefix_len: self.prefix_len - 96,
                },
                None => self,
            },
            _ => self,
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_block_holds_its_first_and_last_address_and_no_neighbour() {
        let block = cidr("172.16.0.0/12");
        for inside in ["172.16.0.0", "172.31.255.255"] {
            assert!(block.contains(ip(inside)), "{inside}");
        }
        for outside in ["172.15.255.255", "172.32.0.0", "::ffff:172.16.0.1"] {
            assert!(!block.contains(ip(outside)), "{outside}");
        }
        let block = cidr("fd00:1::/32");
        assert!(block.contains(ip("fd00:1:ffff:ffff:ffff:ffff:ffff:ffff")));
        assert!(!block.contains(ip("fd00:2::")));
    }

    #[test]
    fn the_ends_of_the_range_of_prefixes_work() {
        assert!(cidr("0.0.0.0/0").contains(ip("255.255.255.255")));
        assert!(cidr("::/0").contains(ip("ffff::1")));
        assert!(cidr("127.0.0.1").contains(ip("127.0.0.1")));
        assert!(!cidr("127.0.0.1").contains(ip("127.0.0.2")));
        assert!(cidr("::1").contains(ip("::1")));
        assert!(!cidr("::1").contains(ip("::2")));
    }

    #[test]
    fn a_mapped_block_is_the_block_inside_it() {
        assert_eq!(cidr("::ffff:10.0.0.0/104"), cidr("10.0.0.0/8"));
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.1/8",
            "10.0.0.0/+8",
            "10/8",
            "010.0.0.0/8",
            "10.0.0.0/8 ",
            "fe80::1%eth0",
            "example.com",
            "10.0.0.0/-1",
            "::1/64",
        ] {
            assert_eq!(text.parse::<Cidr>(), Err(InvalidCidr), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_block_is_that_block(bits: u32, prefix_len in 0_u8..=32) {
            let network = bits & u32::try_from(mask(prefix_len, 32)).unwrap();
            let block = cidr(&format!("{}/{prefix_len}", Ipv4Addr::from_bits(network)));
            prop_assert_eq!(cidr(&block.to_string()), block);
            prop_assert!(block.contains(IpAddr::V4(Ipv4Addr::from_bits(bits))));
        }
    }
}
