//! Connections are refused before files are: the last descriptors of the process belong to the engine.
//!
//! The system gives each socket the lowest number that is free, so a socket's number tells how many descriptors are taken at least.

use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::time::Instant;

/// Descriptors that no client takes: a quarter of all, within these.
const RESERVE_MIN: u64 = 32;
const RESERVE_MAX: u64 = 4096;
/// Operators are let in when clients are not any more: such a part of the reserve is for files alone.
const FOR_FILES_ALONE: u64 = 2;
/// How often refusals are told.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Which sockets are let in.
#[derive(Debug)]
pub(crate) struct DescriptorReserve {
    limit: u64,
    /// The first descriptor that is not for these sockets.
    lowest_reserved: u64,
    told: Option<Instant>,
}

impl DescriptorReserve {
    /// For clients, with so many descriptors for the process; `None` is no limit.
    pub fn of_clients(descriptors_max: Option<u64>) -> Self {
        Self::of(descriptors_max, 1)
    }

    /// For operators.
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

    /// False if the socket has one of the last descriptors: it is to be closed at once.
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

/// How many of the last descriptors no client takes. Pure.
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
