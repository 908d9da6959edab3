//! [`Signs`]: when the other node of a connection is asked for a sign of life, and when it is given up. Pure: the caller has the clock.
//!
//! While answers are waited for, silence is noticed after `ping_after`, and the node is given up `dead_after` later. A node that is slow
//! answers pings meanwhile, since no thread that executes requests is needed for that.

use std::time::Duration;

use tokio::time::Instant;

use crate::options::Options;

/// When the side that connected last heard of the other side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    /// When bytes last came.
    received_at: Instant,
    /// When the last ping was sent; `None` if bytes came after it.
    pinged_at: Option<Instant>,
    number: u64,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// No action before this time.
    Nothing(Instant),
    /// A ping with this number.
    Ping(u64),
    /// The node is given up: it was silent for this time.
    Dead(Duration),
}

impl Signs {
    pub fn new(now: Instant) -> Self {
        Self {
            received_at: now,
            pinged_at: None,
            number: 0,
        }
    }

    /// Bytes came.
    pub fn received(&mut self, now: Instant) {
        self.received_at = now;
        self.pinged_at = None;
    }

    /// The next action. `busy_since`: since when answers are awaited.
    pub fn due(&mut self, now: Instant, busy_since: Option<Instant>, options: &Options) -> Due {
        if let Some(pinged_at) = self.pinged_at {
            let dead_at = pinged_at + options.dead_after;
            return match now >= dead_at {
                true => Due::Dead(now - self.received_at),
                false => Due::Nothing(dead_at),
            };
        }
        let ping_at = match busy_since {
            Some(since) => since.max(self.received_at) + options.ping_after,
            None => self.received_at + options.idle_ping_after,
        };
        if now >= ping_at {
            self.pinged_at = Some(now);
            self.number += 1;
            return Due::Ping(self.number);
        }
        // The first call after a pause does not wake the task that calls this, so the task looks again after half the time.
        let look_at = now + options.ping_after / 2;
        Due::Nothing(match busy_since {
            Some(_) => ping_at,
            None => ping_at.min(look_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            ping_after: Duration::from_millis(500),
            dead_after: Duration::from_millis(1000),
            idle_ping_after: Duration::from_secs(15),
            ..Options::default()
        }
    }

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_silent_node_is_given_up_after_a_second_and_a_half() {
        let start = Instant::now();
        let mut signs = Signs::new(start);
        let busy = Some(at(start, 100));
        let mut due = |millis| signs.due(at(start, millis), busy, &options());
        assert_eq!(due(100), Due::Nothing(at(start, 600)));
        assert_eq!(due(600), Due::Ping(1));
        assert_eq!(due(601), Due::Nothing(at(start, 1600)));
        assert_eq!(due(1599), Due::Nothing(at(start, 1600)));
        assert_eq!(due(1600), Due::Dead(Duration::from_millis(1600)));
    }

    #[test]
    fn a_slow_node_that_answers_pings_is_not() {
        let start = Instant::now();
        let mut signs = Signs::new(start);
        for number in 1..20 {
            let millis = number * 600;
            let busy = Some(start);
            assert_eq!(signs.due(at(start, millis), busy, &options()), Due::Ping(number));
            signs.received(at(start, millis + 50));
        }
    }

    #[test]
    fn an_idle_connection_is_looked_at_and_seldom_tried() {
        let start = Instant::now();
        let mut signs = Signs::new(start);
        assert_eq!(signs.due(start, None, &options()), Due::Nothing(at(start, 250)));
        assert_eq!(signs.due(at(start, 15_000), None, &options()), Due::Ping(1));
        assert_eq!(
            signs.due(at(start, 16_000), None, &options()),
            Due::Dead(Duration::from_secs(16))
        );
    }
}
