//! What reading and writing SSTables costs beside what compression alone costs.
//!
//! For each shape of rows a table is made up, written and read front to back. Beside it the same bytes go through the same
//! chunks without any rows: that is what the format cannot do without. Times are those that the thread was on a CPU (as
//! Linux counts them), so that neighbours on the machine disturb less. Of several runs the best tells the speed; shares are taken within
//! each run, and that of the median one counts.
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
    /// Runs; the best tells MB/s, the median one the shares.
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use ilion_env::{Env, MemEnv};

    use super::{BenchArguments, Shape, run};

    #[test]
    fn every_shape_is_written_and_all_its_rows_are_read_in_every_way() {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let arguments = BenchArguments {
            size: 1,
            runs: 1,
            shape: Vec::new(),
            keep: false,
            json: true,
            directory: PathBuf::from("bench"),
        };
        let mut out = Vec::new();
        run(&env, &arguments, &mut out).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let shapes = report["shapes"].as_array().unwrap();
        let names: Vec<_> = shapes
            .iter()
            .map(|shape| shape["shape"].as_str().unwrap())
            .collect();
        assert_eq!(names, Shape::ALL.map(Shape::name));
        for shape in shapes {
            assert!(
                shape["read"]["plain_nanos"][0].is_u64()
                    && shape["read"]["values_nanos"][0].is_u64()
                    && shape["write"]["plain_nanos"][0].is_u64()
                    && shape["rows"].as_u64().unwrap() > 900,
                "{shape}"
            );
        }
        assert!(!env.exists(&arguments.directory));
    }
}
