//! The cost of reading and writing SSTables, in comparison with compression alone.
//!
//! For each shape of rows, a table is generated, written and read from start to end. For comparison, the same bytes go through the
//! same chunks without any rows: this is the minimum for the format. Times are the CPU time of the thread (as counted by Linux),
//! so that other processes disturb them less. The speed is that of the best run; the share is that of the median run.
//!
//! | module | what |
//! | --- | --- |
//! | `shape` | the tables, generated from a seed |
//! | `measure` | one table written, read, opened |
//! | `cpu` | CPU time of the thread |
//! | `report` | the result |

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

use crate::bar::Bar;
use report::BenchReport;
pub use shape::Shape;

/// Arguments of `bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// Uncompressed size of each table.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub size: u64,
    /// Number of runs; MB/s are of the best run, shares of the median run.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Measures only this shape; may be repeated.
    #[arg(long, value_enum)]
    pub shape: Vec<Shape>,
    /// Does not remove the files.
    #[arg(long)]
    pub keep: bool,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
    /// Directory for the files; created, and removed at the end.
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
    let bar = Bar::of_operations("sstable bench", shapes.len() as u64 * u64::from(arguments.runs));
    let measured: anyhow::Result<Vec<_>> = shapes
        .into_iter()
        .map(|shape| {
            let measured = measure::measure(env, shape, arguments, &bar);
            measured.with_context(|| format!("measuring {}", shape.name()))
        })
        .collect();
    drop(bar);
    if !arguments.keep {
        env.remove_dir_all(&arguments.directory)?;
    }
    let report = BenchReport { shapes: measured? };
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
