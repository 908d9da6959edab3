//! Every command on damaged files: no panic, no damaged output, and errors that name a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, Seeded};
use ilion_sstable::{ChunkReader, Component, Descriptor};

use super::super::{
    Command, ConvertArguments, DumpArguments, Files, MergeArguments, MetadataArguments, OutputFormat,
    ScrubArguments, SplitArguments, TimestampUnit,
};
use super::{Fixture, copied, ran, small_fixtures};

fn files(data: &Path) -> Files {
    Files {
        files: vec![data.to_path_buf()],
    }
}

fn dump(data: &Path, annotate: bool) -> Command {
    Command::Dump(DumpArguments {
        annotate,
        debug: false,
        files: files(data),
        lines: !annotate,
        raw_times: false,
        keys_only: false,
        keys: Vec::new(),
        excluded: Vec::new(),
    })
}

/// Every command, and its output directory.
fn commands(data: &Path) -> Vec<(Command, Option<PathBuf>)> {
    let directory = |name: &str| PathBuf::from("/out").join(name);
    vec![
        (dump(data, false), None),
        (dump(data, true), None),
        (
            Command::Metadata(MetadataArguments {
                files: files(data),
                gc_grace_seconds: 0,
                scan: false,
                colors: false,
                unicode: false,
                timestamp_unit: TimestampUnit::Microseconds,
            }),
            None,
        ),
        (Command::Verify(files(data)), None),
        (
            Command::Convert(ConvertArguments {
                to: OutputFormat::Oa,
                directory: directory("convert"),
                files: files(data),
            }),
            Some(directory("convert")),
        ),
        (
            Command::Merge(MergeArguments {
                to: Some(OutputFormat::Da),
                directory: directory("merge"),
                files: files(data),
            }),
            Some(directory("merge")),
        ),
        (
            Command::Split(SplitArguments {
                size_mib: 1,
                directory: directory("split"),
                file: data.to_path_buf(),
            }),
            Some(directory("split")),
        ),
        (
            Command::Scrub(ScrubArguments {
                directory: directory("scrub"),
                files: files(data),
            }),
            Some(directory("scrub")),
        ),
    ]
}

/// Runs all commands. Their output must be valid, and their errors must name the file.
fn exercise(env: &Arc<dyn Env>, data: &Path, what: &str) {
    for (command, directory) in commands(data) {
        let outcome = ran(env, &command);
        if let Err(error) = &outcome {
            let text = format!("{error:#}");
            let names_something = [
                "/ks/t/",
                "damaged",
                "nothing could be read",
                "cannot be written",
                "type",
            ];
            assert!(
                names_something.iter().any(|name| text.contains(name)),
                "{what}: {text}"
            );
        }
        let Some(directory) = directory.filter(|_| outcome.is_ok()) else {
            continue;
        };
        // Values that are invalid for their type are kept.
        if let Err(error) = ran(env, &Command::Dump(dump_of(&directory))) {
            panic!("{what}: {}: {error:#}", directory.display());
        }
    }
}

fn dump_of(directory: &Path) -> DumpArguments {
    match dump(directory, false) {
        Command::Dump(arguments) => arguments,
        _ => unreachable!(),
    }
}

fn component(data: &Path, component: &Component) -> PathBuf {
    Descriptor::from_path(data).unwrap().0.path(component)
}

fn replace(env: &Arc<dyn Env>, path: &Path, bytes: &[u8]) {
    env.create_or_truncate(path).unwrap().append(bytes).unwrap();
}

/// A copy without compression and checksums of the rows, so that damage reaches the decoders.
fn unprotected(fixture: &Fixture) -> (Arc<dyn Env>, PathBuf) {
    let (env, data) = copied(fixture, "TOC.txt");
    let (descriptor, _) = Descriptor::from_path(&data).unwrap();
    let chunks = ChunkReader::open(env.as_ref(), &descriptor, None).unwrap();
    let bytes = chunks
        .read_at(0, usize::try_from(chunks.data_length()).unwrap())
        .unwrap();
    drop(chunks);
    for gone in [Component::CompressionInfo, Component::Crc, Component::Digest] {
        let _ = env.remove_file(&component(&data, &gone));
    }
    replace(&env, &data, &bytes);
    (env, data)
}

#[test]
fn empty_components_are_refused_or_done_without() {
    for fixture in small_fixtures() {
        for part in Component::known() {
            let (env, data) = copied(&fixture, "");
            let path = component(&data, &part);
            if env.exists(&path) {
                replace(&env, &path, b"");
                exercise(&env, &data, &format!("{} without bytes in {part}", fixture.name));
            }
        }
    }
}

#[test]
fn damage_that_no_checksum_finds_makes_no_panic_and_no_damaged_output() {
    let mut dice = Seeded::new(11);
    for fixture in small_fixtures() {
        for round in 0..15 {
            let (env, data) = unprotected(&fixture);
            let parts = [
                Component::Data,
                Component::Data,
                Component::Index,
                Component::Partitions,
                Component::Rows,
            ];
            let at = usize::try_from(dice.below(parts.len() as u64)).unwrap();
            let path = component(&data, &parts[at]);
            let Ok(mut bytes) = env.read_all(&path, 1 << 30) else {
                continue;
            };
            if bytes.is_empty() {
                continue;
            }
            let place = usize::try_from(dice.below(bytes.len() as u64)).unwrap();
            match dice.below(4) {
                0 => bytes.truncate(place),
                1 => bytes[place] = 0xFF,
                2 => bytes[place] = 0,
                _ => bytes[place] ^= 1 << dice.below(8),
            }
            replace(&env, &path, &bytes);
            exercise(
                &env,
                &data,
                &format!("{} round {round}: {} at {place}", fixture.name, parts[at]),
            );
        }
    }
}
