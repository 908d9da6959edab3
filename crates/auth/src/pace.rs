//! How long logins of an address wait after failed ones.
//!
//! Each failed login doubles the wait of later logins of its address, from 100 ms to 5 s. A successful login does not reset the wait:
//! otherwise an attacker with an account of their own could reset it. Logins of one address wait one after the other, but none longer than
//! 5 s, so that one program with a wrong password does not lock out others behind the same address. An attacker with many connections is
//! then limited by the time of the checks. After a minute without a failure the address is forgotten. Addresses do not wait for each other. All
//! addresses of an IPv6 network (/64) count as one.
//!
//! Pure: times are given by the caller, as nanoseconds of a clock that never steps back.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

const FIRST_WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// How long an address counts as good after a right login.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of remembered addresses with failures; the limit for addresses with right logins is the same. Beyond it, the address
/// whose last login is oldest is forgotten.
const ADDRESSES_MAX: usize = 4096;

/// The standing of an address. Logins with the first variant are checked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A login of the address succeeded in the last day, and none failed in the last minute.
    Good,
    /// Neither of the other two.
    Unknown,
    /// A login of the address failed in the last minute.
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_nanos: u64,
    /// When the next login of this address may be checked.
    next_nanos: u64,
}

impl Failures {
    fn are_forgotten(&self, now_nanos: u64) -> bool {
        now_nanos.saturating_sub(self.last_nanos) > nanos(FORGOTTEN_AFTER)
    }
}

/// The addresses with failed logins, and those with right ones.
#[derive(Debug, Default)]
pub struct LoginPace {
    failures: HashMap<IpAddr, Failures>,
    /// The last right login of each address.
    right_nanos: HashMap<IpAddr, u64>,
}

impl LoginPace {
    /// How long a login that arrives now waits before it is checked.
    pub fn wait(&mut self, address: IpAddr, now_nanos: u64) -> Duration {
        let Some(failures) = self.failures.get_mut(&network_of(address)) else {
            return Duration::ZERO;
        };
        if failures.are_forgotten(now_nanos) {
            self.failures.remove(&network_of(address));
            return Duration::ZERO;
        }
        let starts = failures
            .next_nanos
            .max(now_nanos)
            .min(now_nanos + nanos(WAIT_MAX));
        failures.next_nanos = starts + nanos(wait_after(failures.count));
        Duration::from_nanos(starts - now_nanos)
    }

    /// The standing of an address. A failed login outweighs a right one.
    pub fn standing(&self, address: IpAddr, now_nanos: u64) -> Standing {
        let address = network_of(address);
        match (self.failures.get(&address), self.right_nanos.get(&address)) {
            (Some(failures), _) if !failures.are_forgotten(now_nanos) => Standing::Bad,
            (_, Some(right)) if now_nanos.saturating_sub(*right) <= nanos(KNOWN_FOR) => Standing::Good,
            _ => Standing::Unknown,
        }
    }

    /// Notes a right login.
    pub fn succeeded(&mut self, address: IpAddr, now_nanos: u64) {
        let address = network_of(address);
        if self.right_nanos.len() >= ADDRESSES_MAX && !self.right_nanos.contains_key(&address) {
            let oldest = self.right_nanos.iter().min_by_key(|(_, right)| **right);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.right_nanos.remove(&oldest);
            }
        }
        self.right_nanos.insert(address, now_nanos);
    }

    /// Notes a failed login.
    pub fn failed(&mut self, address: IpAddr, now_nanos: u64) {
        let address = network_of(address);
        if self.failures.len() >= ADDRESSES_MAX && !self.failures.contains_key(&address) {
            self.forget_oldest();
        }
        let failures = self.failures.entry(address).or_insert(Failures {
            count: 0,
            last_nanos: now_nanos,
            next_nanos: now_nanos,
        });
        if failures.are_forgotten(now_nanos) {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last_nanos = now_nanos;
        failures.next_nanos = failures
            .next_nanos
            .max(now_nanos + nanos(wait_after(failures.count)));
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .failures
            .iter()
            .min_by_key(|(_, failures)| failures.last_nanos);
        if let Some(address) = oldest.map(|(address, _)| *address) {
            self.failures.remove(&address);
        }
    }
}

/// The address under which failures are counted: for IPv6 the /64 network, which usually belongs to one client.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
        address => address,
    }
}

fn wait_after(count: u32) -> Duration {
    let doublings = count.saturating_sub(1).min(16);
    (FIRST_WAIT * (1 << doublings)).min(WAIT_MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_five_seconds() {
        let mut pace = LoginPace::default();
        let mut now = SECOND;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let wait = pace.wait(address(1), now);
            waits.push(wait.as_millis());
            now += nanos(wait);
            pace.failed(address(1), now);
        }
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000]);
        assert_eq!(pace.wait(address(2), now), Duration::ZERO);
        assert_eq!(pace.standing(address(1), now + 60 * SECOND), Standing::Bad);
        assert_eq!(pace.standing(address(1), now + 61 * SECOND), Standing::Unknown);
        assert_eq!(pace.standing(address(2), now), Standing::Unknown);
        assert_eq!(pace.wait(address(1), now + 61 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_right_login_speaks_for_its_address_unless_others_fail() {
        let mut pace = LoginPace::default();
        pace.succeeded(address(1), SECOND);
        assert_eq!(pace.standing(address(1), SECOND), Standing::Good);
        pace.failed(address(1), 2 * SECOND);
        pace.succeeded(address(1), 3 * SECOND);
        assert_eq!(pace.standing(address(1), 3 * SECOND), Standing::Bad);
        assert_eq!(pace.standing(address(1), 63 * SECOND), Standing::Good);
        assert_eq!(pace.standing(address(1), 100_000 * SECOND), Standing::Unknown);
        for count in 0..ADDRESSES_MAX as u32 + 100 {
            pace.succeeded(IpAddr::from(count.to_be_bytes()), u64::from(count));
        }
        assert_eq!(pace.right_nanos.len(), ADDRESSES_MAX);
    }

    #[test]
    fn logins_of_one_address_wait_their_turn() {
        let mut pace = LoginPace::default();
        pace.failed(address(1), 0);
        let waits: Vec<u128> = (0..4).map(|_| pace.wait(address(1), 0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 300, 400]);
        for _ in 0..100 {
            assert!(pace.wait(address(1), 0) <= WAIT_MAX);
        }
    }

    #[test]
    fn memory_is_bounded_and_networks_are_one() {
        let mut pace = LoginPace::default();
        for count in 0..ADDRESSES_MAX as u32 + 100 {
            pace.failed(IpAddr::from(count.to_be_bytes()), u64::from(count));
        }
        assert_eq!(pace.failures.len(), ADDRESSES_MAX);
        let near = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        pace.failed(near(1), SECOND);
        assert!(pace.wait(near(2), SECOND) > Duration::ZERO);
        let mapped = IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0009]);
        pace.failed(mapped, SECOND);
        assert!(pace.wait(address(9), SECOND) > Duration::ZERO);
    }
}
