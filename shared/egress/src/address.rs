//! Which addresses may be called.
//!
//! An address may be called if it is public, or if the operator's list has it.
//! Ranges are compared as numbers, on the parsed address. They are those of the
//! IANA registries of special-purpose addresses for IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::cidr::{Cidr, InvalidCidr};

/// IPv4 blocks that are not of the public internet.
const SPECIAL_V4: [Cidr; 15] = [
    Cidr::v4(0, 0, 0, 0, 8),       // this network
    Cidr::v4(10, 0, 0, 0, 8),      // private
    Cidr::v4(100, 64, 0, 0, 10),   // shared by carriers; also used inside clouds
    Cidr::v4(127, 0, 0, 0, 8),     // loopback
    Cidr::v4(169, 254, 0, 0, 16),  // link-local: metadata services of clouds
    Cidr::v4(172, 16, 0, 0, 12),   // private
    Cidr::v4(192, 0, 0, 0, 24),    // protocol assignments
    Cidr::v4(192, 0, 2, 0, 24),    // documentation
    Cidr::v4(192, 88, 99, 0, 24),  // relays of 6to4, withdrawn
    Cidr::v4(192, 168, 0, 0, 16),  // private
    Cidr::v4(198, 18, 0, 0, 15),   // benchmarks
    Cidr::v4(198, 51, 100, 0, 24), // documentation
    Cidr::v4(203, 0, 113, 0, 24),  // documentation
    Cidr::v4(224, 0, 0, 0, 4),     // multicast
    Cidr::v4(240, 0, 0, 0, 4),     // reserved, and the broadcast address
];

/// The only IPv6 block from which public addresses are given out. Loopback, mapped and
/// compatible forms, unique local, link-local, site-local, multicast, segment routing
/// and both prefixes of NAT64 lie outside.
const GLOBAL_V6: Cidr = Cidr::v6(0x2000, 0, 0, 3);

/// Blocks within [`GLOBAL_V6`] that are not of the public internet.
const SPECIAL_V6: [Cidr; 4] = [
    Cidr::v6(0x2001, 0, 0, 23), // protocol assignments: Teredo, benchmarks, ORCHID
    Cidr::v6(0x2001, 0xdb8, 0, 32), // documentation
    Cidr::v6(0x2002, 0, 0, 16), // 6to4: reaches whatever IPv4 address it carries
    Cidr::v6(0x3fff, 0, 0, 20), // documentation
];

/// The well-known prefix of NAT64, `64:ff9b::/96`. Subnets with DNS64 give such
/// addresses for every host that has only IPv4, so they count as what they carry.
const NAT64: Cidr = Cidr::v6(0x64, 0xff9b, 0, 96);

/// Blocks that may be called although they are not public. Empty unless the operator
/// says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Cidr>);

impl AllowList {
    /// No exception: public addresses alone.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Whether the address may be called.
    ///
    /// An address that carries an IPv4 address, mapped or behind NAT64's well-known
    /// prefix, may be called if and only if that IPv4 address may be.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = meant(address);
        is_public(address) || self.0.iter().any(|block| block.contains(address))
    }
}

impl FromIterator<Cidr> for AllowList {
    fn from_iter<T: IntoIterator<Item = Cidr>>(blocks: T) -> Self {
        Self(blocks.into_iter().collect())
    }
}

impl FromStr for AllowList {
    type Err = InvalidCidr;

    /// Blocks with commas between them. Blanks around a block and an empty text are fine.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Ok(Self::none());
        }
        text.split(',').map(|block| block.trim().parse()).collect()
    }
}

/// Whether the address is one of the public internet.
///
/// ```
/// use hookstead_egress::is_public;
///
/// assert!(is_public("93.184.216.34".parse().unwrap()));
/// assert!(!is_public("::ffff:169.254.169.254".parse().unwrap()));
/// ```
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    let address = meant(address);
    let special = |blocks: &[Cidr]| blocks.iter().any(|block| block.contains(address));
    match address {
        IpAddr::V4(_) => !special(&SPECIAL_V4),
        IpAddr::V6(_) => GLOBAL_V6.contains(address) && !special(&SPECIAL_V6),
    }
}

/// The address that answers in the end: the IPv4 address that this one carries, or itself.
fn meant(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(outer) if NAT64.contains(IpAddr::V6(outer)) => IpAddr::V4(last_four(outer)),
        other => other,
    }
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn out_16_special_ipv4_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.5",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.255.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_public(ip(address)), "{address}");
            assert!(
                !is_public(ip(&format!("::ffff:{address}"))),
                "mapped {address}"
            );
            assert!(
                !is_public(ip(&format!("64:ff9b::{address}"))),
                "NAT64 {address}"
            );
        }
    }

    #[test]
    fn out_16_special_ipv6_addresses_are_not_public() {
        for address in [
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:a9fe:a9fe",
            "::ffff:0:8.8.8.8",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1:a:b::1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:30::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fe90::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
            "4000::1",
            "ffff:ffff::",
        ] {
            assert!(!is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "3ffe:ffff::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn an_exception_is_no_wider_than_it_says() {
        let list: AllowList = "10.20.0.0/16, fd00:1::/64".parse().unwrap();
        for allowed in [
            "10.20.0.1",
            "::ffff:10.20.3.4",
            "64:ff9b::10.20.3.4",
            "fd00:1::9",
        ] {
            assert!(list.permits(ip(allowed)), "{allowed}");
        }
        for refused in [
            "10.21.0.1",
            "::ffff:10.21.0.1",
            "::10.20.0.1",
            "fd00:2::9",
            "2002:a14:1::",
        ] {
            assert!(!list.permits(ip(refused)), "{refused}");
        }
        assert!(list.permits(ip("8.8.8.8")));
    }

    #[test]
    fn a_list_is_read_from_a_setting() {
        assert_eq!("".parse(), Ok(AllowList::none()));
        assert_eq!(" ".parse(), Ok(AllowList::none()));
        let list: AllowList = "127.0.0.1,::1".parse().unwrap();
        assert!(list.permits(ip("::1")) && list.permits(ip("127.0.0.1")));
        for text in ["10.0.0.0/8,", "10.0.0.0/8;::1", "all"] {
            assert_eq!(text.parse::<AllowList>(), Err(InvalidCidr), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_address_in_another_spelling_has_the_same_verdict(bits: u32) {
            let inner = Ipv4Addr::from_bits(bits);
            let verdict = is_public(IpAddr::V4(inner));
            prop_assert_eq!(is_public(IpAddr::V6(inner.to_ipv6_mapped())), verdict);
            prop_assert_eq!(is_public(ip(&format!("64:ff9b::{inner}"))), verdict);
            prop_assert!(!is_public(IpAddr::V6(inner.to_ipv6_compatible())));
        }

        #[test]
        fn an_ipv6_address_is_public_only_where_addresses_are_given_out(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            let given_out = bits >> 125 == 1;
            let carries = bits >> 32 == 0xffff || bits >> 32 == 0x0064_ff9b << 64;
            prop_assert!(given_out || carries || !is_public(IpAddr::V6(address)));
        }
    }
}
