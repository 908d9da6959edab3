//! [`ClusterCursor`]: partitions of all nodes in token order, as one cursor.
//!
//! The cursor cuts the range into parts, and asks one replica for each part. It reads the parts one after the other and plans a part
//! when it gets there, so a read asks for no more parts than it needs. Each part that is read to its end doubles the number of parts that
//! are asked at the same time, since a read that gets few rows from a part needs many parts.
//!
//! If a replica does not answer, the cursor plans the rest of its part again without it, also in the middle of a partition. That replica
//! may be this node, which does not follow a tablet any more.

use std::collections::VecDeque;

use ilion_rows::{
    Cursor, DecoratedKey, KeyRange, PartitionHead, PlainRun, PlainVisitor, ReadError, Unfiltered,
};

use crate::command::Resume;
use crate::open::{Span, open};
use crate::reads::Reads;
use crate::route::{Failures, SubRange};
use crate::stream::{Broken, RemoteStream};
use crate::target::Target;

/// The first part of a read with barriers has at most this many tablets, since each barrier costs a record in the log.
const BARRIERS_FIRST: u32 = 4;
const BARRIERS_MAX: u32 = 64;

/// A part that is read.
enum Stream {
    Local(LocalStream),
    Remote(RemoteStream),
}

/// A part that this node answers from its own data.
struct LocalStream {
    part: SubRange,
    span: Span,
    resume: Option<Resume>,
    /// `None` before the stream is reached.
    cursor: Option<Box<dyn Cursor>>,
    /// The head of the next partition, if the cursor met it instead of the rest of an earlier one.
    ahead: Option<PartitionHead>,
    /// True if the cursor stands in a partition.
    is_within: bool,
    /// True if the cursor has no more partitions.
    is_ended: bool,
}

/// See the module.
pub(crate) struct ClusterCursor {
    reads: Reads,
    target: Target,
    failures: Failures,
    /// The rest of the read, which no stream covers yet.
    rest: Option<Span>,
    streams: VecDeque<Stream>,
    /// Number of streams that are asked at the same time.
    width: usize,
    /// Maximum number of tablets of the next part.
    tablets_max: u32,
}

impl ClusterCursor {
    pub fn new(reads: Reads, target: Target, span: Span) -> Self {
        let tablets_max = match reads.has_barrier(&target.table) {
            true => BARRIERS_FIRST,
            false => u32::MAX,
        };
        Self {
            reads,
            target,
            failures: Failures::new(),
            rest: Some(span),
            streams: VecDeque::new(),
            width: 1,
            tablets_max,
        }
    }

    /// The cursor of the same read, which does not ask these replicas.
    #[must_use]
    pub fn without(self, failures: Failures) -> Self {
        Self { failures, ..self }
    }

    /// Plans parts until there are as many as are asked at the same time; asks those of other nodes.
    fn fill(&mut self) -> Result<(), ReadError> {
        while self.streams.len() < self.width
            && let Some(span) = self.rest.take()
        {
            let (stream, rest) = self.plan(span, None, self.tablets_max)?;
            self.streams.extend(stream);
            self.rest = rest;
            if self.tablets_max != u32::MAX {
                self.tablets_max = self.tablets_max.saturating_mul(2).min(BARRIERS_MAX);
            }
        }
        for stream in self.streams.iter_mut().take(self.width) {
            if let Stream::Remote(stream) = stream {
                stream.ask_ahead(&self.reads, &self.target)?;
            }
        }
        Ok(())
    }

    /// The stream of the first part of a span, and the rest of the span.
    fn plan(
        &self,
        span: Span,
        resume: Option<Resume>,
        tablets_max: u32,
    ) -> Result<(Option<Stream>, Option<Span>), ReadError> {
        let range = match (&span, &resume) {
            (Span::Range(range), Some(Resume::After(key))) => KeyRange {
                start: ilion_rows::KeyBound::After(key.clone()),
                end: range.end.clone(),
            },
            (Span::Range(range), Some(Resume::Within(key, _))) => KeyRange {
                start: ilion_rows::KeyBound::Before(key.clone()),
                end: range.end.clone(),
            },
            _ => span.range(),
        };
        let planned = self.reads.choose(&self.target.table, &self.failures, |chooser| {
            chooser.first_part(&range, tablets_max)
        })?;
        let Some((part, rest)) = planned else {
            return Ok((None, None));
        };
        let resume = resume.filter(|resume| matches!(resume, Resume::Within(..)));
        let span = match span {
            Span::Partition(key) => Span::Partition(key),
            Span::Range(_) => Span::Range(part.range.clone()),
        };
        let stream = match self.reads.is_here(part.node) {
            true => Stream::Local(LocalStream {
                is_within: resume.is_some(),
                part,
                span,
                resume,
                cursor: None,
                ahead: None,
                is_ended: false,
            }),
            false => Stream::Remote(RemoteStream::new(part, span, resume, self.reads.page_first())),
        };
        Ok((Some(stream), rest.map(Span::Range)))
    }

    /// Goes on after the first stream broke: plans what it has not delivered without its replica.
    fn recover(&mut self, broken: Broken) -> Result<(), ReadError> {
        let error = match broken {
            Broken::Failed(error) => return Err(error),
            Broken::Lost(error) => error,
        };
        let (node, versions, (span, mut resume)) = match self.streams.pop_front() {
            Some(Stream::Remote(stream)) => (stream.node, stream.versions, stream.into_rest()),
            // This node refuses before it has read anything.
            Some(Stream::Local(LocalStream {
                part, span, resume, ..
            })) => (part.node, part.versions, (span, resume)),
            None => return Ok(()),
        };
        tracing::debug!(node, %error, table = self.target.table.name, "a read goes on at another replica");
        self.reads.lose(&mut self.failures, node, versions, error);
        let (mut streams, mut rest) = (Vec::new(), Some(span));
        while let Some(span) = rest.take() {
            let tablets_max = self.tablets_max;
            let (stream, left) = self.plan(span, resume.take(), tablets_max)?;
            streams.extend(stream);
            rest = left;
        }
        streams
            .into_iter()
            .rev()
            .for_each(|stream| self.streams.push_front(stream));
        Ok(())
    }

    fn local(&mut self) -> Option<&mut Box<dyn Cursor>> {
        match self.streams.front_mut() {
            Some(Stream::Local(stream)) if stream.ahead.is_none() => stream.cursor.as_mut(),
            _ => None,
        }
    }
}

impl LocalStream {
    fn cursor(&mut self, reads: &Reads, target: &Target) -> Result<&mut Box<dyn Cursor>, Broken> {
        if self.cursor.is_none() {
            let waited = reads.wait_here(&target.table, self.part.tablets.clone())?;
            waited.map_err(Broken::Lost)?;
            let store = reads.shared.local();
            let opened = open(
                store,
                &target.table,
                &self.span,
                &target.filter,
                self.resume.as_ref(),
            );
            let mut cursor = opened.map_err(|error| reads.of_local(error))?;
            if let Some(resume) = &self.resume {
                // The head of a partition that an earlier stream began with is known already.
                let head = cursor.next_partition()?;
                self.is_within = head.as_ref().is_some_and(|head| head.key == *resume.key());
                self.is_ended = head.is_none();
                self.ahead = head.filter(|_| !self.is_within);
            }
            self.cursor = Some(cursor);
        }
        match &mut self.cursor {
            Some(cursor) => Ok(cursor),
            None => Err(Broken::Failed(ReadError::Aborted("the read was not opened"))),
        }
    }

    fn next_partition(&mut self, reads: &Reads, target: &Target) -> Result<Option<PartitionHead>, Broken> {
        self.cursor(reads, target)?;
        let head = match self.ahead.take() {
            Some(head) => Some(head),
            None if self.is_ended => None,
            None => self.cursor(reads, target)?.next_partition()?,
        };
        self.is_within = head.is_some();
        self.is_ended = head.is_none();
        Ok(head)
    }

    fn next_unfiltered(&mut self, reads: &Reads, target: &Target) -> Result<Option<Unfiltered>, Broken> {
        self.cursor(reads, target)?;
        match self.is_within {
            true => Ok(self.cursor(reads, target)?.next_unfiltered()?),
            false => Ok(None),
        }
    }
}

impl Cursor for ClusterCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            self.fill()?;
            let next = match self.streams.front_mut() {
                None => return Ok(None),
                Some(Stream::Local(stream)) => stream.next_partition(&self.reads, &self.target),
                Some(Stream::Remote(stream)) => stream.next_partition(&self.reads, &self.target),
            };
            match next {
                Ok(Some(head)) => return Ok(Some(head)),
                Ok(None) => {
                    self.streams.pop_front();
                    self.width = (self.width * 2).min(self.reads.shared.options.ranges_max.max(1));
                }
                Err(broken) => self.recover(broken)?,
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let next = match self.streams.front_mut() {
                None => return Ok(None),
                Some(Stream::Local(stream)) => stream.next_unfiltered(&self.reads, &self.target),
                Some(Stream::Remote(stream)) => stream.next_unfiltered(&self.reads, &self.target),
            };
            match next {
                Ok(unfiltered) => return Ok(unfiltered),
                Err(broken) => self.recover(broken)?,
            }
        }
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        match self.local() {
            Some(cursor) => cursor.plain_partitions(before, visitor),
            None => Ok(None),
        }
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&ilion_rows::Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match self.local() {
            Some(cursor) => cursor.plain_rows(key, before, visitor),
            None => Ok(0),
        }
    }

    fn skip_deleted(&mut self, before: Option<&ilion_rows::Bound>) -> Result<(), ReadError> {
        match self.local() {
            Some(cursor) => cursor.skip_deleted(before),
            None => Ok(()),
        }
    }

    ilion_rows::cursor_methods!(without: lower_bound peek);
}
