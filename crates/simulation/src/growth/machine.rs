//! [`Machine`]: some cores, and a queue of work in front of them.

/// Nanoseconds since the start of a run.
pub(crate) type Nanos = u64;

/// Work is done in the order in which it comes, each piece by the core that is free first.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    free_at: Vec<Nanos>,
    worked: u64,
}

impl Machine {
    pub fn new(cores: usize) -> Self {
        Self {
            free_at: vec![0; cores.max(1)],
            worked: 0,
        }
    }

    /// Adds work that comes now. Returns when it is done. Requires: calls come in the order of `now`.
    pub fn work(&mut self, now: Nanos, nanos: u64) -> Nanos {
        self.worked += nanos;
        let mut done = now + nanos;
        if let Some(free_at) = self.free_at.iter_mut().min() {
            done = now.max(*free_at) + nanos;
            *free_at = done;
        }
        done
    }

    pub fn cores(&self) -> usize {
        self.free_at.len()
    }

    /// How much work has come so far, in nanoseconds of a core.
    pub fn worked(&self) -> u64 {
        self.worked
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn work_waits_for_the_core_that_is_free_first() {
        let mut machine = Machine::new(2);
        assert_eq!(
            [(0, 10), (0, 4), (1, 2), (20, 1)].map(|(now, nanos)| machine.work(now, nanos)),
            [10, 4, 6, 21]
        );
    }
}
