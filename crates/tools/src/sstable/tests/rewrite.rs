//! `convert`, `merge` and `split`: the rows stay the same, and the new files are valid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::Env;
use ilion_sstable::{
    Component, Descriptor, Format, SSTableId, Transaction, TransactionKind, Version, list_directory,
};

use super::super::{Command, ConvertArguments, Files, MergeArguments, OutputFormat, SplitArguments};
use super::{copied, fixtures, ran, rows, small_fixtures};

const FORMATS: [OutputFormat; 3] = [OutputFormat::Nb, OutputFormat::Oa, OutputFormat::Da];

fn files(paths: &[&Path]) -> Files {
    Files {
        files: paths.iter().map(|path| path.to_path_buf()).collect(),
    }
}

fn convert(env: &Arc<dyn Env>, to: OutputFormat, out: &Path, data: &Path) -> anyhow::Result<String> {
    let arguments = ConvertArguments {
        to,
        directory: out.to_path_buf(),
        files: files(&[data]),
    };
    ran(env, &Command::Convert(arguments))
}

fn assert_whole(env: &Arc<dyn Env>, directory: &Path) {
    let report = ran(env, &Command::Verify(files(&[directory]))).unwrap();
    assert!(!report.contains("not checked"), "{report}");
}

#[test]
fn every_format_becomes_every_other_and_back_with_the_same_rows() {
    // Large fixtures are converted to one format each.
    let of_all = fixtures().into_iter().zip(FORMATS.iter().cycle());
    let of_all = of_all.map(|(fixture, format)| (fixture, std::slice::from_ref(format)));
    let of_small = small_fixtures()
        .into_iter()
        .map(|fixture| (fixture, &FORMATS[..]));
    for (fixture, formats) in of_small.chain(of_all) {
        let (env, data) = copied(&fixture, "");
        let before = rows(&env, &data);
        for to in formats.iter().copied() {
            let out = PathBuf::from(format!("/out/{to:?}"));
            match convert(&env, to, &out, &data) {
                Ok(_) => {}
                Err(error) if fixture.name.starts_with("far_ttl") && to == OutputFormat::Nb => {
                    let (input, _) = Descriptor::from_path(&data).unwrap();
                    let error = format!("{error:#}");
                    assert!(
                        error.starts_with(&format!("{input}: the format nb cannot")),
                        "{error}"
                    );
                    assert!(error.contains("2038"), "{error}");
                    assert!(list_directory(env.as_ref(), &out).unwrap().is_empty());
                    continue;
                }
                Err(error) => panic!("{}: {error:#}", fixture.name),
            }
            assert_eq!(rows(&env, &out), before, "{} {to:?}", fixture.name);
            assert_whole(&env, &out);
        }
    }
}

#[test]
fn pieces_of_a_split_merge_to_what_was_split() {
    for fixture in small_fixtures() {
        let (env, data) = copied(&fixture, "");
        let pieces = PathBuf::from("/pieces");
        let split = SplitArguments {
            size_mib: 0,
            directory: pieces.clone(),
            file: data.clone(),
        };
        ran(&env, &Command::Split(split)).unwrap();
        assert_whole(&env, &pieces);
        let whole = PathBuf::from("/whole");
        let merge = MergeArguments {
            to: None,
            directory: whole.clone(),
            files: files(&[&pieces]),
        };
        ran(&env, &Command::Merge(merge)).unwrap();
        assert_whole(&env, &whole);
        assert_eq!(rows(&env, &whole), rows(&env, &data), "{}", fixture.name);
    }
}

#[test]
fn a_merge_of_copies_is_the_original_and_leaves_the_inputs_alone() {
    for fixture in small_fixtures() {
        let (env, data) = copied(&fixture, "");
        let before = rows(&env, &data);
        let other = PathBuf::from("/other");
        convert(&env, OutputFormat::Da, &other, &data).unwrap();
        let out = PathBuf::from("/out");
        let merge = MergeArguments {
            to: Some(OutputFormat::Oa),
            directory: out.clone(),
            files: files(&[&data, &other]),
        };
        let told = ran(&env, &Command::Merge(merge)).unwrap();
        assert_whole(&env, &out);
        assert_eq!(rows(&env, &out), before, "{}", fixture.name);
        assert_eq!(rows(&env, &data), before, "{}", fixture.name);
        let count = before.len();
        let expected = format!("{count} partitions (of {}) in /out/oa-1-big\n", 2 * count);
        assert!(told.ends_with(&expected), "{told}");
    }
}

#[test]
fn new_files_do_not_go_beside_the_old_and_other_tables_do_not_merge() {
    let all = small_fixtures();
    let (env, data) = copied(&all[0], "");
    let refused = convert(&env, OutputFormat::Oa, data.parent().unwrap(), &data).unwrap_err();
    assert!(refused.to_string().contains("another directory"), "{refused}");

    let static_columns = all
        .iter()
        .find(|fixture| fixture.name.starts_with("static_columns"))
        .unwrap();
    let merge = MergeArguments {
        to: None,
        directory: PathBuf::from("/out"),
        files: files(&[&all[0].data, &static_columns.data]),
    };
    let env = super::real_env();
    let out = std::env::temp_dir().join(format!("ilion-merge-{}", std::process::id()));
    let merge = MergeArguments {
        directory: out.clone(),
        ..merge
    };
    let refused = ran(&env, &Command::Merge(merge)).unwrap_err();
    assert!(refused.to_string().contains("not of one table"), "{refused}");
    assert!(!out.exists());
}

#[test]
fn the_directory_of_the_inputs_is_known_however_it_is_written() {
    let (env, data) = copied(&small_fixtures()[0], "");
    env.rename(data.parent().unwrap(), Path::new("t")).unwrap();
    let data = Path::new("t").join(data.file_name().unwrap());
    let refused = convert(&env, OutputFormat::Oa, Path::new("./t"), &data).unwrap_err();
    assert!(refused.to_string().contains("another directory"), "{refused}");
}

#[test]
fn what_a_crash_left_unfinished_is_no_input() {
    let (env, data) = copied(&small_fixtures()[0], "");
    let before = rows(&env, &data);
    let out = PathBuf::from("/out");
    convert(&env, OutputFormat::Da, &out, &data).unwrap();
    let unfinished = Descriptor::new(out.as_path(), Version::DA, SSTableId::Sequence(9), Format::Bti);
    let mut transaction = Transaction::begin(env.clone(), &out, TransactionKind::Compaction).unwrap();
    transaction.add(&unfinished).unwrap();
    env.create(&unfinished.path(&Component::Data)).unwrap();
    std::mem::forget(transaction);
    assert_eq!(rows(&env, &out), before);
    // Its name is not taken.
    let told = convert(&env, OutputFormat::Da, &out, &data).unwrap();
    assert!(told.ends_with("/out/da-10-bti\n"), "{told}");
}
