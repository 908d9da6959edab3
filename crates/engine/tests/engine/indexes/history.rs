//! Any history of writes, deletions, expiry, flushes, compactions, schema changes, restarts and power losses.

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions, SSTableVersion};
use ilion_env::{CrashRule, Env, MemEnv, Seeded};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ColumnData, ComplexColumn, Data, DeletionTime, Liveness, Mutation,
    PartitionUpdate, RangeTombstone, Row,
};
use ilion_schema::{IndexPart, SchemaChange, TableSchema};

use super::table::{INDEXES, Reader, create_index, create_table, drop_index, int, key, list_of, table};
use crate::support::{create_keyspace, small_options};

type Index = (&'static str, IndexPart, &'static str);

const VALUES: i32 = 6;

struct History {
    seed: u64,
    random: Seeded,
    env: MemEnv,
    engine: Engine,
    /// Those that are there now.
    indexes: Vec<Index>,
}

fn options(random: &mut Seeded) -> EngineOptions {
    let mut options = small_options();
    options.is_compacting = random.one_in(2);
    options.memtable_bytes_max = if random.one_in(3) { 48 << 10 } else { 1 << 20 };
    let versions = [SSTableVersion::NB, SSTableVersion::OA, SSTableVersion::DA];
    options.sstable_version = versions[random.below(3) as usize];
    options
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Seeded::new(seed);
        let env = MemEnv::new(seed);
        env.set_micros(1_700_000_000_000_000);
        let engine = Engine::open(env.shared(), options(&mut random)).unwrap();
        engine.alter_schema(&create_keyspace("ks")).unwrap();
        engine.alter_schema(&create_table()).unwrap();
        let mut history = Self {
            seed,
            random,
            env,
            engine,
            indexes: Vec::new(),
        };
        for index in INDEXES {
            if history.random.one_in(3) {
                history.alter(&create_index(index));
                history.indexes.push(index);
            }
        }
        history
    }

    fn alter(&self, change: &SchemaChange) {
        self.engine.alter_schema(change).unwrap().unwrap();
    }

    fn value(&mut self) -> i32 {
        self.random.below(VALUES as u64) as i32
    }

    /// Small numbers, so that writes meet out of their order and with equal times.
    fn timestamp(&mut self) -> i64 {
        1 + self.random.below(60) as i64
    }

    fn now_secs(&self) -> u32 {
        u32::try_from(self.env.now_secs()).unwrap()
    }

    fn deletion(&mut self) -> DeletionTime {
        DeletionTime::new(self.timestamp(), self.now_secs())
    }

    fn cell(&mut self, timestamp: i64, value: i32) -> Cell {
        match self.random.below(6) {
            0 => Cell::tombstone(timestamp, self.now_secs()),
            1 => {
                let ttl_secs = 1 + self.random.below(40) as u32;
                Cell::expiring(timestamp, ttl_secs, self.now_secs() + ttl_secs, int(value))
            }
            _ => Cell::live(timestamp, int(value)),
        }
    }

    fn column(&mut self, table: &TableSchema, name: &str, timestamp: i64) -> ColumnData {
        let column = table.column_named(name).unwrap().id;
        if !matches!(name, "l" | "n" | "m") {
            let value = self.value();
            let mut cell = self.cell(timestamp, value);
            if name == "f" && !cell.is_tombstone() {
                cell.value = list_of(value);
            }
            let data = Data::Simple(cell);
            return ColumnData { column, data };
        }
        let deletion = match self.random.one_in(4) {
            true => DeletionTime::new(timestamp - 1, self.now_secs()),
            false => DeletionTime::LIVE,
        };
        let mut cells: Vec<(Bytes, Cell)> = Vec::new();
        for path in 0..3 {
            if self.random.one_in(2) {
                let value = self.value();
                let mut cell = self.cell(timestamp, value);
                let path = match name {
                    "l" => {
                        let mut uuid = [0; 16];
                        (uuid[0], uuid[6]) = (path, 0x10);
                        Bytes::copy_from_slice(&uuid)
                    }
                    _ => int(i32::from(path)),
                };
                if name == "n" {
                    cell.value = Bytes::new();
                }
                cells.push((path, cell));
            }
        }
        let data = Data::Complex(Box::new(ComplexColumn { deletion, cells }));
        ColumnData { column, data }
    }

    fn row(&mut self, table: &TableSchema, names: &[&str], clustering: Clustering) -> Row {
        let timestamp = self.timestamp();
        let mut row = Row::empty(clustering);
        for name in names {
            if self.random.one_in(2) {
                let column = self.column(table, name, timestamp);
                let is_empty = matches!(&column.data, Data::Complex(complex)
                    if complex.deletion.is_live() && complex.cells.is_empty());
                row.columns.extend((!is_empty).then_some(column));
            }
        }
        row.columns.sort_by_key(|data| data.column);
        row
    }

    fn write(&mut self) {
        let table = table(&self.engine);
        let mut update = PartitionUpdate::default();
        let clustering = |c: i32| Clustering::of([int(c)]);
        match self.random.below(20) {
            0 => update.deletion = Some(self.deletion()),
            1 => {
                let (from, to) = (self.value(), self.value());
                // Descending.
                let bound = |kind, c: i32| Bound::new(kind, clustering(c).values().clone());
                update.ranges.push(RangeTombstone {
                    start: bound(BoundKind::InclStart, from.max(to)),
                    end: bound(BoundKind::InclEnd, from.min(to)),
                    deletion: self.deletion(),
                });
            }
            2 | 3 => {
                let row = Row::empty(clustering(self.value()));
                let deletion = self.deletion();
                update.rows.push(Row { deletion, ..row });
            }
            4 | 5 => {
                let row = self.row(&table, &["s"], Clustering::empty());
                update.static_row = Some(row).filter(|row| !row.is_empty());
            }
            _ => {
                let c = self.value();
                let mut row = self.row(&table, &["v", "l", "n", "m", "f"], clustering(c));
                if self.random.one_in(2) {
                    let timestamp = self.timestamp();
                    row.liveness = match self.random.one_in(4) {
                        true => Liveness::expiring(timestamp, 10, self.now_secs() + 10),
                        false => Liveness::live(timestamp),
                    };
                }
                update.rows.extend(Some(row).filter(|row| !row.is_empty()));
            }
        }
        let k = format!("k{}", self.random.below(3));
        let key = key(&k, self.random.below(3) as i32);
        let mutation = Mutation { table, key, update };
        let position = self.engine.apply(&[mutation]).unwrap();
        if let Some(position) = position {
            self.engine.wait_durable(position).unwrap();
        }
    }

    fn restart(self, env: MemEnv) -> Self {
        let Self {
            seed,
            mut random,
            engine,
            indexes,
            ..
        } = self;
        drop(engine);
        let engine = Engine::open(env.shared(), options(&mut random)).unwrap();
        Self {
            seed,
            random,
            env,
            engine,
            indexes,
        }
    }

    fn change_indexes(&mut self) {
        let index = INDEXES[self.random.below(INDEXES.len() as u64) as usize];
        match self.indexes.iter().position(|known| *known == index) {
            None => {
                self.alter(&create_index(index));
                self.indexes.push(index);
            }
            Some(at) if self.random.one_in(2) => {
                self.indexes.remove(at);
                self.alter(&drop_index(index.2));
            }
            Some(_) => {
                self.engine.wait_idle();
                self.engine.rebuild_index(&table(&self.engine), index.2).unwrap();
            }
        }
    }

    fn check(&self) {
        self.engine.wait_idle();
        let reader = Reader {
            engine: &self.engine,
            env: &self.env,
        };
        reader.check(&format!("seed {}", self.seed), &self.indexes, VALUES);
    }

    fn run(mut self, steps: u64) {
        let table_id = table(&self.engine).id;
        for _ in 0..steps {
            match self.random.below(60) {
                0 => self.engine.flush(table_id).unwrap(),
                1 => self.engine.compact(table_id).unwrap(),
                2 => {
                    let env = self.env.clone();
                    self = self.restart(env);
                }
                3 => {
                    let env = self.env.crash(CrashRule::Seeded(self.seed));
                    self = self.restart(env);
                }
                4 | 5 => self.env.advance_micros(7_000_000),
                6 => self.check(),
                7 => self.change_indexes(),
                8 if self.random.one_in(4) => self.engine.truncate(table_id).unwrap(),
                _ => self.write(),
            }
        }
        self.check();
    }
}

#[test]
fn a_search_gives_what_a_filtered_scan_gives() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first: u64 = number("SEED", 0);
    for seed in first..first + number("SEEDS", 2) {
        History::new(seed).run(250);
    }
}
