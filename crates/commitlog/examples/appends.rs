//! Appends per second on real files: `cargo run --release -p ilion-commitlog --example appends [directory]`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ilion_commitlog::{CommitLog, Envelope, Mode, Options, Result};
use ilion_env::{Env, RealEnv};

fn main() -> Result<()> {
    let base = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    for mode in [Mode::Periodic { period_millis: 1000 }, Mode::Batch] {
        for threads in [1, 64] {
            for pipelined in [1, 32] {
                measure(&base.join("ilion-appends"), mode, threads, pipelined)?;
            }
        }
    }
    Ok(())
}

/// Each thread appends this many records and then waits once, as a connection with pipelined requests does.
fn measure(dir: &std::path::Path, mode: Mode, threads: usize, pipelined: usize) -> Result<()> {
    let env = RealEnv::new();
    let options = Options {
        mode,
        ..Options::default()
    };
    let (log, _) = CommitLog::open(env.clone(), dir, options, &mut |_, _| Ok(()))?;
    let body = [7; 300];
    let envelopes = vec![Envelope::mutation(&body); pipelined];
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| -> Result<()> {
                while start.elapsed() < Duration::from_secs(2) {
                    let positions = log.append_many(&envelopes)?;
                    positions.last().map_or(Ok(()), |last| log.wait_durable(*last))?;
                    log.trim(*positions.first().unwrap_or(&log.barrier()))?;
                }
                Ok(())
            });
        }
    });
    let secs = start.elapsed().as_secs_f64();
    let stats = log.stats();
    println!(
        "{mode:?}, {threads} threads, {pipelined} at a time: {:.0} appends/s, {:.1} per write, {} syncs",
        stats.appends as f64 / secs,
        stats.appends as f64 / stats.writes.max(1) as f64,
        stats.syncs
    );
    log.close()?;
    env.remove_dir_all(dir)?;
    Ok(())
}
