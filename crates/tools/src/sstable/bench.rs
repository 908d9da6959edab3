//! What reading and writing SSTables costs beside what compression alone costs.
//!
//! For each shape of rows a table is made up, written and read front to back. Beside it the same bytes go through the same
//! chunks without any rows: that is what the format cannot do without. Times are those that the thread was on a CPU (as
//! Linux counts them), so that neighbours on the machine disturb less; of several runs the best counts.
//!
//! | module | what |
//! | --- | --- |
//! | `shape` | the tables, made from a seed |
//! | `measure` | one table written, read, opened |
//! | `cpu` | the thread's clock |
//! | `report` | what came out, for people and for programs |

mod cpu;
mod measure;
mod report;
mod shape;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use ilion_env::Env;

use report::Report;
pub use shape::Shape;

/// What to measure.
#[derive(Args)]
pub struct BenchArguments {
    /// Uncompressed size of each table.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub size: u64,
    /// Runs of which the best counts.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Only this shape; may be repeated.
    #[arg(long, value_enum)]
    pub shape: Vec<Shape>,
    /// Leaves the files where they are.
    #[arg(long)]
    pub keep: bool,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
    /// Directory for the files; made, and removed again.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Measures all shapes.
pub(super) fn run(env: &Arc<dyn Env>, arguments: &BenchArguments, out: &mut dyn Write) -> anyhow::Result<()> {
    if env.exists(&arguments.directory) {
        bail!("{} exists; name a new directory", arguments.directory.display());
    }
    let shapes = match &arguments.shape[..] {
        [] => Shape::ALL.to_vec(),
        some => some.to_vec(),
    };
    env.create_dir_all(&arguments.directory)?;
    let measured: anyhow::Result<Vec<_>> = shapes
        .into_iter()
        .map(|shape| {
            measure::measure(env, shape, arguments).with_context(|| format!("measuring {}", shape.name()))
        })
        .collect();
    if !arguments.keep {
        env.remove_dir_all(&arguments.directory)?;
    }
    let report = Report { shapes: measured? };
    match arguments.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        false => writeln!(out, "{report}")?,
    }
    Ok(())
}
