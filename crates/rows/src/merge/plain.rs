//! Plain partitions of a merge: those that only one source has.

use super::{MergeCursor, Place};
use crate::{Cursor, DecoratedKey, PlainRun, PlainVisitor, ReadError};

impl MergeCursor {
    /// Shows the visitor the plain partitions of one source after the other, each up to where the next one goes on.
    pub(super) fn plain_runs(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        self.leave_partition(|cursor| cursor.peek());
        let mut whole: Option<PlainRun> = None;
        while let Some(run) = self.plain_run(before, visitor)? {
            let count = whole.map_or(0, |whole| whole.count);
            let is_over = run.is_over;
            whole = Some(PlainRun {
                count: count + run.count,
                ..run
            });
            if is_over {
                break;
            }
        }
        Ok(whole)
    }

    /// The plain partitions of the first source in the queue, as long as no other may have them or one before them.
    fn plain_run(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let [others @ .., index] = &self.partitions.0[..] else {
            return Ok(None);
        };
        let index = *index;
        let Place::Unasked(Some(bound)) = &self.sources[index].place else {
            return Ok(None);
        };
        let mut before = before;
        if let Some(next) = others.last() {
            let next = self.sources[*next].place.key();
            if next == Some(bound) {
                return Ok(None);
            }
            before = before.into_iter().chain(next).min();
        }
        let before = before.cloned();
        let cursor = &mut self.sources[index].cursor;
        let run = cursor.plain_partitions(before.as_ref(), visitor)?;
        if run.is_some() {
            let bound = cursor.peek();
            self.partitions.0.pop();
            self.sources[index].place = Place::Unasked(bound);
            self.wait_for_partition(index);
        }
        Ok(run)
    }
}
