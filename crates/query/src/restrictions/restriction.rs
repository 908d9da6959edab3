//! A restriction of one column, or of several clustering columns together, and how two restrictions on the same column merge.
//!
//! A relation on one column is stored as a tuple of one, so that both kinds have the same form.
//! Compat: `SingleColumnRestriction` and `MultiColumnRestriction` of Cassandra 5.0.

use ilion_schema::{Column, ColumnKind};

use super::expression::{Expression, Expressions};
use super::names::names;
use crate::Error;
use crate::term::Term;

/// Columns and the predicate on them.
#[derive(Debug)]
pub(crate) struct Restriction {
    /// One column, or consecutive clustering columns.
    pub columns: Vec<Column>,
    /// True if the restriction was written as a tuple, even of one column.
    pub is_multi: bool,
    pub predicate: Predicate,
}

/// How columns are restricted.
#[derive(Debug)]
pub(crate) enum Predicate {
    /// `=`
    Equal(Expression),
    /// `IN`
    In(Expressions),
    /// `<`, `<=`, `>`, `>=`; at least one end is given.
    Slice {
        /// `>` or `>=`
        start: Option<Edge>,
        /// `<` or `<=`
        end: Option<Edge>,
    },
    /// `CONTAINS`, `CONTAINS KEY` and `m[k] =`; all must hold.
    Contains(Vec<Contained>),
    /// `LIKE`
    Like(Term),
    /// `:`, which the analyzer of an index compares.
    Matches(Term),
}

/// An end of a slice.
#[derive(Debug)]
pub(crate) struct Edge {
    /// Values of the leading restricted columns.
    pub expression: Expression,
    /// True if the values themselves are included.
    pub is_inclusive: bool,
}

/// What a collection must contain.
#[derive(Debug)]
pub(crate) enum Contained {
    /// An element, or a value of a map.
    Value(Term),
    /// A key of a map.
    Key(Term),
    /// A key of a map with this value.
    Entry(Term, Term),
}

impl Restriction {
    /// The first column.
    pub fn first(&self) -> &Column {
        &self.columns[0]
    }

    /// The position after the last column.
    pub fn next_position(&self) -> usize {
        usize::from(self.first().position) + self.columns.len()
    }

    pub fn kind(&self) -> ColumnKind {
        self.first().kind
    }

    pub fn is_slice(&self) -> bool {
        matches!(self.predicate, Predicate::Slice { .. })
    }

    pub fn is_in(&self) -> bool {
        matches!(self.predicate, Predicate::In(_))
    }

    pub fn is_equal(&self) -> bool {
        matches!(self.predicate, Predicate::Equal(_))
    }

    pub fn is_contains(&self) -> bool {
        matches!(self.predicate, Predicate::Contains(_))
    }

    /// True if only an index can evaluate the restriction.
    pub fn needs_index(&self) -> bool {
        matches!(self.predicate, Predicate::Like(_) | Predicate::Matches(_))
    }

    fn shares_column_with(&self, other: &Self) -> bool {
        self.columns
            .iter()
            .any(|column| other.columns.iter().any(|theirs| theirs.id == column.id))
    }

    /// The columns that both restrictions have, as messages name them.
    fn common_names(&self, other: &Self) -> String {
        let common = self
            .columns
            .iter()
            .filter(|column| other.columns.iter().any(|theirs| theirs.id == column.id));
        names(common)
    }

    /// Merges two restrictions on the same columns.
    fn merge(mut self, other: Self) -> Result<Self, Error> {
        let common = self.common_names(&other);
        match (&mut self.predicate, other.predicate) {
            (Predicate::Equal(_), _) => Err(Error::invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes an Equal"
            ))),
            (Predicate::In(_), _) => Err(Error::invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes a IN"
            ))),
            (Predicate::Like(_), _) => Err(Error::invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes a LIKE"
            ))),
            (Predicate::Matches(_), _) => Err(Error::invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes a :"
            ))),
            (Predicate::Contains(ours), Predicate::Contains(theirs)) => {
                ours.extend(theirs);
                Ok(self)
            }
            (Predicate::Contains(_), _) | (_, Predicate::Contains(_)) => Err(Error::invalid(format!(
                "Collection column {common} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
            ))),
            (
                Predicate::Slice { start, end },
                Predicate::Slice {
                    start: their_start,
                    end: their_end,
                },
            ) => {
                if self.columns[0].id != other.columns[0].id {
                    let later = if self.columns[0].position > other.columns[0].position {
                        &self.columns[0]
                    } else {
                        &other.columns[0]
                    };
                    return Err(Error::invalid(format!(
                        "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                        later.name
                    )));
                }
                merge_edge(start, their_start, "start", &common)?;
                merge_edge(end, their_end, "end", &common)?;
                if other.columns.len() > self.columns.len() {
                    self.columns = other.columns;
                }
                self.is_multi |= other.is_multi;
                Ok(self)
            }
            (Predicate::Slice { .. }, _) => Err(Error::invalid(format!(
                "Column \"{common}\" cannot be restricted by both an equality and an inequality relation"
            ))),
        }
    }
}

fn merge_edge(ours: &mut Option<Edge>, theirs: Option<Edge>, side: &str, common: &str) -> Result<(), Error> {
    if ours.is_some() && theirs.is_some() {
        return Err(Error::invalid(format!(
            "More than one restriction was found for the {side} bound on {common}"
        )));
    }
    if theirs.is_some() {
        *ours = theirs;
    }
    Ok(())
}

/// Adds a restriction to `set`, which has those of one kind of column. Merges it with each one that shares a column.
///
/// Invariant: `set` ascends by position, then by name, and no two members share a column.
pub(super) fn add(set: &mut Vec<Restriction>, new: Restriction) -> Result<(), Error> {
    let mut merged = new;
    let mut is_first = true;
    while let Some(index) = set.iter().position(|known| known.shares_column_with(&merged)) {
        let known = set.remove(index);
        // `merge` names its receiver's conflict, so the first known restriction must be the receiver.
        merged = if is_first {
            known.merge(merged)?
        } else {
            merged.merge(known)?
        };
        is_first = false;
    }
    let key = |restriction: &Restriction| (restriction.first().position, restriction.first().name.clone());
    let place = set.partition_point(|known| key(known) < key(&merged));
    set.insert(place, merged);
    Ok(())
}
