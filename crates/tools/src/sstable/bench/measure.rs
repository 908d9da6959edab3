//! Measures one table: written, read and opened; and its bytes without rows.
//!
//! The measured functions are never inlined, so that a profiler can count each alone.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, account};
use ilion_rows::{AlikeRows, ClusteringFilter, Cursor as _, Flow, KeyRange, PlainRow, PlainVisitor};
use ilion_schema::TableSchema;
use ilion_sstable::{
    ChunkReader, ChunkWriter, Component, Compression, DataStream, Descriptor, EncodingStats, Format,
    OpenOptions, SSTable, SSTableId, SSTableWriter, Scan, Version, WriterOptions, chunks,
};

use super::BenchArguments;
use super::cpu::{timed, timed_often};
use super::report::ShapeReport;
use super::shape::{Contents, SeenRow, Shape, WRITTEN_MICROS};
use crate::bar::Bar;

/// Size of the writes when the chunk writer is measured alone.
const PIECE_BYTES: usize = 64 << 10;

/// The files of one measurement.
struct Bench<'b> {
    env: &'b Arc<dyn Env>,
    directory: PathBuf,
    table: Arc<TableSchema>,
    generation: u32,
}

/// Measures one shape; `bar` counts runs.
pub(super) fn measure(
    env: &Arc<dyn Env>,
    shape: Shape,
    arguments: &BenchArguments,
    bar: &Bar,
) -> anyhow::Result<ShapeReport> {
    let directory = arguments.directory.join(shape.name());
    env.create_dir_all(&directory)?;
    let mut bench = Bench {
        env,
        directory,
        table: shape.table(),
        generation: 0,
    };
    let contents = shape.contents(&bench.table, arguments.size << 20);
    let mut report = ShapeReport {
        shape: shape.name(),
        partitions: contents.heads.len() as u64,
        rows: contents.row_count(),
        ..ShapeReport::default()
    };
    let subject = bench.next();
    bench.write_rows(&subject, &contents)?;
    let data = bench.data(&subject)?;
    (report.data_bytes, report.stored_bytes) = (data.len() as u64, bench.stored_bytes(&subject)?);
    let (read, write) = (&mut report.read, &mut report.write);
    for _ in 0..arguments.runs {
        write.chunks_nanos.push(bench.write_chunks(&data)?);
        write.rows_nanos.push(bench.write_again(&contents)?);
        write.plain_nanos.push(bench.write_plain(&contents)?);
        read.chunks_nanos.push(bench.read_chunks(&subject)?);
        read.plain_nanos
            .push(bench.read_plain(&subject, report.rows, Bench::see_rows)?);
        read.values_nanos
            .push(bench.read_plain(&subject, report.rows, Bench::see_values)?);
        read.rows_nanos.push(bench.read(&subject, report.rows)?);
        bar.add(1);
    }
    bench.open(&subject, &mut report)?;
    Ok(report)
}

impl Bench<'_> {
    fn next(&mut self) -> Descriptor {
        self.generation += 1;
        let id = SSTableId::Sequence(self.generation);
        Descriptor::new(self.directory.as_path(), Version::NB, id, Format::Big)
    }

    fn options() -> OpenOptions {
        OpenOptions {
            chunk_cache: None,
            ..OpenOptions::default()
        }
    }

    fn writer(&self, descriptor: &Descriptor, contents: &Contents) -> anyhow::Result<SSTableWriter> {
        let options = WriterOptions {
            estimated_partitions: contents.heads.len() as u64,
            encoding_stats: EncodingStats {
                min_timestamp_micros: WRITTEN_MICROS,
                ..EncodingStats::NONE
            },
            ..WriterOptions::default()
        };
        Ok(SSTableWriter::new(self.env, descriptor, &self.table, options)?)
    }

    fn write_rows(&self, descriptor: &Descriptor, contents: &Contents) -> anyhow::Result<()> {
        let mut writer = self.writer(descriptor, contents)?;
        for (head, rows) in contents.partitions() {
            writer.begin_partition(head)?;
            for row in rows {
                writer.add(row)?;
            }
            writer.finish_partition()?;
        }
        Ok(writer.finish()?)
    }

    #[inline(never)]
    fn write_again(&mut self, contents: &Contents) -> anyhow::Result<u64> {
        let descriptor = self.next();
        let (nanos, ()) = timed(&**self.env, || self.write_rows(&descriptor, contents))?;
        descriptor.remove_files(&**self.env)?;
        Ok(nanos)
    }

    fn write_plain(&mut self, contents: &Contents) -> anyhow::Result<u64> {
        let partitions = contents.seen(&self.table);
        let descriptor = self.next();
        let (nanos, ()) = timed(&**self.env, || {
            self.write_plain_rows(&descriptor, contents, &partitions)
        })?;
        descriptor.remove_files(&**self.env)?;
        Ok(nanos)
    }

    /// Writes plain partitions as flushes and compactions do, and plain rows as compactions do.
    #[inline(never)]
    fn write_plain_rows(
        &self,
        descriptor: &Descriptor,
        contents: &Contents,
        partitions: &[Vec<SeenRow<'_>>],
    ) -> anyhow::Result<()> {
        let is_whole = self.table.clustering().next().is_none();
        let mut writer = self.writer(descriptor, contents)?;
        for (head, rows) in contents.heads.iter().zip(partitions.iter().cycle()) {
            if is_whole {
                for row in rows {
                    let is_plain = match row {
                        SeenRow::Plain(row) => writer.add_plain(&head.key.token, &row.row_of(&head.key))?,
                        SeenRow::Built(_) => false,
                    };
                    anyhow::ensure!(is_plain, "a row is not plain");
                }
                continue;
            }
            writer.begin_partition(head)?;
            for row in rows {
                match row {
                    SeenRow::Plain(row) => {
                        let is_plain = writer.add_plain_row(&row.row_of(&head.key))?;
                        anyhow::ensure!(is_plain, "a row is not plain");
                    }
                    SeenRow::Built(row) => writer.add(row)?,
                }
            }
            writer.finish_partition()?;
        }
        Ok(writer.finish()?)
    }

    fn write_chunks(&mut self, data: &[u8]) -> anyhow::Result<u64> {
        let descriptor = self.next();
        let (nanos, ()) = timed(&**self.env, || self.compress_chunks(&descriptor, data))?;
        descriptor.remove_files(&**self.env)?;
        Ok(nanos)
    }

    /// Writes the same bytes in the same chunks, with compression and checksums, without rows and index.
    #[inline(never)]
    fn compress_chunks(&self, descriptor: &Descriptor, data: &[u8]) -> anyhow::Result<()> {
        let compression = Compression::from_options(&self.table.options.compression)?;
        let mut writer = ChunkWriter::create(self.env.clone(), descriptor.clone(), compression)?;
        for piece in data.chunks(PIECE_BYTES) {
            writer.write(piece)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn stream(&self, descriptor: &Descriptor) -> anyhow::Result<DataStream> {
        let chunks = ChunkReader::open(&**self.env, descriptor, None)?.reopen_for_scan(&**self.env)?;
        Ok(DataStream::sequential(
            Arc::new(chunks),
            0,
            chunks::READ_AHEAD_BYTES,
        ))
    }

    fn data(&self, descriptor: &Descriptor) -> anyhow::Result<Vec<u8>> {
        let mut stream = self.stream(descriptor)?;
        let mut data = Vec::new();
        while !stream.is_at_end() {
            stream.require(1)?;
            data.extend_from_slice(stream.rest());
            stream.consume(stream.rest().len());
        }
        Ok(data)
    }

    fn read_chunks(&self, descriptor: &Descriptor) -> anyhow::Result<u64> {
        timed_often(&**self.env, || self.decompress_chunks(descriptor))
    }

    /// Reads every chunk, checks its CRC and decompresses it.
    #[inline(never)]
    fn decompress_chunks(&self, descriptor: &Descriptor) -> anyhow::Result<()> {
        let mut stream = self.stream(descriptor)?;
        while !stream.is_at_end() {
            stream.require(1)?;
            stream.consume(black_box(stream.rest()).len());
        }
        Ok(())
    }

    fn read(&self, descriptor: &Descriptor, rows_expected: u64) -> anyhow::Result<u64> {
        let sstable = Arc::new(SSTable::open(self.env, descriptor, &Self::options())?);
        let (nanos, rows) = timed(&**self.env, || self.build_rows(&sstable))?;
        anyhow::ensure!(rows == rows_expected, "{rows} rows were read of {rows_expected}");
        Ok(nanos)
    }

    /// Builds every row, as for a merge. Returns their number.
    #[inline(never)]
    fn build_rows(&self, sstable: &Arc<SSTable>) -> anyhow::Result<u64> {
        let filter = Arc::new(ClusteringFilter::all());
        let mut cursor = sstable.cursor(&self.table, KeyRange::all(), filter, Scan::Sequential);
        let mut rows = 0;
        while let Some(head) = cursor.next_partition()? {
            black_box(&head);
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                black_box(&unfiltered);
                rows += 1;
            }
        }
        Ok(rows)
    }

    fn read_plain(
        &self,
        descriptor: &Descriptor,
        rows_expected: u64,
        see: fn(&Self, &Arc<SSTable>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<u64> {
        let sstable = Arc::new(SSTable::open(self.env, descriptor, &Self::options())?);
        timed_often(&**self.env, || {
            let rows = see(self, &sstable)?;
            anyhow::ensure!(rows == rows_expected, "{rows} rows were seen of {rows_expected}");
            Ok(())
        })
    }

    /// Visits every row as a SELECT of all rows does: plain rows in place, by the positions of their values; others are built. Returns
    /// their number.
    #[inline(never)]
    fn see_rows(&self, sstable: &Arc<SSTable>) -> anyhow::Result<u64> {
        self.see(sstable, &mut SeenRows(0))
    }

    /// Visits every row as [`Self::see_rows`] does, and every value of plain rows.
    #[inline(never)]
    fn see_values(&self, sstable: &Arc<SSTable>) -> anyhow::Result<u64> {
        self.see(sstable, &mut SeenValues(0))
    }

    fn see<V: PlainVisitor + Count>(&self, sstable: &Arc<SSTable>, seen: &mut V) -> anyhow::Result<u64> {
        let filter = Arc::new(ClusteringFilter::all());
        let mut cursor = sstable.cursor(&self.table, KeyRange::all(), filter, Scan::Sequential);
        loop {
            cursor.plain_partitions(None, seen)?;
            let Some(head) = cursor.next_partition()? else {
                return Ok(*seen.count());
            };
            black_box(&head);
            loop {
                cursor.plain_rows(&head.key, None, seen)?;
                let Some(unfiltered) = cursor.next_unfiltered()? else {
                    break;
                };
                black_box(&unfiltered);
                *seen.count() += 1;
            }
        }
    }

    fn stored_bytes(&self, descriptor: &Descriptor) -> anyhow::Result<u64> {
        Ok(self.env.file_size(&descriptor.path(&Component::Data))?)
    }

    /// Opens the SSTable, and reports the time and the reads.
    fn open(&self, descriptor: &Descriptor, report: &mut ShapeReport) -> anyhow::Result<()> {
        let charged = account::begin();
        let (nanos, sstable) = timed(&**self.env, || {
            Ok(SSTable::open(self.env, descriptor, &Self::options())?)
        })?;
        drop(sstable);
        let io = charged.finish();
        report.open_nanos = nanos;
        report.open_reads = io.reads;
        report.open_bytes = io.bytes_read;
        Ok(())
    }
}

/// A visitor that counts rows.
trait Count {
    fn count(&mut self) -> &mut u64;
}

/// Counts rows.
struct SeenRows(u64);

impl Count for SeenRows {
    fn count(&mut self) -> &mut u64 {
        &mut self.0
    }
}

impl PlainVisitor for SeenRows {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        black_box(row);
        self.0 += 1;
        Flow::Next
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        rows.iter().for_each(|row| {
            black_box(row);
        });
        self.0 += rows.count() as u64;
        (rows.count(), Flow::Next)
    }
}

/// Counts rows, and visits their values.
struct SeenValues(u64);

impl Count for SeenValues {
    fn count(&mut self) -> &mut u64 {
        &mut self.0
    }
}

impl PlainVisitor for SeenValues {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        black_box(row.key);
        for value in row.clustering {
            black_box(value);
        }
        for (_, value) in row.cells {
            black_box(value);
        }
        self.0 += 1;
        Flow::Next
    }

    /// Visits the values column by column.
    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let layout = rows.layout();
        let cells = layout.cells.iter().map(|(_, place)| place);
        let places = layout.key.iter().chain(&layout.clustering).chain(cells);
        for place in places {
            rows.values(place, |value| {
                black_box(value);
            });
        }
        self.0 += rows.count() as u64;
        (rows.count(), Flow::Next)
    }
}
