//! Decides when to look for plain rows where there are few.

/// Decides when to look for plain rows. After some successive looks without a plain row, each further one doubles the
/// number of rows until the next look.
#[derive(Debug, Default)]
pub struct PlainLuck {
    /// Number of successive looks that found no plain row.
    misses: u32,
    /// Number of rows until the next look.
    wait: u32,
}

/// Number of misses before looks become rarer. Partitions that cross the end of a chunk are read row by row, so a few misses say little
/// about the other partitions.
const MISSES_FREE: u32 = 8;
/// Maximum number of doublings.
const DOUBLINGS_MAX: u32 = 6;

impl PlainLuck {
    /// True if the caller should look for plain rows now. Each call counts as one row.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// Records whether a look found plain rows.
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
