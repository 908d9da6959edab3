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
        let (index, next) = (*index, others.last().copied());
        let (source, next) = match next.map(|next| self.sources.get_disjoint_mut([index, next])) {
            Some(Ok([source, next])) => (source, next.place.key()),
            _ => (&mut self.sources[index], None),
        };
        match &source.place {
            Place::Unasked(Some(bound)) if Some(bound) != next => {}
            _ => return Ok(None),
        }
        let before = before.into_iter().chain(next).min();
        let run = source.cursor.plain_partitions(before, visitor)?;
        if run.is_some() {
            source.place = Place::Unasked(source.cursor.peek());
            self.partitions.0.pop();
            self.wait_for_partition(index);
        }
        Ok(run)
    }
}
