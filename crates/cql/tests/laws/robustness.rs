//! No text panics or hangs.

use ilion_cql::{parse, parse_term, parse_type, split_statements};

use crate::generator::Generator;
use crate::random::Random;

/// Characters with a meaning for the lexer, and some without.
const ALPHABET: &str = "abePyT019 '\"$()[]{}<>,;:.?*+-/%=!_\n\t#\u{b5}\u{e9}\u{1F600}";
const WORDS: [&str; 14] = [
    "SELECT", "FROM", "WHERE", "AND", "NULL", "IN", "IF", "NaN", "$$", "--", "/*", "0x", "1y2mo", "expr(",
];

#[test]
fn mangled_statements_give_trees_or_errors() {
    let alphabet: Vec<char> = ALPHABET.chars().collect();
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let text = Generator::new(seed).statement().to_string();
        for _ in 0..4 {
            let mangled = mangle(&text, &alphabet, &mut random);
            // A tree that is parsed all the same must print and parse like any other.
            if let Ok(parsed) = parse(&mangled) {
                let printed = parsed.statement.to_string();
                assert_eq!(
                    parse(&printed).as_ref(),
                    Ok(&parsed),
                    "seed {seed}: {mangled}\nprinted: {printed}"
                );
            }
            let _ = (
                parse_term(&mangled),
                parse_type(&mangled),
                split_statements(&mangled),
            );
        }
    }
}

fn mangle(text: &str, alphabet: &[char], random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        if chars.is_empty() {
            break;
        }
        let at = random.below(chars.len());
        match random.below(6) {
            0 => chars.truncate(at),
            1 => drop(chars.remove(at)),
            2 => chars.insert(at, *random.pick(alphabet)),
            3 => chars[at] = *random.pick(alphabet),
            4 => drop(chars.splice(at..at, random.pick(&WORDS).chars())),
            _ => {
                let other = random.below(chars.len());
                chars.swap(at, other);
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn every_prefix_of_a_statement_gives_a_tree_or_an_error() {
    for seed in 0..60 {
        let text = Generator::new(seed).statement().to_string();
        for (at, _) in text.char_indices() {
            let _ = parse(&text[..at]);
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_too_deep_nesting_is_not() {
    let shapes: [(&str, &str, &str); 9] = [
        ("INSERT INTO t (a) VALUES (", "[", "]"),
        ("INSERT INTO t (a) VALUES (", "(", ")"),
        ("INSERT INTO t (a) VALUES (", "{1: ", "}"),
        ("INSERT INTO t (a) VALUES (", "{f: ", "}"),
        ("INSERT INTO t (a) VALUES (", "f(", ")"),
        ("INSERT INTO t (a) VALUES (", "(int) ", ""),
        ("SELECT (", "(", ")"),
        ("SELECT (", "- ", ""),
        ("SELECT (", "CAST(", " AS int)"),
    ];
    for (start, open, close) in shapes {
        let end = if start.starts_with("SELECT") {
            ") FROM t"
        } else {
            ")"
        };
        let nest = |depth| format!("{start}{}1{}{end}", open.repeat(depth), close.repeat(depth));
        let shallow = parse(&nest(60)).unwrap_or_else(|error| panic!("{open}: {error}"));
        drop(format!("{shallow:?} {}", shallow.statement.clone()));
        let error = parse(&nest(100_000)).expect_err("too deep");
        assert!(error.message.contains("nested deeper"), "{open}: {error}");
    }
}

#[test]
fn deep_types_relations_and_sums_are_refused() {
    for text in [
        format!(
            "CREATE TABLE t (a {}int{} PRIMARY KEY)",
            "list<".repeat(100_000),
            ">".repeat(100_000)
        ),
        format!(
            "SELECT * FROM t WHERE {}a = 1{}",
            "(".repeat(100_000),
            ")".repeat(100_000)
        ),
        format!("SELECT 1{} FROM t", " + 1".repeat(100_000)),
        format!("SELECT a{} FROM t", ".b".repeat(100_000)),
        format!("INSERT INTO t (a) VALUES (1{})", " * 1".repeat(100_000)),
        format!(
            "INSERT INTO t (a) VALUES ([{}1{}])",
            "1 - [".repeat(100_000),
            "]".repeat(100_000)
        ),
    ] {
        let error = parse(&text).expect_err("too deep");
        assert!(error.message.contains("nested deeper"), "{error}");
    }
}

#[test]
fn long_statements_are_no_deep_ones() {
    let many = |item: &str| vec![item; 20_000].join(", ");
    for text in [
        format!("INSERT INTO t (a) VALUES ([{}])", many("1 + 1")),
        format!("INSERT INTO t (a) VALUES ({{{}}})", many("[1]: (int) 2")),
        format!("SELECT {} FROM t", many("(a + b)[1].c")),
        format!("SELECT {} FROM t", many("(1)")),
        format!("SELECT {} FROM t", many("-(ttl)")),
        format!("UPDATE t SET {} WHERE k = 1", many("a[1] = 2")),
    ] {
        parse(&text).unwrap_or_else(|error| panic!("{error}"));
    }
}
