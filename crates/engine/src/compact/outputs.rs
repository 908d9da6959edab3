//! [`Outputs`]: the SSTables that a merge writes, cut as the strategy's choice requires.

use std::sync::Arc;

use ilion_compaction::{Output, Sink, shard_of};
use ilion_rows::{PartitionHead, PlainRow, Unfiltered, may_be_plain, rows_may_be_plain};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, Transaction, WriterOptions};
use ilion_types::Token;

use crate::indexes::IndexedWriter;
use crate::shared::Shared;
use crate::table_store::{TableIndexes, TableStore};
use crate::{Error, Result};

/// An SSTable is not made smaller than this by halving.
const HALF_BYTES_MIN: u64 = 50 << 20;

/// When the next SSTable begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Never,
    /// At this size.
    At(u64),
    /// At the next shard: the number of shards, and the current one.
    Shard(u32, u32),
    /// At half of the remaining bytes, whose number this is.
    Half(u64),
}

impl Cut {
    fn of(output: Output, bytes_in: u64) -> Self {
        match output {
            Output::Whole => Self::Never,
            Output::UpTo { bytes } => Self::At(bytes),
            Output::Shards(shards) => Self::Shard(shards, 0),
            Output::Halves => Self::Half(bytes_in),
        }
    }

    /// True if the partition with `token` begins a new SSTable; the current one has `bytes` bytes.
    fn is_before(self, token: &Token, bytes: u64) -> bool {
        match self {
            Self::Never => false,
            Self::At(most) => bytes >= most,
            Self::Shard(shards, shard) => shard_of(token, shards) != shard,
            Self::Half(left) => bytes >= left / 2 && left / 2 >= HALF_BYTES_MIN,
        }
    }

    /// The cut of the SSTable that begins with the partition at `token`; the previous SSTable has `bytes` bytes.
    fn next(self, token: &Token, bytes: u64) -> Self {
        match self {
            Self::Shard(shards, _) => Self::Shard(shards, shard_of(token, shards)),
            Self::Half(left) => Self::Half(left.saturating_sub(bytes)),
            same => same,
        }
    }
}

/// About how many SSTables the result has, if the inputs have these first and last tokens and this many bytes.
pub(crate) fn pieces(output: Output, bytes_in: u64, first: &Token, last: &Token) -> u64 {
    match output {
        Output::Whole | Output::Halves => 1,
        Output::UpTo { bytes } => (bytes_in / bytes.max(1)).max(1),
        Output::Shards(shards) => {
            let spanned = shard_of(last, shards).saturating_sub(shard_of(first, shards));
            u64::from(spanned) + 1
        }
    }
}

/// SSTables being written.
pub(crate) struct Outputs<'a> {
    shared: &'a Shared,
    store: &'a TableStore,
    table: Arc<TableSchema>,
    transaction: &'a mut Transaction,
    options: WriterOptions,
    cut: Cut,
    indexes: Arc<TableIndexes>,
    writer: Option<(IndexedWriter, Descriptor)>,
    written: Vec<Descriptor>,
}

impl<'a> Outputs<'a> {
    /// Writes to the table under the transaction, from inputs with this many bytes.
    pub(crate) fn new(
        shared: &'a Shared,
        store: &'a TableStore,
        table: Arc<TableSchema>,
        transaction: &'a mut Transaction,
        options: WriterOptions,
        output: Output,
        bytes_in: u64,
    ) -> Self {
        Self {
            shared,
            store,
            table,
            transaction,
            options,
            cut: Cut::of(output, bytes_in),
            indexes: Arc::default(),
            writer: None,
            written: Vec::new(),
        }
    }

    /// Writes files of attached indexes, too.
    pub(crate) fn with_indexes(mut self, indexes: Arc<TableIndexes>) -> Self {
        self.indexes = indexes;
        self
    }

    fn writer(&mut self) -> Result<&mut IndexedWriter> {
        match &mut self.writer {
            Some((writer, _)) => Ok(writer),
            None => Err(Error::Refused("a row before its partition".to_owned())),
        }
    }

    /// Makes sure that a writer is open for the partition with `token`.
    fn open_for(&mut self, token: &Token) -> Result<()> {
        let bytes = self
            .writer
            .as_ref()
            .map_or(0, |(writer, _)| writer.stored_bytes());
        if self.writer.is_some() && !self.cut.is_before(token, bytes) {
            return Ok(());
        }
        self.close()?;
        self.cut = self.cut.next(token, bytes);
        let descriptor = self
            .store
            .next_descriptor(&*self.shared.env, self.shared.options.sstable_version);
        self.transaction.add(&descriptor)?;
        let (indexes, options) = (&self.indexes, self.options.clone());
        let writer = IndexedWriter::new(self.shared, indexes, &descriptor, &self.table, options)?;
        self.writer = Some((writer, descriptor));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some((writer, descriptor)) = self.writer.take() else {
            return Ok(());
        };
        if writer.partitions() == 0 {
            writer.abandon();
            return Ok(());
        }
        writer.finish()?;
        self.written.push(descriptor);
        Ok(())
    }

    /// Ends the last SSTable; returns all that are not empty. They are durable.
    pub(crate) fn finish(mut self) -> Result<Vec<Descriptor>> {
        self.close()?;
        Ok(self.written)
    }

    /// Removes the current SSTable; the transaction removes the others.
    pub(crate) fn abandon(self) {
        if let Some((writer, _)) = self.writer {
            writer.abandon();
        }
    }
}

impl Sink for Outputs<'_> {
    type Error = Error;

    fn begin_partition(&mut self, head: &PartitionHead) -> Result<()> {
        self.open_for(&head.key.token)?;
        self.writer()?.begin_partition(head)
    }

    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<()> {
        self.writer()?.unfiltered(unfiltered)
    }

    fn end_partition(&mut self) -> Result<()> {
        self.writer()?.end_partition()
    }

    fn takes_plain(&self) -> bool {
        may_be_plain(&self.table)
    }

    fn plain_partition(&mut self, partition: &PlainRow<'_>) -> Result<bool> {
        let token = partition.token_by(self.options.partitioner);
        self.open_for(&token)?;
        self.writer()?.plain_partition(&PlainRow {
            token: Some(&token),
            ..*partition
        })
    }

    fn takes_plain_rows(&self) -> bool {
        rows_may_be_plain(&self.table)
    }

    #[inline]
    fn plain_row(&mut self, row: &PlainRow<'_>) -> Result<bool> {
        self.writer()?.plain_row(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(hash: i64) -> Token {
        Token::Murmur3(hash)
    }

    #[test]
    fn an_sstable_ends_where_the_choice_says() {
        let shards = Cut::of(Output::Shards(2), 100).next(&token(-5), 0);
        assert!(!shards.is_before(&token(-1), 1000));
        assert!(shards.is_before(&token(0), 1));
        let sized = Cut::of(Output::UpTo { bytes: 10 }, 100);
        assert!(!sized.is_before(&token(0), 9) && sized.is_before(&token(0), 10));
        let (first, last) = (Token::Murmur3(-5), Token::Murmur3(5));
        assert_eq!(pieces(Output::Shards(2), 100, &first, &last), 2);
        assert_eq!(pieces(Output::Shards(2), 100, &first, &first), 1);
        assert_eq!(pieces(Output::UpTo { bytes: 30 }, 100, &first, &last), 3);
        let halves = Cut::of(Output::Halves, 400 << 20);
        assert!(!halves.is_before(&token(0), 199 << 20) && halves.is_before(&token(0), 200 << 20));
        let last = halves.next(&token(0), 300 << 20).next(&token(0), 50 << 20);
        assert!(!last.is_before(&token(0), 100 << 20));
    }
}
