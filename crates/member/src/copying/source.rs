//! The node that others copy tablets from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Sender as Channel, bounded};
use ilion_cluster::Tablets;
use ilion_engine::{HeldTable, Slice, SliceRanges};
use ilion_replica::CopiedState;
use ilion_rows::{KeyBound, KeyRange};
use ilion_types::Token;

use crate::copying::message::{CopyMessage, CopyRequest};
use crate::shared::{Shared, nanos};
use crate::waiting::receive_until;

/// How long a request waits until this node has saved what the copy needs.
const SAVED_WITHIN: Duration = Duration::from_secs(120);
/// Bytes of a file in one part.
const PIECE_BYTES: u64 = 256 << 10;

/// A request that waits for the follower, which saves and then answers with the saved state.
pub(crate) struct Asked {
    pub request: CopyRequest,
    pub reply: Channel<Result<CopiedState, String>>,
    /// The request waits until this time.
    pub ends_nanos: u64,
}

/// The parts of a copy, as [`crate::MemberClient::copy`] returns them. They are made as they are taken.
pub struct CopyParts {
    tables: VecDeque<HeldTable>,
    slices: SliceRanges,
    first: Option<CopyMessage>,
    current: Option<Sending>,
    is_over: bool,
}

/// An SSTable that is being sent.
struct Sending {
    slice: Slice,
    sizes: Vec<u64>,
    /// Component and offset of the next bytes.
    component: usize,
    offset: u64,
}

/// Answers another node's request to copy tablets. `Err` says why this node cannot give them.
pub(crate) fn serve(shared: &Arc<Shared>, request: &Bytes) -> Result<CopyParts, String> {
    let request = CopyRequest::decode(request).map_err(|error| error.to_string())?;
    let (state, tablets) = shared.know(|known| (known.state.clone(), known.topology.is_some()));
    let Some(ring) = state.filter(|_| tablets).map(|state| state.tablets) else {
        return Err("this node does not know its cluster yet".to_owned());
    };
    if request.tablets.iter().any(|(tablet, _)| *tablet >= ring.count()) {
        return Err(format!("the ring has {} tablets", ring.count()));
    }
    let (reply, answer) = bounded(1);
    let ends_nanos = shared.now_nanos().saturating_add(nanos(SAVED_WITHIN));
    shared.copies.lock().push(Asked {
        request,
        reply,
        ends_nanos,
    });
    if let Some(reason) = shared.know(|known| known.halted.clone()) {
        shared.copies.lock().clear();
        return Err(reason);
    }
    let saved = receive_until(shared, &answer, ends_nanos)
        .map_err(|_| "this node ended, or could not save what it has in time".to_owned())??;
    let given = saved.ends().map(|(tablet, _)| tablet).collect();
    // These SSTables have all that is saved, and maybe more.
    let tables = shared.engine.hold_tables().into();
    Ok(CopyParts {
        tables,
        slices: slices_of(&given, ring),
        first: Some(CopyMessage::State(saved.encode().into())),
        current: None,
        is_over: false,
    })
}

/// The partitions of tablets.
pub(crate) fn slices_of(tablets: &BTreeSet<u32>, ring: Tablets) -> SliceRanges {
    let end_of = |tablet: u32| match tablet + 1 == ring.count() {
        true => KeyBound::End,
        false => KeyBound::AfterToken(Token::Murmur3(ring.end(tablet))),
    };
    let mut ranges: Vec<KeyRange> = Vec::new();
    for tablet in tablets {
        let start = match tablet.checked_sub(1) {
            None => KeyBound::Start,
            Some(before) => end_of(before),
        };
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end_of(*tablet),
            _ => ranges.push(KeyRange {
                start,
                end: end_of(*tablet),
            }),
        }
    }
    SliceRanges {
        tablets: tablets.clone(),
        ranges,
        of_tablets: ring.count(),
    }
}

impl CopyParts {
    fn next_part(&mut self) -> Result<Option<CopyMessage>, String> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        loop {
            if let Some(sending) = &mut self.current {
                if let Some(piece) = sending.next_piece()? {
                    return Ok(Some(piece));
                }
                self.current = None;
            }
            let Some(table) = self.tables.pop_front() else {
                return Ok((!std::mem::replace(&mut self.is_over, true)).then_some(CopyMessage::End));
            };
            let slice = table
                .write_slice(&self.slices)
                .map_err(|error| error.to_string())?;
            if let Some(slice) = slice {
                let components: Vec<(String, u64)> = slice.components().collect();
                let begins = CopyMessage::SSTable {
                    table: table.id(),
                    name: slice.name(),
                    components: components.clone(),
                };
                self.current = Some(Sending {
                    slice,
                    sizes: components.into_iter().map(|(_, bytes)| bytes).collect(),
                    component: 0,
                    offset: 0,
                });
                return Ok(Some(begins));
            }
        }
    }
}

impl Sending {
    fn next_piece(&mut self) -> Result<Option<CopyMessage>, String> {
        let Some(size) = self.sizes.get(self.component).copied() else {
            return Ok(None);
        };
        let length = size.saturating_sub(self.offset).min(PIECE_BYTES);
        let (component, offset) = (self.component, self.offset);
        let bytes = self
            .slice
            .read(component, offset, length as usize)
            .map_err(|error| error.to_string())?;
        self.offset += length;
        // An empty component is one empty piece.
        if self.offset >= size {
            (self.component, self.offset) = (component + 1, 0);
        }
        let number = u16::try_from(component).map_err(|_| "an SSTable with too many components")?;
        Ok(Some(CopyMessage::piece(number, offset, bytes)))
    }
}

impl Iterator for CopyParts {
    type Item = Result<Bytes, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.next_part();
        if part.is_err() {
            (self.is_over, self.current) = (true, None);
            self.tables.clear();
        }
        part.map(|part| part.map(|part| part.encode())).transpose()
    }
}

/// Decides what is done with a request now, and leaves out tablets that this node does not have; the error says why it cannot be answered.
/// Pure.
pub(crate) fn judge(
    request: &mut CopyRequest,
    schema_epoch: u64,
    ends: &BTreeMap<u32, u64>,
) -> Result<Judged, String> {
    if request.schema_epoch != schema_epoch {
        return Err(format!(
            "this node has schema {schema_epoch}, the other one {}",
            request.schema_epoch
        ));
    }
    request.tablets.retain(|(tablet, _)| ends.contains_key(tablet));
    if request.tablets.is_empty() {
        return Err("this node has none of these tablets".to_owned());
    }
    let has = |(tablet, needed): &(u32, u64)| ends.get(tablet).is_some_and(|end| end >= needed);
    Ok(match request.tablets.iter().all(has) {
        true => Judged::Save,
        false => Judged::Wait,
    })
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// This node has all that is wanted.
    Save,
    /// It has not applied all of it yet.
    Wait,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablets_beside_each_other_are_one_range() {
        let ring = Tablets::new(4).unwrap();
        let of = |tablets: &[u32]| slices_of(&tablets.iter().copied().collect(), ring).ranges;
        assert_eq!(of(&[0, 1, 2, 3]), [KeyRange::all()]);
        let middle = of(&[1, 2]);
        assert_eq!(middle.len(), 1);
        assert_eq!(middle[0].start, KeyBound::AfterToken(Token::Murmur3(ring.end(0))));
        assert_eq!(middle[0].end, KeyBound::AfterToken(Token::Murmur3(ring.end(2))));
        assert_eq!(of(&[0, 3]).len(), 2);
    }

    #[test]
    fn a_request_waits_until_the_node_has_what_is_needed() {
        let request = |needed| CopyRequest {
            schema_epoch: 3,
            tablets: vec![(1, needed)],
        };
        let ends = BTreeMap::from([(1, 10)]);
        assert_eq!(judge(&mut request(10), 3, &ends), Ok(Judged::Save));
        assert_eq!(judge(&mut request(11), 3, &ends), Ok(Judged::Wait));
        assert!(judge(&mut request(0), 4, &ends).unwrap_err().contains("schema 4"));
        assert!(judge(&mut request(0), 3, &BTreeMap::new()).is_err());
    }

    #[test]
    fn a_node_gives_those_tablets_that_it_has() {
        let mut request = CopyRequest {
            schema_epoch: 3,
            tablets: vec![(1, 0), (2, 20), (3, 0)],
        };
        let ends = BTreeMap::from([(1, 10), (3, 5), (4, 6)]);
        assert_eq!(judge(&mut request, 3, &ends), Ok(Judged::Save));
        assert_eq!(request.tablets, [(1, 0), (3, 0)]);
    }
}
