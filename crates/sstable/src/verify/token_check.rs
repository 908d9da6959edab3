//! Compares Tokens.db with the partitions.

use std::path::PathBuf;

use ilion_env::Env;
use ilion_rows::DecoratedKey;

use super::opened::Opened;
use super::verification::Verification;
use crate::tokens::{Candidates, TokenMap, fingerprint_of};
use crate::{Component, Result};

/// Checks that the token map has exactly the partitions, at their positions.
pub(super) struct TokenMapCheck {
    map: TokenMap,
    path: PathBuf,
    partitions: u64,
    ends: Option<(DecoratedKey, DecoratedKey)>,
}

impl TokenMapCheck {
    /// Opens the token map; `None` if there is none, or it cannot be read.
    pub(super) fn open(
        env: &dyn Env,
        opened: &Opened,
        verification: &mut Verification,
    ) -> Result<Option<Self>> {
        let stats = &opened.statistics.stats;
        let map = TokenMap::open(
            env,
            &opened.descriptor,
            opened.partitioner,
            fingerprint_of(stats),
            opened.data.stored_length(),
        );
        let map = verification.findings.take(map)?.flatten();
        Ok(map.map(|map| Self {
            map,
            path: opened.descriptor.path(&Component::Tokens),
            partitions: 0,
            ends: None,
        }))
    }

    /// Checks the partition at `start` of Data.db. `has_row_index` is `None` if the index cannot be read.
    pub(super) fn partition(
        &mut self,
        start: u64,
        key: &DecoratedKey,
        has_row_index: Option<bool>,
        verification: &mut Verification,
    ) -> Result<()> {
        let index = self.partitions;
        self.partitions += 1;
        match &mut self.ends {
            Some((_, last)) => *last = key.clone(),
            None => self.ends = Some((key.clone(), key.clone())),
        }
        if index >= self.map.partition_count() {
            return Ok(());
        }
        let mapped = verification.findings.take(self.map.partition(index))?;
        let found = verification.findings.take(self.map.candidates(&key.token))?;
        let is_there = mapped.is_none_or(|mapped| {
            mapped.position == start
                && has_row_index.is_none_or(|has_row_index| mapped.row_index.is_some() == has_row_index)
        });
        let is_found = match found {
            Some(Candidates::These(range)) => range.contains(&index),
            Some(Candidates::TooMany) | None => true,
        };
        if !is_there || !is_found {
            let expected = format!("the partition at byte {start} of Data.db as partition {index}");
            verification.findings.add(&self.path, 0, expected);
        }
        Ok(())
    }

    pub(super) fn finish(self, verification: &mut Verification) {
        if self.partitions != self.map.partition_count() {
            let expected = format!("{} partitions, as Data.db has", self.partitions);
            verification.findings.add(&self.path, 0, expected);
        }
        let ends = (self.map.first, self.map.last);
        if self.ends.is_some_and(|found| found != ends) {
            let expected = "the keys of the first and the last partition of Data.db";
            verification.findings.add(&self.path, 0, expected);
        }
    }
}
