//! Specification of index searches, by the files of `testdata`. `REWRITE=1 cargo test` writes the answers.
//!
//! * `table`: the input is the table of the directives that follow, in the notation of `ilion_rows::notation`.
//! * `index [using=2i|sai|sasi] column=NAME [part=keys|values|entries|full] [OPTION=VALUE...]`: the input is a list of writes in
//!   the same notation, applied in order. Prints the error of an impossible index; the entries of the hidden table (2i); or the
//!   number of terms and of pairs of term and row in an SSTable with the resulting rows (sai, sasi).
//! * `search`: the input is a list of predicates. Prints the rows that the index returns for each as `key/clustering`;
//!   `key/static` stands for all rows of a partition. If a memtable and an SSTable return different rows, prints both.
//!
//! Predicates: `= 5`, `in 1 2`, `[2, 7)`, `(2, *]`, `contains 3`, `contains key 'a'`, `entry 'a' 1`, `entry 'a' [1, 5)`,
//! `matches 'a text'`, `like 'a%'`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use datadriven::TestCase;
use ilion_env::{Env, MemEnv};
use ilion_index::{
    Attached, Before, Candidates, Definition, HiddenTable, IndexClasses, Limit, MemtableIndex, Place,
    Predicate, RowChange, RowNumbersFile, RowNumbersWriter, RowPart, SSTableIndex, SecondaryIndex, Storage,
    When,
};
use ilion_rows::notation::{parse_mutations, parse_table, print_mutation};
use ilion_rows::{Clustering, ClusteringComparator, Mutation, Row};
use ilion_schema::{Column, IndexKind, IndexPart, IndexSchema, TableSchema};
use ilion_types::{CqlType, Partitioner};

const NOW_SECS: u32 = 1000;

/// A fixed time.
struct Now;

impl When for Now {
    fn now_secs(&self) -> u32 {
        NOW_SECS
    }

    fn entry_micros(&self) -> i64 {
        i64::from(NOW_SECS) * 1_000_000
    }
}

/// Rows of a table, in table order.
struct Rows {
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    rows: Vec<(Place, Row)>,
}

impl Rows {
    fn of(table: &Arc<TableSchema>) -> Self {
        Self {
            table: table.clone(),
            comparator: ClusteringComparator::of(table),
            rows: Vec::new(),
        }
    }

    /// Merges a row; returns the row before, and the row after.
    fn apply(&mut self, place: Place, row: Row) -> (Option<Row>, Row) {
        let compare = |(known, _): &(Place, Row)| known.compare(&place, &self.comparator);
        match self.rows.binary_search_by(compare) {
            Ok(at) => {
                let before = self.rows[at].1.clone();
                self.rows[at].1.merge(row, &self.table);
                (Some(before), self.rows[at].1.clone())
            }
            Err(at) => {
                self.rows.insert(at, (place, row.clone()));
                (None, row)
            }
        }
    }
}

/// The index of the last `index`, after all writes.
enum Searchable {
    Hidden(Arc<dyn SecondaryIndex>, Vec<Mutation>),
    Attached {
        index: Arc<dyn SecondaryIndex>,
        memtable: Arc<dyn MemtableIndex>,
        sstable: Arc<dyn SSTableIndex>,
    },
}

fn hidden_table(index: &dyn SecondaryIndex) -> &dyn HiddenTable {
    match index.storage() {
        Storage::HiddenTable(table) => table,
        Storage::Attached(_) => panic!("an index in a hidden table"),
    }
}

fn attached(index: &dyn SecondaryIndex) -> Option<&dyn Attached> {
    match index.storage() {
        Storage::HiddenTable(_) => None,
        Storage::Attached(attached) => Some(attached),
    }
}

fn open(test: &TestCase, table: &Arc<TableSchema>) -> Result<Arc<dyn SecondaryIndex>, String> {
    let arguments = test
        .args
        .iter()
        .map(|(name, values)| (name.clone(), values[0].clone()));
    let mut options: BTreeMap<String, String> = arguments.collect();
    let column = options.remove("column").unwrap();
    let target = match options.remove("part") {
        None => column,
        Some(part) => format!("{part}({column})"),
    };
    options.insert("target".to_owned(), target);
    let class = match options.remove("using").as_deref() {
        Some("sai") => Some("StorageAttachedIndex"),
        Some("sasi") => Some("SASIIndex"),
        _ => None,
    };
    options.extend(class.map(|class| ("class_name".to_owned(), class.to_owned())));
    let schema = IndexSchema {
        name: "i".to_owned(),
        table: table.name.clone(),
        kind: class.map_or(IndexKind::Composites, |_| IndexKind::Custom),
        options,
    };
    let definition = Definition::of(&Arc::new(schema.clone()), table).unwrap();
    let opened = IndexClasses::own().of(&schema).unwrap().open(definition);
    opened.map_err(|error| error.to_string())
}

/// The rows that a mutation writes, with their places.
fn rows_of(mutation: &Mutation) -> Vec<(Place, Row)> {
    let place = |row: RowPart| Place {
        key: mutation.key.clone(),
        row,
    };
    let statics = mutation.update.static_row.iter();
    let statics = statics.map(|row| (place(RowPart::Static), row.clone()));
    let rows = mutation.update.rows.iter();
    let rows = rows.map(|row| (place(RowPart::Row(row.clustering.clone())), row.clone()));
    statics.chain(rows).collect()
}

fn run_index(test: &TestCase, table: &Arc<TableSchema>) -> (Option<Searchable>, String) {
    let index = match open(test, table) {
        Ok(index) => index,
        Err(error) => return (None, format!("{error}\n")),
    };
    let writes = parse_mutations(&test.input, table, Partitioner::Murmur3).unwrap();
    let mut rows = Rows::of(table);
    let memtable = attached(&*index).map(Attached::begin_memtable);
    let (mut entries, mut scratch) = (Vec::new(), Vec::new());
    for (place, row) in writes.iter().flat_map(rows_of) {
        let (before, after) = rows.apply(place.clone(), row);
        let change = RowChange {
            before: before.as_ref().map(Before::Row),
            after: &after,
        };
        match &memtable {
            Some(memtable) => {
                memtable.apply(&place.key, change, &mut scratch);
            }
            None => entries.extend(hidden_table(&*index).entries(&place.key, change, &Now)),
        }
    }
    let Some(memtable) = memtable else {
        let text = entries.iter().map(print_mutation).collect();
        return (Some(Searchable::Hidden(index, entries)), text);
    };
    let sstable = write_sstable(attached(&*index).unwrap(), &rows);
    let contents = sstable.contents();
    let text = format!(
        "{} terms, {} pairs of term and row\n",
        contents.terms, contents.cells
    );
    let searchable = Searchable::Attached {
        index,
        memtable,
        sstable,
    };
    (Some(searchable), text)
}

fn write_sstable(index: &dyn Attached, rows: &Rows) -> Arc<dyn SSTableIndex> {
    let env: Arc<dyn Env> = MemEnv::new(1).shared();
    env.create_dir_all(Path::new("d")).unwrap();
    let (base, partitioner) = ("d/nb-1-big-", Partitioner::Murmur3);
    let mut numbers = RowNumbersWriter::create(&env, base, &rows.table, partitioner).unwrap();
    let mut writer = index.begin_sstable(&env, base).unwrap();
    for (place, row) in &rows.rows {
        let number = numbers.add(&place.key, row).unwrap();
        writer.add(number, &place.key, row).unwrap();
    }
    writer.finish().unwrap();
    numbers.finish().unwrap();
    let numbers = RowNumbersFile::open(&env, base, &rows.table, partitioner).unwrap();
    index.open_sstable(&env, base, Arc::new(numbers)).unwrap()
}

/// The types of the key and of the value in predicates.
fn compared_types(column: &Column, part: IndexPart) -> (CqlType, CqlType) {
    match (&column.ty, part) {
        (CqlType::Map { key, value, .. }, IndexPart::Entries) => (CqlType::clone(key), CqlType::clone(value)),
        (CqlType::Map { key, .. }, IndexPart::Keys) => (CqlType::clone(key), CqlType::clone(key)),
        (CqlType::Map { key, value, .. }, _) => (CqlType::clone(key), CqlType::clone(value)),
        (CqlType::Set { element, .. } | CqlType::List { element, .. }, _) => {
            (CqlType::clone(element), CqlType::clone(element))
        }
        (ty, _) => (ty.clone(), ty.clone()),
    }
}

fn value(ty: &CqlType, text: &str) -> Bytes {
    ty.parse_plain(text.trim().trim_matches('\'')).unwrap().into()
}

fn limits(ty: &CqlType, text: &str) -> (Option<Limit>, Option<Limit>) {
    let (from, to) = text[1..text.len() - 1].split_once(',').unwrap();
    let limit = |text: &str, is_inclusive| match text.trim() {
        "*" => None,
        text => Some(Limit {
            value: value(ty, text),
            is_inclusive,
        }),
    };
    (limit(from, text.starts_with('[')), limit(to, text.ends_with(']')))
}

fn like(text: &str) -> Predicate {
    let text = text.trim().trim_matches('\'');
    let pattern = Bytes::from(text.trim_matches('%').to_owned());
    match (text.starts_with('%'), text.ends_with('%')) {
        (false, false) => Predicate::LikeEqual(pattern),
        (false, true) => Predicate::LikePrefix(pattern),
        (true, false) => Predicate::LikeSuffix(pattern),
        (true, true) => Predicate::LikeContains(pattern),
    }
}

fn parse_predicate(line: &str, definition: &Definition) -> Predicate {
    let (key_type, ty) = compared_types(&definition.column, definition.part);
    if line.starts_with(['[', '(']) {
        let (from, to) = limits(&ty, line);
        return Predicate::Range { from, to };
    }
    let (word, rest) = line.split_once(' ').unwrap();
    match word {
        "=" => Predicate::Equal(value(&ty, rest)),
        "in" => Predicate::AnyOf(rest.split(' ').map(|text| value(&ty, text)).collect()),
        "contains" => match rest.strip_prefix("key ") {
            Some(key) => Predicate::ContainsKey(value(&key_type, key)),
            None => Predicate::Contains(value(&ty, rest)),
        },
        "entry" => {
            let (key, rest) = rest.split_once(' ').unwrap();
            let key = value(&key_type, key);
            if !rest.starts_with(['[', '(']) {
                return Predicate::Entry(key, value(&ty, rest));
            }
            let (from, to) = limits(&ty, rest);
            Predicate::EntryRange { key, from, to }
        }
        "matches" => Predicate::Matches(value(&ty, rest)),
        "like" => like(rest),
        other => panic!("unknown predicate {other}"),
    }
}

fn clustering_text(table: &TableSchema, clustering: &Clustering) -> String {
    let values = table.clustering().zip(clustering.values());
    let texts = values.map(|(column, value)| column.ty.print_literal(value.as_deref().unwrap()).unwrap());
    texts.collect::<Vec<_>>().join(":")
}

fn place_text(table: &TableSchema, place: &Place) -> String {
    let key_type = &table.partition_key().next().unwrap().ty;
    let key = key_type.print_literal(&place.key.key).unwrap();
    match &place.row {
        RowPart::Static => format!("{key}/static"),
        RowPart::Row(clustering) => format!("{key}/{}", clustering_text(table, clustering)),
    }
}

fn places_text(table: &TableSchema, places: &[Place]) -> String {
    let texts: Vec<String> = places.iter().map(|place| place_text(table, place)).collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join(" "),
    }
}

fn all(mut candidates: impl Candidates) -> Vec<Place> {
    let candidates = std::iter::from_fn(|| candidates.next().unwrap());
    candidates.map(|candidate| candidate.place).collect()
}

/// The candidates of the live entries in the partitions of a lookup.
fn search_hidden(index: &dyn SecondaryIndex, entries: &[Mutation], predicate: &Predicate) -> Vec<Place> {
    let hidden = hidden_table(index);
    let mut rows = Rows::of(hidden.table());
    for (place, row) in entries.iter().flat_map(rows_of) {
        rows.apply(place, row);
    }
    let ranges = hidden.lookup(predicate).unwrap();
    let is_found = |place: &Place| ranges.iter().any(|range| range.contains(&place.key));
    let found = rows
        .rows
        .iter()
        .filter(|(place, row)| is_found(place) && row.is_live(NOW_SECS));
    let mut places: Vec<Place> = found
        .map(|(place, row)| hidden.candidate(&place.key, row).unwrap().place)
        .collect();
    let comparator = ClusteringComparator::of(&index.definition().table);
    places.sort_by(|a, b| a.compare(b, &comparator));
    places
}

fn search(searchable: &Searchable, predicate: &Predicate) -> String {
    match searchable {
        Searchable::Hidden(index, _) | Searchable::Attached { index, .. } if !index.serves(predicate) => {
            "not served".to_owned()
        }
        Searchable::Hidden(index, entries) => places_text(
            &index.definition().table,
            &search_hidden(&**index, entries, predicate),
        ),
        Searchable::Attached {
            index,
            memtable,
            sstable,
        } => {
            let table = &index.definition().table;
            let in_memory = places_text(table, &all(memtable.search(predicate)));
            let in_file = places_text(table, &all(sstable.clone().search(predicate).unwrap()));
            match in_memory == in_file {
                true => in_memory,
                false => format!("{in_memory} (memtable), {in_file} (SSTable)"),
            }
        }
    }
}

fn run_search(test: &TestCase, searchable: &Searchable) -> String {
    let (Searchable::Hidden(index, _) | Searchable::Attached { index, .. }) = searchable;
    let mut out = String::new();
    for line in test.input.lines() {
        let predicate = parse_predicate(line, index.definition());
        let _ = writeln!(out, "{line}: {}", search(searchable, &predicate));
    }
    out
}

#[test]
fn searches_return_the_rows_that_the_files_specify() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let mut table = parse_table("k int pk, v int").unwrap();
        let mut searchable = None;
        file.run(|test| match (test.directive.as_str(), &searchable) {
            ("table", _) => {
                table = parse_table(&test.input).unwrap();
                String::new()
            }
            ("index", _) => {
                let (index, answer) = run_index(test, &table);
                searchable = index;
                answer
            }
            ("search", Some(searchable)) => run_search(test, searchable),
            (other, _) => panic!("unknown directive {other}, or no index"),
        });
    });
}
