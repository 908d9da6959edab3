//! The indexes of a table, and which restrictions they serve.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::OpenIndex;
use ilion_index::{Limit, Predicate, SecondaryIndex, Storage};
use ilion_schema::{Column, TableId, TableKind, TableSchema};

use super::restriction::{self, Contained, Restriction};
use crate::context::{Execution, PlanContext};

/// The indexes of a table.
#[derive(Clone, Default)]
pub(crate) struct Indexes(Vec<OpenIndex>);

/// Indexes that are searched together: all storage-attached ones, or one of another kind.
pub(super) struct IndexGroup<'i>(Vec<&'i dyn SecondaryIndex>);

impl fmt::Debug for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.iter().map(|open| &open.index.definition().schema.name);
        f.debug_list().entries(names).finish()
    }
}

impl Indexes {
    /// The indexes of a table.
    pub fn of(table: &TableSchema, context: &PlanContext<'_>) -> Self {
        match table.kind {
            TableKind::Regular => Self(context.store.indexes_of(table.id)),
            _ => Self::default(),
        }
    }

    /// The indexes with their current state: since a cached plan was made, the build of an index may have ended.
    pub fn now(table: TableId, execution: &Execution<'_>) -> Self {
        Self(execution.store.indexes_of(table))
    }

    /// True if the table has no index.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All indexes.
    pub fn iter(&self) -> impl Iterator<Item = &OpenIndex> {
        self.0.iter()
    }

    /// The indexes of a column.
    pub fn of_column(&self, column: &Column) -> impl Iterator<Item = &OpenIndex> {
        let id = column.id;
        self.iter()
            .filter(move |open| open.index.definition().column.id == id)
    }

    /// The index whose analyzer compares values of a column for this predicate; `None` if values compare as in CQL.
    pub fn analyzer(&self, column: &Column, predicate: &Predicate) -> Option<Arc<dyn SecondaryIndex>> {
        let mut analyzing = self
            .of_column(column)
            .filter(|open| open.index.passes(predicate, &[]).is_some());
        analyzing.next().map(|open| open.index.clone())
    }

    /// True if an index serves the restriction, or a part of it.
    pub fn serve(&self, restriction: &Restriction) -> bool {
        self.iter().any(|open| serves(&*open.index, restriction))
    }

    /// True if an index ranks the vectors of a column.
    pub fn rank(&self, column: &Column) -> bool {
        self.of_column(column).any(|open| open.index.ranks())
    }

    /// The indexes, grouped by how they are searched.
    pub(super) fn groups(&self) -> Vec<IndexGroup<'_>> {
        let (attached, alone): (Vec<_>, Vec<_>) = self
            .iter()
            .map(|open| &*open.index)
            .partition(|index| index.definition().schema.is_storage_attached());
        let mut groups: Vec<IndexGroup<'_>> =
            alone.into_iter().map(|index| IndexGroup(vec![index])).collect();
        if !attached.is_empty() {
            groups.push(IndexGroup(attached));
        }
        groups
    }
}

impl IndexGroup<'_> {
    /// True if all rows that the indexes return match the restriction.
    pub fn covers(&self, restriction: &Restriction) -> bool {
        match &restriction.predicate {
            restriction::Predicate::Equal(_) => restriction.columns.iter().all(|column| {
                let column = std::slice::from_ref(column);
                self.0.iter().any(|index| serves_equal(*index, column))
            }),
            // A table index searches for one element only; the others need filtering.
            restriction::Predicate::Contains(contained) if contained.len() > 1 => {
                let mut attached = self.0.iter().filter(|index| finds_several(**index));
                attached.any(|index| serves(*index, restriction))
            }
            _ => self.0.iter().any(|index| serves(*index, restriction)),
        }
    }

    /// True if an index of the group ranks the vectors of a column.
    pub fn ranks(&self, column: &Column) -> bool {
        self.0
            .iter()
            .any(|index| index.ranks() && index.definition().column.id == column.id)
    }
}

fn finds_several(index: &dyn SecondaryIndex) -> bool {
    index.definition().schema.is_storage_attached()
}

fn serves_equal(index: &dyn SecondaryIndex, columns: &[Column]) -> bool {
    let indexed = index.definition().column.id;
    columns.iter().any(|column| column.id == indexed) && index.serves(&Predicate::Equal(Bytes::new()))
}

/// True if an index serves a restriction, whatever its values.
///
/// Compat: an index by itself never serves `IN`, and serves tuples only with `=`.
fn serves(index: &dyn SecondaryIndex, restriction: &Restriction) -> bool {
    let is_indexed = index.definition().column.id == restriction.first().id;
    let any = Bytes::new;
    match &restriction.predicate {
        restriction::Predicate::Equal(_) => serves_equal(index, &restriction.columns),
        restriction::Predicate::In(_) => false,
        restriction::Predicate::Slice { .. } => {
            let range = Predicate::Range {
                from: Some(Limit {
                    value: any(),
                    is_inclusive: true,
                }),
                to: None,
            };
            is_indexed && !restriction.is_multi && index.serves(&range)
        }
        restriction::Predicate::Contains(contained) => {
            let mut asked = contained.iter().map(|contained| match contained {
                Contained::Value(_) => Predicate::Contains(any()),
                Contained::Key(_) => Predicate::ContainsKey(any()),
                Contained::Entry(..) => Predicate::Entry(any(), any()),
            });
            is_indexed && asked.any(|predicate| index.serves(&predicate))
        }
        restriction::Predicate::Like(_) => {
            let forms = [Predicate::LikePrefix(any()), Predicate::LikeContains(any())];
            is_indexed && forms.iter().any(|form| index.serves(form))
        }
        restriction::Predicate::Matches(_) => is_indexed && index.serves(&Predicate::Matches(any())),
    }
}

/// True if the index has its entries in a hidden table.
pub(super) fn is_table_index(index: &dyn SecondaryIndex) -> bool {
    matches!(index.storage(), Storage::HiddenTable(_))
}
