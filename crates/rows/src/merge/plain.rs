//! Plain partitions that only one source has, and plain rows that no other source can have.

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
        let next = self.unfiltereds.top().map(|next| &self.sources[next].next);
        let next = match next {
            None => None,
            Some(None) => return Ok(0),
            Some(Some(Unfiltered::Marker(marker))) => Some(marker.bound.clone()),
            Some(Some(Unfiltered::Row(row))) => {
                Some(Bound::new(BoundKind::ExclEnd, row.clustering.values().clone()))
            }
        };
        let before = self.comparator.lesser(before, next.as_ref());
        self.sources[index].cursor.plain_rows(key, before, visitor)
    }
}
