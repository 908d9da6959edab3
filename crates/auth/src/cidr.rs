//! Finds the groups that an address belongs to.
//!
//! Compat: the groups of the longest prefix that contains the address, as `IPIntervalTree` and `CIDRGroupsMappingTable` find them.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that share their first bits: `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix_bits: u8,
}

impl Cidr {
    /// `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix_bits: i16) -> Option<Self> {
        let prefix_bits = u8::try_from(prefix_bits).ok()?;
        let is_fitting = prefix_bits <= if address.is_ipv4() { 32 } else { 128 };
        is_fitting.then_some(Self { address, prefix_bits })
    }

    /// An address of the block; only its first [`Self::prefix_bits`] bits decide what the block contains.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many leading bits all addresses of the block share.
    pub fn prefix_bits(self) -> u8 {
        self.prefix_bits
    }

    /// Whether it contains an address.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix_bits);
                (own.to_bits() ^ other.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix_bits);
                (own.to_bits() ^ other.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl FromStr for Cidr {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, prefix_bits) = text.split_once('/').ok_or(())?;
        let address = address.parse().map_err(drop)?;
        let prefix_bits = prefix_bits.parse().map_err(drop)?;
        Self::new(address, prefix_bits).ok_or(())
    }
}

/// The names of the groups that an address belongs to.
pub fn groups_of(address: IpAddr, groups: &[(String, Vec<Cidr>)]) -> BTreeSet<&str> {
    let containing = |cidrs: &[Cidr]| {
        let found = cidrs.iter().filter(|cidr| cidr.contains(address));
        found.map(|cidr| cidr.prefix_bits).max()
    };
    let longest = groups.iter().filter_map(|(_, cidrs)| containing(cidrs)).max();
    let has_longest = |cidrs: &[Cidr]| longest.is_some() && containing(cidrs) == longest;
    let found = groups.iter().filter(|(_, cidrs)| has_longest(cidrs));
    found.map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        let parsed: Cidr = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        parsed
    }

    fn groups(address: &str, groups: &[(&str, &[&str])]) -> Vec<String> {
        let groups: Vec<(String, Vec<Cidr>)> = groups
            .iter()
            .map(|(name, cidrs)| {
                let cidrs = cidrs.iter().map(|text| cidr(text)).collect();
                ((*name).to_owned(), cidrs)
            })
            .collect();
        let found = groups_of(address.parse().unwrap(), &groups);
        found.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_longest_prefix_wins() {
        let known: &[(&str, &[&str])] = &[
            ("company", &["10.0.0.0/8", "2001:db8::/32"]),
            ("office", &["192.168.1.0/24", "10.1.0.0/16"]),
            ("branch", &["10.1.0.0/16"]),
            ("desk", &["10.1.2.3/32"]),
        ];
        assert_eq!(groups("10.200.0.1", known), ["company"]);
        assert_eq!(groups("10.1.9.9", known), ["branch", "office"]);
        assert_eq!(groups("10.1.2.3", known), ["desk"]);
        assert_eq!(groups("::ffff:10.1.2.3", known), ["desk"]);
        assert_eq!(groups("2001:db8:1::1", known), ["company"]);
        assert!(groups("2001:db9::1", known).is_empty());
        assert!(groups("11.0.0.1", known).is_empty());
        let all: &[(&str, &[&str])] = &[("all", &["0.0.0.0/0", "::/0"])];
        assert_eq!(groups("11.0.0.1", all), ["all"]);
        assert_eq!(groups("fe80::1", all), ["all"]);
    }

    #[test]
    fn prefixes_fit_their_addresses() {
        let four: IpAddr = "10.0.0.0".parse().unwrap();
        let six: IpAddr = "::".parse().unwrap();
        for (address, bits, fits) in [
            (four, 32, true),
            (four, 33, false),
            (four, -1, false),
            (six, 128, true),
            (six, 129, false),
        ] {
            assert_eq!(Cidr::new(address, bits).is_some(), fits, "{address}/{bits}");
        }
    }
}
