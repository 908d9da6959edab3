//! Native aggregates over plain rows. No row is built.

use std::ops::Range;

use ilion_rows::{AlikeRows, Flow, PlainRow};
use ilion_schema::{Column, TableSchema};
use smallvec::SmallVec;

use super::{PlainColumn, PlainTaker, PlainValue, Within, has_plain_rows};
use crate::Error;
use crate::aggregate::{Addends, Running};

/// The argument of each aggregate; `None` counts rows.
#[derive(Debug)]
pub(in crate::select) struct PlainArguments(Vec<Option<PlainColumn>>);

impl PlainArguments {
    /// `None` if the table has no plain rows, or plain rows lack one of the columns.
    pub fn of(columns: &[Option<&Column>], table: &TableSchema) -> Option<Self> {
        if !has_plain_rows(table) {
            return None;
        }
        let argument = |column: &Option<&Column>| match column {
            None => Some(None),
            Some(column) => PlainColumn::of(column, table).map(Some),
        };
        columns.iter().map(argument).collect::<Option<_>>().map(Self)
    }

    /// The values to add from rows with the same layout; `None` if the partition key of each row must be decoded.
    fn parts<'p>(
        &self,
        rows: &AlikeRows<'p>,
        within: Within<'p>,
    ) -> Option<SmallVec<[Option<PlainValue<'p>>; 8]>> {
        let part = |argument: &Option<PlainColumn>| match argument {
            None => Some(None),
            Some(column) => column.part(rows, within).map(Some),
        };
        self.0.iter().map(part).collect()
    }
}

/// The aggregates of a group while plain rows are added.
pub(in crate::select) type Runnings<'g, 'p> = SmallVec<[&'g mut Running<'p>; 4]>;

/// Adds plain rows to the aggregates of a group.
pub(in crate::select) struct PlainAggregates<'g, 'p> {
    arguments: &'g PlainArguments,
    /// Invariant: as many as there are arguments.
    runnings: Runnings<'g, 'p>,
    /// The error that ended the additions.
    refused: Option<Error>,
}

impl<'g, 'p> PlainAggregates<'g, 'p> {
    pub fn new(arguments: &'g PlainArguments, runnings: Runnings<'g, 'p>) -> Self {
        Self {
            arguments,
            runnings,
            refused: None,
        }
    }

    /// Ends the additions.
    ///
    /// # Errors
    /// A value could not be added.
    pub fn finish(self) -> Result<(), Error> {
        self.refused.map_or(Ok(()), Err)
    }

    #[inline]
    fn add_row(&mut self, row: &PlainRow<'_>, within: Within<'_>) -> Result<(), Error> {
        for (argument, running) in self.arguments.0.iter().zip(&mut self.runnings) {
            match argument {
                None => running.add_rows(1),
                Some(column) => {
                    if let Some(value) = column.value(row, within)? {
                        running.add(value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_alike(&mut self, rows: &AlikeRows<'_>, parts: &[Option<PlainValue<'_>>]) -> Result<(), Error> {
        let count = rows.count();
        for (part, running) in parts.iter().zip(&mut self.runnings) {
            match part {
                None => running.add_rows(count),
                Some(PlainValue::At(place)) => running.add_each(Laid { rows, place })?,
                Some(PlainValue::Same(None)) => {}
                Some(PlainValue::Same(Some(value))) => running.add_each(Same { value, count })?,
            }
        }
        Ok(())
    }
}

impl PlainTaker for PlainAggregates<'_, '_> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>, within: Within<'_>) -> Flow {
        match self.add_row(row, within) {
            Ok(()) => Flow::Next,
            Err(refused) => {
                self.refused = Some(refused);
                Flow::Last
            }
        }
    }

    fn rows(&mut self, rows: &AlikeRows<'_>, within: Within<'_>) -> (usize, Flow) {
        let Some(parts) = self.arguments.parts(rows, within) else {
            return rows.each(|row| self.row(row, within));
        };
        match self.add_alike(rows, &parts) {
            Ok(()) => (rows.count(), Flow::Next),
            Err(refused) => {
                self.refused = Some(refused);
                (rows.count(), Flow::Last)
            }
        }
    }
}

/// The values of a column in rows with the same layout.
struct Laid<'r, 'b> {
    rows: &'r AlikeRows<'b>,
    place: &'r Range<usize>,
}

impl<'b> Addends<'b> for Laid<'_, 'b> {
    fn count(&self) -> usize {
        self.rows.count()
    }

    #[inline]
    fn each(&self, add: impl FnMut(&'b [u8])) {
        self.rows.values(self.place, add);
    }
}

/// One value that several rows share.
struct Same<'b> {
    value: &'b [u8],
    count: usize,
}

impl<'b> Addends<'b> for Same<'b> {
    fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn each(&self, mut add: impl FnMut(&'b [u8])) {
        (0..self.count).for_each(|_| add(self.value));
    }
}
