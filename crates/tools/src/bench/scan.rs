//! The scanning workload: the ring is cut into ranges, and each is read page by page.
//!
//! Every row is checked against the dataset. Tokens must ascend, so no row can come twice; missing rows show in the number of rows
//! at the end.

use std::sync::Arc;

use bytes::Bytes;
use ilion_protocol::{
    Execute, Prepared, QueryParams, Request, Response, ResultBody, Rows, Value, Version, encode_request,
};

use crate::bench::dataset::{COLUMN_COUNT, Dataset};
use crate::bench::read::check_values;
use crate::bench::work::{Phase, Plan, Work, wrong_answer};
use ilion_client::{Connection, request_frame};

/// The part of a scan that one client reads.
pub struct Scan {
    plan: Arc<Plan>,
    phase: Arc<Phase>,
    statement: Prepared,
    version: Version,
    /// The position of each slot.
    positions: Vec<RangePosition>,
}

/// The position in a range; between two ranges there is no paging state.
#[derive(Clone, Debug, Default)]
struct RangePosition {
    /// The range has the tokens above this one, up to `last`.
    after: i64,
    last: i64,
    /// The token of the last row.
    seen: i64,
    paging_state: Option<Bytes>,
}

impl Scan {
    /// Prepares the statement.
    pub fn new(plan: &Arc<Plan>, phase: &Arc<Phase>, connection: &mut Connection) -> anyhow::Result<Self> {
        let text = format!(
            "SELECT token(key), key, {} FROM {} WHERE token(key) > ? AND token(key) <= ?",
            Plan::columns(),
            plan.table()
        );
        let prepared = connection.prepare(text)?;
        Ok(Self {
            plan: Arc::clone(plan),
            phase: Arc::clone(phase),
            statement: prepared,
            version: connection.version(),
            positions: vec![RangePosition::default(); usize::from(plan.crowd.in_flight)],
        })
    }
}

impl Work for Scan {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        if self.positions[slot].paging_state.is_none() {
            let Some(number) = self.phase.take() else {
                return Ok(false);
            };
            self.positions[slot] =
                RangePosition::range(number % u64::from(self.plan.ranges), self.plan.ranges);
        }
        let position = &self.positions[slot];
        let bounds = [position.after.to_be_bytes(), position.last.to_be_bytes()];
        let execute = Execute {
            id: self.statement.id.clone(),
            result_metadata_id: self.statement.result_metadata_id.clone(),
            params: QueryParams {
                values: bounds.iter().map(|bound| Value::Bytes(bound)).collect(),
                skip_metadata: true,
                consistency: self.plan.consistency,
                page_size: Some(self.plan.page_rows),
                paging_state: position.paging_state.clone(),
                ..QueryParams::default()
            },
        };
        let frame = request_frame(self.version, i16::try_from(slot)?, Request::Execute(execute));
        encode_request(out, &frame, None)?;
        Ok(true)
    }

    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String> {
        let position = &mut self.positions[slot];
        position.paging_state = None;
        match response {
            Response::Result(ResultBody::Rows(rows)) => position.advance(&self.plan.dataset, &rows),
            other => Err(wrong_answer("SELECT", &other)),
        }
    }
}

impl RangePosition {
    /// The position at the start of range `index`, of `count` ranges that cover the ring.
    fn range(index: u64, count: u32) -> Self {
        let after = bound(index, count);
        Self {
            after,
            last: bound(index + 1, count),
            seen: after,
            paging_state: None,
        }
    }

    /// Checks a page and stores the position of the next one. The lower bound of the range does not change: servers tie the paging state
    /// to the statement and its values.
    fn advance(&mut self, dataset: &Dataset, rows: &Rows) -> Result<u64, String> {
        for row in rows.rows() {
            self.seen = check_row(dataset, &row, self.seen, self.last)?;
        }
        self.paging_state.clone_from(&rows.metadata.paging_state);
        Ok(rows.row_count as u64)
    }
}

/// The last token of the range before `index`. The ends of the ring are those of `i64`.
fn bound(index: u64, count: u32) -> i64 {
    let offset = (u128::from(u64::MAX) * u128::from(index)) / u128::from(count);
    let from_start = u64::try_from(offset).unwrap_or(u64::MAX);
    i64::MIN.wrapping_add_unsigned(from_start)
}

/// Checks one row of a page; returns its token.
fn check_row(dataset: &Dataset, row: &[Option<&[u8]>], before: i64, last: i64) -> Result<i64, String> {
    let [Some(token), Some(key), values @ ..] = row else {
        return Err("a row of a scan has no token or no key".to_owned());
    };
    let token = <[u8; 8]>::try_from(*token).map(i64::from_be_bytes);
    let token = token.map_err(|_| "a token is not a bigint: use Murmur3Partitioner".to_owned())?;
    if token <= before || token > last {
        return Err(format!(
            "token {token} came after {before} in a range that ends at {last}"
        ));
    }
    let number = dataset
        .row_of(key)
        .ok_or_else(|| "a key that was never written came back".to_owned())?;
    if values.len() != COLUMN_COUNT {
        return Err(format!("row {number}: {} columns came back", values.len()));
    }
    check_values(dataset, number, values.iter().copied())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_cover_the_ring_without_gaps() {
        for count in [1, 2, 3, 64, 1000] {
            let ranges: Vec<_> = (0..u64::from(count))
                .map(|index| RangePosition::range(index, count))
                .collect();
            assert_eq!(ranges[0].after, i64::MIN);
            assert_eq!(ranges[ranges.len() - 1].last, i64::MAX);
            assert!(ranges.windows(2).all(|pair| pair[0].last == pair[1].after));
            assert!(ranges.iter().all(|range| range.after < range.last));
        }
    }

    #[test]
    fn rows_out_of_order_out_of_range_or_unknown_are_errors() {
        let dataset = Dataset::new(1, 8);
        let key = dataset.key(3);
        let other_key = dataset.key(4);
        let values: Vec<_> = (0..COLUMN_COUNT)
            .map(|column| {
                let mut value = [0; 8];
                dataset.fill(3, column, &mut value);
                value
            })
            .collect();
        let token = 5i64.to_be_bytes();
        let row = |key| {
            let mut row: Vec<Option<&[u8]>> = vec![Some(&token), Some(key)];
            row.extend(values.iter().map(|value| Some(&value[..])));
            row
        };
        assert_eq!(check_row(&dataset, &row(&key), 4, 5), Ok(5));
        assert!(
            check_row(&dataset, &row(&key), 5, 9).is_err(),
            "the token before came again"
        );
        assert!(check_row(&dataset, &row(&key), 1, 4).is_err(), "beyond the range");
        assert!(
            check_row(&dataset, &row(&other_key), 4, 5).is_err(),
            "another row's values"
        );
        assert!(check_row(&dataset, &row(b"stranger"), 4, 5).is_err());
        assert!(
            check_row(&dataset, &row(&key)[..4], 4, 5).is_err(),
            "columns are missing"
        );
    }
}
