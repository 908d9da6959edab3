//! Memory held for clients: requests from their first byte until they are answered, and answers until the client has read
//! them. There is one budget for all connections, and one for the connections of each address.
//!
//! Compat: `native_transport_max_request_data_in_flight` and `.._per_ip`. Cassandra counts requests only.
//!
//! A request over the budget waits for a while, and is then answered with 0x1001 (see `connection`). Incomplete requests may
//! use three quarters of the budget, so that they never block complete ones. A request is executed while any room is left;
//! its answer may exceed the budget.
//!
//! A connection takes its share of the budget in steps: most requests are so small that they do not change the shared counters.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The bytes of a connection are counted in multiples of this.
const STEP_BYTES: usize = 16 << 10;

/// The budget of all connections.
pub(crate) struct ClientMemory {
    all: Gauge,
    all_max: usize,
    address_max: usize,
    by_address: Mutex<HashMap<IpAddr, Arc<AtomicUsize>>>,
    /// Connections that wait for memory.
    waiting: AtomicUsize,
    freed: Notify,
}

/// The share of one connection in the budget.
pub(crate) struct Account {
    memory: Arc<ClientMemory>,
    address: IpAddr,
    of_address: Arc<AtomicUsize>,
    held: AtomicUsize,
}

impl ClientMemory {
    pub fn new(all_max: usize, address_max: usize) -> Arc<Self> {
        Arc::new(Self {
            all: Gauge::default(),
            all_max,
            address_max,
            by_address: Mutex::default(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    /// Bytes held for all connections.
    pub fn gauge(&self) -> &Gauge {
        &self.all
    }

    /// The account of a new connection from this address.
    pub fn account(self: &Arc<Self>, address: IpAddr) -> Account {
        Account {
            memory: self.clone(),
            address,
            of_address: self.by_address.lock().entry(address).or_default().clone(),
            held: AtomicUsize::new(0),
        }
    }

    fn all_bytes(&self) -> usize {
        usize::try_from(self.all.get()).unwrap_or(0)
    }
}

impl Account {
    /// Counts `after` bytes for the connection, instead of `before` bytes.
    pub fn change(&self, before: usize, after: usize) {
        if after >= before {
            self.grow(after - before);
        } else {
            self.shrink(before - after);
        }
    }

    /// Adds to the bytes that the connection holds.
    pub fn grow(&self, bytes: usize) {
        let before = self.held.fetch_add(bytes, Relaxed);
        let steps = (before + bytes) / STEP_BYTES - before / STEP_BYTES;
        if steps > 0 {
            self.memory.all.inc_by(signed(steps * STEP_BYTES));
            self.of_address.fetch_add(steps * STEP_BYTES, Relaxed);
        }
    }

    /// Subtracts from the bytes that the connection holds. Requires: it holds at least that many.
    pub fn shrink(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "a connection gives back what it took");
        let steps = before / STEP_BYTES - before.saturating_sub(bytes) / STEP_BYTES;
        self.give_back(steps * STEP_BYTES);
    }

    fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.memory.all.dec_by(signed(bytes));
        self.of_address.fetch_sub(bytes, Relaxed);
        if self.memory.waiting.load(Relaxed) > 0 {
            self.memory.freed.notify_waiters();
        }
    }

    fn is_below(&self, quarters: usize) -> bool {
        let share = |max: usize| max / 4 * quarters;
        self.memory.all_bytes() < share(self.memory.all_max)
            && self.of_address.load(Relaxed) < share(self.memory.address_max)
    }

    /// Whether another request may be executed.
    pub fn has_room(&self) -> bool {
        self.is_below(4)
    }

    /// Whether the rest of an incomplete request may be received.
    pub fn may_receive(&self) -> bool {
        self.is_below(3)
    }

    /// Waits until `is_there` returns true, at most for `patience`. Returns false if that time has passed.
    pub async fn wait_until(&self, is_there: impl Fn(&Self) -> bool, patience: Duration) -> bool {
        let _counted = Waiting::of(&self.memory.waiting);
        let waiting = async {
            loop {
                let freed = self.memory.freed.notified();
                if is_there(self) {
                    return;
                }
                // Memory that is freed before this connection counts as waiting sends no notification, so it looks again anyway.
                let _ = timeout(patience / 8, freed).await;
            }
        };
        timeout(patience, waiting).await.is_ok()
    }
}

/// Counts a waiting connection, also if its wait is cancelled.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let held = *self.held.get_mut();
        self.give_back(held / STEP_BYTES * STEP_BYTES);
        let mut by_address = self.memory.by_address.lock();
        // Only the map and this account refer to it: the address has no other connection.
        if Arc::strong_count(&self.of_address) <= 2 {
            by_address.remove(&self.address);
        }
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[test]
    fn small_requests_are_not_counted_and_large_ones_are_given_back() {
        let memory = ClientMemory::new(8 * STEP_BYTES, 8 * STEP_BYTES);
        let account = memory.account(address(1));
        account.grow(STEP_BYTES - 1);
        assert_eq!(memory.all_bytes(), 0);
        account.grow(2);
        assert_eq!(memory.all_bytes(), STEP_BYTES);
        account.change(2, 6 * STEP_BYTES);
        assert!(account.has_room() && !account.may_receive());
        account.grow(STEP_BYTES + 1);
        assert!(!account.has_room());
        account.shrink(3 * STEP_BYTES);
        assert!(account.has_room() && account.may_receive());
        drop(account);
        assert_eq!(memory.all_bytes(), 0);
        assert!(memory.by_address.lock().is_empty());
    }

    #[test]
    fn an_address_that_takes_all_it_may_leaves_room_for_others() {
        let memory = ClientMemory::new(8 * STEP_BYTES, 2 * STEP_BYTES);
        let greedy = [memory.account(address(1)), memory.account(address(1))];
        greedy.iter().for_each(|account| account.grow(STEP_BYTES));
        assert!(greedy.iter().all(|account| !account.has_room()));
        assert!(memory.account(address(2)).has_room());
        drop(greedy);
        assert!(memory.account(address(1)).has_room());
    }
}
