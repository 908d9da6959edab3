//! `dump` beside `sstabledump`.

use super::super::dump::print;
use super::super::{DumpArguments, Files};
use super::{Fixture, fixtures, real_env, small_fixtures, text};

fn arguments(fixture: &Fixture) -> DumpArguments {
    DumpArguments {
        annotate: false,
        debug: false,
        files: Files {
            files: vec![fixture.data.clone()],
        },
        lines: false,
        raw_times: false,
        keys_only: false,
        keys: Vec::new(),
        excluded: Vec::new(),
    }
}

fn dumped(fixture: &Fixture, arguments: &DumpArguments) -> String {
    let mut out = Vec::new();
    print(&real_env(), arguments, fixture.written_secs, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Java before 19 prints some floats with a digit too many.
fn is_same(expected: &str, found: &str) -> bool {
    let tokens = |text: &str| -> Vec<String> {
        text.split([',', ':', '{', '}', '[', ']', ' '])
            .map(str::to_owned)
            .collect()
    };
    let (expected, found) = (tokens(expected), tokens(found));
    expected.len() == found.len()
        && expected.iter().zip(&found).all(|(expected, found)| {
            expected == found
                || match (expected.parse::<f64>(), found.parse::<f64>()) {
                    (Ok(a), Ok(b)) if found.contains('.') => (a - b).abs() <= a.abs() * 1e-7,
                    _ => false,
                }
        })
}

#[test]
fn lines_are_those_of_sstabledump_with_positions_and_expiry() {
    for fixture in fixtures() {
        let arguments = DumpArguments {
            lines: true,
            raw_times: true,
            ..arguments(&fixture)
        };
        let found = dumped(&fixture, &arguments);
        let expected = text(&fixture.directory.join(&fixture.expected));
        assert_eq!(
            expected.lines().count(),
            found.lines().count(),
            "{}",
            fixture.name
        );
        for (expected, found) in expected.lines().zip(found.lines()) {
            assert!(
                expected == found || is_same(expected, found),
                "{}:\n{expected}\n{found}",
                fixture.name
            );
        }
    }
}

#[test]
fn rows_as_objects_are_those_of_sstabledump() {
    for name in ["static_columns-nb", "counters-nb", "tombstones-nb"] {
        let fixtures = small_fixtures();
        let fixture = fixtures
            .iter()
            .find(|fixture| fixture.directory.ends_with(name))
            .unwrap();
        let arguments = DumpArguments {
            debug: true,
            ..arguments(fixture)
        };
        let expected = text(&fixture.directory.join("debug.txt"));
        assert_eq!(dumped(fixture, &arguments), expected, "{name}");
    }
}

#[test]
fn single_partitions_are_found_by_key_and_left_out_by_key() {
    for fixture in small_fixtures() {
        let lines = DumpArguments {
            lines: true,
            ..arguments(&fixture)
        };
        let all = dumped(&fixture, &lines);
        let keys = dumped(
            &fixture,
            &DumpArguments {
                keys_only: true,
                ..arguments(&fixture)
            },
        );
        let keys: Vec<Vec<String>> = serde_json::from_str(&keys).unwrap();
        assert_eq!(keys.len(), all.lines().count());
        for (key, line) in keys.iter().zip(all.lines()).take(5) {
            let key = vec![key.join(":")];
            let one = dumped(
                &fixture,
                &DumpArguments {
                    lines: true,
                    keys: key.clone(),
                    ..arguments(&fixture)
                },
            );
            assert_eq!(one.trim_end(), line, "{}", fixture.name);
            let others = dumped(
                &fixture,
                &DumpArguments {
                    lines: true,
                    excluded: key,
                    ..arguments(&fixture)
                },
            );
            assert_eq!(
                others.lines().count() + 1,
                all.lines().count(),
                "{}",
                fixture.name
            );
        }
    }
}

#[test]
fn indented_text_is_the_json_of_the_lines() {
    for fixture in small_fixtures() {
        let lines = dumped(
            &fixture,
            &DumpArguments {
                lines: true,
                ..arguments(&fixture)
            },
        );
        let lines: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let indented: Vec<serde_json::Value> =
            serde_json::from_str(&dumped(&fixture, &arguments(&fixture))).unwrap();
        assert_eq!(indented, lines, "{}", fixture.name);
    }
}

#[test]
fn what_is_before_the_damage_is_printed() {
    let mut all = small_fixtures().into_iter();
    let fixture = all
        .find(|fixture| fixture.name.starts_with("wide_range_tombstones-nb"))
        .unwrap();
    let (env, data) = super::copied(&fixture, "");
    let mut bytes = env.read_all(&data, 1 << 20).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    env.create_or_truncate(&data).unwrap().append(&bytes).unwrap();
    let arguments = DumpArguments {
        files: Files { files: vec![data] },
        lines: true,
        ..arguments(&fixture)
    };
    let mut out = Vec::new();
    let error = print(&env, &arguments, fixture.written_secs, &mut out).unwrap_err();
    assert!(error.to_string().contains("-Data.db: at byte 32768"), "{error}");
    assert!(out.len() > 10_000, "{}", out.len());
}
