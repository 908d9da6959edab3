//! [`Acknowledged`]: up to which record all records of a source are finished, while many of them are under way.

use std::collections::VecDeque;

/// The records that were taken from a source. Each has a number; `Mark` is a place in the source.
#[derive(Debug)]
pub struct Acknowledged<Mark> {
    mark: Mark,
    /// The number of the first record in `after`.
    first: u64,
    /// The records behind the mark, in the order of the source.
    after: VecDeque<Taken<Mark>>,
}

#[derive(Debug)]
struct Taken<Mark> {
    end: Mark,
    is_finished: bool,
}

impl<Mark: Copy> Acknowledged<Mark> {
    /// All records before this place are finished.
    pub fn new(mark: Mark) -> Self {
        Self {
            mark,
            first: 0,
            after: VecDeque::new(),
        }
    }

    /// Adds the next record, which ends here; returns its number.
    pub fn take(&mut self, end: Mark) -> u64 {
        self.after.push_back(Taken {
            end,
            is_finished: false,
        });
        self.first + self.after.len() as u64 - 1
    }

    /// Marks a record as finished: its row was written, or the record was kept as failed.
    pub fn finish(&mut self, number: u64) {
        let index = usize::try_from(number.wrapping_sub(self.first));
        if let Some(taken) = index.ok().and_then(|index| self.after.get_mut(index)) {
            taken.is_finished = true;
        }
        while let Some(taken) = self.after.pop_front_if(|taken| taken.is_finished) {
            self.mark = taken.end;
            self.first += 1;
        }
    }

    /// All records before this place are finished.
    pub fn mark(&self) -> Mark {
        self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_never_passes_a_record_that_is_under_way() {
        let mut acknowledged = Acknowledged::new(0);
        let numbers = [1, 2, 3, 4].map(|end| acknowledged.take(end));
        acknowledged.finish(numbers[1]);
        acknowledged.finish(numbers[2]);
        assert_eq!(acknowledged.mark(), 0);
        acknowledged.finish(numbers[0]);
        assert_eq!(acknowledged.mark(), 3);
        let fifth = acknowledged.take(5);
        acknowledged.finish(fifth);
        assert_eq!(acknowledged.mark(), 3);
        acknowledged.finish(numbers[3]);
        assert_eq!(acknowledged.mark(), 5);
    }
}
