//! [`Admin`] over an engine and a server.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ilion_engine::{CacheFacts, CompactionRequest, Engine, ImportSource, LogLosses, TableFacts};
use ilion_schema::{TableId, TableSchema};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::audit_log::AuditMetrics;
use super::engine_metrics::EngineMetrics;
use super::table_times::TableTimes;
use super::{
    Admin, AdminError, AuditLogOrder, AuditLogReport, AutoCompactionOrder, CacheOrder, CacheReport, Caller,
    ClearOrder, CompactionOrder, CompactionReport, DataPathsOrder, DataPathsReport, ExportReport,
    ImportReport, ImportedFile, ImportedFrom, IndexOrder, IndexReport, InfoReport, LeftFile, LogLossReport,
    NodeTable, NodeTableReport, SSTablesOrder, SSTablesReport, SnapshotOrder, SnapshotsReport,
    StatementsReport, StatusReport, StopOrder, TableChoice, TablePlace, TableReport, TableStats,
    TableStatsReport, ThroughputOrder, TopPartitionsOrder, TopPartitionsReport,
};
use crate::clients::Clients;
use crate::costs::TableCosts;
use crate::dashboard::{self, QueryOrder, QueryReport, SlowestOrder, SlowestReport};
use crate::node::Node;
use crate::server::Server;
use crate::settings::Settings;
use crate::system::RELEASE_VERSION;

/// Longest sampling of partitions.
const SAMPLING_MILLIS_MAX: u64 = 3_600_000;

/// The cache of roles, permissions and hashes of passwords.
const ROLES: &str = "roles";

fn name_of(table: &TableSchema) -> (&str, &str) {
    (&table.keyspace, &table.name)
}

/// The administration of a node and its server.
pub struct EngineAdmin {
    node: Node,
    clients: Clients,
    registry: Registry,
    info: InfoReport,
    settings: Settings,
    started_nanos: u64,
}

impl EngineAdmin {
    /// Registers the metrics of the node and the server.
    pub fn new(node: &Node, server: &Server, settings: &Settings) -> Self {
        let mut registry = Registry::with_prefix("ilion");
        server.register_metrics(&mut registry);
        registry.register_collector(Box::new(EngineMetrics(node.engine().clone())));
        registry.register_collector(Box::new(AuditMetrics(node.auditor().clone())));
        registry.register_collector(Box::new(TableTimes(node.observers().costs.clone())));
        let info = InfoReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            release_version: RELEASE_VERSION.to_owned(),
            pid: std::process::id(),
            cluster_name: node.local().cluster().name,
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
            registry,
            info,
            settings: settings.clone(),
            started_nanos: node.engine().env().monotonic_nanos(),
        }
    }

    fn engine(&self) -> &Engine {
        self.node.engine()
    }

    /// The ids of the chosen tables; of all if the choice is empty.
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

    /// The id of the table.
    fn table_of(&self, place: &TablePlace) -> Result<TableId, AdminError> {
        // A relative path would be relative to the node's working directory, which the operator may not know.
        if !place.directory.is_absolute() {
            return Err(AdminError::Refused(format!(
                "{} is not an absolute path",
                place.directory.display()
            )));
        }
        let schema = self.engine().schema();
        let table = schema.table(&place.keyspace, &place.table);
        table.map(|table| table.id).ok_or_else(|| {
            AdminError::Refused(format!("table {}.{} does not exist", place.keyspace, place.table))
        })
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

pub(super) fn failed(error: ilion_engine::Error) -> AdminError {
    match error {
        ilion_engine::Error::Refused(reason) => AdminError::Refused(reason),
        other => AdminError::Failed(other.to_string()),
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
        self.for_each(tables, Engine::flush)
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

    fn set_compaction_throughput(&self, order: &ThroughputOrder) {
        let rate = Some(order.bytes_per_sec).filter(|rate| *rate > 0);
        self.engine().set_compaction_throughput(rate);
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
        if let Some(bytes_max) = order.bytes_max {
            self.engine()
                .set_cache_capacity(&order.cache, bytes_max)
                .map_err(failed)?;
        }
        if let Some(keys) = order.keys_to_save {
            let keys_max = usize::try_from(keys).unwrap_or(usize::MAX);
            self.engine()
                .set_cache_keys_to_save(&order.cache, keys_max)
                .map_err(failed)?;
        }
        Ok(())
    }

    fn drain(&self) -> Result<(), AdminError> {
        self.engine().drain().map_err(failed)
    }

    fn snapshot(&self, order: &SnapshotOrder) -> Result<u64, AdminError> {
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

    fn set_backing_up(&self, is_on: bool) {
        self.engine().set_backing_up(is_on);
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
        let done = self
            .engine()
            .import(table, &place.directory, source)
            .map_err(failed)?;
        let left = |files: Vec<(PathBuf, String)>| {
            let files = files.into_iter();
            files.map(|(file, reason)| LeftFile { file, reason }).collect()
        };
        let imported = done.imported.into_iter();
        Ok(ImportReport {
            imported: imported.map(|(from, to)| ImportedFile { from, to }).collect(),
            refused: left(done.refused),
            left: left(done.left),
        })
    }

    fn slowest(&self, order: SlowestOrder) -> SlowestReport {
        let costs = &self.node.observers().costs;
        SlowestReport::of(order, |id| costs.shape(id).map(|shape| shape.text.clone()))
    }

    fn query(&self, order: &QueryOrder, caller: &Caller) -> Result<QueryReport, AdminError> {
        dashboard::run(&self.node, &self.clients, order, caller)
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
        let chosen: HashSet<TableId> = self.choose(tables)?.into_iter().collect();
        let of_snapshots = self.engine().snapshots_only_bytes().map_err(failed)?;
        let stores = self.engine().all_tables();
        let schemas: Vec<_> = stores.iter().map(|store| store.schema()).collect();
        let is_chosen = |table: &&Arc<TableSchema>| chosen.contains(&table.id);
        let names: HashSet<(&str, &str)> = schemas
            .iter()
            .filter(is_chosen)
            .map(|table| name_of(table))
            .collect();
        for table in &schemas {
            let (keyspace, name) = name_of(table);
            // Compat: the hidden table of an index is `table.index`.
            let owner = name.split_once('.').map_or(name, |(owner, _)| owner);
            if !names.contains(&(keyspace, name)) && !names.contains(&(keyspace, owner)) {
                continue;
            }
            let details = self.engine().table_details(table.id).map_err(failed)?;
            let key = (details.facts.keyspace.clone(), details.facts.table.clone());
            let nothing = TableCosts::default();
            let mut of_table = TableStats::of(&details, costs.get(&key).unwrap_or(&nothing));
            of_table.snapshots_bytes = of_snapshots.get(&table.id).copied().unwrap_or(0);
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

fn is_of_user(table: &TableFacts) -> bool {
    let keyspace = table.keyspace.as_str();
    keyspace != "system" && !keyspace.starts_with("system_")
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
    }
}
