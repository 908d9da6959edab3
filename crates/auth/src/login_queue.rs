//! Logins that wait until their passwords are checked: [`LoginQueue`].
//!
//! Networks take turns, so that one with many logins does not delay the others. Networks with a recent right login come first, those with
//! failed logins last ([`Standing`]). A login that has waited for [`PATIENCE`] is given up: its client no longer waits for the answer.
//!
//! Pure: times are given by the caller, as nanoseconds of a clock that never steps back.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::pace::{Standing, network_of};

/// Maximum number of waiting logins.
const WAITING_MAX: usize = 1024;
/// How long a login waits. Drivers give up after five seconds.
const PATIENCE: Duration = Duration::from_secs(4);

const STANDINGS: usize = Standing::Bad as usize + 1;

/// Logins that wait.
#[derive(Debug)]
pub struct LoginQueue<T> {
    by_standing: [Turns<T>; STANDINGS],
    /// The earliest time at which a login may have to be given up.
    next_late_nanos: u64,
}

/// Logins by network. Invariant: `order` has each network in `waiting` once, and none of them is empty.
#[derive(Debug)]
struct Turns<T> {
    waiting: HashMap<IpAddr, VecDeque<Waiting<T>>>,
    order: VecDeque<IpAddr>,
    count: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    login: T,
    late_nanos: u64,
}

impl<T> Default for LoginQueue<T> {
    fn default() -> Self {
        Self {
            by_standing: Default::default(),
            next_late_nanos: u64::MAX,
        }
    }
}

impl<T> LoginQueue<T> {
    /// Adds a login. If the queue is full, returns the login that loses its place: this login, or one of a network with more logins or a
    /// worse standing.
    pub fn push(&mut self, from: IpAddr, standing: Standing, login: T, now_nanos: u64) -> Option<T> {
        let late_nanos = now_nanos.saturating_add(PATIENCE.as_nanos() as u64);
        self.next_late_nanos = self.next_late_nanos.min(late_nanos);
        self.by_standing[standing as usize].push(network_of(from), Waiting { login, late_nanos });
        if self.count() <= WAITING_MAX {
            return None;
        }
        self.by_standing.iter_mut().rev().find_map(Turns::pop_of_longest)
    }

    /// The login whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        self.by_standing.iter_mut().find_map(Turns::pop)
    }

    /// Removes and returns the logins that have waited too long.
    pub fn take_late(&mut self, now_nanos: u64) -> Vec<T> {
        let mut late = Vec::new();
        if now_nanos >= self.next_late_nanos {
            for turns in &mut self.by_standing {
                turns.take_late(now_nanos, &mut late);
            }
            let next = self.by_standing.iter().map(Turns::next_late_nanos);
            self.next_late_nanos = next.min().unwrap_or(u64::MAX);
        }
        late
    }

    /// The time until a login has waited too long; `None` if no login waits.
    pub fn time_to_late(&self, now_nanos: u64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.next_late_nanos.saturating_sub(now_nanos)))
    }

    fn count(&self) -> usize {
        self.by_standing.iter().map(|turns| turns.count).sum()
    }
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            order: VecDeque::new(),
            count: 0,
        }
    }
}

impl<T> Turns<T> {
    fn push(&mut self, network: IpAddr, login: Waiting<T>) {
        let of_network = self.waiting.entry(network).or_default();
        if of_network.is_empty() {
            self.order.push_back(network);
        }
        of_network.push_back(login);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let network = self.order.pop_front()?;
        let of_network = self.waiting.get_mut(&network)?;
        let login = of_network.pop_front()?.login;
        match of_network.is_empty() {
            true => drop(self.waiting.remove(&network)),
            false => self.order.push_back(network),
        }
        self.count -= 1;
        Some(login)
    }

    /// Removes the newest login of the network with the most logins; if several have as many, of the last one in `order`.
    fn pop_of_longest(&mut self) -> Option<T> {
        let length = |network: &&IpAddr| self.waiting.get(*network).map_or(0, VecDeque::len);
        let network = *self.order.iter().max_by_key(length)?;
        let of_network = self.waiting.get_mut(&network)?;
        let login = of_network.pop_back()?.login;
        if of_network.is_empty() {
            self.waiting.remove(&network);
            self.order.retain(|other| *other != network);
        }
        self.count -= 1;
        Some(login)
    }

    fn take_late(&mut self, now_nanos: u64, late: &mut Vec<T>) {
        let before = late.len();
        for of_network in self.waiting.values_mut() {
            // The first one has waited longest.
            while let Some(login) = of_network.pop_front_if(|first| first.late_nanos <= now_nanos) {
                late.push(login.login);
            }
        }
        self.waiting.retain(|_, of_network| !of_network.is_empty());
        self.order.retain(|network| self.waiting.contains_key(network));
        self.count -= late.len() - before;
    }

    fn next_late_nanos(&self) -> u64 {
        let first = |of_network: &VecDeque<Waiting<T>>| of_network.front().map(|first| first.late_nanos);
        self.waiting.values().filter_map(first).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(last: u16) -> IpAddr {
        let [high, low] = last.to_be_bytes();
        IpAddr::from([10, 0, high, low])
    }

    fn all<T>(queue: &mut LoginQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn networks_take_turns_and_those_of_better_standing_come_first() {
        let mut queue = LoginQueue::default();
        for (last, standing, login) in [
            (9, Standing::Bad, "bad 1"),
            (8, Standing::Unknown, "unknown 1"),
            (1, Standing::Good, "a1"),
            (1, Standing::Good, "a2"),
            (1, Standing::Good, "a3"),
            (2, Standing::Good, "b1"),
            (3, Standing::Good, "c1"),
            (2, Standing::Good, "b2"),
        ] {
            assert_eq!(queue.push(address(last), standing, login, 0), None);
        }
        let order = ["a1", "b1", "c1", "a2", "b2", "a3", "unknown 1", "bad 1"];
        assert_eq!(all(&mut queue), order);
        assert_eq!(queue.time_to_late(0), None);
    }

    #[test]
    fn in_a_full_queue_the_network_with_the_most_logins_loses_one() {
        let mut queue = LoginQueue::default();
        for login in 0..WAITING_MAX {
            assert_eq!(queue.push(address(1), Standing::Good, login, 0), None);
        }
        assert_eq!(queue.push(address(1), Standing::Good, 2000, 0), Some(2000));
        assert_eq!(
            queue.push(address(2), Standing::Good, 3000, 0),
            Some(WAITING_MAX - 1)
        );
        assert_eq!(queue.push(address(3), Standing::Bad, 4000, 0), Some(4000));
        assert_eq!((queue.pop(), queue.pop()), (Some(0), Some(3000)));
        assert_eq!(queue.push(address(3), Standing::Bad, 4000, 0), None);
        assert_eq!(queue.push(address(4), Standing::Good, 5000, 0), None);
        assert_eq!(queue.push(address(5), Standing::Good, 6000, 0), Some(4000));
    }

    #[test]
    fn each_of_many_networks_with_one_login_keeps_its_place() {
        let mut queue = LoginQueue::default();
        let count = u16::try_from(WAITING_MAX).unwrap();
        for last in 0..count {
            assert_eq!(queue.push(address(last), Standing::Good, last, 0), None);
        }
        assert_eq!(queue.push(address(count), Standing::Good, count, 0), Some(count));
        assert_eq!(all(&mut queue), (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn late_logins_are_given_up() {
        let mut queue = LoginQueue::default();
        queue.push(address(1), Standing::Good, "a1", 0);
        queue.push(address(2), Standing::Bad, "b1", SECOND);
        queue.push(address(1), Standing::Good, "a2", 2 * SECOND);
        assert_eq!(queue.time_to_late(SECOND), Some(Duration::from_secs(3)));
        assert_eq!(queue.take_late(4 * SECOND - 1), Vec::<&str>::new());
        assert_eq!(queue.take_late(4 * SECOND), ["a1"]);
        assert_eq!(queue.time_to_late(4 * SECOND), Some(Duration::from_secs(1)));
        assert_eq!(queue.take_late(5 * SECOND), ["b1"]);
        assert_eq!(all(&mut queue), ["a2"]);
        assert_eq!(queue.take_late(9 * SECOND), Vec::<&str>::new());
    }

    /// What random pushes and pops leave is counted right, and none is lost or returned twice.
    #[test]
    fn each_login_leaves_once() {
        let mut queue = LoginQueue::default();
        let mut random = 1_u64;
        let mut left = vec![0_u8; 20_000];
        for login in 0..left.len() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = random >> 33;
            let standing = [Standing::Good, Standing::Unknown, Standing::Bad][(draw % 3) as usize];
            let now = login as u64 * 5_000_000;
            let refused = queue.push(address((draw % 40) as u16), standing, login, now);
            let popped = draw.is_multiple_of(5).then(|| queue.pop()).flatten();
            let late = queue.take_late(now);
            for login in refused.into_iter().chain(popped).chain(late) {
                left[login] += 1;
            }
            assert!(queue.count() <= WAITING_MAX);
        }
        for login in all(&mut queue) {
            left[login] += 1;
        }
        assert!(left.iter().all(|count| *count == 1));
        assert_eq!(queue.count(), 0);
        assert!(queue.by_standing.iter().all(|turns| turns.order.is_empty()));
    }
}
