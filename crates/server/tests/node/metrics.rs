//! `docs/metrics.md` and the dashboard for Grafana name the metrics that a node exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_cluster::{ClusterView, Endpoint, Location, MemberView, Node, Phase, Traffic};
use ilion_env::{Env as _, MemEnv};
use ilion_protocol::Version;
use ilion_server::admin::{Admin, EngineAdmin};
use ilion_server::{ClusterCounts, ClusterProbe, MemberStanding, Waits};
use serde_json::Value;

use crate::{Setup, make_table, run, start, start_with};

/// A metric, from its descriptor.
#[derive(Debug, Default)]
struct Described {
    kind: String,
    unit: String,
    help: String,
    labels: Vec<String>,
}

fn exported(setup: &Setup) -> (BTreeMap<String, Described>, String) {
    // The disk in memory has no files of a kernel.
    let stat = "1 (ilion) S 1 42 42 0 -1 0 100 0 0 0 150 50 0 0 20 0 7 0 1234 1048576 300 0\n";
    let process = Path::new("/proc/self");
    setup.env.create_dir_all(&process.join("fd")).unwrap();
    for (name, text) in [("stat", stat), ("status", "VmRSS:\t 12 kB\n")] {
        let mut file = setup.env.create(&process.join(name)).unwrap();
        file.append(text.as_bytes()).unwrap();
    }
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let _ = client.query("SELECT nothing FROM ks.t");
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let text = admin.with_cluster(Arc::new(OfThree)).metrics();
    let mut metrics: BTreeMap<String, Described> = BTreeMap::new();
    for line in text.lines() {
        if let Some((what, rest)) = line.strip_prefix("# ").and_then(|line| line.split_once(' ')) {
            let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
            let metric = metrics.entry(name.to_owned()).or_default();
            match what {
                "TYPE" => value.clone_into(&mut metric.kind),
                "UNIT" => value.clone_into(&mut metric.unit),
                "HELP" => value.clone_into(&mut metric.help),
                other => panic!("{other}"),
            }
        } else if let Some((sample, labels)) = line.split_once('{') {
            let (labels, _) = labels.split_once('}').unwrap();
            let metric = metrics
                .iter_mut()
                .rev()
                .find(|(name, _)| sample.starts_with(name.as_str()));
            let (_, metric) = metric.unwrap();
            for label in labels.split("\",").filter_map(|label| label.split_once("=\"")) {
                if label.0 != "le" && !metric.labels.iter().any(|known| known == label.0) {
                    metric.labels.push(label.0.to_owned());
                }
            }
        }
    }
    (metrics, text)
}

/// A node of a cluster of three, of which one is down.
struct OfThree;

impl ClusterProbe for OfThree {
    fn view(&self) -> Option<ClusterView> {
        let members = (1..=3).map(|number| MemberView {
            node: number,
            host: uuid::Uuid::from_u128(number.into()),
            endpoint: Endpoint {
                ip: [127, 0, 0, 1].into(),
                native_port: 9042,
                storage_port: 7000,
            },
            location: Location {
                datacenter: "datacenter1".to_owned(),
                rack: "rack1".to_owned(),
            },
            phase: Phase::Normal,
            tokens: Vec::new(),
            is_up: number < 3,
            schema_version: uuid::Uuid::nil(),
            release: None,
        });
        Some(ClusterView {
            own: 1,
            level: 2,
            members: members.collect(),
        })
    }

    fn silences(&self) -> BTreeMap<ilion_cluster::Node, f64> {
        BTreeMap::new()
    }

    fn counts(&self) -> ClusterCounts {
        ClusterCounts {
            followed: 4,
            lag_records: [(0, 7), (3, 35)].into(),
            lag_records_sum: 42,
            barriers_raised: Waits {
                sum_nanos: 3_000_000,
                buckets: vec![(1_000_000, 1), (u64::MAX, 1)],
            },
            ..ClusterCounts::default()
        }
    }

    fn traffic(&self) -> BTreeMap<Node, Traffic> {
        BTreeMap::new()
    }

    fn catch_up(&self) -> Result<(), String> {
        Ok(())
    }

    fn ask(&self, _members: &[Node]) -> BTreeMap<Node, MemberStanding> {
        BTreeMap::new()
    }
}

/// Names as Prometheus stores them.
fn stored_name(name: &str, metric: &Described) -> String {
    match metric.kind.as_str() {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    }
}

fn document(metrics: &BTreeMap<String, Described>) -> String {
    let mut page = "# Metrics\n\nWhat `GET /metrics` of the administration's port exports, in the text format of OpenMetrics, which Prometheus reads. A\n\
                    dashboard for Grafana that uses them: [grafana/ilion.json](grafana/ilion.json). Made by a test; do not edit.\n\n\
                    Only a node of a cluster has `ilion_cluster_*`.\n\n\
                    | metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for (name, metric) in metrics {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let name = stored_name(name, metric);
        writeln!(
            page,
            "| `{name}` | {} | {} | {} |",
            metric.kind,
            labels.join(", "),
            metric.help
        )
        .unwrap();
    }
    page
}

fn of_project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_page_about_metrics_has_all_of_them() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        // Nothing is sent, since no request is traced.
        settings.otlp_traces_endpoint = Some("http://127.0.0.1:1".to_owned());
    });
    let (metrics, _) = exported(&setup);
    for (name, metric) in &metrics {
        assert!(
            name.starts_with("ilion_") || name.starts_with("process_"),
            "{name}"
        );
        assert!(
            !metric.kind.is_empty() && metric.help.len() > 3,
            "{name}: {metric:?}"
        );
        assert!(!name.ends_with("_total"), "{name}: the format adds it");
    }
    let (page, path) = (document(&metrics), of_project("docs/metrics.md"));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        known, page,
        "docs/metrics.md is out of date: run this test with REWRITE=1"
    );
}

#[test]
fn every_panel_of_the_dashboard_of_grafana_has_data() {
    let setup = start();
    let (_, text) = exported(&setup);
    // A metric that is only described would leave its panel empty.
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let there: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    let text = std::fs::read_to_string(of_project("docs/grafana/ilion.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut asked = 0;
    for target in panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        let expression = target["expr"].as_str().unwrap();
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let is_metric = |word: &&str| word.starts_with("ilion_") || word.starts_with("process_");
        for name in words.filter(is_metric) {
            assert!(there.contains(name), "no sample of {name} in {expression}");
            asked += 1;
        }
    }
    assert!(asked > 50, "{asked}");
}

#[test]
fn only_a_node_of_a_cluster_has_metrics_of_it() {
    let setup = start();
    let (_, text) = exported(&setup);
    for line in [
        "ilion_cluster_members{state=\"normal\",up=\"true\"} 2",
        "ilion_cluster_members{state=\"normal\",up=\"false\"} 1",
        "ilion_cluster_feature_level 2",
        "ilion_cluster_tablets_followed 4",
        "ilion_cluster_tablet_lag_records{tablet=\"3\"} 35",
        "ilion_cluster_lag_records 42",
        "ilion_cluster_lag_records_max 35",
        "ilion_cluster_barrier_seconds_sum{step=\"raise\"} 0.003",
        "ilion_cluster_barrier_seconds_bucket{le=\"0.001\",step=\"raise\"} 1",
        "ilion_cluster_barrier_seconds_bucket{le=\"+Inf\",step=\"raise\"} 2",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    let alone = EngineAdmin::new(&setup.node, &setup.server, &setup.settings).metrics();
    assert!(!alone.contains("ilion_cluster"), "{alone}");
}

#[test]
fn a_scrape_of_many_tables_stays_small_and_has_the_busiest() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        settings.metrics_tables_max = 3
    });
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for number in 0..40 {
        run(
            &mut client,
            &format!("CREATE TABLE ks.t{number} (k int PRIMARY KEY)"),
        );
        run(&mut client, &format!("INSERT INTO ks.t{number} (k) VALUES (1)"));
    }
    for _ in 0..5 {
        run(&mut client, "SELECT * FROM ks.t7 WHERE k = 1");
        run(&mut client, "SELECT * FROM ks.t9 WHERE k = 2");
    }
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let tables = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| line.starts_with("ilion_table_sstables{"));
        lines.count()
    };
    let text = admin.metrics();
    assert_eq!(tables(&text), 3);
    for line in [
        "ilion_table_rows_read_total{keyspace=\"ks\",table=\"t7\"} 5",
        "ilion_table_rows_read_total{keyspace=\"ks\",table=\"t9\"} 0",
        "ilion_table_sstables{keyspace=\"ks\",table=\"t9\"} 0",
    ] {
        assert!(text.contains(line), "{line}");
    }
    assert!(
        text.lines().any(|line| line.starts_with("ilion_tables ")),
        "{text}"
    );
    let update = "UPDATE system_views.settings SET value = '20' WHERE name = 'metrics_tables_max'";
    run(&mut client, update);
    assert_eq!(tables(&admin.metrics()), 20);
}
