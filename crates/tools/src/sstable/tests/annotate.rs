//! `dump --annotate`: every byte is annotated.

use super::super::{Command, DumpArguments, Files};
use super::{Fixture, fixtures, ran, real_env};

fn annotated(fixture: &Fixture) -> String {
    let arguments = DumpArguments {
        annotate: true,
        debug: false,
        files: Files {
            files: vec![fixture.data.clone()],
        },
        lines: false,
        raw_times: false,
        keys_only: false,
        keys: Vec::new(),
        excluded: Vec::new(),
    };
    ran(&real_env(), &Command::Dump(arguments)).unwrap()
}

#[test]
fn every_byte_has_a_name() {
    for fixture in fixtures() {
        let text = annotated(&fixture);
        let mut next = 0;
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let mut number = || -> u64 { words.next().unwrap().parse().unwrap() };
            let (offset, length) = (number(), number());
            assert_eq!(offset, next, "{}: {line}", fixture.name);
            assert!(length > 0 && line.contains(':'), "{}: {line}", fixture.name);
            assert!(!line.contains("which should be"), "{}: {line}", fixture.name);
            next = offset + length;
        }
        let (descriptor, _) = ilion_sstable::Descriptor::from_path(&fixture.data).unwrap();
        let data = ilion_sstable::ChunkReader::open(real_env().as_ref(), &descriptor, None).unwrap();
        assert_eq!(next, data.data_length(), "{}", fixture.name);
    }
}

#[test]
fn bytes_are_named_for_what_they_are() {
    let all = super::small_fixtures();
    let fixture = all
        .iter()
        .find(|fixture| fixture.name == "tombstones-nb 1")
        .unwrap();
    let text = annotated(fixture);
    let first: Vec<&str> = text.lines().take(9).map(str::trim).collect();
    let expected = [
        "0      2  0004                        partition key length: 4",
        "2      4  00000005                    partition key: 5",
        "6      4  7fffffff                    partition deletion: local time: 2147483647",
        "10      8  8000000000000000            partition deletion: marked at: none",
        "18      1  02                          row flags: range tombstone marker",
        "19      1  01                            kind of bound: InclStart",
        "20      2  0001                          number of clustering values: 1",
        "22      1  00                            clustering header: value",
        "23      4  00000000                      clustering 0: 0",
    ];
    assert_eq!(first, expected);
}
