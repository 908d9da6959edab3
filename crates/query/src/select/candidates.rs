//! Rows that an index found, partition by partition, in table order.
//!
//! Many candidates of one partition come in several groups, so that memory stays bounded. What was read for a candidate is told
//! to the index, which removes entries that are stale; rows that nobody read are not told.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytes::Bytes;
use ilion_index::{Candidate, Candidates, Place, RowPart};
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, KeyBound, KeyRange, ReadError, Row, Slice};

use super::paging::Position;
use crate::restrictions::Search;

/// Most rows of a group.
const GROUP_ROWS_MAX: usize = 256;

/// Rows of one partition that may match.
pub(super) struct Group {
    pub key: DecoratedKey,
    pub slices: Vec<Slice>,
    /// The partition as a whole, since its static row was found.
    pub is_whole: bool,
}

/// Candidates as groups.
pub(super) struct Groups {
    candidates: Search,
    peeked: Option<Candidate>,
    comparator: ClusteringComparator,
    /// What WHERE wants of each partition.
    slices: Vec<Slice>,
    range: KeyRange,
    /// The partition of which nothing more is wanted.
    done: Option<DecoratedKey>,
    /// Where a page ended, until it is passed.
    resume: Option<(DecoratedKey, Clustering)>,
    /// Candidates of the last group whose rows were not met yet.
    pending: VecDeque<Candidate>,
    /// The partition of the last group was met.
    is_found: bool,
    /// Whether the clock of the read is ours, so that what it saw dead is dead.
    is_telling: bool,
}

impl Groups {
    /// Begins at the start of a range, or where a page ended.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn begin(
        mut candidates: Search,
        comparator: ClusteringComparator,
        slices: Vec<Slice>,
        range: KeyRange,
        resume: Option<(&Position, DecoratedKey)>,
        is_telling: bool,
    ) -> Result<Self, ReadError> {
        let (mut done, mut after) = (None, None);
        match resume {
            None => {
                if let Some(place) = first_place(&range.start) {
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
    pub fn next(&mut self) -> Result<Option<Group>, ReadError> {
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
                return Ok(Some(Group {
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

    /// Nothing more is wanted of a partition.
    pub fn skip(&mut self, key: &DecoratedKey) {
        self.done = Some(key.clone());
    }

    /// The partition was found, with this static row.
    pub fn met_partition(&mut self, static_row: Option<&Row>) {
        self.is_found = true;
        if let Some(candidate) = self
            .pending
            .pop_front_if(|candidate| candidate.place.row == RowPart::Static)
        {
            self.tell(&candidate, static_row);
        }
    }

    /// The read of the group gives no other partition: if it gave none at all, none of the candidates is there.
    pub fn met_no_more_partitions(&mut self) {
        if !self.is_found {
            self.met_end();
        }
    }

    /// A row was read; those before it are not there.
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

    /// The partition was read to its end.
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

    /// The candidate and those after it in the same partition, if WHERE wants any of them.
    fn rows_from(&mut self, first: Candidate) -> Result<Option<Group>, ReadError> {
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
        Ok((!slices.is_empty()).then_some(Group {
            key,
            slices,
            is_whole: false,
        }))
    }

    /// Goes on just after a row that an earlier page has given.
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

/// Where a range of partitions begins.
fn first_place(start: &KeyBound) -> Option<Place> {
    let of_token = |token: &ilion_types::Token| DecoratedKey {
        token: token.clone(),
        key: Bytes::new(),
    };
    Some(Place::start_of(match start {
        KeyBound::Start | KeyBound::End => return None,
        KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => of_token(token),
        KeyBound::Before(key) | KeyBound::After(key) => key.clone(),
    }))
}
