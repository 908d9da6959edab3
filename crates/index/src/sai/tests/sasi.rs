//! Tests of SASI's options, and of LIKE against a check of every text.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use ilion_env::Seeded;
use ilion_rows::{Cell, Clustering, ColumnData, Data, DecoratedKey, Row};
use ilion_schema::{IndexKind, IndexSchema};
use ilion_types::Partitioner;

use super::model::table;
use super::{attached, places_of};
use crate::{Definition, IndexClass, Predicate, RowChange, RowPart, Sasi, SecondaryIndex};

fn definition(target: &str, options: &[(&str, &str)]) -> Definition {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut all: BTreeMap<String, String> = options.iter().map(owned).collect();
    all.insert("target".to_owned(), target.to_owned());
    let schema = IndexSchema {
        name: "idx".to_owned(),
        table: "t".to_owned(),
        kind: IndexKind::Custom,
        options: all,
    };
    Definition::of(&Arc::new(schema), &table()).unwrap()
}

fn open(options: &[(&str, &str)]) -> Arc<dyn SecondaryIndex> {
    Sasi.open(definition("t", options)).unwrap()
}

const NON_TOKENIZING: &str = "org.apache.cassandra.index.sasi.analyzer.NonTokenizingAnalyzer";
const STANDARD: &str = "org.apache.cassandra.index.sasi.analyzer.StandardAnalyzer";
const DELIMITER: &str = "org.apache.cassandra.index.sasi.analyzer.DelimiterAnalyzer";

#[test]
fn wrong_options_are_refused_as_cassandra_refuses_them() {
    for (target, options, message) in [
        ("t", &[("mode", "X")][..], "Incorrect index mode: X"),
        (
            "t",
            &[("mode", "SPARSE")],
            "SPARSE mode is only supported on non-literal columns.",
        ),
        ("q", &[], "partition key columns are not yet supported by SASI"),
        ("values(l)", &[], "complex columns are not yet supported by SASI"),
        (
            "i",
            &[("analyzer_class", NON_TOKENIZING)],
            "NonTokenizingAnalyzer does not support type int",
        ),
        (
            "t",
            &[("analyzer_class", "x.Y")],
            "Unable to find analyzer class 'x.Y'",
        ),
        (
            "t",
            &[
                ("analyzer_class", NON_TOKENIZING),
                ("case_sensitive", "false"),
                ("normalize_lowercase", "true"),
            ],
            "case_sensitive option cannot be specified together with either normalize_lowercase or \
             normalize_uppercase",
        ),
        (
            "t",
            &[("analyzer_class", DELIMITER), ("delimiter", "ab")],
            "Only single character delimiters supported, was ab",
        ),
    ] {
        let refused = Sasi.validate(&definition(target, options));
        assert_eq!(refused.unwrap_err().to_string(), message);
    }
    Sasi.validate(&definition("i", &[("mode", "sparse")])).unwrap();
}

#[test]
fn a_mode_serves_its_predicates() {
    let like = [
        Predicate::LikeEqual("a".into()),
        Predicate::LikePrefix("a".into()),
        Predicate::LikeSuffix("a".into()),
        Predicate::LikeContains("a".into()),
        Predicate::Equal("a".into()),
        Predicate::Range { from: None, to: None },
    ];
    for (target, options, expected) in [
        ("t", &[][..], "LP--E-"),
        ("t", &[("mode", "CONTAINS")], "LPSCE-"),
        ("t", &[("mode", "PREFIX"), ("is_literal", "false")], "----ER"),
        ("t", &[("analyzer_class", STANDARD)], "LP----"),
        (
            "t",
            &[("analyzer_class", STANDARD), ("mode", "CONTAINS")],
            "L-SC--",
        ),
        ("i", &[], "----ER"),
        ("i", &[("mode", "SPARSE")], "----ER"),
    ] {
        let index = Sasi.open(definition(target, options)).unwrap();
        let served: String = like
            .iter()
            .zip("LPSCER".chars())
            .map(|(predicate, letter)| if index.serves(predicate) { letter } else { '-' })
            .collect();
        assert_eq!(served, expected, "{target} {options:?}");
    }
}

/// CQL's LIKE.
fn is_like(predicate: &Predicate, text: &str) -> bool {
    let part = |bytes: &bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    match predicate {
        Predicate::LikeEqual(wanted) => text == part(wanted),
        Predicate::LikePrefix(wanted) => text.starts_with(&part(wanted)),
        Predicate::LikeSuffix(wanted) => text.ends_with(&part(wanted)),
        Predicate::LikeContains(wanted) => text.contains(&part(wanted)),
        _ => false,
    }
}

fn random_text(random: &mut Seeded, most: u64) -> String {
    let letters = ['a', 'b', '\u{E9}', 'A'];
    (0..random.below(most))
        .map(|_| letters[random.below(4) as usize])
        .collect()
}

#[test]
fn like_finds_the_texts_that_are_like_it() {
    let mut random = Seeded::new(41);
    let sensitive = [("mode", "CONTAINS")];
    let insensitive = [
        ("mode", "CONTAINS"),
        ("analyzer_class", NON_TOKENIZING),
        ("case_sensitive", "false"),
    ];
    for (options, folds) in [(&[][..], false), (&sensitive, false), (&insensitive, true)] {
        let index = open(options);
        let memtable = attached(&*index).begin_memtable();
        let column = table().column_named("t").unwrap().id;
        let fold = |text: &str| {
            if folds {
                text.to_lowercase()
            } else {
                text.to_owned()
            }
        };
        let texts: Vec<String> = (0..300).map(|_| random_text(&mut random, 9)).collect();
        for (number, text) in texts.iter().enumerate() {
            let key = DecoratedKey::new(
                Partitioner::ByteOrdered,
                (number as u32).to_be_bytes().to_vec().into(),
            );
            let mut row = Row::empty(Clustering::of(["a".into(), "b".into()]));
            row.columns.push(ColumnData {
                column,
                data: Data::Simple(Cell::live(1, text.clone().into())),
            });
            let change = RowChange {
                before: None,
                after: &row,
            };
            memtable.apply(&key, change, &mut Vec::new());
        }
        for _ in 0..60 {
            let part = random_text(&mut random, 4);
            let wanted = || bytes::Bytes::from(part.clone());
            let predicates = [
                Predicate::LikeEqual(wanted()),
                Predicate::LikePrefix(wanted()),
                Predicate::LikeSuffix(wanted()),
                Predicate::LikeContains(wanted()),
            ];
            let folded = [fold(&part)].map(bytes::Bytes::from);
            for predicate in predicates.iter().filter(|predicate| index.serves(predicate)) {
                let mut exact = predicate.clone();
                if let Predicate::LikeEqual(wanted)
                | Predicate::LikePrefix(wanted)
                | Predicate::LikeSuffix(wanted)
                | Predicate::LikeContains(wanted) = &mut exact
                {
                    wanted.clone_from(&folded[0]);
                }
                let expected: Vec<usize> = (0..texts.len())
                    .filter(|number| is_like(&exact, &fold(&texts[*number])))
                    .collect();
                let found: Vec<usize> = places_of(&mut *memtable.search(predicate))
                    .iter()
                    .map(|place| {
                        assert!(matches!(place.row, RowPart::Row(_)));
                        u32::from_be_bytes(*place.key.key.first_chunk().unwrap()) as usize
                    })
                    .collect();
                assert_eq!(found, expected, "{predicate:?}");
                for text in &texts {
                    let passes = index.passes(predicate, text.as_bytes());
                    let expected = folds.then(|| is_like(&exact, &fold(text)));
                    assert!(passes == expected || part.is_empty(), "{predicate:?} {text}");
                }
            }
        }
    }
}

#[test]
fn every_token_of_a_pattern_must_be_there() {
    let index = open(&[
        ("analyzer_class", STANDARD),
        ("tokenization_normalize_lowercase", "true"),
    ]);
    let passes =
        |pattern: &'static str| index.passes(&Predicate::LikeEqual(pattern.into()), b"The quick fox");
    assert_eq!(passes("quick"), Some(true));
    assert_eq!(passes("Fox the"), Some(true));
    assert_eq!(passes("quick dog"), Some(false));
    let mut terms = Vec::new();
    let analyzer = super::super::sasi::check(&definition("t", &[("analyzer_class", DELIMITER)]))
        .unwrap()
        .analyzer;
    let Ok(()) = analyzer.each_token(b"a,b c", &mut |token| {
        terms.push(token.to_vec());
        Ok::<(), Infallible>(())
    });
    assert_eq!(terms, [&b"a"[..], b"b c"]);
}
