//! Filtering: checks on rows (`ALLOW FILTERING`).
//!
//! A check on the partition key or a static column drops the whole partition. A check on clustering or regular columns drops
//! the row, and a partition without rows left. A missing value fails every check. Compat: `RowFilter` of Cassandra 5.0.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_index::{Limit, Predicate as Asked, SecondaryIndex};
use ilion_rows::{Data, Values};
use ilion_schema::{Column, ColumnKind};
use ilion_types::{CqlType, collection_elements, map_entries, quote_name};

use super::alternatives::{Alternatives, Branch};
use super::expression::supported;
use super::indexes::Indexes;
use super::like;
use super::restriction::{Contained, Edge, Predicate, Restriction};
use crate::Error;
use crate::context::Execution;
use crate::select::RowView;
use crate::term::Term;

/// The checks of one execution.
#[derive(Debug, Default)]
pub(crate) struct RowFilter {
    partition: Vec<Check>,
    row: Vec<Check>,
    /// In each member, one of several branches must hold.
    partition_alternatives: Vec<AnyOf>,
    row_alternatives: Vec<AnyOf>,
}

/// Branches, one of which must hold.
#[derive(Debug)]
struct AnyOf(Vec<AllOf>);

/// Checks that must all hold.
#[derive(Debug)]
struct AllOf {
    checks: Vec<Check>,
    alternatives: Vec<AnyOf>,
}

struct Check {
    columns: Vec<Column>,
    test: Test,
    /// The index whose analyzer compares the values, and the predicate to compare by; `None` if values compare as in CQL.
    analyzer: Option<(Arc<dyn SecondaryIndex>, Asked)>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("columns", &self.columns)
            .field("test", &self.test)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Test {
    /// The columns equal one of these.
    Among(Vec<Values>),
    /// The leading columns are before or after these values.
    Ordered {
        values: Values,
        wanted: Ordering,
        is_inclusive: bool,
    },
    Value(Bytes),
    Key(Bytes),
    Entry(Bytes, Bytes),
    /// `LIKE` and `:`
    Text(Asked),
}

impl RowFilter {
    /// The checks of restrictions. Columns with an analyzed index are compared as the index does.
    pub(super) fn of(
        restrictions: &[Restriction],
        alternatives: &[Alternatives],
        indexes: &Indexes,
        execution: &Execution<'_>,
    ) -> Result<Self, Error> {
        let mut filter = Self::default();
        for alternatives in alternatives {
            let checks = match alternatives.is_of_partitions() {
                true => &mut filter.partition_alternatives,
                false => &mut filter.row_alternatives,
            };
            checks.push(AnyOf::of(alternatives, indexes, execution)?);
        }
        for restriction in restrictions {
            let checks = match restriction.kind() {
                ColumnKind::PartitionKey | ColumnKind::Static => &mut filter.partition,
                ColumnKind::Clustering | ColumnKind::Regular => &mut filter.row,
            };
            checks.extend(checks_of(restriction, indexes, execution)?);
        }
        Ok(filter)
    }

    /// True if rows of the partition may pass. Requires: the view has no row, only the key and the static row.
    pub fn keeps_partition(&self, view: &RowView<'_>) -> bool {
        self.partition.iter().all(|check| check.passes(view))
            && self.partition_alternatives.iter().all(|any| any.passes(view))
    }

    /// True if the row passes.
    pub fn keeps_row(&self, view: &RowView<'_>) -> bool {
        self.row.iter().all(|check| check.passes(view))
            && self.row_alternatives.iter().all(|any| any.passes(view))
    }

    /// True if there are no checks, so that every row passes.
    pub fn is_empty(&self) -> bool {
        self.partition.is_empty()
            && self.partition_alternatives.is_empty()
            && self.row.is_empty()
            && self.row_alternatives.is_empty()
    }
}

impl AnyOf {
    fn of(alternatives: &Alternatives, indexes: &Indexes, execution: &Execution<'_>) -> Result<Self, Error> {
        let branch = |branch: &Branch| {
            let checks = branch.restrictions.iter();
            let checks: Vec<Vec<Check>> = checks
                .map(|restriction| checks_of(restriction, indexes, execution))
                .collect::<Result<_, _>>()?;
            let nested = branch.alternatives.iter();
            Ok(AllOf {
                checks: checks.into_iter().flatten().collect(),
                alternatives: nested
                    .map(|nested| Self::of(nested, indexes, execution))
                    .collect::<Result<_, _>>()?,
            })
        };
        alternatives
            .0
            .iter()
            .map(branch)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn passes(&self, view: &RowView<'_>) -> bool {
        self.0.iter().any(|branch| {
            branch.checks.iter().all(|check| check.passes(view))
                && branch.alternatives.iter().all(|any| any.passes(view))
        })
    }
}

fn checks_of(
    restriction: &Restriction,
    indexes: &Indexes,
    execution: &Execution<'_>,
) -> Result<Vec<Check>, Error> {
    let check = |test| Check {
        analyzer: analyzer(restriction, &test, indexes),
        columns: restriction.columns.clone(),
        test,
    };
    Ok(tests(restriction, execution)?.into_iter().map(check).collect())
}

fn tests(restriction: &Restriction, execution: &Execution<'_>) -> Result<Vec<Test>, Error> {
    let columns = &restriction.columns;
    Ok(match &restriction.predicate {
        Predicate::Equal(expression) => vec![Test::Among(vec![
            expression.evaluate_supported(columns, execution)?,
        ])],
        Predicate::In(expressions) => vec![Test::Among(expressions.evaluate_supported(columns, execution)?)],
        Predicate::Slice { start, end } => {
            let sides = [(start, Ordering::Greater), (end, Ordering::Less)];
            let given = sides
                .into_iter()
                .filter_map(|(edge, wanted)| edge.as_ref().map(|edge| (edge, wanted)));
            given
                .map(|(edge, wanted)| ordered(edge, wanted, columns, execution))
                .collect::<Result<_, _>>()?
        }
        Predicate::Contains(contained) => {
            let test = |contained| contains(contained, restriction.first(), execution);
            contained.iter().map(test).collect::<Result<_, _>>()?
        }
        Predicate::Like(term) => {
            let text = supported(term.evaluate(execution)?, "value", restriction.first())?;
            vec![Test::Text(like::pattern(&text)?)]
        }
        Predicate::Matches(term) => {
            let text = supported(term.evaluate(execution)?, "value", restriction.first())?;
            vec![Test::Text(Asked::Matches(text))]
        }
    })
}

/// The index whose analyzer compares the values, if there is one.
fn analyzer(
    restriction: &Restriction,
    test: &Test,
    indexes: &Indexes,
) -> Option<(Arc<dyn SecondaryIndex>, Asked)> {
    if indexes.is_empty() || restriction.is_multi {
        return None;
    }
    let asked = match test {
        Test::Among(members) => {
            let values = members.iter().map(|values| values.first().cloned().flatten());
            let mut values: Vec<Bytes> = values.collect::<Option<_>>()?;
            match values.len() {
                1 => Asked::Equal(values.pop()?),
                _ => Asked::AnyOf(values),
            }
        }
        Test::Value(value) => Asked::Contains(value.clone()),
        Test::Key(key) => Asked::ContainsKey(key.clone()),
        Test::Text(asked) => asked.clone(),
        Test::Ordered { .. } | Test::Entry(..) => return None,
    };
    let index = indexes.analyzer(restriction.first(), &asked)?;
    Some((index, asked))
}

fn ordered(
    edge: &Edge,
    wanted: Ordering,
    columns: &[Column],
    execution: &Execution<'_>,
) -> Result<Test, Error> {
    Ok(Test::Ordered {
        values: edge.expression.evaluate_supported(columns, execution)?,
        wanted,
        is_inclusive: edge.is_inclusive,
    })
}

fn contains(contained: &Contained, column: &Column, execution: &Execution<'_>) -> Result<Test, Error> {
    let value = |term: &Term, what: &str| supported(term.evaluate(execution)?, what, column);
    Ok(match contained {
        Contained::Value(term) => Test::Value(value(term, "value")?),
        Contained::Key(term) => Test::Key(value(term, "value")?),
        Contained::Entry(key, term) => Test::Entry(value(key, "map key")?, value(term, "map value")?),
    })
}

impl Check {
    fn passes(&self, view: &RowView<'_>) -> bool {
        match &self.test {
            Test::Text(asked) => view.value(&self.columns[0]).is_some_and(|value| {
                self.analyzed(&value)
                    .unwrap_or_else(|| like::is_like(&value, asked))
            }),
            Test::Among(_) if self.analyzer.is_some() => view
                .value(&self.columns[0])
                .is_some_and(|value| self.analyzed(&value).unwrap_or(false)),
            Test::Among(members) => members
                .iter()
                .any(|values| self.compare(view, values) == Some(Ordering::Equal)),
            Test::Ordered {
                values,
                wanted,
                is_inclusive,
            } => self
                .compare(view, values)
                .is_some_and(|order| order == *wanted || (*is_inclusive && order.is_eq())),
            Test::Value(_) | Test::Key(_) | Test::Entry(..) => self.contains(view),
        }
    }

    /// Whether the index's analyzer accepts a value of the column, or an element of it; `None` if no analyzer compares it.
    fn analyzed(&self, value: &[u8]) -> Option<bool> {
        let (index, asked) = self.analyzer.as_ref()?;
        index.passes(asked, value)
    }

    /// Compares the row's values with `values`, column by column; `None` if a value is missing.
    fn compare(&self, view: &RowView<'_>, values: &Values) -> Option<Ordering> {
        for (column, value) in self.columns.iter().zip(values) {
            let ours = view.value(column)?;
            // A counter is compared as the number that clients see.
            let ty = match &column.ty {
                CqlType::Counter => &CqlType::BigInt,
                ty => ty,
            };
            match ty.compare(&ours, value.as_ref()?) {
                Ordering::Equal => {}
                unequal => return Some(unequal),
            }
        }
        Some(Ordering::Equal)
    }

    fn contains(&self, view: &RowView<'_>) -> bool {
        let column = &self.columns[0];
        if let Some(Data::Complex(complex)) = view.data(column) {
            let mut cells = complex.cells.iter();
            let is_set = matches!(column.ty, CqlType::Set { .. });
            return cells.any(|(path, cell)| {
                let value = if is_set { path } else { &cell.value };
                self.matches_entry(path, value)
            });
        }
        let Some(bytes) = view.value(column) else {
            return false;
        };
        match &column.ty {
            CqlType::Map { .. } => map_entries(&bytes).is_ok_and(|mut entries| {
                entries.any(|entry| entry.is_ok_and(|(key, value)| self.matches_entry(key, value)))
            }),
            _ => collection_elements(&bytes).is_ok_and(|mut elements| {
                elements.any(|element| element.is_ok_and(|element| self.matches_entry(element, element)))
            }),
        }
    }

    fn matches_entry(&self, key: &[u8], value: &[u8]) -> bool {
        let equal = |ty: Option<&CqlType>, a: &[u8], b: &[u8]| {
            let analyzed = self.analyzed(a);
            analyzed.unwrap_or_else(|| ty.is_some_and(|ty| ty.compare(a, b).is_eq()))
        };
        let (key_type, value_type) = match &self.columns[0].ty {
            CqlType::Map { key, value, .. } => (Some(&**key), Some(&**value)),
            CqlType::List { element, .. } | CqlType::Set { element, .. } => (None, Some(&**element)),
            _ => (None, None),
        };
        match &self.test {
            Test::Value(wanted) => equal(value_type, value, wanted),
            Test::Key(wanted) => equal(key_type, key, wanted),
            Test::Entry(wanted_key, wanted) => {
                equal(key_type, key, wanted_key) && equal(value_type, value, wanted)
            }
            Test::Among(_) | Test::Ordered { .. } | Test::Text(_) => false,
        }
    }
}

/// The CQL text of an index's predicate.
pub(super) fn describe(column: &Column, asked: &Asked) -> String {
    let name = quote_name(&column.name);
    let (key_type, value_type) = match &column.ty {
        CqlType::Map { key, value, .. } => (&**key, &**value),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => (&**element, &**element),
        ty => (ty, ty),
    };
    let print = |ty: &CqlType, value: &Bytes| ty.print_literal(value).unwrap_or_else(|_| "?".to_owned());
    let whole = |value: &Bytes| print(&column.ty, value);
    let range = |subject: &str, ty: &CqlType, from: &Option<Limit>, to: &Option<Limit>| {
        let side = |limit: &Option<Limit>, sign: &str| {
            let limit = limit.as_ref()?;
            let equal = if limit.is_inclusive { "=" } else { "" };
            Some(format!("{subject} {sign}{equal} {}", print(ty, &limit.value)))
        };
        let sides = [side(from, ">"), side(to, "<")];
        sides.into_iter().flatten().collect::<Vec<_>>().join(" AND ")
    };
    match asked {
        Asked::Equal(value) => format!("{name} = {}", whole(value)),
        Asked::AnyOf(values) => {
            let values: Vec<String> = values.iter().map(whole).collect();
            format!("{name} IN ({})", values.join(", "))
        }
        Asked::Range { from, to } => range(&name, &column.ty, from, to),
        Asked::Contains(value) => format!("{name} CONTAINS {}", print(value_type, value)),
        Asked::ContainsKey(key) => format!("{name} CONTAINS KEY {}", print(key_type, key)),
        Asked::Entry(key, value) => {
            format!("{name}[{}] = {}", print(key_type, key), print(value_type, value))
        }
        Asked::EntryRange { key, from, to } => {
            range(&format!("{name}[{}]", print(key_type, key)), value_type, from, to)
        }
        Asked::Matches(text) => format!("{name} : {}", whole(text)),
        Asked::LikePrefix(_) | Asked::LikeSuffix(_) | Asked::LikeContains(_) | Asked::LikeEqual(_) => {
            format!("{name} {}", like::describe(asked))
        }
    }
}
