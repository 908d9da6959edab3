//! Reserves the last file descriptors of the process for files: connections are refused first.
//!
//! The system gives each socket the lowest free number, so a socket with the number N shows that all lower numbers are in use.

use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::time::Instant;

/// The reserve is a quarter of all descriptors, within these bounds.
const RESERVE_MIN: u64 = 32;
const RESERVE_MAX: u64 = 4096;
/// One half of the reserve is for files alone; the sockets of operators may use the other half.
const FOR_FILES_ALONE: u64 = 2;
/// Least time between two log lines about refusals.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Decides which sockets are accepted.
#[derive(Debug)]
pub(crate) struct DescriptorReserve {
    limit: u64,
    /// The first descriptor that these sockets may not have.
    lowest_reserved: u64,
    told: Option<Instant>,
}

impl DescriptorReserve {
    /// The rule for sockets of clients. `descriptors_max` is the limit of the process; `None` is no limit.
    pub fn of_clients(descriptors_max: Option<u64>) -> Self {
        Self::of(descriptors_max, 1)
    }

    /// The rule for sockets of operators.
    pub fn of_operators(descriptors_max: Option<u64>) -> Self {
        Self::of(descriptors_max, FOR_FILES_ALONE)
    }

    fn of(descriptors_max: Option<u64>, part: u64) -> Self {
        let limit = descriptors_max.unwrap_or(u64::MAX);
        Self {
            limit,
            lowest_reserved: limit - reserve(limit) / part,
            told: None,
        }
    }

    /// Returns false if the descriptor of the socket is reserved: the caller must close the socket at once.
    pub fn admits(&mut self, socket: &impl AsRawFd) -> bool {
        let number = u64::try_from(socket.as_raw_fd()).unwrap_or(0);
        let is_admitted = number < self.lowest_reserved;
        let is_told = self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY);
        if !is_admitted && !is_told {
            self.told = Some(Instant::now());
            tracing::warn!(
                limit = self.limit,
                "connections are refused: the file descriptors that are left are kept for files; raise the limit (ulimit -n), \
                 or limit connections (native_transport_max_concurrent_connections)"
            );
        }
        is_admitted
    }
}

/// The number of reserved descriptors. Pure.
fn reserve(limit: u64) -> u64 {
    (limit / 4).clamp(RESERVE_MIN, RESERVE_MAX).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_kept_for_files_and_some_more_for_operators() {
        for (limit, clients, operators) in [
            (0, 0, 0),
            (20, 0, 10),
            (64, 32, 48),
            (400, 300, 350),
            (1 << 20, (1 << 20) - 4096, (1 << 20) - 2048),
        ] {
            let lowest = |reserve: DescriptorReserve| reserve.lowest_reserved;
            assert_eq!(lowest(DescriptorReserve::of_clients(Some(limit))), clients);
            assert_eq!(lowest(DescriptorReserve::of_operators(Some(limit))), operators);
        }
        let unlimited = DescriptorReserve::of_clients(None);
        assert!(unlimited.lowest_reserved > 1 << 40);
    }
}
