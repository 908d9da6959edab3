//! Compares Filter.db and Summary.db with the keys.

use ilion_env::Env;

use super::opened::Opened;
use super::verification::Verification;
use crate::reader::SummaryCheck;
use crate::{BloomFilter, Component, Error, KeyHash, Result, read_component};

/// Checks that Filter.db has exactly the bits of the keys.
pub(super) struct FilterCheck {
    stored: BloomFilter,
    /// A filter that is built again from the keys.
    made: BloomFilter,
    path: std::path::PathBuf,
}

impl FilterCheck {
    /// Opens the filter; `None` if there is none, or it cannot be read.
    pub(super) fn open(
        env: &dyn Env,
        opened: &Opened,
        verification: &mut Verification,
    ) -> Result<Option<Self>> {
        let path = opened.descriptor.path(&Component::Filter);
        let Some(bytes) = read_component(env, &opened.descriptor, &Component::Filter)? else {
            return Ok(None);
        };
        let decoded = BloomFilter::decode(&bytes, opened.version());
        let decoded = decoded.map_err(|error| Error::in_file(&path, 0, &error));
        let stored = verification.findings.take(decoded)?;
        Ok(stored.map(|stored| Self {
            made: stored.emptied(),
            stored,
            path,
        }))
    }

    pub(super) fn key(&mut self, position: u64, key: &[u8], verification: &mut Verification) {
        let hash = KeyHash::of(key);
        self.made.add(hash);
        if !self.stored.may_contain(hash) {
            let expected = format!("the bits of the key of the partition at byte {position} of Data.db");
            verification.findings.add(&self.path, 0, expected);
        }
    }

    pub(super) fn finish(self, verification: &mut Verification) {
        if let Some(offset) = self.stored.first_surplus(&self.made) {
            verification
                .findings
                .add(&self.path, offset, "no bits but those of the keys in Data.db");
        }
    }
}

/// Opens Summary.db, to check that its samples are entries of Index.db.
pub(super) fn open_summary(
    env: &dyn Env,
    opened: &Opened,
    verification: &mut Verification,
) -> Result<Option<SummaryCheck>> {
    let path = opened.descriptor.path(&Component::Summary);
    let Some(bytes) = read_component(env, &opened.descriptor, &Component::Summary)? else {
        verification
            .unchecked
            .push("Summary.db, which is missing and is built again when needed".to_owned());
        return Ok(None);
    };
    verification.findings.take(SummaryCheck::new(&bytes, &path))
}
