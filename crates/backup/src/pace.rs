//! [`Pace`]: a limit of bytes per second for all threads of a tool together.

use std::sync::Arc;
use std::time::Duration;

use ilion_env::Env;
use parking_lot::Mutex;

/// Limits the bytes per second of all threads that use it.
pub struct Pace {
    env: Arc<dyn Env>,
    bytes_per_sec: Option<u64>,
    /// When further bytes may be moved.
    free_at_nanos: Mutex<u64>,
}

impl Pace {
    /// A limit of bytes per second; `None` means no limit.
    pub fn new(env: Arc<dyn Env>, bytes_per_sec: Option<u64>) -> Self {
        Self {
            env,
            bytes_per_sec: bytes_per_sec.filter(|rate| *rate > 0),
            free_at_nanos: Mutex::new(0),
        }
    }

    /// Waits until these bytes may be moved.
    pub fn wait(&self, bytes: u64) {
        let Some(rate) = self.bytes_per_sec else { return };
        let now_nanos = self.env.monotonic_nanos();
        let wait_nanos = {
            let mut free_at_nanos = self.free_at_nanos.lock();
            let (wait_nanos, next) = booked(*free_at_nanos, now_nanos, bytes, rate);
            *free_at_nanos = next;
            wait_nanos
        };
        if wait_nanos > 0 {
            std::thread::sleep(Duration::from_nanos(wait_nanos));
        }
    }
}

/// How long these bytes wait, and when further bytes may be moved, both in nanoseconds.
fn booked(free_at_nanos: u64, now_nanos: u64, bytes: u64, rate: u64) -> (u64, u64) {
    let starts_at = free_at_nanos.max(now_nanos);
    let takes = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
    let takes = u64::try_from(takes).unwrap_or(u64::MAX);
    (starts_at - now_nanos, starts_at.saturating_add(takes))
}

#[cfg(test)]
mod tests {
    use super::booked;

    #[test]
    fn bytes_wait_for_those_before_them_and_time_without_bytes_is_not_saved_up() {
        const SECOND: u64 = 1_000_000_000;
        let (wait, free) = booked(0, 5 * SECOND, 100, 100);
        assert_eq!((wait, free), (0, 6 * SECOND));
        let (wait, free) = booked(free, 5 * SECOND, 50, 100);
        assert_eq!((wait, free), (SECOND, 6 * SECOND + SECOND / 2));
        let (wait, _) = booked(free, 100 * SECOND, 50, 100);
        assert_eq!(wait, 0);
    }
}
