//! Data-driven: `testdata/*.txt`. `REWRITE=1 cargo test` writes the answers.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::json::Json;
use crate::{ConstantKind, CqlType, UserType, Value, hex};

fn ty(text: &str) -> CqlType {
    let point = || {
        let field = |name: &str, ty| (name.to_owned(), ty);
        Arc::new(UserType {
            keyspace: "ks".into(),
            name: "point".into(),
            fields: vec![field("x", CqlType::Int), field("Label", CqlType::Text)],
        })
    };
    CqlType::parse_cql(text, "ks", &|name| (name == "point").then(point)).unwrap()
}

/// `type: hex` a line.
fn values(input: &str, out: &mut String) {
    for line in input.lines() {
        let (name, digits) = line.rsplit_once(':').unwrap();
        let (ty, bytes) = (ty(name), hex::parse(digits.trim()).unwrap());
        match Value::decode(&ty, &bytes) {
            Err(error) => {
                let _ = writeln!(out, "{name}: {error}");
                assert!(ty.print_json(&bytes).is_err() && ty.print_literal(&bytes).is_err());
            }
            Ok(value) => {
                let _ = writeln!(
                    out,
                    "{name}: {} | {} | {}",
                    ty.print_literal(&bytes).unwrap(),
                    ty.print_json(&bytes).unwrap(),
                    ty.print_plain(&bytes).unwrap()
                );
                let again = Value::decode(&ty, &value.to_bytes(&ty).unwrap()).unwrap();
                assert!(again == value || format!("{value:?}").contains("NaN"), "{line}");
            }
        }
    }
}

fn kind(name: &str) -> ConstantKind {
    use ConstantKind::{Boolean, Duration, Float, Hex, Integer, String, Uuid};
    let kinds = [String, Integer, Float, Boolean, Uuid, Hex, Duration];
    kinds.into_iter().find(|kind| kind.name() == name).unwrap()
}

/// `type: KIND text` a line.
fn constants(input: &str, out: &mut String) {
    for line in input.lines() {
        let (name, constant) = line.split_once(": ").unwrap();
        let (kind_name, text) = constant.split_once(' ').unwrap();
        let answer = match ty(name).parse_plain(text) {
            _ if !ty(name).accepts_constant(kind(kind_name)) => "not accepted".to_owned(),
            Ok(bytes) => hex::print(&bytes),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(out, "{line} -> {answer}");
    }
}

/// `type: json` a line.
fn json(input: &str, out: &mut String) {
    for line in input.lines() {
        let (name, text) = line.split_once(": ").unwrap();
        let answer = match Json::parse(text).and_then(|json| ty(name).parse_json(&json)) {
            Ok(Some(bytes)) => hex::print(&bytes),
            Ok(None) => "null".to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(out, "{line} -> {answer}");
    }
}

#[test]
fn values_constants_and_json_mean_what_the_files_say() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        file.run(|test| -> String {
            let mut out = String::new();
            match test.directive.as_str() {
                "values" => values(&test.input, &mut out),
                "constants" => constants(&test.input, &mut out),
                "json" => json(&test.input, &mut out),
                other => panic!("unknown directive {other}"),
            }
            out
        });
    });
}
