//! The rows that an index found, partition by partition, in table order.
//!
//! Many candidates of one partition are split into several groups, so that memory stays bounded. The index gets the row that
//! was read for each candidate, so that it can remove stale entries. Candidates whose rows were not read are not reported.

use std::cmp::Ordering;
use std::collections::VecDeque;

use ilion_index::{Candidate, Candidates, Place, RowPart};
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, KeyRange, ReadError, Row, Slice};

use super::paging::PagePosition;
use crate::restrictions::Search;

/// Most rows in a group.
const GROUP_ROWS_MAX: usize = 256;

/// Rows of one partition that may match.
pub(super) struct CandidateGroup {
    pub key: DecoratedKey,
    pub slices: Vec<Slice>,
    /// True if the whole partition is read, since its static row was found.
    pub is_whole: bool,
}

/// Candidates as groups.
pub(super) struct Groups {
    candidates: Search,
    peeked: Option<Candidate>,
    comparator: ClusteringComparator,
    /// The slices that WHERE selects in each partition.
    slices: Vec<Slice>,
    range: KeyRange,
    /// A partition whose further candidates are skipped.
    done: Option<DecoratedKey>,
    /// The row where the last page ended; `None` once the search is past it.
    resume: Option<(DecoratedKey, Clustering)>,
    /// Candidates of the last group whose rows were not read yet.
    pending: VecDeque<Candidate>,
    /// True if the partition of the last group exists.
    is_found: bool,
    /// True if rows are reported to the index. False if the request has its own clock: an entry is not stale because its row is dead by
    /// that clock.
    is_telling: bool,
}

impl Groups {
    /// Starts at the beginning of a range, or where the last page ended.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn begin(
        mut candidates: Search,
        comparator: ClusteringComparator,
        slices: Vec<Slice>,
        range: KeyRange,
        resume: Option<(&PagePosition, DecoratedKey)>,
        is_telling: bool,
    ) -> Result<Self, ReadError> {
        let (mut done, mut after) = (None, None);
        match resume {
            None => {
                if let Some(place) = Place::first_of(&range.start) {
                    candidates.seek(&place)?;
                }
            }
            Some((position, key)) => {
                candidates.seek(&Place::start_of(key.clone()))?;
                match &position.clustering {
                    None => done = Some(key),
                    Some(clustering) => after = Some((key, clustering.clone())),
                }
            }
        }
        Ok(Self {
            candidates,
            peeked: None,
            comparator,
            slices,
            range,
            done,
            resume: after,
            pending: VecDeque::new(),
            is_found: false,
            is_telling,
        })
    }

    /// The next group.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn next(&mut self) -> Result<Option<CandidateGroup>, ReadError> {
        self.pending.clear();
        self.is_found = false;
        while let Some(candidate) = self.take()? {
            let key = candidate.place.key.clone();
            if self.range.end.compare(&key) == Ordering::Less {
                return Ok(None);
            }
            if self.done.as_ref() == Some(&key) || !self.range.contains(&key) {
                continue;
            }
            if candidate.place.row == RowPart::Static {
                self.done = Some(key.clone());
                let slices = self.slices_left(&key);
                self.pending.push_back(candidate);
                return Ok(Some(CandidateGroup {
                    key,
                    slices,
                    is_whole: true,
                }));
            }
            if let Some(group) = self.rows_from(candidate)? {
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    /// Skips the rest of a partition.
    pub fn skip(&mut self, key: &DecoratedKey) {
        self.done = Some(key.clone());
    }

    /// Reports that the partition exists and has this static row.
    pub fn met_partition(&mut self, static_row: Option<&Row>) {
        self.is_found = true;
        if let Some(candidate) = self
            .pending
            .pop_front_if(|candidate| candidate.place.row == RowPart::Static)
        {
            self.tell(&candidate, static_row);
        }
    }

    /// Reports that the group's read has no more partitions. If it found no partition at all, no candidate of the group exists.
    pub fn met_no_more_partitions(&mut self) {
        if !self.is_found {
            self.met_end();
        }
    }

    /// Reports a row that was read. Pending candidates before it do not exist.
    pub fn met_row(&mut self, row: &Row) {
        while let Some(candidate) = self.pending.pop_front() {
            let RowPart::Row(clustering) = &candidate.place.row else {
                continue;
            };
            match self.comparator.compare(clustering, &row.clustering) {
                Ordering::Less => self.tell(&candidate, None),
                Ordering::Equal => return self.tell(&candidate, Some(row)),
                Ordering::Greater => return self.pending.push_front(candidate),
            }
        }
    }

    /// Reports the end of the partition. Candidates that are still pending do not exist.
    pub fn met_end(&mut self) {
        while let Some(candidate) = self.pending.pop_front() {
            self.tell(&candidate, None);
        }
    }

    fn tell(&mut self, candidate: &Candidate, row: Option<&Row>) {
        if self.is_telling {
            self.candidates.met(candidate, row);
        }
    }

    fn take(&mut self) -> Result<Option<Candidate>, ReadError> {
        match self.peeked.take() {
            Some(candidate) => Ok(Some(candidate)),
            None => self.candidates.next(),
        }
    }

    /// A group of this candidate and later ones of the same partition; `None` if WHERE selects none of them, or after a seek past the row
    /// where the last page ended.
    fn rows_from(&mut self, first: Candidate) -> Result<Option<CandidateGroup>, ReadError> {
        let key = first.place.key.clone();
        if let Some((resumed, clustering)) = self.resume.take_if(|(resumed, _)| *resumed == key) {
            self.peeked = Some(first);
            self.pass(Place {
                key: resumed,
                row: RowPart::Row(clustering),
            })?;
            return Ok(None);
        }
        let mut slices = Vec::new();
        let mut next = Some(first);
        while let Some(candidate) = next {
            let RowPart::Row(clustering) = &candidate.place.row else {
                self.peeked = Some(candidate);
                break;
            };
            if candidate.place.key != key || slices.len() == GROUP_ROWS_MAX {
                self.peeked = Some(candidate);
                break;
            }
            let is_wanted = |slice: &Slice| slice.contains(&self.comparator, clustering);
            if self.slices.iter().any(is_wanted) {
                slices.push(Slice::exactly(clustering));
                self.pending.push_back(candidate);
            }
            next = self.candidates.next()?;
        }
        Ok((!slices.is_empty()).then_some(CandidateGroup {
            key,
            slices,
            is_whole: false,
        }))
    }

    /// Seeks to just after a row that an earlier page returned.
    fn pass(&mut self, place: Place) -> Result<(), ReadError> {
        let is_after = |candidate: &Candidate| candidate.place.compare(&place, &self.comparator).is_gt();
        if self.peeked.as_ref().is_some_and(is_after) {
            return Ok(());
        }
        self.peeked = None;
        self.candidates.seek(&place)?;
        self.peeked = self
            .candidates
            .next()?
            .filter(|candidate| candidate.place != place);
        Ok(())
    }

    fn slices_left(&mut self, key: &DecoratedKey) -> Vec<Slice> {
        match self.resume.take_if(|(resumed, _)| resumed == key) {
            None => self.slices.clone(),
            Some((_, after)) => super::segments::slices_after(&self.comparator, &self.slices, false, &after),
        }
    }
}
