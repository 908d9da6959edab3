//! The benchmark client on its own, without the node: the same as `ilion bench`.

use clap::Parser;
use ilion_tools::bench::{BenchArgs, run};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> anyhow::Result<()> {
    run(Cli::parse().bench)
}
