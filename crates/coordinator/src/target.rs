//! [`Target`]: what a read of partitions selects, in the forms of this process and of messages.

use std::sync::Arc;

use ilion_codec::Error;
use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Decoded, DecoratedKey, Direction, KeyRange, Mutation,
    MutationReader, Partition, Unfiltered,
};
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError};
use crate::command::{Read, Resume};
use crate::filter::NamedFilter;
use crate::open::Span;

/// The selection of a read.
pub(crate) struct Target {
    pub table: Arc<TableSchema>,
    pub filter: ClusteringFilter,
    named: NamedFilter,
    comparator: ClusteringComparator,
}

/// The partitions of an answer.
pub(crate) struct Page {
    pub partitions: Vec<Partition>,
    pub resume: Option<Resume>,
}

impl Target {
    pub fn of(table: &Arc<TableSchema>, filter: &ClusteringFilter) -> Self {
        Self {
            named: NamedFilter::of(filter, table),
            comparator: ClusteringComparator::of(table),
            table: table.clone(),
            filter: filter.clone(),
        }
    }

    /// The read of a span from a position on.
    pub fn read(&self, span: &Span, resume: Option<&Resume>) -> Read {
        let filter = self.named.clone();
        match span {
            Span::Partition(key) => Read::Partition {
                key: key.clone(),
                filter,
                resume: resume.and_then(|resume| match resume {
                    Resume::Within(_, bound) => Some(bound.clone()),
                    Resume::After(_) => None,
                }),
            },
            Span::Range(range) => Read::Range {
                range: range.clone(),
                filter,
                resume: resume.cloned(),
            },
        }
    }

    /// The partitions of an answer to [`Self::read`]. Checks what a wrong answer could break: partitions ascend, lie in the span and
    /// not before the position, and the next page begins behind this one.
    pub fn page(&self, answer: Answer, span: &Span, from: Option<&Resume>) -> Result<Page, ReplicaError> {
        let Answer::Partitions { partitions, resume } = answer else {
            return Err(damaged("partitions were asked for"));
        };
        let partitions = self.decode(MutationReader::new(partitions))?;
        self.check(&partitions, resume.as_ref(), &span.range(), from)?;
        Ok(Page { partitions, resume })
    }

    fn decode(&self, mut mutations: MutationReader) -> Result<Vec<Partition>, ReplicaError> {
        let resolve = |id| (id == self.table.id).then(|| self.table.clone());
        let mut partitions = Vec::new();
        let unread = |error: Error| ReplicaError::Failed(format!("a damaged partition {error}"));
        while let Some(decoded) = mutations.next_mutation(&resolve).map_err(unread)? {
            let Decoded::Mutation(Mutation { key, update, .. }) = decoded else {
                return Err(damaged("partitions are of the table that was asked for"));
            };
            let mut partition = Partition::of(key, update, &self.comparator);
            if self.filter.reversed {
                let forwards = std::mem::take(&mut partition.unfiltereds);
                partition.unfiltereds = forwards.into_iter().rev().map(Unfiltered::reversed).collect();
            }
            partitions.push(partition);
        }
        Ok(partitions)
    }

    fn check(
        &self,
        partitions: &[Partition],
        resume: Option<&Resume>,
        range: &KeyRange,
        from: Option<&Resume>,
    ) -> Result<(), ReplicaError> {
        let keys = || partitions.iter().map(|partition| &partition.head.key);
        if !keys().is_sorted_by(|before, after| before < after) {
            return Err(damaged("partitions ascend"));
        }
        let follows = |key: &DecoratedKey| match from {
            None => true,
            Some(Resume::After(passed)) => key > passed,
            Some(Resume::Within(passed, _)) => key >= passed,
        };
        if !keys().all(|key| range.contains(key) && follows(key)) {
            return Err(damaged("partitions lie in the range that was asked for"));
        }
        let Some(resume) = resume else {
            return Ok(());
        };
        if keys().last() != Some(resume.key()) || !self.gets_on(from, resume) {
            return Err(damaged("a page begins where the last one ended"));
        }
        Ok(())
    }

    /// Whether a page from `from` to `to` is not empty.
    fn gets_on(&self, from: Option<&Resume>, to: &Resume) -> bool {
        let fits = |bound: &Bound| bound.values.len() <= self.comparator.len();
        match (from, to) {
            (_, Resume::Within(_, bound)) if !fits(bound) => false,
            (Some(Resume::Within(one, from)), Resume::Within(other, to)) if one == other => {
                let direction = Direction::of(self.filter.reversed);
                direction.order(self.comparator.compare_bounds(from, to)).is_lt()
            }
            _ => true,
        }
    }
}

fn damaged(rule: &str) -> ReplicaError {
    ReplicaError::Failed(format!("its answer breaks a rule: {rule}"))
}
