//! Unions and intersections of sorted candidates.
//!
//! A candidate for a static row stands for every row of its partition. So the intersection of `static = 1` and `regular = 2`
//! returns the rows of the second that lie in partitions of the first.

use std::cmp::Ordering;
use std::collections::VecDeque;

use ilion_rows::{ClusteringComparator, ReadError, Row};

use crate::{Candidate, Candidates, Place, RowPart};

/// Number of candidates whose input is remembered for [`Candidates::met`].
const GIVEN_KEPT: usize = 1024;

/// An input and its next candidate.
struct Input {
    candidates: Box<dyn Candidates>,
    head: Head,
}

#[expect(
    clippy::large_enum_variant,
    reason = "an input has one head; a box would be an allocation a candidate"
)]
enum Head {
    Unread,
    Is(Candidate),
    End,
}

impl Input {
    fn new(candidates: Box<dyn Candidates>) -> Self {
        Self {
            candidates,
            head: Head::Unread,
        }
    }

    fn head(&mut self) -> Result<Option<&Candidate>, ReadError> {
        if matches!(self.head, Head::Unread) {
            self.head = self.candidates.next()?.map_or(Head::End, Head::Is);
        }
        Ok(match &self.head {
            Head::Is(candidate) => Some(candidate),
            _ => None,
        })
    }

    /// Takes the head if it has this place.
    fn take_at(&mut self, place: &Place, comparator: &ClusteringComparator) -> Option<Candidate> {
        match std::mem::replace(&mut self.head, Head::Unread) {
            Head::Is(candidate) if candidate.place.compare(place, comparator) == Ordering::Equal => {
                Some(candidate)
            }
            other => {
                self.head = other;
                None
            }
        }
    }

    /// Moves the head to the first candidate at `place` or after it.
    fn advance_to(&mut self, place: &Place, comparator: &ClusteringComparator) -> Result<(), ReadError> {
        let is_before = match &self.head {
            Head::Unread => true,
            Head::Is(head) => head.place.compare(place, comparator) == Ordering::Less,
            Head::End => false,
        };
        if is_before {
            self.candidates.seek(place)?;
            self.head = Head::Unread;
        }
        Ok(())
    }
}

/// Candidates for which `met` may still be called, each with the number of its input.
#[derive(Default)]
struct Given(VecDeque<(Candidate, usize)>);

impl Given {
    fn remember(&mut self, candidate: &Candidate, input: usize) {
        if candidate.entry.is_none() {
            return;
        }
        if self.0.len() == GIVEN_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((candidate.clone(), input));
    }

    fn input_of(&mut self, candidate: &Candidate) -> Option<usize> {
        let at = self.0.iter().position(|(given, _)| given == candidate)?;
        self.0.remove(at).map(|(_, input)| input)
    }
}

/// Inputs of a union or intersection.
struct Inputs {
    inputs: Vec<Input>,
    comparator: ClusteringComparator,
    given: Given,
}

impl Inputs {
    fn of(inputs: Vec<Box<dyn Candidates>>, comparator: ClusteringComparator) -> Self {
        Self {
            inputs: inputs.into_iter().map(Input::new).collect(),
            comparator,
            given: Given::default(),
        }
    }

    /// Takes the candidates of this place from all inputs; returns the first.
    fn take_at(&mut self, place: &Place) -> Option<Candidate> {
        let mut first = None;
        for (index, input) in self.inputs.iter_mut().enumerate() {
            let taken = input.take_at(place, &self.comparator);
            first = first.or(taken.map(|candidate| (candidate, index)));
        }
        let (candidate, index) = first?;
        self.given.remember(&candidate, index);
        Some(candidate)
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        if let Some(index) = self.given.input_of(candidate) {
            self.inputs[index].candidates.met(candidate, row);
        }
    }
}

/// The candidates of all inputs.
pub struct Union(Inputs);

impl Union {
    /// The union of candidates of one table.
    pub fn of(inputs: Vec<Box<dyn Candidates>>, comparator: ClusteringComparator) -> Self {
        Self(Inputs::of(inputs, comparator))
    }

    fn least(&mut self) -> Result<Option<Place>, ReadError> {
        let mut least: Option<&Place> = None;
        for input in &mut self.0.inputs {
            if let Some(head) = input.head()?
                && least.is_none_or(|place| head.place.compare(place, &self.0.comparator) == Ordering::Less)
            {
                least = Some(&head.place);
            }
        }
        Ok(least.cloned())
    }
}

impl Candidates for Union {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        let Some(place) = self.least()? else {
            return Ok(None);
        };
        Ok(self.0.take_at(&place))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        for input in &mut self.0.inputs {
            input.advance_to(place, &self.0.comparator)?;
        }
        Ok(())
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        self.0.met(candidate, row);
    }
}

/// The candidates that every input has.
pub struct Intersection(Inputs);

/// Whether an input has a candidate that stands for a place.
enum Covering {
    Yes,
    /// No; the next candidate of the input has this place.
    No(Place),
    End,
}

impl Intersection {
    /// The intersection of candidates of one table. Fastest if the input with the fewest candidates comes first.
    pub fn of(inputs: Vec<Box<dyn Candidates>>, comparator: ClusteringComparator) -> Self {
        Self(Inputs::of(inputs, comparator))
    }

    /// The first place at `place` or after it for which every input has a candidate.
    fn agreed(&mut self, mut place: Place) -> Result<Option<Place>, ReadError> {
        'places: loop {
            for input in &mut self.0.inputs {
                match covering(input, &place, &self.0.comparator)? {
                    Covering::Yes => {}
                    Covering::No(next) => {
                        place = next;
                        continue 'places;
                    }
                    Covering::End => return Ok(None),
                }
            }
            return Ok(Some(place));
        }
    }

    /// A lower bound of the next result.
    fn start(&mut self) -> Result<Option<Place>, ReadError> {
        let mut rows = None;
        for input in &mut self.0.inputs {
            let Some(head) = input.head()? else {
                return Ok(None);
            };
            if head.place.row != RowPart::Static {
                return Ok(Some(head.place.clone()));
            }
            rows = rows.or(Some(head.place.clone()));
        }
        Ok(rows)
    }
}

fn covering(
    input: &mut Input,
    place: &Place,
    comparator: &ClusteringComparator,
) -> Result<Covering, ReadError> {
    // A candidate for the static row stands for the whole partition, so it must not be skipped.
    let start = Place::start_of(place.key.clone());
    input.advance_to(&start, comparator)?;
    if input.head()?.is_some_and(|head| head.place == start) {
        return Ok(Covering::Yes);
    }
    input.advance_to(place, comparator)?;
    Ok(match input.head()? {
        None => Covering::End,
        Some(head) if head.place.compare(place, comparator) == Ordering::Equal => Covering::Yes,
        Some(head) => Covering::No(head.place.clone()),
    })
}

impl Candidates for Intersection {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        let Some(start) = self.start()? else {
            return Ok(None);
        };
        let Some(place) = self.agreed(start)? else {
            return Ok(None);
        };
        Ok(self.0.take_at(&place))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        for input in &mut self.0.inputs {
            covering(input, place, &self.0.comparator)?;
        }
        Ok(())
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        self.0.met(candidate, row);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use ilion_rows::{Clustering, DecoratedKey};
    use ilion_schema::ClusteringOrder;
    use ilion_types::{CqlType, Partitioner};
    use proptest::prelude::*;

    use super::*;

    /// A partition and a row of it; `None` is the static row.
    type Spot = (u8, Option<u8>);

    struct Listed(Vec<Spot>);

    fn comparator() -> ClusteringComparator {
        ClusteringComparator::new([(CqlType::TinyInt, ClusteringOrder::Asc)])
    }

    fn place((partition, row): Spot) -> Place {
        Place {
            key: DecoratedKey::new(Partitioner::ByteOrdered, Bytes::from(vec![partition])),
            row: match row {
                None => RowPart::Static,
                Some(row) => RowPart::Row(Clustering::of([Bytes::from(vec![row])])),
            },
        }
    }

    fn spot(place: &Place) -> Spot {
        let row = match &place.row {
            RowPart::Static => None,
            RowPart::Row(clustering) => clustering.values()[0].as_ref().map(|value| value[0]),
        };
        (place.key.key[0], row)
    }

    impl Candidates for Listed {
        fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
            if self.0.is_empty() {
                return Ok(None);
            }
            Ok(Some(Candidate {
                place: place(self.0.remove(0)),
                entry: None,
            }))
        }

        fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
            self.0.retain(|known| *known >= spot(place));
            Ok(())
        }
    }

    fn all(mut candidates: impl Candidates) -> Vec<Spot> {
        let mut found = Vec::new();
        while let Some(candidate) = candidates.next().unwrap() {
            found.push(spot(&candidate.place));
        }
        found
    }

    fn listed(inputs: &[BTreeSet<Spot>]) -> Vec<Box<dyn Candidates>> {
        let boxed = |input: &BTreeSet<Spot>| -> Box<dyn Candidates> {
            Box::new(Listed(input.iter().copied().collect()))
        };
        inputs.iter().map(boxed).collect()
    }

    fn covers(input: &BTreeSet<Spot>, (partition, row): Spot) -> bool {
        input.contains(&(partition, row)) || input.contains(&(partition, None))
    }

    /// An index is of static rows or of other rows.
    fn input() -> impl Strategy<Value = BTreeSet<Spot>> {
        let rows = prop::collection::btree_set((0_u8..6, (0_u8..5).prop_map(Some)), 0..20);
        let statics = prop::collection::btree_set((0_u8..6, Just(None)), 0..5);
        prop_oneof![3 => rows, 1 => statics]
    }

    proptest! {
        #[test]
        fn a_union_gives_each_place_once_in_order(inputs in prop::collection::vec(input(), 0..4)) {
            let expected: BTreeSet<Spot> = inputs.iter().flatten().copied().collect();
            let union = Union::of(listed(&inputs), comparator());
            prop_assert_eq!(all(union), expected.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn an_intersection_gives_what_every_input_stands_for(inputs in prop::collection::vec(input(), 1..4)) {
            let named: BTreeSet<Spot> = inputs.iter().flatten().copied().collect();
            let is_all_static = inputs.iter().all(|input| input.iter().all(|(_, row)| row.is_none()));
            let expected: Vec<Spot> = named
                .into_iter()
                .filter(|spot| inputs.iter().all(|input| covers(input, *spot)))
                .filter(|(_, row)| is_all_static || row.is_some())
                .collect();
            let intersection = Intersection::of(listed(&inputs), comparator());
            prop_assert_eq!(all(intersection), expected);
        }

        #[test]
        fn after_a_seek_come_those_at_the_place_or_later(inputs in prop::collection::vec(input(), 1..4), from in (0_u8..6, (0_u8..5).prop_map(Some))) {
            let mut whole = Intersection::of(listed(&inputs), comparator());
            let mut sought = Intersection::of(listed(&inputs), comparator());
            sought.seek(&place(from)).unwrap();
            let mut later = Vec::new();
            while let Some(candidate) = whole.next().unwrap() {
                let found = spot(&candidate.place);
                if found >= from || (found.1.is_none() && found.0 == from.0) {
                    later.push(found);
                }
            }
            prop_assert_eq!(all(sought), later);
        }
    }
}
