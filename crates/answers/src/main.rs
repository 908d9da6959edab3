//! `cargo run -p ilion-answers -- record|check|differ HOST:PORT [FILE...]`: see the library.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use ilion_answers::{Script, all_scripts, check, differ, record};

/// Runs CQL scripts against a server. DROPS all keyspaces but those of the system.
#[derive(Parser)]
struct Arguments {
    /// What to do.
    #[arg(value_enum)]
    action: Action,
    /// HOST:PORT of the server.
    address: String,
    /// Scripts [default: all of tests/cql].
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    /// Runs against a real Cassandra, and writes its answers into the scripts.
    Record,
    /// Runs against Ilion, and compares.
    Check,
    /// Runs against Ilion, and writes answers that differ into the scripts.
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
        let mut script = Script::read(&path)?;
        match arguments.action {
            Action::Record => record(&mut script, &arguments.address)?,
            Action::Differ => differ(&mut script, &arguments.address)?,
            Action::Check => {
                let tally = check(&script, &arguments.address)?;
                statements += tally.statements;
                own_answers += tally.own_answers;
                differences += tally.differences.len();
                for one in tally.differences {
                    println!("{name}:{one}");
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
