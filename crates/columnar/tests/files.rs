//! Rows that go into a file and come back, rows of other programs, and damaged files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, FixedSizeBinaryArray, Float32Array, Int64Array, LargeStringArray, RecordBatch,
    TimestampMicrosecondArray, UInt8Array,
};
use arrow_ipc::reader::FileReader;
use ilion_columnar::{FileKind, RowReader, RowWriter};
use ilion_env::{Env, MemEnv, ReadFile};
use ilion_types::CqlType;
use parquet::arrow::ArrowWriter;

/// Rows of serialized values.
type Table = Vec<Vec<Option<Vec<u8>>>>;

/// Types, each with values that are printed as they are parsed.
const VALUES: [(&str, &[&str]); 19] = [
    ("ascii", &["", "a"]),
    ("text", &["", "ä\n日本"]),
    ("blob", &["0x", "0xcafe"]),
    ("boolean", &["true", "false"]),
    ("tinyint", &["-128", "127"]),
    ("smallint", &["-32768", "1"]),
    ("int", &["-2147483648", "7"]),
    ("bigint", &["-9223372036854775808", "7"]),
    ("varint", &["-123456789012345678901234567890"]),
    ("decimal", &["1.50", "-0.001"]),
    ("float", &["0.1", "-1.0E10"]),
    ("double", &["0.1", "123456.789"]),
    ("date", &["2026-01-02", "1969-12-31"]),
    ("time", &["03:04:05.000000001"]),
    ("timestamp", &["1969-12-31T23:59:59.999Z"]),
    ("duration", &["1y2mo3d4h5m6s7ms8us9ns", "-1d"]),
    ("inet", &["::1", "127.0.0.1"]),
    ("uuid", &["123e4567-e89b-42d3-a456-426614174000"]),
    ("timeuuid", &["123e4567-e89b-12d3-a456-426614174000"]),
];

fn parse_type(cql: &str) -> CqlType {
    CqlType::parse_cql(cql, "ks", &|_| None).unwrap()
}

/// A value of each type that has parts.
fn compounds() -> Vec<(CqlType, Vec<u8>)> {
    let int = |value: i32| value.to_be_bytes();
    let (one, two) = (int(1), int(2));
    let list = ilion_types::encode_list([&one[..], &two]);
    vec![
        (parse_type("list<int>"), list.clone()),
        (parse_type("list<int>"), ilion_types::encode_list([])),
        (
            parse_type("set<text>"),
            ilion_types::encode_list([&b"a"[..], b"b"]),
        ),
        (
            parse_type("map<text, frozen<list<int>>>"),
            ilion_types::encode_map([(&b"k"[..], &list[..]), (b"l", &list)]),
        ),
        (
            parse_type("tuple<int, text, frozen<list<int>>>"),
            ilion_types::encode_tuple([Some(&one[..]), None, Some(&list)]),
        ),
        (
            parse_type("vector<float, 2>"),
            [1.5f32.to_be_bytes(), (-0.5f32).to_be_bytes()].concat(),
        ),
    ]
}

/// Every type with a value, and with null.
fn rows() -> (Vec<(String, CqlType)>, Table) {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (cql, texts) in VALUES {
        let cql_type = parse_type(cql);
        let parsed: Vec<_> = texts
            .iter()
            .map(|text| cql_type.parse_plain(text).unwrap())
            .collect();
        columns.push((cql.to_owned(), cql_type));
        values.push(parsed);
    }
    for (index, (cql_type, value)) in compounds().into_iter().enumerate() {
        columns.push((format!("compound {index}"), cql_type));
        values.push(vec![value]);
    }
    let row = |index: usize| values.iter().map(|of_type| of_type.get(index).cloned()).collect();
    // The last row has nulls only.
    (columns, (0..3).map(row).collect())
}

fn encode(kind: FileKind, columns: &[(String, CqlType)], rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
    let named: Vec<_> = columns
        .iter()
        .map(|(name, cql_type)| (name.as_str(), cql_type))
        .collect();
    let mut writer = RowWriter::new(kind, &named).unwrap();
    let mut bytes = Vec::new();
    for row in rows {
        let row = row.iter().map(Option::as_deref).collect();
        bytes.extend(writer.write(&[row]).unwrap());
    }
    bytes.extend(writer.finish().unwrap());
    bytes
}

fn file(bytes: &[u8]) -> Arc<dyn ReadFile> {
    let env = MemEnv::new(1);
    env.create_or_truncate(Path::new("/f"))
        .unwrap()
        .append(bytes)
        .unwrap();
    env.open_read(Path::new("/f")).unwrap()
}

/// All rows of a file, or what is wrong.
fn read(bytes: &[u8], columns: Vec<(String, CqlType)>) -> Result<Table, String> {
    let text = |error: ilion_columnar::Error| error.to_string();
    let mut reader = RowReader::open(file(bytes))
        .map_err(text)?
        .read(columns, 0)
        .map_err(text)?;
    let mut all = Vec::new();
    while let Some(rows) = reader.next_rows().map_err(text)? {
        for row in rows {
            let row = row
                .into_iter()
                .map(|cell| cell.map_err(|wrong| format!("{:?}: {}", wrong.text, wrong.problem)));
            all.push(row.collect::<Result<_, _>>()?);
        }
    }
    Ok(all)
}

#[test]
fn every_type_comes_back_from_a_parquet_file() {
    let (columns, rows) = rows();
    let bytes = encode(FileKind::Parquet, &columns, &rows);
    let opened = RowReader::open(file(&bytes)).unwrap();
    assert_eq!(opened.row_count(), 3);
    assert_eq!(
        opened.column_names(),
        columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    );
    let back = read(&bytes, columns.clone()).unwrap();
    for (index, (name, _)) in columns.iter().enumerate() {
        let column =
            |rows: &[Vec<Option<Vec<u8>>>]| rows.iter().map(|row| row[index].clone()).collect::<Vec<_>>();
        assert_eq!(column(&back), column(&rows), "{name}");
    }
    // Some columns, in another order.
    let some = vec![columns[6].clone(), columns[0].clone()];
    assert_eq!(
        read(&bytes, some).unwrap()[0],
        [rows[0][6].clone(), rows[0][0].clone()]
    );
}

#[test]
fn every_type_is_in_an_arrow_file() {
    let (columns, rows) = rows();
    let bytes = encode(FileKind::Arrow, &columns, &rows);
    let batches: Vec<RecordBatch> = FileReader::try_new(Cursor::new(bytes), None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(batches.len(), 3);
    let types: Vec<String> = batches[0]
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().to_string())
        .collect();
    assert_eq!(types[6..8], ["Int32", "Int64"]);
    assert_eq!(types[15], "Interval(MonthDayNano)");
    for index in 0..columns.len() {
        let is_null = |batch: usize| batches[batch].column(index).null_count() == 1;
        assert_eq!(
            [0, 1, 2].map(is_null),
            [0, 1, 2].map(|row| rows[row][index].is_none()),
            "{}",
            columns[index].0
        );
    }
}

#[test]
fn a_result_without_rows_is_a_file_too() {
    let (columns, _) = rows();
    let bytes = encode(FileKind::Parquet, &columns, &[]);
    assert_eq!(read(&bytes, columns).unwrap().len(), 0);
}

/// A Parquet file of another program, with one column.
fn foreign(array: impl Into<ArrayRef>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("c", array.into())]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn column(array: impl Into<ArrayRef>, cql: &str) -> Result<String, String> {
    let cql_type = parse_type(cql);
    let rows = read(&foreign(array), vec![("c".to_owned(), cql_type.clone())])?;
    let cell = rows[0][0].clone().unwrap();
    Ok(cql_type.print_plain(&cell).unwrap())
}

fn array(array: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

#[test]
fn values_of_other_types_are_converted_where_nothing_is_lost() {
    assert_eq!(column(array(Int64Array::from(vec![7])), "int").unwrap(), "7");
    assert_eq!(
        column(array(UInt8Array::from(vec![200])), "smallint").unwrap(),
        "200"
    );
    assert_eq!(column(array(Int64Array::from(vec![7])), "varint").unwrap(), "7");
    assert_eq!(column(array(Int64Array::from(vec![7])), "text").unwrap(), "7");
    assert_eq!(
        column(array(Float32Array::from(vec![1.5])), "double").unwrap(),
        "1.5"
    );
    assert_eq!(
        column(array(LargeStringArray::from(vec!["1.50"])), "decimal").unwrap(),
        "1.50"
    );
    let decimal = Decimal128Array::from(vec![150])
        .with_precision_and_scale(10, 2)
        .unwrap();
    assert_eq!(column(array(decimal), "decimal").unwrap(), "1.50");
    let micros = TimestampMicrosecondArray::from(vec![-1]);
    assert_eq!(
        column(array(micros), "timestamp").unwrap(),
        "1969-12-31T23:59:59.999Z"
    );
    let uuid = FixedSizeBinaryArray::try_from_iter([[7u8; 16]].into_iter()).unwrap();
    assert_eq!(
        column(array(uuid.clone()), "uuid").unwrap(),
        "07070707-0707-0707-0707-070707070707"
    );

    let large = column(array(Int64Array::from(vec![1 << 40])), "int").unwrap_err();
    assert!(large.contains("1099511627776"), "{large}");
    assert!(column(array(uuid), "timeuuid").is_err());
    assert!(column(array(Int64Array::from(vec![7])), "list<int>").is_err());
    assert!(column(array(Int64Array::from(vec![7])), "blob").is_err());
    let missing = read(
        &foreign(array(Int64Array::from(vec![7]))),
        vec![("d".to_owned(), CqlType::Int)],
    );
    assert_eq!(missing.unwrap_err(), "the file has no column d");
}

#[test]
fn values_that_are_none_of_their_type_are_errors() {
    for (cql, bytes) in [
        ("int", &b"abc"[..]),
        ("text", b"\xff"),
        ("list<int>", b"abc"),
        ("decimal", b"ab"),
    ] {
        let cql_type = parse_type(cql);
        for kind in [FileKind::Parquet, FileKind::Arrow] {
            let mut writer = RowWriter::new(kind, &[("c", &cql_type)]).unwrap();
            let problem = writer.write(&[vec![Some(bytes)]]).unwrap_err().to_string();
            assert!(problem.starts_with("column c: "), "{problem}");
        }
    }
}

#[test]
fn damaged_files_are_errors() {
    let (columns, rows) = rows();
    let bytes = encode(FileKind::Parquet, &columns, &rows);
    assert!(read(b"no Parquet file", columns.clone()).is_err());
    assert!(read(&bytes[..bytes.len() - 1], columns.clone()).is_err());
    // The length of the footer.
    let mut damaged = bytes.clone();
    let at = damaged.len() - 8;
    damaged[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    assert!(read(&damaged, columns).is_err());
}

#[test]
fn a_parquet_file_is_continued_behind_a_row_group() {
    let columns = [("k", &CqlType::Int), ("v", &CqlType::Text)];
    let write = |writer: &mut RowWriter, keys: std::ops::Range<i32>| {
        let rows: Vec<_> = keys
            .map(|key| (key.to_be_bytes(), format!("text {key}")))
            .collect();
        let cells = rows.iter();
        let cells: Vec<_> = cells
            .map(|(key, text)| vec![Some(&key[..]), Some(text.as_bytes())])
            .collect();
        writer.write(&cells).unwrap()
    };
    let pages = (0..6).map(|page| page * 40_000..(page + 1) * 40_000);

    let mut writer = RowWriter::new(FileKind::Parquet, &columns).unwrap();
    let (mut whole, mut places) = (Vec::new(), Vec::new());
    for page in pages.clone() {
        whole.extend(write(&mut writer, page));
        if let Some(footer) = writer.footer().unwrap() {
            places.push((whole.len(), footer));
        }
    }
    whole.extend(writer.finish().unwrap());
    assert_eq!(places.len(), 3, "two pages fit into a row group");

    // A new writer behind each row group.
    let mut parts = whole[..places[0].0].to_vec();
    for (place, two_pages) in places.iter().zip(pages.collect::<Vec<_>>().chunks(2).skip(1)) {
        let (size, footer) = place;
        parts.truncate(*size);
        let mut writer = RowWriter::resume(&columns, *size as u64, footer).unwrap();
        for keys in two_pages {
            parts.extend(write(&mut writer, keys.clone()));
        }
        parts.extend(writer.finish().unwrap());
    }
    // The library does not write all that it reads of a footer.
    assert!(parts[..places[2].0] == whole[..places[2].0]);
    let read = read(
        &parts,
        columns
            .map(|(name, cql_type)| (name.to_owned(), cql_type.clone()))
            .to_vec(),
    )
    .unwrap();
    let keys = read.iter().map(|row| row[0].clone().unwrap());
    assert!(keys.eq((0..240_000).map(|key: i32| key.to_be_bytes().to_vec())));

    // A writer that ends early has a file that can be read.
    let (size, footer) = &places[1];
    let early = [&whole[..*size], footer].concat();
    assert_eq!(RowReader::open(file(&early)).unwrap().row_count(), 160_000);
}

#[test]
fn a_parquet_file_is_not_continued_if_the_footer_does_not_fit() {
    let columns = [("k", &CqlType::Int)];
    let mut writer = RowWriter::new(FileKind::Parquet, &columns).unwrap();
    // After so many rows, another page would not fit into the row group.
    let rows = vec![vec![Some(&[0; 4][..])]; 60_000];
    let size = writer.write(&rows).unwrap().len() as u64;
    let footer = writer.footer().unwrap().unwrap();
    let problem = |columns: &[(&str, &CqlType)], size: u64, footer: &[u8]| {
        RowWriter::resume(columns, size, footer)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(problem(&columns, size, &footer), None);
    let other = problem(&[("k", &CqlType::Text)], size, &footer);
    assert!(other.unwrap().contains("other columns"));
    assert!(
        problem(&columns, size - 1, &footer)
            .unwrap()
            .contains("another size")
    );
    for end in 0..footer.len() {
        assert!(problem(&columns, size, &footer[..end]).is_some(), "{end}");
    }
    // A changed byte is refused, or is one that does not matter here; it never ends the program.
    for at in 0..footer.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut changed = footer.clone();
            changed[at] ^= change;
            if let Ok(mut writer) = RowWriter::resume(&columns, size, &changed) {
                writer.write(&rows[..10]).unwrap();
                drop(writer.finish());
            }
        }
    }
}
