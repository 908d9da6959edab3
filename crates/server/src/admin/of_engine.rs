//! [`Admin`] over an engine and a server.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ilion_auth::Cidr;
use ilion_cluster::{ClusterView, Node as Member};
use ilion_engine::{
    CacheFacts, CompactionRequest, Engine, ImportSource, LogLosses, TableDetails, TableFacts,
};
use ilion_env::Env;
use ilion_node::costs::TableCosts;
use ilion_node::{RELEASE_VERSION, ReloadReport, machine_bytes};
use ilion_query::Identity;
use ilion_schema::{TableId, TableSchema};
use ilion_settings::{Loaded, Settings};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::audit_log::AuditMetrics;
use super::change_metrics::ChangeMetrics;
use super::cluster_metrics::ClusterMetrics;
use super::consumers_report;
use super::engine_metrics::EngineMetrics;
use super::handling::failed;
use super::load_rows::write_load;
use super::loads::Loads;
use super::node::replication;
use super::process_metrics::{DiskMetrics, ProcessMetrics, register_build};
use super::table_metrics::TableMetrics;
use super::{
    Admin, AdminError, AuditLogOrder, AuditLogReport, AutoCompactionOrder, BackupsOrder, CacheOrder,
    CacheReport, Caller, CidrGroupOrder, CidrGroupsOrder, CidrGroupsReport, ClearOrder, CommitOrder,
    CompactionOrder, CompactionReport, ConsumersReport, DataPathsOrder, DataPathsReport, ExportReport,
    FinishedLoad, ForgetOrder, GarbageOrder, ImportReport, ImportedFile, ImportedFrom, IndexOrder,
    IndexReport, InfoReport, KeySampleReport, KeysOrder, Latencies, LeftFile, LoadOrder, LoadPiece,
    LoadReport, LogLossReport, NodeReport, NodeTable, NodeTableReport, ReleaseOrder, ReleaseReport,
    RewriteOrder, RingAdmin, SSTablesOrder, SSTablesReport, ScrubOrder, ScrubReport, SettingsOrder,
    SettingsReport, SnapshotOrder, SnapshotsReport, StatementsReport, StatusReport, StopOrder, TableChoice,
    TablePlace, TableReport, TableStats, TableStatsReport, ThresholdsOrder, ThresholdsReport,
    ThroughputOrder, TopPartitionsOrder, TopPartitionsReport, VerifyReport,
};
use crate::auditor::Auditor;
use crate::changes::{ChangeStream, ChangesOrder};
use crate::clients::Clients;
use crate::cluster_probe::{ClusterProbe, MemberStanding};
use crate::dashboard::{
    self, History, HistoryOrder, HistoryReport, QueryOrder, QueryReport, Sizes, SlowestOrder, SlowestReport,
    Standing,
};
use crate::entry::Entry;
use crate::process::resident_bytes;
use crate::server::{Certificates, Server};
use crate::server_node::ServerNode;

/// Longest sampling of partitions, in milliseconds.
const SAMPLING_MILLIS_MAX: u64 = 3_600_000;

/// Name of the cache of roles, permissions and hashes of passwords.
const ROLES: &str = "roles";

fn name_of(table: &TableSchema) -> (&str, &str) {
    (&table.keyspace, &table.name)
}

/// The administration of a node and its server.
pub struct EngineAdmin {
    node: ServerNode,
    clients: Clients,
    registry: Registry,
    info: InfoReport,
    settings: Settings,
    started_nanos: u64,
    started_millis: u64,
    history: History,
    entry: Entry,
    certificates: Certificates,
    reloading: Option<Reloading>,
    loads: Loads,
    stopping: Option<Box<dyn Fn() + Send + Sync>>,
    salvaging: Option<Salvaging>,
    ring: Option<Arc<dyn RingAdmin>>,
    cluster: Option<Arc<dyn ClusterProbe>>,
}

/// Salvages an SSTable: writes its readable rows into a directory. Arguments: the environment, the path of Data.db, the directory.
type Salvaging = Box<dyn Fn(&Arc<dyn Env>, &Path, &Path) -> Result<Vec<String>, String> + Send + Sync>;

/// Reads the sources of the settings again.
type Reloading = Box<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

impl EngineAdmin {
    /// Registers the metrics of the node and the server.
    pub fn new(node: &ServerNode, server: &Server, settings: &Settings) -> Self {
        let mut all = Registry::default();
        let env = node.engine().env();
        all.register_collector(Box::new(ProcessMetrics {
            env: env.clone(),
            started_secs: env.now_micros() / 1_000_000,
        }));
        let registry = all.sub_registry_with_prefix("ilion");
        register_build(registry, RELEASE_VERSION);
        registry.register_collector(Box::new(DiskMetrics {
            env: env.clone(),
            data: settings.data_path(),
            commitlog: settings.commitlog_path(),
        }));
        server.register_metrics(registry);
        registry.register_collector(Box::new(EngineMetrics(node.engine().clone())));
        registry.register_collector(Box::new(ChangeMetrics(node.clone())));
        registry.register_collector(Box::new(AuditMetrics(node.auditor().clone())));
        registry.register_collector(Box::new(TableMetrics {
            costs: node.observers().costs.clone(),
            engine: node.engine().clone(),
            settings: node.settings().clone(),
        }));
        if let Some(telemetry) = &node.observers().telemetry {
            telemetry.register_metrics(registry);
        }
        let info = InfoReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            release_version: RELEASE_VERSION.to_owned(),
            pid: std::process::id(),
            cluster_name: node.local().facts().cluster_name.clone(),
            host_id: node.local().host_id().to_string(),
            cql_address: server.address().to_string(),
            data_directory: settings.data_path().display().to_string(),
            commitlog_directory: settings.commitlog_path().display().to_string(),
            partitioner: node.engine().partitioner().class_name().to_owned(),
            ..InfoReport::default()
        };
        Self {
            node: node.clone(),
            clients: server.clients(),
            registry: all,
            info,
            settings: settings.clone(),
            started_nanos: node.engine().env().monotonic_nanos(),
            started_millis: u64::try_from(env.now_micros() / 1000).unwrap_or(0),
            history: History::default(),
            entry: server.entry(),
            certificates: server.certificates(),
            reloading: None,
            loads: Loads::default(),
            stopping: None,
            salvaging: None,
            ring: None,
            cluster: None,
        }
    }

    /// Sets the certificates that [`Admin::reload_certificates`] reads, instead of those of client connections only.
    #[must_use]
    pub fn with_certificates(self, certificates: Certificates) -> Self {
        Self { certificates, ..self }
    }

    /// Sets the function that reads the sources of the settings for `ilion reload`.
    #[must_use]
    pub fn with_reloading(
        self,
        reloading: impl Fn() -> Result<Loaded, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            reloading: Some(Box::new(reloading)),
            ..self
        }
    }

    /// Sets the probe of the cluster: for its metrics, and for the reports of other members.
    #[must_use]
    pub fn with_cluster(mut self, probe: Arc<dyn ClusterProbe>) -> Self {
        let registry = self.registry.sub_registry_with_prefix("ilion");
        registry.register_collector(Box::new(ClusterMetrics(probe.clone())));
        self.cluster = Some(probe);
        self
    }

    /// Sets the function that salvages an SSTable for `nodetool scrub`.
    #[must_use]
    pub fn with_salvaging(
        self,
        salvaging: impl Fn(&Arc<dyn Env>, &Path, &Path) -> Result<Vec<String>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            salvaging: Some(Box::new(salvaging)),
            ..self
        }
    }

    /// Sets the ring of the cluster that the node is a member of.
    #[must_use]
    pub fn with_ring(self, ring: Arc<dyn RingAdmin>) -> Self {
        Self {
            ring: Some(ring),
            ..self
        }
    }

    /// Sets the function that stops the node for `nodetool stopdaemon`.
    #[must_use]
    pub fn with_stopping(self, stopping: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            stopping: Some(Box::new(stopping)),
            ..self
        }
    }

    /// In a cluster: waits until this node has applied what was acknowledged before the call. `otherwise` says in the error what would go
    /// wrong if it had not.
    fn catch_up(&self, otherwise: &str) -> Result<(), AdminError> {
        let caught_up = self.cluster.as_ref().map_or(Ok(()), |probe| probe.catch_up());
        caught_up.map_err(|reason| AdminError::Refused(format!("{otherwise}: {reason}")))
    }

    /// The reports of the members that are up.
    fn standings(&self, view: &ClusterView) -> BTreeMap<Member, MemberStanding> {
        let Some(probe) = &self.cluster else {
            return BTreeMap::new();
        };
        let up = view.members.iter().filter(|member| member.is_up);
        let up: Vec<Member> = up.map(|member| member.node).collect();
        probe.ask(&up)
    }

    /// Changes a setting as `UPDATE system_views.settings` does.
    fn set(&self, name: &str, value: &str) -> Result<(), AdminError> {
        let changed = self.node.settings().change(&[(name, value)]);
        changed.map_err(AdminError::Refused)
    }

    fn tables_with_hidden(&self, choice: &TableChoice) -> Result<Vec<TableId>, AdminError> {
        let chosen: HashSet<TableId> = self.choose(choice)?.into_iter().collect();
        let stores = self.engine().all_tables();
        let schemas: Vec<_> = stores.iter().map(|store| store.schema()).collect();
        let is_chosen = |table: &&Arc<TableSchema>| chosen.contains(&table.id);
        let names: HashSet<(&str, &str)> = schemas
            .iter()
            .filter(is_chosen)
            .map(|table| name_of(table))
            .collect();
        let with_hidden = schemas.iter().filter(|table| {
            let (keyspace, name) = name_of(table);
            // Compat: the hidden table of an index is `table.index`.
            let owner = name.split_once('.').map_or(name, |(owner, _)| owner);
            names.contains(&(keyspace, name)) || names.contains(&(keyspace, owner))
        });
        Ok(with_hidden.map(|table| table.id).collect())
    }

    fn engine(&self) -> &Engine {
        self.node.engine()
    }

    /// The ids of the chosen tables; an empty choice means all tables.
    fn choose(&self, choice: &TableChoice) -> Result<Vec<TableId>, AdminError> {
        let schema = self.engine().schema();
        let stored = self.engine().tables();
        let Some(keyspace) = &choice.keyspace else {
            return match &choice.table {
                None => Ok(stored.iter().map(|store| store.schema().id).collect()),
                Some(table) => Err(AdminError::Refused(format!("in which keyspace is {table}?"))),
            };
        };
        let known = schema
            .keyspace(keyspace)
            .ok_or_else(|| AdminError::Refused(format!("keyspace {keyspace} does not exist")))?;
        let Some(table) = &choice.table else {
            let of_keyspace = stored.iter().map(|store| store.schema());
            return Ok(of_keyspace
                .filter(|table| table.keyspace == known.name)
                .map(|table| table.id)
                .collect());
        };
        // Compat: the hidden table of an index is `table.index`.
        let all = self.engine().all_tables();
        let mut schemas = all.iter().map(|store| store.schema());
        let hidden = || {
            let hidden = schemas.find(|hidden| hidden.keyspace == known.name && hidden.name == *table);
            hidden.map(|hidden| hidden.id)
        };
        match known.tables.get(table).map(|table| table.id).or_else(hidden) {
            Some(table) => Ok(vec![table]),
            None => Err(AdminError::Refused(format!(
                "table {keyspace}.{table} does not exist"
            ))),
        }
    }

    /// The id of the table. The directory must be an absolute path.
    fn table_of(&self, place: &TablePlace) -> Result<TableId, AdminError> {
        // A relative path would be relative to the node's working directory, which the operator may not know.
        if !place.directory.is_absolute() {
            return Err(AdminError::Refused(format!(
                "{} is not an absolute path",
                place.directory.display()
            )));
        }
        Ok(self.table_named(&place.keyspace, &place.table)?.id)
    }

    fn groups_of_addresses(&self) -> Result<Vec<(String, Vec<Cidr>)>, AdminError> {
        let groups = self.node.processor().access().cidr_groups();
        groups.map_err(|error| AdminError::Failed(error.to_string()))
    }

    fn table_named(&self, keyspace: &str, table: &str) -> Result<Arc<TableSchema>, AdminError> {
        let schema = self.engine().schema();
        let found = schema.table(keyspace, table).cloned();
        found.ok_or_else(|| AdminError::Refused(format!("table {keyspace}.{table} does not exist")))
    }

    fn for_each(
        &self,
        choice: &TableChoice,
        work: impl Fn(&Engine, TableId) -> ilion_engine::Result<()>,
    ) -> Result<u64, AdminError> {
        let tables = self.choose(choice)?;
        for &table in &tables {
            work(self.engine(), table).map_err(failed)?;
        }
        Ok(tables.len() as u64)
    }
}

fn cache_report(facts: CacheFacts) -> CacheReport {
    CacheReport {
        name: facts.name.to_owned(),
        bytes: facts.bytes,
        bytes_max: facts.bytes_max,
        entries: facts.entries,
        hits: facts.hits,
        misses: facts.misses,
    }
}

fn loss_report(lost: &LogLosses) -> Option<LogLossReport> {
    let report = LogLossReport {
        places: lost.places,
        bytes: lost.bytes,
        records_given_up: lost.records_given_up,
        gaps: lost.gaps,
    };
    lost.is_any().then_some(report)
}

impl EngineAdmin {
    /// The table that an index belongs to.
    fn table_of_index(&self, order: &IndexOrder) -> Result<Arc<TableSchema>, AdminError> {
        let schema = self.engine().schema();
        let found = schema.keyspace(&order.keyspace).and_then(|keyspace| {
            let index = keyspace.indexes.get(&order.index)?;
            keyspace.tables.get(&index.table).cloned()
        });
        found.ok_or_else(|| {
            AdminError::Refused(format!("index {}.{} does not exist", order.keyspace, order.index))
        })
    }
}

impl Admin for EngineAdmin {
    fn auditor(&self) -> Option<Arc<Auditor>> {
        Some(self.node.auditor().clone())
    }

    fn rebuild_index(&self, order: &IndexOrder) -> Result<(), AdminError> {
        let table = self.table_of_index(order)?;
        self.engine().rebuild_index(&table, &order.index).map_err(failed)
    }

    fn verify_index(&self, order: &IndexOrder) -> Result<IndexReport, AdminError> {
        let table = self.table_of_index(order)?;
        let found = self.engine().verify_index(&table, &order.index, order.repair());
        found.map(IndexReport::from).map_err(failed)
    }

    fn status(&self) -> StatusReport {
        let facts = self.engine().facts();
        let tables = self.engine().table_facts();
        let clients = self.clients.list();
        StatusReport {
            failure: self.engine().failure(),
            set_aside: self
                .engine()
                .set_aside()
                .iter()
                .map(ToString::to_string)
                .collect(),
            stalled: self.engine().stalled(),
            clients: clients.len() as u64,
            requests: self.clients.request_count(),
            memtable_bytes: facts.memtable_bytes,
            memtable_bytes_max: facts.memtable_bytes_max,
            flushes: facts.flushes,
            compactions: facts.compactions,
            compactions_failed: facts.compactions_failed,
            disk_read_bytes: self.engine().io().bytes_read,
            clock_behind_secs: facts.clock_behind_micros / 1_000_000,
            log_losses: loss_report(&facts.log_losses),
            is_of_cluster: self.node.local().peers().is_some(),
            tables: tables.into_iter().filter(is_of_user).map(report).collect(),
        }
    }

    fn info(&self) -> InfoReport {
        let engine = self.engine();
        let nanos = engine.env().monotonic_nanos().saturating_sub(self.started_nanos);
        InfoReport {
            uptime_secs: nanos / 1_000_000_000,
            schema_version: engine.schema().version.to_string(),
            caches: engine.facts().caches.into_iter().map(cache_report).collect(),
            ..self.info.clone()
        }
    }

    fn flush(&self, tables: &TableChoice) -> Result<u64, AdminError> {
        let tables = self.choose(tables)?;
        self.engine().flush_tables(&tables).map_err(failed)?;
        Ok(tables.len() as u64)
    }

    fn compact(&self, order: &CompactionOrder) -> Result<u64, AdminError> {
        let files = order.files();
        if files.is_empty() {
            let request = order.request(self.engine())?;
            let compact = |engine: &Engine, table| engine.compact_as(table, &request).map(drop);
            return self.for_each(&order.tables(), compact);
        }
        let mut by_table: BTreeMap<TableId, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            let table = self.engine().table_with_file(&file).map_err(failed)?;
            by_table.entry(table).or_default().push(file);
        }
        let count = by_table.len() as u64;
        for (table, files) in by_table {
            let request = CompactionRequest::Files(files);
            self.engine().compact_as(table, &request).map_err(failed)?;
        }
        Ok(count)
    }

    fn compactions(&self) -> CompactionReport {
        CompactionReport::of(self.engine())
    }

    fn stop(&self, order: &StopOrder) -> Result<u64, AdminError> {
        Ok(self.engine().stop_compactions(order.choice()?) as u64)
    }

    fn set_auto_compaction(&self, order: &AutoCompactionOrder) -> Result<u64, AdminError> {
        let tables = TableChoice {
            keyspace: order.keyspace.clone(),
            table: order.table.clone(),
        };
        self.for_each(&tables, |engine, table| {
            engine.set_auto_compaction(table, order.on)
        })
    }

    fn set_compaction_throughput(&self, order: &ThroughputOrder) -> Result<(), AdminError> {
        self.set("compaction_throughput", &format!("{}B/s", order.bytes_per_sec))
    }

    fn invalidate_caches(&self, cache: Option<&str>) -> Result<u64, AdminError> {
        let caches = self.engine().facts().caches;
        let named = caches.iter().map(|facts| facts.name).chain([ROLES]);
        let chosen: Vec<&str> = match cache {
            Some(cache) => vec![cache],
            None => named.collect(),
        };
        for cache in &chosen {
            match *cache {
                ROLES => self.node.processor().access().forget(),
                cache => self.engine().invalidate_cache(cache).map_err(failed)?,
            }
        }
        Ok(chosen.len() as u64)
    }

    fn change_cache(&self, order: &CacheOrder) -> Result<(), AdminError> {
        let setting = |suffix: &str| {
            let of_chunks = (order.cache == "chunks" && suffix == "size").then_some("file_cache");
            let caches = [
                ("rows", "row_cache"),
                ("counters", "counter_cache"),
                ("keys", "key_cache"),
            ];
            let known = caches.iter().find(|(cache, _)| *cache == order.cache);
            let stem = of_chunks.or(known.map(|(_, stem)| *stem)).ok_or_else(|| {
                AdminError::Refused(match (&*order.cache, suffix) {
                    ("chunks", _) => "the cache chunks is not saved".to_owned(),
                    (cache, _) => {
                        format!("there is no cache {cache}: there are rows, counters, keys and chunks")
                    }
                })
            })?;
            Ok::<_, AdminError>(format!("{stem}_{suffix}"))
        };
        let mut wanted = Vec::new();
        if let Some(bytes_max) = order.bytes_max {
            wanted.push((setting("size")?, format!("{bytes_max}B")));
        }
        if let Some(keys) = order.keys_to_save {
            wanted.push((setting("keys_to_save")?, keys.max(-1).to_string()));
        }
        let wanted: Vec<(&str, &str)> = wanted.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.node.settings().change(&wanted).map_err(AdminError::Refused)
    }

    fn drain(&self) -> Result<(), AdminError> {
        self.engine().drain().map_err(failed)
    }

    fn snapshot(&self, order: &SnapshotOrder) -> Result<u64, AdminError> {
        if !order.skip_flush {
            self.catch_up("a snapshot would miss acknowledged writes (--skip-flush takes what is on disk)")?;
        }
        order.take(self.engine())
    }

    fn snapshots(&self) -> Result<SnapshotsReport, AdminError> {
        SnapshotsReport::of(self.engine()).map_err(failed)
    }

    fn clear_snapshot(&self, order: &ClearOrder) -> Result<u64, AdminError> {
        let choice = order.choice(self.engine())?;
        self.engine().clear_snapshots(&choice).map_err(failed)
    }

    fn is_backing_up(&self) -> bool {
        self.engine().is_backing_up()
    }

    fn set_backing_up(&self, is_on: bool) -> Result<(), AdminError> {
        self.set("incremental_backups", &is_on.to_string())
    }

    fn node(&self) -> NodeReport {
        let engine = self.engine();
        let (facts, env) = (engine.facts(), engine.env());
        let nanos = env.monotonic_nanos().saturating_sub(self.started_nanos);
        let uptime_secs = nanos / 1_000_000_000;
        let uptime = i64::try_from(uptime_secs).unwrap_or(0);
        let settings = self.node.settings().current();
        let schema = engine.schema();
        let details = engine.all_tables().into_iter();
        let details = details.filter_map(|store| engine.table_details(store.schema().id).ok());
        let details: Vec<TableDetails> = details.collect();
        let mut report = NodeReport {
            partitioner: engine.partitioner().class_name().to_owned(),
            native_address: self.info.cql_address.clone(),
            load_bytes: details.iter().map(|table| table.facts.sstable_bytes).sum(),
            data_bytes: details.iter().map(|table| table.data_bytes).sum(),
            started_secs: env.now_micros() / 1_000_000 - uptime,
            uptime_secs,
            resident_bytes: resident_bytes(&**env),
            machine_bytes: machine_bytes(&**env),
            is_open: self.entry.is_open(),
            failure: engine.failure(),
            caches: facts.caches.into_iter().map(cache_report).collect(),
            save_periods: [
                ("rows", settings.row_cache_save_period),
                ("counters", settings.counter_cache_save_period),
                ("keys", settings.key_cache_save_period),
            ]
            .map(|(cache, period)| (cache.to_owned(), period.as_secs()))
            .into(),
            keyspaces: replication(&schema),
            tables: details.into_iter().map(|details| report(details.facts)).collect(),
            latencies: Latencies::of(&self.node.observers().costs),
            compaction_threads: facts.compaction_threads,
            compactions: facts.compactions,
            compacted_bytes: facts.compacted_bytes_in,
            compactions_failed: facts.compactions_failed,
            ..NodeReport::of_local(self.node.local())
        };
        if let Some(peers) = self.node.local().peers() {
            let keyspaces = report.keyspaces.keys();
            let strategies = keyspaces.map(|name| (name.clone(), self.node.local().strategy(name)));
            let view = peers.view();
            let silences = self.cluster.as_ref().map(|probe| probe.silences());
            let (standings, silences) = (self.standings(&view), silences.unwrap_or_default());
            report.add_members(&view, &strategies.collect(), &standings, &silences);
        }
        report
    }

    fn is_view_built(&self, view: &TableChoice) -> Result<bool, AdminError> {
        let (Some(keyspace), Some(name)) = (&view.keyspace, &view.table) else {
            return Err(AdminError::Refused("name a keyspace and a view".to_owned()));
        };
        let built = self.node.processor().is_view_built(keyspace, name);
        built.map_err(|error| AdminError::Failed(error.to_string()))
    }

    fn settings(&self) -> SettingsReport {
        let settings = self.node.settings().current();
        SettingsReport {
            settings: settings
                .printed()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            at_start: self
                .settings
                .printed()
                .zip(settings.printed())
                .filter(|(then, now)| then.1 != now.1)
                .map(|((name, value), _)| (name.to_owned(), value))
                .collect(),
        }
    }

    fn change_settings(&self, order: &SettingsOrder) -> Result<(), AdminError> {
        let pairs = order.pairs().map_err(AdminError::Refused)?;
        self.node.settings().change(&pairs).map_err(AdminError::Refused)
    }

    fn reload(&self) -> Result<ReloadReport, AdminError> {
        let Some(reloading) = &self.reloading else {
            return Err(AdminError::Refused("this node has no settings file".to_owned()));
        };
        let loaded = reloading().map_err(AdminError::Refused)?;
        let mut report = self.node.settings().reload(loaded).map_err(AdminError::Refused)?;
        if let Err(error) = self.certificates.reload() {
            let warning = format!("certificates cannot be used, and the old ones stay in use: {error}");
            report.warnings.push(warning);
        }
        report.warnings.extend(self.certificates.warnings());
        Ok(report)
    }

    fn reload_certificates(&self) -> Result<(), AdminError> {
        let reloaded = self.certificates.reload();
        reloaded.map_err(|error| AdminError::Failed(error.to_string()))
    }

    fn is_open(&self) -> bool {
        self.entry.is_open()
    }

    fn set_open(&self, is_open: bool) -> Result<(), AdminError> {
        let done = match is_open {
            true => self.entry.open(),
            false => self.entry.close(),
        };
        done.map_err(AdminError::Failed)
    }

    fn ring(&self) -> Result<Arc<dyn RingAdmin>, AdminError> {
        let ring = self.ring.clone();
        ring.ok_or_else(|| AdminError::Refused("this is a single node: it has no ring".to_owned()))
    }

    fn unready(&self) -> Option<String> {
        if self.ring.as_ref().is_some_and(|ring| ring.report().has_left) {
            return Some("this node has left the cluster".to_owned());
        }
        if let Some(reason) = self.engine().failure() {
            return Some(format!("writes are refused: {reason}"));
        }
        if let Some(reason) = self.engine().stalled() {
            return Some(format!("flushes fail and are tried again: {reason}"));
        }
        (!self.entry.is_open()).then(|| "clients may not connect, by order of an operator".to_owned())
    }

    fn rewrite(&self, order: &RewriteOrder) -> Result<u64, AdminError> {
        let mut count = 0;
        for table in self.tables_with_hidden(&order.tables())? {
            count += self.engine().rewrite(table, order.choice()).map_err(failed)?;
        }
        Ok(count)
    }

    fn collect_garbage(&self, order: &GarbageOrder) -> Result<u64, AdminError> {
        let mut count = 0;
        for table in self.choose(&order.tables())? {
            let collected = self.engine().collect_garbage(table, order.granularity());
            count += collected.map_err(failed)?;
        }
        Ok(count)
    }

    fn compact_keys(&self, order: &KeysOrder) -> Result<u64, AdminError> {
        let table = self.table_named(&order.keyspace, &order.table)?;
        order.execute(self.engine(), &table)
    }

    fn thresholds(&self, order: &ThresholdsOrder) -> Result<ThresholdsReport, AdminError> {
        let table = self.table_named(&order.keyspace, &order.table)?;
        order.execute(self.engine(), &table)
    }

    fn cidr_groups(&self, order: &CidrGroupsOrder) -> Result<CidrGroupsReport, AdminError> {
        order.report(&self.groups_of_addresses()?)
    }

    fn change_cidr_group(&self, order: &CidrGroupOrder) -> Result<(), AdminError> {
        let order = QueryOrder {
            cql: order.statement(&self.groups_of_addresses()?)?,
            ..QueryOrder::default()
        };
        self.query(&order, &Caller::Operator)?;
        self.node.processor().access().forget();
        Ok(())
    }

    fn stop_node(&self) -> Result<(), AdminError> {
        match &self.stopping {
            Some(stopping) => {
                stopping();
                Ok(())
            }
            None => Err(AdminError::Refused(
                "the program that runs this node decides when it stops".to_owned(),
            )),
        }
    }

    fn scrub(&self, order: &ScrubOrder) -> Result<ScrubReport, AdminError> {
        let Some(salvaging) = &self.salvaging else {
            return Err(AdminError::Refused(
                "the program that runs this node has no tools for SSTables".to_owned(),
            ));
        };
        let salvage = |data: &Path, directory: &Path| salvaging(self.engine().env(), data, directory);
        let mut report = ScrubReport::default();
        for table in self.choose(&order.tables())? {
            let scrubbed = self.engine().scrub(table, &order.options(), &salvage);
            report.add(scrubbed.map_err(failed)?);
        }
        Ok(report)
    }

    fn verify(&self, tables: &TableChoice) -> Result<VerifyReport, AdminError> {
        let mut report = VerifyReport::default();
        for table in self.tables_with_hidden(tables)? {
            report.add(self.engine().check_sstables(table).map_err(failed)?);
        }
        Ok(report)
    }

    fn backups(&self, order: &BackupsOrder) -> Result<serde_json::Value, AdminError> {
        if *order == BackupsOrder::Begin {
            self.catch_up("a backup would miss acknowledged writes")?;
        }
        super::backups::execute(&self.node, order, &|cql| {
            let order = QueryOrder {
                cql: cql.to_owned(),
                ..QueryOrder::default()
            };
            dashboard::run(&self.node, Some(&self.clients), &order, &Caller::Operator).map(drop)
        })
    }

    fn audit_log(&self) -> AuditLogReport {
        AuditLogReport::of(self.node.auditor().audit(), &self.settings)
    }

    fn set_audit_log(&self, order: &AuditLogOrder) -> Result<(), AdminError> {
        order.execute(self.node.auditor().audit(), &self.settings)
    }

    fn data_paths(&self, order: &DataPathsOrder) -> Result<DataPathsReport, AdminError> {
        order.report(self.engine())
    }

    fn sstables_with(&self, order: &SSTablesOrder) -> Result<SSTablesReport, AdminError> {
        order.report(self.engine())
    }

    fn key_sample(&self) -> Result<KeySampleReport, AdminError> {
        KeySampleReport::of(self.engine())
    }

    fn node_table(&self, table: NodeTable) -> Result<NodeTableReport, AdminError> {
        let mut report = NodeTableReport::default();
        let mut order = QueryOrder {
            cql: table.statement(),
            ..QueryOrder::default()
        };
        loop {
            let page = self.query(&order, &Caller::Operator)?;
            order.paging_state.clone_from(&page.paging_state);
            let page = NodeTableReport::of(page);
            report.columns = page.columns;
            report.rows.extend(page.rows);
            if order.paging_state.is_none() {
                return Ok(report);
            }
        }
    }

    fn export(&self, place: &TablePlace) -> Result<ExportReport, AdminError> {
        let table = self.table_of(place)?;
        let exported = self.engine().export(table, &place.directory).map_err(failed)?;
        Ok(ExportReport { exported })
    }

    fn import(&self, place: &TablePlace) -> Result<ImportReport, AdminError> {
        let table = self.table_of(place)?;
        let source = match place.source {
            ImportedFrom::Moved => ImportSource::Moved,
            ImportedFrom::Copied => ImportSource::Copied,
        };
        let done = self.engine().import(table, &place.directory, source);
        Ok(import_report(done.map_err(failed)?))
    }

    fn refresh(&self, choice: &TableChoice) -> Result<ImportReport, AdminError> {
        let (Some(keyspace), Some(name)) = (&choice.keyspace, &choice.table) else {
            return Err(AdminError::Refused("name a keyspace and a table".to_owned()));
        };
        let table = self.table_named(keyspace, name)?;
        let done = self.engine().refresh(table.id);
        Ok(import_report(done.map_err(failed)?))
    }

    fn begin_load(&self, order: &LoadOrder) -> Result<LoadReport, AdminError> {
        let table = self.table_named(&order.keyspace, &order.table)?;
        self.loads.begin(self.engine(), table.id, order)
    }

    fn receive_load(&self, piece: &LoadPiece, bytes: &[u8]) -> Result<(), AdminError> {
        self.loads.receive(self.engine(), piece, bytes)
    }

    fn finish_load(&self, load: &str) -> Result<FinishedLoad, AdminError> {
        match self.engine().is_of_cluster() {
            true => self.loads.finish_by(load, |load| write_load(&self.node, load)),
            false => self.loads.finish(self.engine(), load),
        }
    }

    fn abandon_load(&self, load: &str) {
        self.loads.abandon(load);
    }

    fn end_silent_loads(&self) {
        self.loads.end_silent(self.engine().env().monotonic_nanos());
    }

    fn take_sample(&self) {
        let engine = self.engine();
        let (facts, io) = (engine.facts(), engine.io());
        let nanos = engine.env().monotonic_nanos().saturating_sub(self.started_nanos);
        let of_clients = self.clients.metrics();
        let (requests, latencies) = of_clients.times.counts();
        let in_caches: u64 = facts.caches.iter().map(|cache| cache.bytes).sum();
        self.history.add(Standing {
            millis: nanos / 1_000_000,
            requests,
            latencies,
            errors: of_clients.error_count(),
            read_bytes: io.bytes_read,
            written_bytes: io.bytes_written,
            sizes: Sizes {
                memtable_bytes: facts.memtable_bytes,
                chunk_cache_bytes: facts.chunk_cache_bytes,
                other_cache_bytes: in_caches.saturating_sub(facts.chunk_cache_bytes),
                clients: u64::try_from(of_clients.connections.get()).unwrap_or(0),
            },
        });
    }

    fn history(&self, order: HistoryOrder) -> HistoryReport {
        self.history.report(self.started_millis, order)
    }

    fn slowest(&self, order: &SlowestOrder) -> SlowestReport {
        let costs = &self.node.observers().costs;
        SlowestReport::of(order, |id| costs.shape(id).map(|shape| shape.text.clone()))
    }

    fn query(&self, order: &QueryOrder, caller: &Caller) -> Result<QueryReport, AdminError> {
        dashboard::run(&self.node, Some(&self.clients), order, caller)
    }

    fn changes(&self, order: &ChangesOrder, caller: &Caller) -> Result<ChangeStream, AdminError> {
        let reader = reader(caller)?;
        if order.once {
            self.catch_up("the stream would end before changes that were acknowledged")?;
        }
        ChangeStream::open(&self.node, order, reader).map_err(AdminError::Refused)
    }

    fn commit_changes(&self, order: &CommitOrder, caller: &Caller) -> Result<(), AdminError> {
        consumers_report::commit(&self.node, order, &reader(caller)?)
    }

    fn change_consumers(&self) -> Result<ConsumersReport, AdminError> {
        consumers_report::report(&self.node)
    }

    fn release_changes(&self, order: &ReleaseOrder) -> Result<ReleaseReport, AdminError> {
        consumers_report::release(&self.node, order)
    }

    fn forget_consumer(&self, order: &ForgetOrder) -> Result<usize, AdminError> {
        consumers_report::forget(&self.node, order)
    }

    fn statements(&self) -> StatementsReport {
        StatementsReport::of(&self.node.observers().costs.list())
    }

    fn reset_statements(&self) {
        self.node.observers().costs.reset();
    }

    fn trace_probability(&self) -> f64 {
        self.node.observers().trace_probability.probability()
    }

    fn set_trace_probability(&self, probability: f64) -> Result<(), AdminError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(AdminError::Refused(format!(
                "{probability} is no probability: it is from 0 to 1"
            )));
        }
        self.node.observers().trace_probability.set(probability);
        Ok(())
    }

    fn table_stats(&self, tables: &TableChoice) -> Result<TableStatsReport, AdminError> {
        let costs = self.node.observers().costs.by_table();
        let mut stats = Vec::new();
        let of_snapshots = self.engine().snapshots_only_bytes().map_err(failed)?;
        for table in self.tables_with_hidden(tables)? {
            let details = self.engine().table_details(table).map_err(failed)?;
            let key = (details.facts.keyspace.clone(), details.facts.table.clone());
            let nothing = TableCosts::default();
            let mut of_table = TableStats::of(&details, costs.get(&key).unwrap_or(&nothing));
            of_table.snapshots_bytes = of_snapshots.get(&table).copied().unwrap_or(0);
            stats.push(of_table);
        }
        stats.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        Ok(TableStatsReport { tables: stats })
    }

    fn top_partitions(&self, order: &TopPartitionsOrder) -> Result<TopPartitionsReport, AdminError> {
        if order.millis > SAMPLING_MILLIS_MAX {
            return Err(AdminError::Refused(format!(
                "{} ms is too long: at most {SAMPLING_MILLIS_MAX}",
                order.millis
            )));
        }
        let tables = self.choose(&order.tables())?;
        self.engine().begin_sampling(tables).map_err(failed)?;
        std::thread::sleep(Duration::from_millis(order.millis));
        Ok(TopPartitionsReport::of(self.engine().finish_sampling(order.top)))
    }

    fn metrics(&self) -> String {
        let mut out = String::new();
        match text::encode(&mut out, &self.registry) {
            Ok(()) => out,
            Err(error) => format!("# {error}\n"),
        }
    }
}

/// The identity that reads changes.
fn reader(caller: &Caller) -> Result<Identity, AdminError> {
    let identity = caller.identity();
    identity.ok_or_else(|| AdminError::Refused("reading changes needs a login".to_owned()))
}

fn is_of_user(table: &TableFacts) -> bool {
    let keyspace = table.keyspace.as_str();
    keyspace != "system" && !keyspace.starts_with("system_")
}

fn import_report(done: ilion_engine::ImportReport) -> ImportReport {
    let left = |files: Vec<(PathBuf, String)>| {
        let files = files.into_iter();
        files.map(|(file, reason)| LeftFile { file, reason }).collect()
    };
    let imported = done.imported.into_iter();
    ImportReport {
        imported: imported.map(|(from, to)| ImportedFile { from, to }).collect(),
        refused: left(done.refused),
        left: left(done.left),
    }
}

fn report(table: TableFacts) -> TableReport {
    TableReport {
        keyspace: table.keyspace,
        table: table.table,
        sstables: table.sstables,
        levels: table.levels,
        sstable_bytes: table.sstable_bytes,
        memtable_bytes: table.memtable_bytes,
        estimated_partitions: table.estimated_partitions,
        is_auto_compacting: table.is_auto_compacting,
    }
}
