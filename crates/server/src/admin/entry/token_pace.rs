//! Delays requests with a token, if their address has sent wrong tokens before.

use std::net::IpAddr;

use ilion_auth::LoginPace;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Most requests that wait at a time. Further ones are refused: each occupies one of the few connections.
const WAITING_MAX: usize = 32;

/// The addresses with wrong tokens. The waits are as long as after wrong passwords, but the two are counted separately.
pub(super) struct TokenPace {
    pace: Mutex<LoginPace>,
    started: Instant,
    places: Semaphore,
}

impl Default for TokenPace {
    fn default() -> Self {
        Self {
            pace: Mutex::default(),
            started: Instant::now(),
            places: Semaphore::new(WAITING_MAX),
        }
    }
}

impl TokenPace {
    /// Waits until the token of a request may be checked; returns false if too many wait.
    pub async fn wait(&self, address: IpAddr) -> bool {
        let wait = self.pace.lock().wait(address, self.now_nanos());
        if wait.is_zero() {
            return true;
        }
        let Ok(_place) = self.places.try_acquire() else {
            return false;
        };
        sleep(wait).await;
        true
    }

    /// Notes a wrong token.
    pub fn failed(&self, address: IpAddr) {
        self.pace.lock().failed(address, self.now_nanos());
    }

    fn now_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
