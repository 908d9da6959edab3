//! The law of schema statements: answered with an error, nothing has changed; answered without one, the schema is the same
//! after a restart, a flush and another restart, and DESCRIBE says the same.
//!
//! Statements are put together at random, with types, names and options at and beyond every limit, and with classes that few
//! people use. `DDL_STATEMENTS=100000` for a longer look, `DDL_SEED=n` for another one. `DDL_RECORD=file` keeps statements and
//! answers, for `scripts/compare_ddl.py` to ask a real Cassandra the same.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions, SSTableVersion};
use ilion_env::{MemEnv, Seeded};
use ilion_query::{ClientState, EngineStore, Error, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};
use ilion_rows::{Clustering, DecoratedKey, Liveness, Mutation, PartitionUpdate, Row};
use ilion_schema::describe::{Internals, describe_keyspace_elements};
use ilion_schema::{Schema, TableKind, TableSchema, is_system_keyspace};
use ilion_types::{CqlType, encode_composite};

use crate::store::cluster_facts;

const STATEMENTS: u64 = 160;
/// Accepted statements between two restarts, at most.
const ACCEPTED_MAX: usize = 20;

/// The node and its disk.
struct Node {
    env: MemEnv,
    options: EngineOptions,
    engine: Option<Arc<Engine>>,
    processor: Option<QueryProcessor>,
}

impl Node {
    fn new(seed: u64) -> Self {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 1;
        options.is_compacting = false;
        options.commit_log.segment_bytes = 32 << 20;
        options.sstable_version =
            [SSTableVersion::NB, SSTableVersion::DA, SSTableVersion::OA][usize::try_from(seed % 3).unwrap()];
        let mut node = Self {
            env: MemEnv::new(seed),
            options,
            engine: None,
            processor: None,
        };
        node.open();
        node
    }

    fn open(&mut self) {
        let engine = Arc::new(Engine::open(self.env.shared(), self.options.clone()).unwrap());
        assert_eq!(engine.set_aside(), [], "a start could not open all of it");
        let store = Arc::new(EngineStore::new(engine.clone(), cluster_facts()));
        self.processor = Some(QueryProcessor::new(store, QueryOptions::default()));
        self.engine = Some(engine);
    }

    fn restart(&mut self) {
        self.processor = None;
        self.engine = None;
        self.open();
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn execute(&self, cql: &str) -> Result<Outcome, Error> {
        let processor = self.processor.as_ref().unwrap();
        let executed = processor.query(&mut ClientState::default(), cql, &ExecuteOptions::default());
        processor.wait_for_views();
        executed.map(|executed| executed.outcome)
    }

    /// A row in every table, so that each has something to flush.
    fn fill(&self) {
        let engine = self.engine();
        for keyspace in engine.schema().keyspaces.values() {
            let tables = keyspace.tables.values();
            for table in tables.filter(|table| table.kind == TableKind::Regular) {
                if is_system_keyspace(&table.keyspace) {
                    continue;
                }
                let Some(key) = key_of(table) else {
                    continue;
                };
                let absent = table.clustering().map(|_| Bytes::new()).collect::<Vec<_>>();
                let row = Row {
                    liveness: Liveness::live(1),
                    ..Row::empty(Clustering::of(absent))
                };
                let update = PartitionUpdate {
                    rows: vec![row],
                    ..PartitionUpdate::default()
                };
                let key = DecoratedKey::new(engine.partitioner(), key);
                let table = table.clone();
                engine.apply(&[Mutation { key, table, update }]).unwrap();
            }
        }
    }

    fn flush(&self) {
        self.engine().flush_all().unwrap();
        assert_eq!(self.engine().failure(), None);
    }
}

/// A partition key that a client could write; `None` where none is thought of.
fn key_of(table: &TableSchema) -> Option<Bytes> {
    let values: Vec<Vec<u8>> = table
        .partition_key()
        .map(|column| a_value(&column.ty))
        .collect::<Option<_>>()?;
    match values.as_slice() {
        [only] => Some(only.clone()).filter(|key| !key.is_empty()).map(Bytes::from),
        several => {
            let mut key = Vec::new();
            encode_composite(several.iter().map(Vec::as_slice), &mut key).ok()?;
            Some(key.into())
        }
    }
}

fn a_value(ty: &CqlType) -> Option<Vec<u8>> {
    let lengths = [ty.fixed_len().unwrap_or(1), 1, 2, 4, 8, 16];
    let zeros = lengths.map(|len| vec![0; len.min(1 << 20)]);
    zeros.into_iter().find(|value| ty.validate(value).is_ok())
}

/// What a client can learn of the schema.
fn description(schema: &Schema) -> Vec<String> {
    let users = schema
        .keyspaces
        .values()
        .filter(|keyspace| !is_system_keyspace(&keyspace.name));
    let described = users.flat_map(|keyspace| describe_keyspace_elements(keyspace, Internals::Shown));
    described.map(|element| element.create_statement).collect()
}

fn stored(schema: &Schema) -> (ilion_types::Uuid, Vec<String>) {
    (schema.version, description(schema))
}

#[test]
fn what_is_accepted_survives_a_restart_and_what_is_refused_changes_nothing() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seed, count) = (number("DDL_SEED", 1), number("DDL_STATEMENTS", STATEMENTS));
    let mut random = Statements::new(seed);
    let mut node = Node::new(seed);
    let (mut accepted, mut total) = (Vec::new(), 0);
    let mut record = std::env::var("DDL_RECORD")
        .ok()
        .map(|path| File::create(path).unwrap());
    for _ in 0..count {
        let before = node.engine().schema();
        let statement = random.statement(&before);
        let answer = node.execute(&statement);
        let shown = || statement.chars().take(400).collect::<String>();
        let after = node.engine().schema();
        assert_eq!(node.engine().failure(), None, "seed {seed}: {}", shown());
        if let Some(record) = &mut record {
            let refused = answer.as_ref().err().map(ToString::to_string);
            writeln!(
                record,
                "{}",
                serde_json::json!({ "cql": statement, "refused": refused })
            )
            .unwrap();
        }
        match answer {
            Ok(_) => {
                total += 1;
                accepted.push(shown());
            }
            Err(refused) => {
                let is_same = stored(&before) == stored(&after);
                assert!(is_same, "seed {seed}: {} changed something: {refused}", shown());
                let internal = refused.to_string().contains("java") || refused.to_string().contains("panic");
                assert!(!internal, "seed {seed}: {}: {refused}", shown());
            }
        }
        if accepted.len() >= ACCEPTED_MAX || random.random.one_in(40) {
            check_restarts(&mut node, seed, &accepted);
            accepted.clear();
        }
    }
    check_restarts(&mut node, seed, &accepted);
    println!(
        "campaign | schema | {count} | {total} accepted, all there after restarts and flushes; the others changed nothing"
    );
    assert!(
        total > count / 10,
        "{total} of {count} were accepted: too few to say anything"
    );
}

fn check_restarts(node: &mut Node, seed: u64, accepted: &[String]) {
    let before = stored(&node.engine().schema());
    for step in ["a restart", "a flush and a restart"] {
        node.restart();
        let after = stored(&node.engine().schema());
        assert_eq!(
            before.1, after.1,
            "seed {seed}: after {step} following {accepted:#?}"
        );
        assert_eq!(
            before.0, after.0,
            "seed {seed}: the version after {step} following {accepted:#?}"
        );
        node.fill();
        node.flush();
    }
    node.restart();
}

/// Puts statements together.
struct Statements {
    random: Seeded,
    made: u64,
}

const SCALARS: [&str; 24] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varchar",
    "varint",
    "empty",
    "INT",
    "nosuchtype",
];

const CLASSES: [&str; 46] = [
    "FooType",
    "DateType",
    "LegacyTimeUUIDType",
    "LexicalUUIDType",
    "PartitionerDefinedOrder(x)",
    "PartitionerDefinedOrder(RandomPartitioner)",
    "PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
    "PartitionerDefinedOrder",
    "PartitionerDefinedOrder(RandomPartitioner:UTF8Type)",
    "CompositeType(UTF8Type,Int32Type)",
    "CompositeType(FooType)",
    "CompositeType",
    "CompositeType()",
    "DynamicCompositeType",
    "DynamicCompositeType(a=>UTF8Type)",
    "DynamicCompositeType(a=>UTF8Type, b => Int32Type)",
    "DynamicCompositeType(ab=>UTF8Type)",
    "DynamicCompositeType(a=>FooType)",
    "EmptyType",
    "ReversedType(Int32Type)",
    "ReversedType(FooType)",
    "ReversedType(ReversedType(Int32Type))",
    "FrozenType(ListType(Int32Type))",
    "FrozenType(FooType)",
    "FrozenType(Int32Type)",
    "ListType(Int32Type)",
    "ListType(FooType)",
    "ListType(LexicalUUIDType)",
    "ListType(ListType(Int32Type))",
    "ListType(CounterColumnType)",
    "SetType(DurationType)",
    "MapType(DurationType,Int32Type)",
    "MapType(Int32Type)",
    "TupleType(Int32Type,FooType)",
    "TupleType()",
    "TupleType(Int32Type,ListType(UTF8Type))",
    "VectorType(FloatType , 3)",
    "VectorType(FooType, 3)",
    "VectorType(FloatType,0)",
    "UserType(a,61,62:Int32Type)",
    "UserType(zz,61,62:Int32Type)",
    "CounterColumnType",
    "Int32Type()",
    "int32type",
    "com.example.Odd(a,b)",
    "UTF8Type ",
];

const ODD_NAMES: [&str; 26] = [
    "int",
    "text",
    "empty",
    "counter",
    "list",
    "map",
    "set",
    "tuple",
    "frozen",
    "vector",
    "byte",
    "timestamp",
    "Int",
    "a b",
    "with\"quote",
    "it's",
    "a.b",
    "a/b",
    "..",
    "select",
    "\u{e9}t\u{e9}",
    "\u{1F600}",
    "1a",
    "a\u{0}b",
    "line\nfeed",
    "<int>",
];

impl Statements {
    fn new(seed: u64) -> Self {
        Self {
            random: Seeded::new(seed ^ 0xDD1),
            made: 0,
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.random.below(from.len() as u64)).unwrap()]
    }

    fn one_of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.random.below(from.len() as u64);
        from.get(usize::try_from(at).unwrap()).cloned()
    }

    /// A new name, mostly a harmless one.
    fn name(&mut self) -> String {
        self.made += 1;
        match self.random.below(16) {
            0 => quoted(self.pick(&ODD_NAMES)),
            1 => {
                let lengths = [
                    47_usize, 48, 49, 199, 200, 201, 202, 203, 221, 222, 223, 234, 235, 254, 255, 256, 1000,
                ];
                let len = self.one_of(&lengths).unwrap();
                let mut name = format!("n{}", self.made);
                name.push_str(&"x".repeat(len - name.len()));
                name
            }
            2 if self.random.one_in(12) => {
                "y".repeat(65_534 + usize::try_from(self.random.below(4)).unwrap())
            }
            _ => format!("n{}", self.made),
        }
    }

    fn type_name(&mut self, depth: u32, user_types: &[String]) -> String {
        let inner = |this: &mut Self| this.type_name(depth + 1, user_types);
        match self.random.below(if depth > 3 { 8 } else { 20 }) {
            0..6 => self.pick(&SCALARS).to_owned(),
            6 => match self.one_of(user_types) {
                Some(name) if self.random.one_in(3) => name,
                Some(name) => format!("frozen<{name}>"),
                None => "int".to_owned(),
            },
            7 => {
                let package = match self.random.one_in(2) {
                    true => "org.apache.cassandra.db.marshal.",
                    false => "",
                };
                format!("'{package}{}'", self.pick(&CLASSES))
            }
            8 | 9 => format!("list<{}>", inner(self)),
            10 => format!("frozen<list<{}>>", inner(self)),
            11 => format!("set<{}>", inner(self)),
            12 => format!("map<{}, {}>", inner(self), inner(self)),
            13 => format!("frozen<{}>", inner(self)),
            14 => format!("tuple<{}, {}>", inner(self), inner(self)),
            15 => {
                let dimension = self.pick(&["1", "3", "0", "8192", "8193", "2147483647", "2147483648", "-1"]);
                format!("vector<{}, {dimension}>", inner(self))
            }
            16 => {
                let levels = [30_usize, 31, 32, 33, 40, 62, 63, 64, 65, 127, 128, 129, 400];
                let levels = self.one_of(&levels).unwrap();
                let (open, close) = *self
                    .one_of(&[
                        &("frozen<list<", ">>"),
                        &("tuple<", ">"),
                        &("frozen<", ">"),
                        &("list<", ">"),
                    ])
                    .unwrap();
                format!("{}int{}", open.repeat(levels), close.repeat(levels))
            }
            17 => {
                let levels = usize::try_from(60 + self.random.below(200)).unwrap();
                let package = "org.apache.cassandra.db.marshal.";
                format!(
                    "'{}Int32Type{}'",
                    format!("{package}FrozenType({package}ListType(").repeat(levels),
                    "))".repeat(levels)
                )
            }
            _ => "int".to_owned(),
        }
    }

    fn statement(&mut self, schema: &Schema) -> String {
        let keyspaces: Vec<_> = schema
            .keyspaces
            .values()
            .filter(|keyspace| !is_system_keyspace(&keyspace.name))
            .cloned()
            .collect();
        let Some(keyspace) = self.one_of(&keyspaces).filter(|_| !self.random.one_in(40)) else {
            return self.create_keyspace();
        };
        let ks = ilion_types::quote_name(&keyspace.name).into_owned();
        let types: Vec<String> = keyspace
            .types
            .keys()
            .map(|name| ilion_types::quote_type_name(name).into_owned())
            .collect();
        let names: Vec<String> = keyspace.tables.values().map(|table| table.name.clone()).collect();
        let table = self
            .one_of(&names)
            .and_then(|name| keyspace.tables.get(&name).cloned());
        let full = |name: &str| format!("{ks}.{}", ilion_types::quote_name(name));
        let is_crowded = names.len() > 12 || types.len() > 16;
        match (self.random.below(if is_crowded { 64 } else { 56 }), table) {
            (0..10, _) => self.create_type(&ks, &types),
            (10..26, _) | (_, None) => self.create_table(&ks, &types),
            (26..32, Some(table)) => {
                let (name, ty) = (self.name(), self.type_name(0, &types));
                let is_static = if self.random.one_in(5) { " static" } else { "" };
                format!("ALTER TABLE {} ADD {name} {ty}{is_static}", full(&table.name))
            }
            (32..35, Some(table)) => {
                let columns: Vec<_> = table
                    .select_order()
                    .iter()
                    .map(|column| column.name.clone())
                    .collect();
                let column = self.one_of(&columns).unwrap_or_default();
                format!(
                    "ALTER TABLE {} DROP {}",
                    full(&table.name),
                    ilion_types::quote_name(&column)
                )
            }
            (35, Some(table)) => {
                let keys: Vec<_> = table.partition_key().chain(table.clustering()).collect();
                let from = self
                    .one_of(&keys)
                    .map_or_else(String::new, |column| column.name.clone());
                let to = self.name();
                format!(
                    "ALTER TABLE {} RENAME {} TO {to}",
                    full(&table.name),
                    ilion_types::quote_name(&from)
                )
            }
            (36..39, Some(table)) => {
                let option = self.option();
                format!("ALTER TABLE {} WITH {option}", full(&table.name))
            }
            (39..43, _) => {
                let (name, field) = (self.one_of(&types).unwrap_or("t".to_owned()), self.name());
                let ty = self.type_name(0, &types);
                format!("ALTER TYPE {ks}.{name} ADD {field} {ty}")
            }
            (43, _) => {
                let definitions: Vec<_> = keyspace.types.values().collect();
                let Some(definition) = self.one_of(&definitions) else {
                    return format!("DROP TYPE {ks}.t");
                };
                let fields: Vec<String> = definition.fields.iter().map(|(name, _)| name.clone()).collect();
                let from = self.one_of(&fields).unwrap_or_default();
                format!(
                    "ALTER TYPE {ks}.{} RENAME {} TO {}",
                    ilion_types::quote_type_name(&definition.name),
                    ilion_types::quote_name(&from),
                    self.name()
                )
            }
            (44..50, Some(table)) => {
                let columns: Vec<_> = table
                    .select_order()
                    .iter()
                    .map(|column| column.name.clone())
                    .collect();
                let column = self.one_of(&columns).unwrap_or_default();
                let column = ilion_types::quote_name(&column).into_owned();
                let name = if self.random.one_in(2) {
                    self.name()
                } else {
                    String::new()
                };
                let target = match self.random.below(8) {
                    0 => format!("keys({column})"),
                    1 => format!("entries({column})"),
                    2 => format!("full({column})"),
                    3 => format!("values({column})"),
                    _ => column,
                };
                let (custom, using) = match self.random.below(4) {
                    0 => (" CUSTOM", " USING 'StorageAttachedIndex'"),
                    1 => (" CUSTOM", " USING 'org.apache.cassandra.index.sasi.SASIIndex'"),
                    2 if self.random.one_in(4) => (" CUSTOM", " USING 'com.example.Index'"),
                    _ => ("", ""),
                };
                format!(
                    "CREATE{custom} INDEX {name} ON {} ({target}){using}",
                    full(&table.name)
                )
            }
            (50..52, Some(table)) => {
                let view = self.name();
                let keys: Vec<_> = table.partition_key().chain(table.clustering()).collect();
                let mut names: Vec<String> = keys
                    .iter()
                    .map(|column| ilion_types::quote_name(&column.name).into_owned())
                    .collect();
                if let Some(column) = table.regulars().next().filter(|_| self.random.one_in(2)) {
                    names.insert(0, ilion_types::quote_name(&column.name).into_owned());
                }
                let first = self.random.below(names.len() as u64);
                names.rotate_left(usize::try_from(first).unwrap());
                let conditions: Vec<String> =
                    names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
                format!(
                    "CREATE MATERIALIZED VIEW {ks}.{view} AS SELECT * FROM {} WHERE {} PRIMARY KEY ({})",
                    full(&table.name),
                    conditions.join(" AND "),
                    names.join(", ")
                )
            }
            (52, _) => {
                let (name, ty) = (self.name(), self.type_name(0, &types));
                format!(
                    "CREATE FUNCTION {ks}.{name} (a {ty}) CALLED ON NULL INPUT RETURNS {ty} LANGUAGE lua AS 'return a'"
                )
            }
            (53, _) => {
                let indexes: Vec<String> = keyspace.indexes.keys().cloned().collect();
                let name = self.one_of(&indexes).unwrap_or("none".to_owned());
                format!("DROP INDEX {}", full(&name))
            }
            (54, _) => {
                let functions: Vec<_> = keyspace
                    .functions
                    .iter()
                    .map(|function| function.name.clone())
                    .collect();
                let name = self.one_of(&functions).unwrap_or("none".to_owned());
                format!("DROP FUNCTION {}", full(&name))
            }
            (55, _) if self.random.one_in(4) => format!("DROP KEYSPACE {ks}"),
            (55..58, _) => {
                let name = self.one_of(&types).unwrap_or("t".to_owned());
                format!("DROP TYPE {ks}.{name}")
            }
            (_, Some(table)) if table.kind == TableKind::View => {
                format!("DROP MATERIALIZED VIEW {}", full(&table.name))
            }
            (_, Some(table)) => format!("DROP TABLE {}", full(&table.name)),
        }
    }

    fn create_keyspace(&mut self) -> String {
        let name = match self.random.below(4) {
            0 => self.name(),
            1 => "\"Ab\"".to_owned(),
            2 => "a".to_owned(),
            _ => "b".to_owned(),
        };
        format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
    }

    fn create_type(&mut self, ks: &str, types: &[String]) -> String {
        let name = match self.random.one_in(6) {
            true => quoted(self.pick(&ODD_NAMES)),
            false => self.name(),
        };
        // Four of the same: types of types of types become large.
        let fields: Vec<String> = match self.one_of(types).filter(|_| self.random.one_in(2)) {
            Some(inner) => ["a", "b", "c", "d"]
                .map(|field| format!("{field} frozen<{inner}>"))
                .to_vec(),
            None => (0..1 + self.random.below(3))
                .map(|_| format!("{} {}", self.name(), self.type_name(0, types)))
                .collect(),
        };
        format!("CREATE TYPE {ks}.{name} ({})", fields.join(", "))
    }

    fn create_table(&mut self, ks: &str, types: &[String]) -> String {
        let key = match self.random.one_in(6) {
            true => self.type_name(1, types),
            false => "int".to_owned(),
        };
        let mut columns = vec![format!("k {key}")];
        let mut primary_key = "k".to_owned();
        let mut order = String::new();
        if self.random.one_in(2) {
            let clustering = match self.random.one_in(3) {
                true => self.type_name(1, types),
                false => "text".to_owned(),
            };
            columns.push(format!("c {clustering}"));
            primary_key.push_str(", c");
            if self.random.one_in(3) {
                order = "CLUSTERING ORDER BY (c DESC)".to_owned();
            }
        }
        for _ in 0..self.random.below(4) {
            let is_static = if self.random.one_in(6) { " static" } else { "" };
            columns.push(format!("{} {}{is_static}", self.name(), self.type_name(0, types)));
        }
        let mut with: Vec<String> = Vec::from_iter((!order.is_empty()).then_some(order));
        if self.random.one_in(3) {
            with.push(self.option());
        }
        let with = match with.is_empty() {
            true => String::new(),
            false => format!(" WITH {}", with.join(" AND ")),
        };
        format!(
            "CREATE TABLE {ks}.{} ({}, PRIMARY KEY ({primary_key})){with}",
            self.name(),
            columns.join(", ")
        )
    }

    fn option(&mut self) -> String {
        let chunk = self.pick(&[
            "1", "4", "16", "64", "65536", "131072", "1048576", "2097152", "0", "-1", "3", "x",
        ]);
        let compressor = self.pick(&[
            "LZ4Compressor",
            "SnappyCompressor",
            "DeflateCompressor",
            "ZstdCompressor",
            "NoopCompressor",
            "org.apache.cassandra.io.compress.LZ4Compressor",
            "FooCompressor",
            "",
        ]);
        let number = self.pick(&[
            "0",
            "1",
            "-1",
            "0.01",
            "1.5",
            "1e-300",
            "NaN",
            "Infinity",
            "2147483647",
            "2147483648",
            "9223372036854775807",
            "630720000",
            "630720001",
        ]);
        let text = self.pick(&[
            "",
            "it''s",
            "\u{1F600}",
            "99PERCENTILE",
            "0PERCENTILE",
            "NONE",
            "10ms",
            "BLOCKING",
        ]);
        match self.random.below(18) {
            0..3 => format!("compression = {{'class': '{compressor}', 'chunk_length_in_kb': '{chunk}'}}"),
            3 => format!("compression = {{'class': '{compressor}', 'min_compress_ratio': '{number}'}}"),
            4 => "compression = {'enabled': 'false'}".to_owned(),
            5 => format!("gc_grace_seconds = {number}"),
            6 => format!("bloom_filter_fp_chance = {number}"),
            7 => format!("default_time_to_live = {number}"),
            8 => format!("comment = '{text}'"),
            9 => format!("comment = '{}'", "c".repeat(100_000)),
            10 => format!("speculative_retry = '{text}'"),
            11 => format!("crc_check_chance = {number}"),
            12 => format!("caching = {{'keys': 'ALL', 'rows_per_partition': '{number}'}}"),
            13 => format!("min_index_interval = {number}"),
            14 => format!("memtable_flush_period_in_ms = {number}"),
            15 => {
                let strategy = self.pick(&[
                    "SizeTieredCompactionStrategy",
                    "LeveledCompactionStrategy",
                    "TimeWindowCompactionStrategy",
                    "UnifiedCompactionStrategy",
                    "FooStrategy",
                ]);
                format!("compaction = {{'class': '{strategy}', 'tombstone_threshold': '{number}'}}")
            }
            16 => format!("additional_write_policy = '{text}'"),
            _ => format!("extensions = {{'x': '{text}'}}"),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
