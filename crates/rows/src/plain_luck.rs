//! When to look for plain rows where there are few.

/// When to look for plain rows: once there were none for some times, each further time doubles the number of rows before the next
/// look.
#[derive(Debug, Default)]
pub struct PlainLuck {
    /// Looks in a row that were in vain.
    misses: u32,
    /// Rows until the next look.
    wait: u32,
}

/// So many looks in vain say nothing: each source begins with a partition that is read as any is.
const MISSES_FREE: u32 = 8;
/// The rows between two looks are doubled so many times.
const DOUBLINGS_MAX: u32 = 6;

impl PlainLuck {
    /// True if it is time to look.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// What a look has found.
    pub fn note(&mut self, is_found: bool) {
        if is_found {
            *self = Self::default();
        } else {
            self.misses = (self.misses + 1).min(MISSES_FREE + DOUBLINGS_MAX);
            self.wait = (1 << self.misses.saturating_sub(MISSES_FREE)) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_vain_become_rare() {
        let mut luck = PlainLuck::default();
        let mut looks = 0;
        for _ in 0..1000 {
            if luck.is_due() {
                looks += 1;
                luck.note(false);
            }
        }
        assert!((20..35).contains(&looks), "{looks}");
        while !luck.is_due() {}
        luck.note(true);
        assert!(luck.is_due());
    }
}
