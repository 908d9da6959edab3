//! `ORDER BY column ANN OF vector LIMIT n`: the rows with the nearest vectors.
//!
//! Either the index ranks rows, and those that WHERE does not select are skipped. Or other indexes leave few rows, and the scores of
//! all of them are computed. A score is always computed from the row's current vector, so a stale entry of the index may bring a row
//! in too early, but never at the wrong rank.
//!
//! Compat: `SelectStatement` of Cassandra 5.0 (top-k queries); rows are not paged.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use bytes::Bytes;
use ilion_cql::ast::{self, Direction};
use ilion_index::{Place, Ranked, RowPart};
use ilion_rows::{
    ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, KeyRange, ReadPurge, Slice, Unfiltered,
};
use ilion_schema::{Column, TableSchema};
use ilion_types::CqlType;

use super::row_view::OwnedRow;
use super::row_view::key_components;
use super::rows_out::RowsOut;
use super::scan::{Scan, Step, read_law};
use super::{RowView, SelectPlan};
use crate::context::{Execution, PlanContext};
use crate::restrictions::RowFilter;
use crate::restrictions::relation::existing;
use crate::term::Term;
use crate::term::functions::{Score, floats, score_function};
use crate::{ColumnSpec, Consistency, Error, StoreError, Value};

/// Compat: `sai_vector_search` of Cassandra 5.0, `MAX_TOP_K`.
const ROWS_MAX: u32 = 1000;
/// If other indexes leave at most this many rows, the scores of all of them are computed.
const MEASURED_MAX: u64 = 2000;

/// The ranking is approximate, so this many consecutive rows that are too far away do not end it; one more does.
const MISSES_MAX: u32 = 8;

/// A planned ordering by nearness.
#[derive(Debug)]
pub(super) struct Nearest {
    pub column: Column,
    vector: Term,
}

impl Nearest {
    /// Resolves the ordering; `None` if the statement is not ordered by nearness.
    ///
    /// # Errors
    /// The ordering is combined with others, or descends.
    pub fn plan(
        orderings: &[ast::Ordering],
        table: &TableSchema,
        context: &PlanContext<'_>,
    ) -> Result<Option<Self>, Error> {
        let mut planned = None;
        for ordering in orderings {
            let Some(term) = &ordering.ann_of else {
                continue;
            };
            let column = existing(table, &ordering.column)?.clone();
            let receiver = ColumnSpec::of(table, &column.name, column.ty.clone());
            let vector = Term::plan(term, &receiver, context)?;
            if planned.replace(Self { column, vector }).is_some() {
                return Err(Error::invalid("Cannot specify more than one ANN ordering"));
            }
        }
        if planned.is_none() {
            return Ok(None);
        }
        if orderings
            .iter()
            .any(|ordering| ordering.direction == Direction::Descending)
        {
            return Err(Error::invalid("Descending ANN ordering is not supported"));
        }
        match orderings {
            [_] => Ok(planned),
            _ => Err(Error::invalid("ANN ordering does not support any other ordering")),
        }
    }

    fn query(&self, execution: &Execution<'_>) -> Result<Vec<f32>, Error> {
        match self.vector.evaluate(execution)? {
            Value::Bytes(bytes) => vector(&self.column.ty, &bytes),
            Value::Null => Err(self.unsupported("null")),
            Value::Unset => Err(self.unsupported("unset")),
        }
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::Invalid(format!(
            "Unsupported {what} value for column {}",
            self.column.name
        ))
    }
}

fn vector(ty: &CqlType, bytes: &Bytes) -> Result<Vec<f32>, Error> {
    match ty {
        CqlType::Vector { dimension, .. } => floats(bytes, *dimension),
        _ => Err(Error::invalid(crate::restrictions::NEEDS_VECTOR)),
    }
}

/// The inputs of a score.
struct Measure<'e> {
    column: &'e Column,
    query: Vec<f32>,
    score: Score,
}

impl Measure<'_> {
    /// `None` if the row has no vector, or the score is not a number.
    fn score(&self, row: RowView<'_>) -> Result<Option<f32>, Error> {
        let Some(bytes) = row.value(self.column) else {
            return Ok(None);
        };
        let score = (self.score)(&self.query, &vector(&self.column.ty, &bytes)?);
        Ok((!score.is_nan()).then_some(score))
    }
}

/// A row with its score. The row with the lowest score is evicted first.
struct Scored {
    score: f32,
    /// Position in the ranking: of rows with equal scores, the first stays.
    number: usize,
    key: DecoratedKey,
    row: OwnedRow,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scored {}

/// The best rows so far.
struct Best {
    count_max: usize,
    rows: BinaryHeap<Scored>,
    taken: usize,
}

impl Best {
    fn new(count_max: u32) -> Self {
        Self {
            count_max: usize::try_from(count_max).unwrap_or(usize::MAX),
            rows: BinaryHeap::new(),
            taken: 0,
        }
    }

    fn take(&mut self, score: f32, key: &DecoratedKey, row: RowView<'_>) {
        self.taken += 1;
        let is_full = self.rows.len() == self.count_max;
        if is_full && self.rows.peek().is_some_and(|worst| worst.score >= score) {
            return;
        }
        self.rows.push(Scored {
            score,
            number: self.taken,
            key: key.clone(),
            row: OwnedRow::of(row),
        });
        if self.rows.len() > self.count_max {
            self.rows.pop();
        }
    }

    /// True if a row with this or a lower score cannot become one of the best.
    fn is_settled_at(&self, score: f32) -> bool {
        self.rows.len() == self.count_max && self.rows.peek().is_some_and(|worst| worst.score >= score)
    }

    /// The rows, nearest first; those with equal scores in table order.
    fn finish(self, comparator: &ClusteringComparator) -> Vec<Scored> {
        let mut rows = self.rows.into_vec();
        rows.sort_by(|a, b| {
            let clusterings = (a.row.view().clustering(), b.row.view().clustering());
            let by_row = || match clusterings {
                (Some(a), Some(b)) => comparator.compare(a, b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            };
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.key.cmp(&b.key)).then_with(by_row)
        });
        rows
    }
}

impl SelectPlan {
    /// The nearest rows, nearest first.
    pub(super) fn nearest(&self, nearest: &Nearest, execution: &Execution<'_>) -> Result<RowsOut, Error> {
        let limit = self.check_nearest(execution)?;
        let index = self.restrictions.ranking_index(&nearest.column, execution)?;
        let name = index.definition().option("similarity_function");
        let name = name.map_or_else(|| "cosine".to_owned(), str::to_ascii_lowercase);
        let measure = Measure {
            column: &nearest.column,
            query: nearest.query(execution)?,
            score: score_function(&name),
        };
        if name == "cosine" && measure.query.iter().all(|part| *part == 0.0) {
            return Err(Error::invalid(
                "Zero vectors cannot be indexed or queried with cosine similarity",
            ));
        }
        let mut best = Best::new(limit);
        if self.measures_all(execution)? {
            self.measure_all(&measure, &mut best, execution)?;
        } else {
            let name = &index.definition().schema.name;
            let ranked = execution
                .store
                .index_nearest(&self.table, name, &measure.query)
                .map_err(|refused| refused.of_read(execution.options.consistency))?;
            self.measure_ranked(ranked, &measure, &mut best, execution)?;
        }
        let answer = self.answer(execution);
        let mut out = RowsOut::default();
        for scored in best.finish(&ClusteringComparator::of(&self.table)) {
            answer.selection.write(scored.row.view(), execution, &mut out)?;
        }
        Ok(out)
    }

    /// The value of LIMIT. Fails if the statement may not be ordered by nearness.
    fn check_nearest(&self, execution: &Execution<'_>) -> Result<u32, Error> {
        if self.is_aggregate() || self.group_by.is_some() {
            return Err(Error::invalid("Top-K queries can not be run with aggregation"));
        }
        let limits = self.limits.evaluate(execution)?;
        let Some(limit) = limits.rows else {
            return Err(Error::invalid(
                "Top-K queries must have a limit specified and the limit must be less than the query page size",
            ));
        };
        if limits.per_partition.is_some() {
            return Err(Error::invalid(
                "Top-K queries do not support per-partition limits",
            ));
        }
        if limit > ROWS_MAX {
            return Err(Error::Invalid(format!(
                "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {ROWS_MAX}. LIMIT was {limit}"
            )));
        }
        if let Some(size) = execution
            .options
            .page_size
            .filter(|size| *size > 0 && *size < limit)
        {
            execution.warn(format!(
                "Top-K queries do not support paging and the page size is set to {size}, which is less than LIMIT {limit}. The \
                 page size has been set to {limit} to match the LIMIT."
            ));
        }
        warn_of_consistency(execution);
        Ok(limit)
    }

    /// True if the scores of all rows that WHERE selects are computed: the rows of a partition, or few rows that other indexes find.
    pub(super) fn measures_all(&self, execution: &Execution<'_>) -> Result<bool, Error> {
        if self.restrictions.is_by_key() {
            return Ok(true);
        }
        let search = self.restrictions.search_plan(&self.table, execution)?;
        match search {
            Some(search) => Ok(search.estimate(&self.table, execution)?.rows <= MEASURED_MAX),
            None => Ok(false),
        }
    }

    fn measure_all(
        &self,
        measure: &Measure<'_>,
        best: &mut Best,
        execution: &Execution<'_>,
    ) -> Result<(), Error> {
        let mut scan = Scan::start(self.scan_plan(), execution, None)?;
        loop {
            let row = match scan.advance()? {
                Step::End => return Ok(()),
                Step::Row(row) => Some(row),
                Step::StaticRow => None,
            };
            let view = scan.view(row.as_ref());
            if let Some(score) = measure.score(view)?
                && let Some(partition) = scan.partition()
            {
                best.take(score, &partition.key, view);
            }
            scan.mark(row);
        }
    }

    /// Reads the rows in the order of the ranking until a better row is no longer likely.
    fn measure_ranked(
        &self,
        mut ranked: Box<dyn Ranked>,
        measure: &Measure<'_>,
        best: &mut Best,
        execution: &Execution<'_>,
    ) -> Result<(), Error> {
        let Some(range) = self.restrictions.key_range(execution)? else {
            return Ok(());
        };
        let wanted = WantedRows {
            plan: self,
            filter: self.restrictions.row_filter(execution)?,
            range,
            execution,
        };
        let (mut seen, mut misses) = (HashSet::new(), 0);
        let refused =
            |error: ilion_rows::ReadError| StoreError::from(error).of_read(execution.options.consistency);
        while let Some((place, score)) = ranked.next().map_err(refused)? {
            misses = match best.is_settled_at(score) {
                true => misses + 1,
                false => 0,
            };
            if misses > MISSES_MAX {
                break;
            }
            if misses == 0 && seen.insert(identity(&place)) {
                wanted.read(&place, measure, best)?;
            }
        }
        Ok(())
    }
}

/// A hashable identity of a place.
fn identity(place: &Place) -> (Bytes, Option<Vec<Option<Bytes>>>) {
    let row = match &place.row {
        RowPart::Static => None,
        RowPart::Row(clustering) => Some(clustering.values().to_vec()),
    };
    (place.key.key.clone(), row)
}

/// Reads single rows and keeps those that WHERE selects.
struct WantedRows<'e> {
    plan: &'e SelectPlan,
    filter: RowFilter,
    range: KeyRange,
    execution: &'e Execution<'e>,
}

impl WantedRows<'_> {
    fn read(&self, place: &Place, measure: &Measure<'_>, best: &mut Best) -> Result<(), Error> {
        if !self.range.contains(&place.key) {
            return Ok(());
        }
        let (table, execution) = (&self.plan.table, self.execution);
        let slices = match &place.row {
            RowPart::Static => vec![Slice::all()],
            RowPart::Row(clustering) => vec![Slice::exactly(clustering)],
        };
        let filter = ClusteringFilter {
            slices,
            columns: self.plan.all_rows.columns.clone(),
            now_secs: Some(execution.ttl_now_secs()),
            ..ClusteringFilter::all()
        };
        let refused = |error: StoreError| error.of_read(execution.options.consistency);
        let cursor = execution
            .store
            .read_partition(table, &place.key, &filter)
            .map_err(refused)?;
        let mut cursor = ReadPurge::new(cursor, table.clone(), read_law(table, execution));
        let Some(head) = cursor.next_partition().map_err(|error| refused(error.into()))? else {
            return Ok(());
        };
        let key = key_components(table, &head.key.key)?;
        let partition = RowView {
            key: &key,
            static_row: head.static_row.as_ref(),
            row: None,
        };
        if !self.filter.keeps_partition(&partition) {
            return Ok(());
        }
        let mut has_rows = false;
        while let Some(unfiltered) = cursor.next_unfiltered().map_err(|error| refused(error.into()))? {
            if let Unfiltered::Row(row) = unfiltered {
                has_rows = true;
                let view = RowView {
                    row: Some(&row),
                    ..partition
                };
                self.keep(place, view, measure, best)?;
            }
        }
        if !has_rows && place.row == RowPart::Static {
            self.keep(place, partition, measure, best)?;
        }
        Ok(())
    }

    fn keep(
        &self,
        place: &Place,
        view: RowView<'_>,
        measure: &Measure<'_>,
        best: &mut Best,
    ) -> Result<(), Error> {
        if self.filter.keeps_row(&view)
            && let Some(score) = measure.score(view)?
        {
            best.take(score, &place.key, view);
        }
        Ok(())
    }
}

/// Compat: rankings of several replicas cannot be merged, so such queries read from one replica.
fn warn_of_consistency(execution: &Execution<'_>) {
    let level = execution.options.consistency;
    let single = [Consistency::ANY, Consistency::ONE, Consistency::LOCAL_ONE];
    if !single.contains(&level) {
        execution.warn(format!(
            "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level {level} was \
             requested. Downgrading the consistency level to ONE."
        ));
    }
}
