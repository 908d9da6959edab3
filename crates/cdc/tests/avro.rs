//! The envelope as Avro says what the envelope as JSON says, for every kind of change and type.

#![expect(clippy::unwrap_used, reason = "a failing step is to stop the test")]

use std::sync::Arc;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use apache_avro::{Reader, Schema};
use bytes::Bytes;
use ilion_cdc::{AvroFile, AvroTable, Change, changes_of, print_json};
use ilion_commitlog::{Kind, Origin, Position, Record};
use ilion_rows::random::{Dice, random_mutation, random_table};
use ilion_rows::{
    Cell, Clustering, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime, Mutation, PartitionUpdate,
    Row, encode_mutation,
};
use ilion_schema::{TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner, UserType, Uuid};
use serde_json::{Value as Json, json};

/// The changes of a record with a mutation.
fn changes(table: &Arc<TableSchema>, mutation: &Mutation) -> Vec<Change> {
    let mut body = Vec::new();
    encode_mutation(mutation, &mut body);
    record_changes(table, Kind::Mutation, body)
}

fn record_changes(table: &Arc<TableSchema>, kind: Kind, body: Vec<u8>) -> Vec<Change> {
    let record = Record {
        kind,
        tablet: 0,
        schema_epoch: 0,
        origin: Origin::default(),
        time_micros: 1_700_000_000_123_456,
        is_captured: true,
        body: Bytes::from(body),
    };
    changes_of(table, Position::START, &record, Position::START).unwrap()
}

fn read(schema: &str, datum: &[u8]) -> Avro {
    read_with(&Schema::parse_str(schema).unwrap(), datum)
}

fn read_with(schema: &Schema, mut datum: &[u8]) -> Avro {
    let reader = GenericDatumReader::builder(schema).build().unwrap();
    let value = reader.read_value(&mut datum).unwrap();
    assert_eq!(datum, b"", "a datum is read to its end");
    value
}

/// A value as JSON would have it, without what is null.
fn plain(value: &Avro) -> Json {
    match value {
        Avro::Union(_, value) => plain(value),
        Avro::Null => Json::Null,
        Avro::Boolean(value) => json!(value),
        Avro::Int(value) | Avro::Date(value) => json!(value),
        Avro::Long(value) | Avro::TimestampMillis(value) => json!(value),
        Avro::Float(value) => json!(value),
        Avro::Double(value) => json!(value),
        Avro::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!(format!("0x{digits}"))
        }
        Avro::String(text) => json!(text),
        Avro::Uuid(uuid) => json!(uuid.to_string()),
        Avro::Array(values) => values.iter().map(plain).collect(),
        Avro::Record(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), plain(value)));
            fields.filter(|(_, value)| !value.is_null()).collect()
        }
        other => panic!("{other:?} is not used"),
    }
}

/// JSON without what is null.
fn without_nulls(value: Json) -> Json {
    match value {
        Json::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, without_nulls(value)))
            .filter(|(_, value)| !value.is_null())
            .collect(),
        Json::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn json_of(change: &Change) -> Json {
    let mut line = String::new();
    print_json(change, &mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Columns whose values both formats write alike.
fn is_alike(ty: &CqlType) -> bool {
    use CqlType::{Ascii, BigInt, Blob, Boolean, Counter, Int, SmallInt, Text, TimeUuid, TinyInt, Uuid};
    match ty {
        Ascii | BigInt | Blob | Boolean | Counter | Int | SmallInt | Text | TimeUuid | TinyInt | Uuid => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => is_alike(element),
        CqlType::Map {
            key,
            value,
            frozen: false,
        } => is_alike(key) && is_alike(value),
        _ => false,
    }
}

/// Removes the values of columns that the formats write differently, but not their times.
fn comparable(mut envelope: Json, table: &TableSchema) -> Json {
    for column in table.every_column().iter().filter(|column| !is_alike(&column.ty)) {
        if let Some(cell) = envelope["after"].get_mut(&column.name) {
            cell.as_object_mut().unwrap().remove("value");
        }
        for end in ["_range_start", "_range_end"] {
            if let Some(range) = envelope["after"].get_mut(end) {
                range["values"].as_object_mut().unwrap().remove(&column.name);
            }
        }
    }
    envelope
}

#[test]
fn random_changes_are_the_same_in_both_formats() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let dice = &mut Dice::new(seed);
        let table = random_table(dice);
        let avro = AvroTable::of(&table).unwrap();
        let schema = Schema::parse_str(avro.envelope_schema()).unwrap();
        for _ in 0..30 {
            for change in changes(&table, &random_mutation(&table, dice)) {
                let found = plain(&read_with(&schema, &avro.encode(&change).unwrap()));
                let expected = without_nulls(json_of(&change));
                kinds.insert(expected["op"].to_string());
                assert_eq!(
                    comparable(found, &table),
                    comparable(expected, &table),
                    "seed {seed}"
                );
            }
        }
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["\"d\"", "\"i\"", "\"r\"", "\"u\""]
    );
}

#[test]
fn a_truncation_has_no_key_and_nothing_after() {
    let table = TableBuilder::new("ks", "t", TableId(Uuid::from_u128(7)))
        .partition_key("k", CqlType::Int)
        .build();
    let avro = AvroTable::of(&table).unwrap();
    let body = table.id.0.as_bytes().to_vec();
    let [change] = &record_changes(&table, Kind::Truncate, body)[..] else {
        panic!("one change")
    };
    assert_eq!(avro.encode_key(change).unwrap(), None);
    let found = read(avro.envelope_schema(), &avro.encode(change).unwrap());
    assert_eq!(plain(&found), without_nulls(json_of(change)));
}

fn table(name: &str) -> TableBuilder {
    TableBuilder::new("ks", name, TableId(Uuid::from_u128(7))).partition_key("k", CqlType::Int)
}

/// An UPDATE of the partition 1 of a table without clustering.
fn update(table: &Arc<TableSchema>, columns: &[(&str, Data)]) -> Change {
    let mut row = Row::empty(Clustering::empty());
    for (name, data) in columns {
        let column = table.column_named(name).unwrap().id;
        let data = data.clone();
        row.columns.push(ColumnData { column, data });
    }
    row.columns.sort_by_key(|entry| entry.column);
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(&[0, 0, 0, 1]));
    let table = Arc::clone(table);
    let mutation = Mutation { table, key, update };
    let mut changes = changes(&mutation.table.clone(), &mutation);
    changes.pop().unwrap()
}

#[test]
fn every_type_has_its_value() {
    let uuid = "9f1bd1a0-8a0c-11ee-b9d1-0242ac120002";
    let cases = [
        (CqlType::Text, "Grüße", json!("Grüße")),
        (CqlType::TinyInt, "-7", json!(-7)),
        (CqlType::BigInt, "-9223372036854775808", json!(i64::MIN)),
        (
            CqlType::Varint,
            "123456789012345678901234567890",
            json!("123456789012345678901234567890"),
        ),
        (CqlType::Decimal, "-12", json!("-12")),
        (CqlType::Date, "1970-01-03", json!(2)),
        (CqlType::Date, "1969-12-31", json!(-1)),
        (CqlType::Time, "00:00:00.000000007", json!(7)),
        (CqlType::Timestamp, "1970-01-01T00:00:01.500Z", json!(1500)),
        (CqlType::Uuid, uuid, json!(uuid)),
        (CqlType::Inet, "::1", json!("::1")),
    ];
    for (ty, literal, expected) in cases {
        let table = table("t").regular("v", ty.clone()).build();
        let value = Bytes::from(ty.parse_plain(literal).unwrap());
        let change = update(&table, &[("v", Data::Simple(Cell::live(5, value)))]);
        let avro = AvroTable::of(&table).unwrap();
        let found = plain(&read(avro.envelope_schema(), &avro.encode(&change).unwrap()));
        let cell = json!({"value": expected, "set": true, "ts_us": 5});
        assert_eq!(found["after"]["v"], cell, "{ty} {literal}");
        let key = avro.encode_key(&change).unwrap().unwrap();
        assert_eq!(plain(&read(avro.key_schema(), &key)), json!({"k": 1}));
    }
}

#[test]
fn fields_of_an_unfrozen_user_type_have_their_own_times() {
    let definition = UserType {
        keyspace: "ks".to_owned(),
        name: "address".to_owned(),
        fields: vec![
            ("street".to_owned(), CqlType::Text),
            ("door number".to_owned(), CqlType::Int),
        ],
    };
    let home = CqlType::Udt {
        definition: Arc::new(definition),
        frozen: false,
    };
    let table = table("t").regular("home", home).build();
    let cells = vec![
        (Bytes::from_static(&[0, 0]), Cell::tombstone(9, 40)),
        (
            Bytes::from_static(&[0, 1]),
            Cell::live(8, Bytes::from_static(&[0, 0, 0, 3])),
        ),
    ];
    let deletion = DeletionTime::LIVE;
    let data = Data::Complex(Box::new(ComplexColumn { deletion, cells }));
    let change = update(&table, &[("home", data)]);
    let avro = AvroTable::of(&table).unwrap();
    let found = plain(&read(avro.envelope_schema(), &avro.encode(&change).unwrap()));
    let expected = json!({
        "street": {"deletion_ts": 40_000_000, "set": true, "ts_us": 9},
        "door_number": {"value": 3, "set": true, "ts_us": 8},
    });
    assert_eq!(found["after"]["home"]["value"], expected);
}

#[test]
fn names_that_avro_does_not_permit_are_replaced_and_kept_as_doc() {
    let table = table("My table").regular("Größe (cm)", CqlType::Int).build();
    let avro = AvroTable::of(&table).unwrap();
    let schema: Json = serde_json::from_str(avro.envelope_schema()).unwrap();
    assert_eq!(schema["namespace"], "ks.My_table");
    let text = avro.envelope_schema();
    assert!(text.contains(r#""name":"Gr__e__cm_""#), "{text}");
    assert!(text.contains(r#""doc":"CQL name: Größe (cm)""#), "{text}");
}

#[test]
fn a_reader_of_the_schema_after_alter_reads_what_was_written_before() {
    let nested = CqlType::Tuple([CqlType::Int, CqlType::Text].into());
    let before = table("t").regular("v", nested.clone()).build();
    let after = table("t")
        .regular("a", CqlType::Text)
        .regular("v", nested)
        .build();
    let schema = |table| Schema::parse_str(AvroTable::of(table).unwrap().envelope_schema()).unwrap();
    let (before, after) = (schema(&before), schema(&after));
    apache_avro::schema_compatibility::SchemaCompatibility::can_read(&before, &after).unwrap();
}

#[test]
fn a_file_has_a_head_and_blocks_that_the_library_reads() {
    let table = table("t").regular("v", CqlType::Text).build();
    let avro = AvroTable::of(&table).unwrap();
    let (mut file, mut written) = AvroFile::begin(avro.envelope_schema(), [7; 16]).unwrap();
    assert_eq!(file.take_block(), b"", "a block has changes");
    let mut blocks = 0;
    for number in 0..3000 {
        let value = Bytes::from(format!("value {number}"));
        let change = update(&table, &[("v", Data::Simple(Cell::live(number, value)))]);
        file.add(&avro.encode(&change).unwrap());
        if file.is_full() {
            written.extend(file.take_block());
            blocks += 1;
        }
    }
    written.extend(file.take_block());
    assert!(blocks > 1, "{blocks}");
    let values = Reader::new(&written[..])
        .unwrap()
        .map(|value| plain(&value.unwrap()));
    for (number, value) in (0..3000).zip(values) {
        let cell = json!({"value": format!("value {number}"), "set": true, "ts_us": number});
        assert_eq!(value["after"]["v"], cell);
    }
    assert_eq!(Reader::new(&written[..]).unwrap().count(), 3000);
}
