//! Tests of options, and of the errors about wrong ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_schema::{IndexKind, IndexSchema};

use super::model::table;
use crate::{Definition, IndexClass, Predicate, Sai};

fn definition(target: &str, options: &[(&str, &str)]) -> Definition {
    let mut all: BTreeMap<String, String> = BTreeMap::from([("target".to_owned(), target.to_owned())]);
    all.extend(
        options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let schema = IndexSchema {
        name: "idx".to_owned(),
        table: "t".to_owned(),
        kind: IndexKind::Custom,
        options: all,
    };
    Definition::of(&Arc::new(schema), &table()).unwrap()
}

#[test]
fn wrong_options_are_refused_as_cassandra_refuses_them() {
    for (target, options, message) in [
        (
            "i",
            &[("x", "1")][..],
            "Properties specified [x] are not understood by StorageAttachedIndex",
        ),
        ("i", &[("ascii", "true")], "CQL type int cannot be analyzed."),
        ("t", &[("ascii", "")], "Empty value for boolean option 'ascii'"),
        (
            "t",
            &[("normalize", "yes")],
            "Illegal value for boolean option 'normalize': yes",
        ),
        (
            "b",
            &[("case_sensitive", "false")],
            "Analysis options are not supported on primary key columns, but found {'case_sensitive': 'false'}",
        ),
        (
            "i",
            &[("similarity_function", "dot")],
            "CQL type int cannot have vector options",
        ),
        (
            "i",
            &[("index_analyzer", "standard")],
            "CQL type int cannot be analyzed.",
        ),
        (
            "t",
            &[("index_analyzer", "porter")],
            "Unknown index_analyzer 'porter': it is one of standard, simple, whitespace, lowercase, keyword",
        ),
        (
            "t",
            &[("index_analyzer", "standard"), ("ascii", "true")],
            "index_analyzer cannot be given together with ascii, case_sensitive, normalize",
        ),
    ] {
        let refused = Sai.validate(&definition(target, options));
        assert_eq!(refused.unwrap_err().to_string(), message);
    }
    Sai.validate(&definition("t", &[("ascii", "TRUE"), ("class_name", "sai")]))
        .unwrap();
}

#[test]
fn an_analyzer_says_what_is_equal() {
    let insensitive = Sai.open(definition("t", &[("case_sensitive", "false")])).unwrap();
    let wanted = Predicate::Equal("ABC".into());
    assert_eq!(insensitive.passes(&wanted, b"aBc"), Some(true));
    assert_eq!(insensitive.passes(&wanted, b"abd"), Some(false));
    let exact = Sai.open(definition("t", &[])).unwrap();
    assert_eq!(exact.passes(&wanted, b"ABC"), None);
}

#[test]
fn an_index_serves_what_cassandra_lets_it_serve() {
    let range = Predicate::Range { from: None, to: None };
    let equal = Predicate::Equal("x".into());
    for (target, serves_equal, serves_range) in [
        ("t", true, false),
        ("i", true, true),
        ("u", true, false),
        ("bo", true, false),
        ("ip", true, true),
        ("a", true, true),
        ("full(fl)", true, false),
        ("values(l)", false, false),
    ] {
        let index = Sai.open(definition(target, &[])).unwrap();
        assert_eq!(
            (index.serves(&equal), index.serves(&range)),
            (serves_equal, serves_range),
            "{target}"
        );
        assert!(!index.serves(&Predicate::LikePrefix("x".into())));
        assert!(!index.serves(&Predicate::Matches("x".into())));
    }
}

#[test]
fn an_index_with_an_analyzer_of_words_is_asked_for_matches_only() {
    let index = Sai
        .open(definition("t", &[("index_analyzer", "Standard")]))
        .unwrap();
    let matches = |wanted: &'static str, text: &str| {
        index.passes(&Predicate::Matches(wanted.as_bytes().into()), text.as_bytes())
    };
    assert!(index.serves(&Predicate::Matches("x".into())));
    assert!(!index.serves(&Predicate::Equal("x".into())));
    assert_eq!(index.passes(&Predicate::Equal("x".into()), b"x"), None);
    assert_eq!(matches("quick FOX", "The quick, brown fox."), Some(true));
    assert_eq!(matches("quick wolf", "The quick, brown fox."), Some(false));
    assert_eq!(matches("", "The quick, brown fox."), Some(false));
}
