//! `cargo run -p ilion-answers -- record|check|differ HOST:PORT [FILE...]`: see the library.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, ValueEnum};
use ilion_answers::{Script, check, differ, record};

/// Runs CQL scripts against a server. Every keyspace that is not the server's own is DROPPED.
#[derive(Parser)]
struct Arguments {
    /// What to do.
    #[arg(value_enum)]
    action: Action,
    /// HOST:PORT of the server.
    address: String,
    /// Scripts; all of tests/cql if none is named.
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    /// Ask a real Cassandra and write its answers into the scripts.
    Record,
    /// Ask Ilion and compare.
    Check,
    /// Ask Ilion and write what it answers otherwise into the scripts.
    Differ,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let files = match arguments.files.is_empty() {
        true => all_scripts()?,
        false => arguments.files,
    };
    let (mut statements, mut own_answers, mut differences) = (0, 0, 0);
    for path in files {
        let name = path.display();
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
        let mut script = Script::parse(&text).with_context(|| format!("in {name}"))?;
        match arguments.action {
            Action::Record => record(&mut script, &arguments.address)?,
            Action::Differ => differ(&mut script, &arguments.address)?,
            Action::Check => {
                let tally = check(&script, &arguments.address)?;
                statements += tally.statements;
                own_answers += tally.own_answers;
                differences += tally.differences.len();
                for one in tally.differences {
                    println!("{name}:{}\n  {}", one.line, one.text);
                    one.expected.iter().for_each(|line| println!("    - {line}"));
                    one.answered.iter().for_each(|line| println!("    + {line}"));
                }
                continue;
            }
        }
        std::fs::write(&path, script.print()).with_context(|| format!("writing {name}"))?;
        println!("{name}: {} statements", script.statements().count());
    }
    if matches!(arguments.action, Action::Check) {
        println!(
            "{statements} statements, {own_answers} with an answer of Ilion's own, {differences} differ"
        );
        anyhow::ensure!(differences == 0, "answers differ");
    }
    Ok(())
}

fn all_scripts() -> anyhow::Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cql");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cql") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
