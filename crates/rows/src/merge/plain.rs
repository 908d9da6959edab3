//! Plain partitions that only one source has, and plain or deleted rows that no other source can have.

use super::{MergeCursor, SourceState};
use crate::{
    Bound, BoundKind, Cursor, DecoratedKey, Direction, PlainRun, PlainVisitor, ReadError, Unfiltered,
};

impl<C: Cursor> MergeCursor<C> {
    /// Shows the visitor the plain partitions of one source after the other, each up to the next source's key.
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

    /// Shows the plain partitions of the first source in the queue, up to the first key that another source may have.
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
            Some(Ok([source, next])) => (source, next.state.key()),
            _ => (&mut self.sources[index], None),
        };
        match &source.state {
            SourceState::Unread(Some(bound)) if Some(bound) != next => {}
            _ => return Ok(None),
        }
        let before = before.into_iter().chain(next).min();
        let run = source.cursor.plain_partitions(before, visitor)?;
        if run.is_some() {
            source.state = SourceState::Unread(source.cursor.peek());
            self.partitions.0.pop();
            self.wait_for_partition(index);
        }
        Ok(run)
    }

    /// Shows the plain rows of the source that the last unfiltered came from, up to the first row that another source may have.
    /// Returns 0 if a deletion is open.
    pub(super) fn plain_rows_of_one(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        if matches!(self.direction, Direction::Reversed) || !self.deletion.is_live() || !self.open.is_live() {
            return Ok(0);
        }
        if let [index] = self.active[..] {
            return self.sources[index].cursor.plain_rows(key, before, visitor);
        }
        let [index] = self.used[..] else {
            return Ok(0);
        };
        let next = self.next_of_others();
        let before = self.comparator.lesser(before, next.as_ref());
        self.sources[index].cursor.plain_rows(key, before, visitor)
    }

    /// Skips the deleted rows of the source that the last unfiltered came from, up to the first row that another source may have.
    pub(super) fn skip_deleted_of_one(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        if let [index] = self.active[..] {
            return self.sources[index].cursor.skip_deleted(before);
        }
        let [index] = self.used[..] else {
            return Ok(());
        };
        let next = self.next_of_others();
        let before = match (self.direction, before, next.as_ref()) {
            (Direction::Forward, before, next) => self.comparator.lesser(before, next),
            (Direction::Reversed, Some(before), Some(next)) => {
                match self.comparator.compare_bounds(before, next).is_lt() {
                    true => Some(next),
                    false => Some(before),
                }
            }
            (Direction::Reversed, before, next) => before.or(next),
        };
        self.sources[index].cursor.skip_deleted(before)
    }

    /// The bound before the first unfiltered that waits in the queue, in the order of the read; `None` if none waits.
    fn next_of_others(&self) -> Option<Bound> {
        let kind = match self.direction {
            Direction::Forward => BoundKind::ExclEnd,
            Direction::Reversed => BoundKind::ExclStart,
        };
        match self.sources[self.unfiltereds.top()?].next.as_ref()? {
            Unfiltered::Marker(marker) => Some(marker.bound.clone()),
            Unfiltered::Row(row) => Some(Bound::new(kind, row.clustering.values().clone())),
        }
    }
}
