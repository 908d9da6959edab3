//! Reads the rows from first to last: checks their order and the types of their values, and compares them with the other
//! components.

use ilion_env::Env;
use ilion_rows::{
    Cell, ClusteringComparator, Data, DecoratedKey, DeletionTime, PartitionHead, Row, Unfiltered, Values,
    paths,
};
use ilion_schema::TableSchema;
use ilion_types::CqlType;

use super::cell_check::CellMapCheck;
use super::deleted_check::DeletedRunsCheck;
use super::index_check::IndexCheck;
use super::key_check::FilterCheck;
use super::opened::Opened;
use super::rows_check::{RowIndexFile, RowsCheck};
use super::token_check::TokenMapCheck;
use super::totals::Totals;
use super::verification::{OnProgress, Verification};
use crate::{Component, DataScan, Result};

/// The state of the read of all rows.
pub(super) struct Contents<'o> {
    opened: &'o Opened,
    scan: DataScan,
    comparator: ClusteringComparator,
    index: Option<IndexCheck>,
    row_indexes: Option<RowIndexFile>,
    filter: Option<FilterCheck>,
    tokens: Option<TokenMapCheck>,
    cells: Option<CellMapCheck>,
    deleted: Option<DeletedRunsCheck>,
    totals: Totals,
    last_key: Option<DecoratedKey>,
}

/// The state of the read inside a partition.
struct InPartition {
    start: u64,
    before: Option<Unfiltered>,
    /// The deletion that the last marker opened.
    open: Option<DeletionTime>,
    rows: Option<RowsCheck>,
}

impl<'o> Contents<'o> {
    pub(super) fn new(env: &dyn Env, opened: &'o Opened, verification: &mut Verification) -> Result<Self> {
        Ok(Self {
            scan: opened.scan()?,
            comparator: ClusteringComparator::of(&opened.table),
            index: IndexCheck::open(env, opened, verification)?,
            row_indexes: verification.findings.take(RowIndexFile::open(env, opened))?,
            filter: FilterCheck::open(env, opened, verification)?,
            tokens: TokenMapCheck::open(env, opened, verification)?,
            cells: CellMapCheck::open(env, opened, verification)?,
            deleted: DeletedRunsCheck::open(env, opened, verification)?,
            totals: Totals::new(opened),
            opened,
            last_key: None,
        })
    }

    /// Reads and checks all rows. Returns true if all of them could be read.
    pub(super) fn check(
        mut self,
        verification: &mut Verification,
        on_progress: OnProgress<'_>,
    ) -> Result<bool> {
        loop {
            let read = self.partition(verification, on_progress);
            match verification.findings.take(read)? {
                None => return Ok(false),
                Some(true) => verification.partitions += 1,
                Some(false) => break,
            }
        }
        let data = self.opened.data.path();
        if verification.partitions == 0 {
            verification.findings.add(data, 0, "at least one partition");
        }
        if let Some(index) = self.index {
            index.finish(verification)?;
        }
        if let Some(filter) = self.filter {
            filter.finish(verification);
        }
        if let Some(tokens) = self.tokens {
            tokens.finish(verification);
        }
        if let Some(cells) = self.cells {
            cells.finish(verification);
        }
        if let Some(deleted) = self.deleted {
            deleted.finish(verification);
        }
        self.totals.compare(self.opened, verification);
        Ok(true)
    }

    /// Reads and checks the next partition. Returns false at the end.
    fn partition(&mut self, verification: &mut Verification, on_progress: OnProgress<'_>) -> Result<bool> {
        let start = self.scan.position();
        let Some(head) = self.scan.next_partition()? else {
            return Ok(false);
        };
        let mut within = self.begin(start, &head, verification)?;
        loop {
            let position = self.scan.position();
            on_progress(position);
            let Some(unfiltered) = self.scan.next_unfiltered()? else {
                break;
            };
            self.unfiltered(position, unfiltered, &mut within, verification)?;
        }
        self.end(within, verification)?;
        Ok(true)
    }

    fn begin(
        &mut self,
        start: u64,
        head: &PartitionHead,
        verification: &mut Verification,
    ) -> Result<InPartition> {
        let data = self.opened.data.path();
        if self.last_key.as_ref().is_some_and(|last| *last >= head.key) {
            verification.findings.add(
                data,
                start,
                "a partition whose key is above that of the partition before",
            );
        }
        self.last_key = Some(head.key.clone());
        if let Some(filter) = &mut self.filter {
            filter.key(start, &head.key.key, verification);
        }
        let row_index = match &mut self.index {
            Some(index) => index.partition(start, &head.key, verification)?,
            None => None,
        };
        if let Some(tokens) = &mut self.tokens {
            let is_known = self.index.as_ref().is_some_and(|index| !index.is_broken());
            let has_row_index = is_known.then_some(row_index.is_some());
            tokens.partition(start, &head.key, has_row_index, verification)?;
        }
        let rows = match (row_index, &self.row_indexes) {
            (Some(at), Some(file)) => file.begin(&at, start, self.scan.position(), head, verification)?,
            _ => None,
        };
        if let Some(cells) = &mut self.cells {
            cells.partition(start, head.key.key.len(), head.static_row.as_ref(), verification)?;
        }
        self.totals.begin_partition(head);
        if let Some(row) = &head.static_row {
            verification.unfiltereds += 1;
            self.check_values(start, row, verification);
        }
        Ok(InPartition {
            start,
            before: None,
            open: None,
            rows,
        })
    }

    fn unfiltered(
        &mut self,
        position: u64,
        unfiltered: Unfiltered,
        within: &mut InPartition,
        verification: &mut Verification,
    ) -> Result<()> {
        verification.unfiltereds += 1;
        let data = self.opened.data.path();
        if let Some(before) = &within.before
            && self.comparator.compare_unfiltered(before, &unfiltered).is_ge()
        {
            verification
                .findings
                .add(data, position, "a row or marker that sorts above the one before");
        }
        match &unfiltered {
            Unfiltered::Row(row) => {
                self.check_values(position, row, verification);
                if let Some(cells) = &mut self.cells {
                    cells.row(position, row, verification)?;
                }
            }
            Unfiltered::Marker(marker) => {
                if marker.end != within.open {
                    let expected = "a marker that ends the deletion that is open before it";
                    verification.findings.add(data, position, expected);
                }
                self.check_clustering(position, &marker.bound.values, verification);
            }
        }
        if let Some(deleted) = &mut self.deleted {
            deleted.unfiltered(position..self.scan.position(), &unfiltered, verification);
        }
        if let Some(rows) = &mut within.rows {
            rows.unfiltered(
                position,
                self.scan.position(),
                &unfiltered,
                within.open,
                verification,
            )?;
        }
        if let Unfiltered::Marker(marker) = &unfiltered {
            within.open = marker.start;
        }
        self.totals.unfiltered(&unfiltered);
        within.before = Some(unfiltered);
        Ok(())
    }

    fn end(&mut self, within: InPartition, verification: &mut Verification) -> Result<()> {
        let end = self.scan.position();
        if within.open.is_some() {
            let expected = "no deleted range that is open at the end of its partition";
            verification.findings.add(self.opened.data.path(), end, expected);
        }
        if let Some(rows) = within.rows {
            rows.finish(end, verification)?;
        }
        self.totals.end_partition(end - within.start);
        Ok(())
    }

    /// Checks that values are valid for their columns' types.
    fn check_values(&self, position: u64, row: &Row, verification: &mut Verification) {
        self.check_clustering(position, row.clustering.values(), verification);
        if let Some(column) = invalid_column(&self.opened.table, row) {
            let path = self.opened.descriptor.path(&Component::Data);
            let expected = format!("a row whose values are of their types; that of {column:?} is not");
            verification.findings.add(&path, position, expected);
        }
    }

    fn check_clustering(&self, position: u64, values: &Values, verification: &mut Verification) {
        let types = self.opened.table.clustering().map(|column| &column.ty);
        let is_valid = |(value, ty): (&Option<bytes::Bytes>, &CqlType)| {
            value
                .as_ref()
                .is_none_or(|value| value.is_empty() || ty.validate(value).is_ok())
        };
        if !values.iter().zip(types).all(is_valid) {
            let path = self.opened.data.path();
            verification
                .findings
                .add(path, position, "clustering values of their columns' types");
        }
    }
}

/// The name of the first column with a value that is invalid for its type, or with cells in the wrong order.
fn invalid_column<'t>(table: &'t TableSchema, row: &Row) -> Option<&'t str> {
    row.columns.iter().find_map(|entry| {
        let column = table.column(entry.column)?;
        let is_valid = match &entry.data {
            Data::Simple(cell) => is_valid_cell(&column.ty, cell),
            Data::Complex(complex) => {
                let ascend = |pair: &[(bytes::Bytes, Cell)]| {
                    paths::compare_paths(&column.ty, &pair[0].0, &pair[1].0).is_lt()
                };
                complex.cells.windows(2).all(ascend)
                    && complex.cells.iter().all(|(path, cell)| {
                        paths::value_type(&column.ty, path).is_none_or(|ty| is_valid_cell(ty, cell))
                    })
            }
        };
        (!is_valid).then_some(column.name.as_str())
    })
}

/// True if the cell's value is valid. The values of counters are contexts, not values of their type.
fn is_valid_cell(ty: &CqlType, cell: &Cell) -> bool {
    *ty == CqlType::Counter || cell.value.is_empty() || ty.validate(&cell.value).is_ok()
}
