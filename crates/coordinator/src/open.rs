//! Opens a read of this node's own data, at its start or where a page ended.

use std::sync::Arc;

use ilion_query::{Store, StoreError};
use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, Direction, KeyBound, KeyRange,
    PartitionHead, ReadError, Unfiltered, VecCursor, slices_after,
};
use ilion_schema::TableSchema;

use crate::command::Resume;

/// The partitions of a read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Span {
    /// One partition.
    Partition(DecoratedKey),
    /// A range of partitions.
    Range(KeyRange),
}

impl Span {
    /// The range of partitions.
    pub fn range(&self) -> KeyRange {
        match self {
            Self::Partition(key) => KeyRange::exactly(key),
            Self::Range(range) => range.clone(),
        }
    }

    /// The rest of the span behind a partition; `None` if nothing is left.
    fn after(&self, key: &DecoratedKey) -> Option<KeyRange> {
        match self {
            Self::Partition(_) => None,
            Self::Range(range) => Some(KeyRange {
                start: KeyBound::After(key.clone()),
                end: range.end.clone(),
            }),
        }
    }
}

/// Opens a read. If it goes on within a partition, that partition comes first, with its head.
pub(crate) fn open(
    store: &dyn Store,
    table: &Arc<TableSchema>,
    span: &Span,
    filter: &ClusteringFilter,
    resume: Option<&Resume>,
) -> Result<Box<dyn Cursor>, StoreError> {
    let Some(resume) = resume else {
        return match span {
            Span::Partition(key) => store.read_partition(table, key, filter),
            Span::Range(range) => store.read_range(table, range, filter),
        };
    };
    let after = match span.after(resume.key()) {
        Some(range) => store.read_range(table, &range, filter)?,
        None => Box::new(VecCursor::new(Vec::new())),
    };
    let Resume::Within(key, position) = resume else {
        return Ok(after);
    };
    let comparator = ClusteringComparator::of(table);
    if position.values.len() > comparator.len() {
        return Err(StoreError::Invalid(
            "the position is none of the table's".to_owned(),
        ));
    }
    let direction = Direction::of(filter.reversed);
    let rest = ClusteringFilter {
        slices: slices_after(&filter.slices, position, direction, &comparator),
        ..filter.clone()
    };
    if rest.slices.is_empty() {
        return Ok(after);
    }
    let first = Some(store.read_partition(table, key, &rest)?);
    Ok(Box::new(Joined { first, after }))
}

/// A partition, then a range behind it.
struct Joined {
    first: Option<Box<dyn Cursor>>,
    after: Box<dyn Cursor>,
}

impl Cursor for Joined {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if let Some(first) = &mut self.first {
            if let Some(head) = first.next_partition()? {
                return Ok(Some(head));
            }
            self.first = None;
        }
        self.after.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match &mut self.first {
            Some(first) => first.next_unfiltered(),
            None => self.after.next_unfiltered(),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match &mut self.first {
            Some(first) => first.skip_deleted(before),
            None => self.after.skip_deleted(before),
        }
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions plain_rows);
}
