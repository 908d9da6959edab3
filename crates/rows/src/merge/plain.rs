//! Plain partitions of a merge: those that only one source has. And plain rows: those that no other source may have.

use super::{MergeCursor, Place};
use crate::{
    Bound, BoundKind, Cursor, DecoratedKey, Direction, PlainRun, PlainVisitor, ReadError, Unfiltered,
};

impl<C: Cursor> MergeCursor<C> {
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

    /// The plain rows of the source from which the last unfiltered was taken, as long as no other has one of them or one before them, and
    /// nothing is deleted around them.
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
