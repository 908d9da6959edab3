//! A printed tree parses to the same tree.

use ilion_cql::{Parsed, parse, parse_term, parse_type, quote_identifier};

use crate::generator::{Generator, NAMES};

#[test]
fn printed_statements_parse_to_the_same_tree() {
    for seed in 0..6000 {
        let mut generator = Generator::new(seed);
        let statement = generator.statement();
        let printed = statement.to_string();
        let parsed =
            parse(&printed).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{printed}\n{statement:#?}"));
        assert_eq!(
            parsed,
            Parsed {
                statement,
                markers: generator.markers
            },
            "seed {seed}: {printed}"
        );
    }
}

#[test]
fn printed_types_and_terms_parse_to_the_same_tree() {
    for seed in 0..2000 {
        let mut generator = Generator::new(seed);
        let type_name = generator.type_name(3);
        assert_eq!(parse_type(&type_name.to_string()), Ok(type_name), "seed {seed}");
        let term = generator.term(4);
        assert_eq!(parse_term(&term.to_string()), Ok(term), "seed {seed}");
    }
}

#[test]
fn quoted_names_are_read_back() {
    for name in NAMES {
        let text = format!("USE {}", quote_identifier(name));
        assert_eq!(
            parse(&text).map(|parsed| parsed.statement),
            Ok(ilion_cql::ast::Statement::Use((*name).into()))
        );
    }
}
