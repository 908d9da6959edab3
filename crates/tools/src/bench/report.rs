//! The result of a throughput run.

use std::fmt;

use serde::Serialize;

use crate::bench::process::Usage;
use crate::bench::settings::BenchArgs;
use crate::bench::tally::Tally;

const MEBIBYTE: f64 = 1_048_576.0;

/// The measurements of a run.
#[derive(Debug)]
pub struct Measurement {
    /// Counts of all clients.
    pub tally: Tally,
    /// Duration of the run.
    pub elapsed_nanos: u64,
    /// Usage of the server before the run, if its process is known.
    pub server_before: Option<Usage>,
    /// Usage of the server after the run.
    pub server_after: Option<Usage>,
    /// CPU time of this process.
    pub client_cpu_secs: f64,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct ThroughputReport {
    workload: &'static str,
    clients: u16,
    in_flight: u16,
    value_bytes: u32,
    keys: u64,
    seed: u64,
    operations: u64,
    rows: u64,
    errors: u64,
    error_messages: Vec<String>,
    elapsed_secs: f64,
    operations_per_sec: f64,
    rows_per_sec: f64,
    latency_micros: Latency,
    /// Seconds per million operations, which is microseconds per operation.
    client_cpu_secs_per_million: f64,
    server: Option<ServerCost>,
}

#[derive(Debug, Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// CPU and memory of the server.
#[derive(Debug, Serialize)]
struct ServerCost {
    cpu_secs: f64,
    cpu_secs_per_million: f64,
    memory_before_mib: f64,
    memory_after_mib: f64,
    memory_peak_mib: f64,
}

impl ThroughputReport {
    /// Computes rates and percentiles.
    pub fn new(args: &BenchArgs, measurement: &Measurement) -> Self {
        let tally = &measurement.tally;
        let elapsed_secs = measurement.elapsed_nanos as f64 / 1e9;
        Self {
            workload: args.workload.name(),
            clients: args.clients,
            in_flight: args.in_flight,
            value_bytes: args.value_size,
            keys: args.keys,
            seed: args.seed,
            operations: tally.operations,
            rows: tally.rows,
            errors: tally.faults.count(),
            error_messages: tally.faults.messages().to_vec(),
            elapsed_secs,
            operations_per_sec: ratio(tally.operations as f64, elapsed_secs),
            rows_per_sec: ratio(tally.rows as f64, elapsed_secs),
            latency_micros: Latency::new(tally),
            client_cpu_secs_per_million: per_million(measurement.client_cpu_secs, tally.operations),
            server: measurement
                .server_before
                .zip(measurement.server_after)
                .map(|(before, after)| ServerCost::new(before, after, tally.operations)),
        }
    }
}

impl Latency {
    fn new(tally: &Tally) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let quantile = |q: f64| micros(tally.latency.value_at_quantile(q));
        Self {
            mean: tally.latency.mean() / 1e3,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: micros(tally.latency.max()),
        }
    }
}

impl ServerCost {
    fn new(before: Usage, after: Usage, operations: u64) -> Self {
        let mib = |bytes: u64| bytes as f64 / MEBIBYTE;
        let cpu_secs = after.cpu_secs - before.cpu_secs;
        Self {
            cpu_secs,
            cpu_secs_per_million: per_million(cpu_secs, operations),
            memory_before_mib: mib(before.memory_bytes),
            memory_after_mib: mib(after.memory_bytes),
            memory_peak_mib: mib(after.memory_peak_bytes),
        }
    }
}

fn per_million(secs: f64, operations: u64) -> f64 {
    ratio(secs * 1e6, operations as f64)
}

/// The quotient; zero instead of infinity if no operation was executed.
fn ratio(value: f64, by: f64) -> f64 {
    if by == 0.0 { 0.0 } else { value / by }
}

impl fmt::Display for ThroughputReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} operations in {:.2} s, {} connections with {} requests under way each",
            self.workload, self.operations, self.elapsed_secs, self.clients, self.in_flight
        )?;
        writeln!(
            f,
            "  throughput   {:.0} operations/s, {:.0} rows/s",
            self.operations_per_sec, self.rows_per_sec
        )?;
        let latency = &self.latency_micros;
        writeln!(
            f,
            "  latency, us  mean {:.0}, p50 {:.0}, p95 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0}",
            latency.mean, latency.p50, latency.p95, latency.p99, latency.p999, latency.max
        )?;
        if let Some(server) = &self.server {
            writeln!(
                f,
                "  server       {:.1} CPU seconds per million operations; memory {:.0} MiB before, {:.0} after, {:.0} at most",
                server.cpu_secs_per_million,
                server.memory_before_mib,
                server.memory_after_mib,
                server.memory_peak_mib
            )?;
        }
        write!(
            f,
            "  client       {:.1} CPU seconds per million operations; {} errors",
            self.client_cpu_secs_per_million, self.errors
        )?;
        for message in &self.error_messages {
            write!(f, "\n  error        {message}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn measurement(server: Option<Usage>) -> Measurement {
        let mut tally = Tally::new().unwrap();
        tally.operations = 2_000_000;
        tally.rows = 2_000_000;
        tally.latency.record(1_500_000).unwrap();
        tally.faults.add("row 1: gone".to_owned());
        Measurement {
            tally,
            elapsed_nanos: 4_000_000_000,
            server_before: server.map(|_| Usage::default()),
            server_after: server,
            client_cpu_secs: 3.0,
        }
    }

    #[test]
    fn figures_are_per_second_and_per_million() {
        let args = Cli::parse_from(["bench"]).bench;
        let used = Usage {
            cpu_secs: 30.0,
            memory_bytes: 1 << 30,
            memory_peak_bytes: 2 << 30,
        };
        let report = ThroughputReport::new(&args, &measurement(Some(used)));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["operations_per_sec"], 500_000.0);
        assert_eq!(json["server"]["cpu_secs_per_million"], 15.0);
        assert_eq!(json["server"]["memory_peak_mib"], 2048.0);
        assert_eq!(json["client_cpu_secs_per_million"], 1.5);
        assert_eq!(json["errors"], 1);
        let text = report.to_string();
        assert!(text.contains("500000 operations/s"), "{text}");
        assert!(text.ends_with("row 1: gone"), "{text}");
    }

    #[test]
    fn a_server_whose_process_is_unknown_is_left_out() {
        let args = Cli::parse_from(["bench"]).bench;
        let report = ThroughputReport::new(&args, &measurement(None));
        assert!(!report.to_string().contains("server"));
    }
}
