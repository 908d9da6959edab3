//! [`RemoteStream`]: the partitions of one part of a read, page by page from another node.
//!
//! The second page is asked for when it is wanted, since most reads need only one. Once there is a third page, one page is asked for
//! ahead of what is read.

use std::collections::VecDeque;

use ilion_cluster::Node;
use ilion_engine::TabletPosition;
use ilion_rows::{DecoratedKey, Partition, PartitionHead, ReadError, Unfiltered};

use crate::answer::ReplicaError;
use crate::client::Pending;
use crate::command::{PageSize, Resume};
use crate::membership::Versions;
use crate::open::Span;
use crate::race::Sent;
use crate::reads::Reads;
use crate::route::{Failures, SubRange};
use crate::target::Target;

/// Pages grow by this factor.
const GROWTH: u32 = 4;

/// Why a stream ended early.
pub(crate) enum Broken {
    /// Its replica did not answer: go on with another one.
    Lost(ReplicaError),
    /// The statement fails.
    Failed(ReadError),
}

impl From<ReadError> for Broken {
    fn from(error: ReadError) -> Self {
        Self::Failed(error)
    }
}

/// A part of a read that another node answers.
pub(crate) struct RemoteStream {
    pub node: Node,
    span: Span,
    /// The tablets of the span.
    tablets: std::ops::Range<u32>,
    /// What the part was planned for.
    pub versions: Versions,
    /// Where the next page begins.
    resume: Option<Resume>,
    /// True if there is no next page.
    is_last: bool,
    /// The answer that was asked for.
    pending: Option<Sent>,
    /// The records that the replica must have applied; `None` before the first command.
    applied: Option<Vec<TabletPosition>>,
    page_size: PageSize,
    pages: u32,
    partitions: VecDeque<Partition>,
    /// The partition that is being read.
    current: Option<DecoratedKey>,
    unfiltereds: VecDeque<Unfiltered>,
}

impl RemoteStream {
    /// A stream that begins where an earlier one ended. Within a partition, it stands in that partition.
    pub fn new(part: SubRange, span: Span, resume: Option<Resume>, page_first: PageSize) -> Self {
        let current = match &resume {
            Some(Resume::Within(key, _)) => Some(key.clone()),
            _ => None,
        };
        Self {
            node: part.node,
            span,
            tablets: part.tablets,
            versions: part.versions,
            resume,
            is_last: false,
            pending: None,
            applied: None,
            page_size: page_first,
            pages: 0,
            partitions: VecDeque::new(),
            current,
            unfiltereds: VecDeque::new(),
        }
    }

    /// The part of the span that was not received yet: the span, and the position where it begins.
    pub fn into_rest(self) -> (Span, Option<Resume>) {
        (self.span, self.resume)
    }

    /// Asks for the next page, unless that was done or there is none.
    pub fn ask(&mut self, reads: &Reads, target: &Target) -> Result<(), ReadError> {
        if self.pending.is_some() || self.is_last {
            return Ok(());
        }
        let applied = match &self.applied {
            Some(applied) => applied.clone(),
            None => {
                let applied = reads.barrier(&target.table, self.tablets.clone())?;
                self.applied.insert(applied).clone()
            }
        };
        let read = target.read(&self.span, self.resume.as_ref());
        let pending = reads.send(self.node, target.table.id, applied, self.page_size, read);
        let sent_nanos = reads.now_nanos();
        self.pending = Some(Sent { pending, sent_nanos });
        Ok(())
    }

    /// Asks another replica of all tablets of the span for the page that this one is slow with.
    fn ask_another(&self, reads: &Reads, target: &Target) -> Option<(Node, Box<dyn Pending>)> {
        let slow = Failures::from([(self.node, ReplicaError::TimedOut)]);
        let tablets = self.tablets.clone();
        let other = reads.choose(&target.table, &slow, |chooser| Ok(chooser.another(tablets)));
        let other = other.ok().flatten()?;
        let read = target.read(&self.span, self.resume.as_ref());
        let applied = self.applied.clone().unwrap_or_default();
        Some((
            other,
            reads.send(other, target.table.id, applied, self.page_size, read),
        ))
    }

    /// Asks for the first page, to have it when this stream is reached.
    pub fn ask_ahead(&mut self, reads: &Reads, target: &Target) -> Result<(), ReadError> {
        match self.pages {
            0 => self.ask(reads, target),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, reads: &Reads, target: &Target) -> Result<(), Broken> {
        self.ask(reads, target)?;
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let won = reads.race(&target.table, pending, || self.ask_another(reads, target))?;
        let answer = won.answer.map_err(Broken::Lost)?;
        if let Some(faster) = won.by_second {
            // The first replica is slow, so the faster one gets the requests for the next pages, too.
            self.node = faster;
        }
        let page = target
            .page(answer, &self.span, self.resume.as_ref())
            .map_err(Broken::Lost)?;
        self.partitions.extend(page.partitions);
        self.is_last = match &page.resume {
            None => true,
            Some(Resume::After(_)) => matches!(self.span, Span::Partition(_)),
            Some(Resume::Within(..)) => false,
        };
        if page.resume.is_some() {
            self.resume = page.resume;
        }
        self.pages += 1;
        let max = reads.shared.options.page_max;
        self.page_size = PageSize {
            rows: self.page_size.rows.saturating_mul(GROWTH).min(max.rows),
            bytes: self.page_size.bytes.saturating_mul(GROWTH).min(max.bytes),
        };
        if self.pages > 1 {
            self.ask(reads, target)?;
        }
        Ok(())
    }

    /// True if the rest of the current partition is on the next page.
    fn is_cut(&self) -> bool {
        let is_within = |key| matches!(&self.resume, Some(Resume::Within(cut, _)) if cut == key);
        !self.is_last && self.partitions.is_empty() && self.current.as_ref().is_some_and(is_within)
    }

    /// The next partition; skips the rest of the current one.
    pub fn next_partition(
        &mut self,
        reads: &Reads,
        target: &Target,
    ) -> Result<Option<PartitionHead>, Broken> {
        self.unfiltereds.clear();
        if self.is_cut() {
            self.pending = None;
            self.resume = self.current.take().map(Resume::After);
            self.is_last = matches!(self.span, Span::Partition(_));
        }
        self.current = None;
        loop {
            if let Some(partition) = self.partitions.pop_front() {
                self.current = Some(partition.head.key.clone());
                self.unfiltereds = partition.unfiltereds.into();
                return Ok(Some(partition.head));
            }
            if self.is_last {
                return Ok(None);
            }
            self.receive(reads, target)?;
        }
    }

    /// The next row or marker of the current partition.
    pub fn next_unfiltered(&mut self, reads: &Reads, target: &Target) -> Result<Option<Unfiltered>, Broken> {
        loop {
            if let Some(unfiltered) = self.unfiltereds.pop_front() {
                return Ok(Some(unfiltered));
            }
            if !self.is_cut() {
                return Ok(None);
            }
            self.receive(reads, target)?;
            let goes_on = |partition: &mut Partition| Some(&partition.head.key) == self.current.as_ref();
            if let Some(partition) = self.partitions.pop_front_if(goes_on) {
                self.unfiltereds = partition.unfiltereds.into();
            }
        }
    }
}
