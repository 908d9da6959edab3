//! CQL text.

use ilion_cql::{parse, parse_term, parse_type, split_statements};

/// Parses, prints, and parses what was printed.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = (parse_term(text), parse_type(text), split_statements(text));
    if let Ok(parsed) = parse(text) {
        let printed = parsed.statement.to_string();
        assert_eq!(parse(&printed).as_ref(), Ok(&parsed), "{printed}");
    }
}
