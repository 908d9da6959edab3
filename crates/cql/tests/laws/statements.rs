//! `testdata/*.txt`.
//!
//! `parse`: every line of the input is one statement; the output has it as the tree prints it, with its markers, or the
//! error under a caret. `tree`: the whole input is one statement, the output its tree. `type`, `term`: every line is one.
//! `split`: the input is a script, the output its statements. `shape`: every line is one statement, the output its shape.

use std::fmt::Write;

use ilion_cql::{Error, parse, parse_term, parse_type, shape, split_statements};

#[test]
fn texts_become_trees_or_errors() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        file.run(|case| match case.directive.as_str() {
            "parse" => each_line(&case.input, parsed),
            "tree" => format!("{:#?}\n", parse(&case.input).expect("a statement").statement),
            "type" => each_line(&case.input, |text| {
                parse_type(text).map(|parsed| parsed.to_string())
            }),
            "term" => each_line(&case.input, |text| {
                parse_term(text).map(|parsed| parsed.to_string())
            }),
            "shape" => case.input.lines().fold(String::new(), |mut out, line| {
                let shape = shape(line).unwrap_or_else(|| "-- no tokens".to_owned());
                writeln!(out, "{shape}").expect("strings grow");
                out
            }),
            "split" => split_statements(&case.input)
                .iter()
                .fold(String::new(), |mut out, statement| {
                    writeln!(out, "{statement:?}").expect("strings grow");
                    out
                }),
            other => panic!("no directive {other}"),
        });
    });
}

fn each_line(input: &str, print: impl Fn(&str) -> Result<String, Error>) -> String {
    let mut out = String::new();
    for line in input.lines() {
        match print(line) {
            Ok(printed) => out.push_str(&printed),
            Err(error) => {
                let place = usize::try_from(error.column).unwrap_or(line.chars().count());
                let caret = if error.message == error.to_string() {
                    String::new()
                } else {
                    " ".repeat(place) + "^\n"
                };
                let shown = if caret.is_empty() { "" } else { line };
                let gap = if caret.is_empty() { "" } else { "\n" };
                write!(out, "{shown}{gap}{caret}{error}").expect("strings grow");
            }
        }
        out.push('\n');
    }
    out
}

fn parsed(text: &str) -> Result<String, Error> {
    let parsed = parse(text)?;
    let printed = parsed.statement.to_string();
    assert_eq!(parse(&printed).as_ref(), Ok(&parsed), "printed as {printed}");
    if parsed.markers.is_empty() {
        return Ok(printed);
    }
    let names = parsed
        .markers
        .iter()
        .map(|marker| marker.name.as_deref().unwrap_or("?"));
    Ok(format!("{printed}  -- {}", names.collect::<Vec<_>>().join(", ")))
}
