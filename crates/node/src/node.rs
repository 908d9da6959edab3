//! A node: engine, query layer and system tables, built from the settings. It opens no ports; `ilion_server` adds a server.

use std::net::SocketAddr;
use std::sync::Arc;

use crossbeam_channel::bounded;
use ilion_commitlog::ReplayProgress;
use ilion_engine::{Engine, is_cluster_directory};
use ilion_env::cost::timed;
use ilion_env::{Count, Env};
use ilion_index::IndexClasses;
use ilion_query::{Awaited, ClusterFacts, EngineStore, Executed, QueryProcessor, Store};
use ilion_schema::TableId;
use ilion_settings::Settings;

use crate::access_settings::check_access;
use crate::cluster_settings::{check_log_options, refused_alone};
use crate::costs::{RecentRates, StatementCosts};
use crate::disk_watch::watch_disk;
use crate::layer_options::{engine_options, query_options};
use crate::live::LiveSettings;
use crate::memory::machine_bytes;
use crate::open_error::OpenError;
use crate::peers::Peers;
use crate::system::{self, LocalNode, NodeFacts};
use crate::ticker::Ticker;

/// An open node.
#[derive(Clone)]
pub struct Node {
    engine: Arc<Engine>,
    processor: Arc<QueryProcessor>,
    local: Arc<LocalNode>,
    costs: Arc<StatementCosts>,
    settings: Arc<LiveSettings>,
    /// Threads that end with the node.
    _tickers: Arc<[Ticker]>,
}

/// What a node is opened with, beside its settings.
pub struct Opening {
    /// The classes for `CREATE CUSTOM INDEX`.
    pub index_classes: IndexClasses,
    /// If false, SSTables stay as they are until a statement changes them.
    pub is_compacting: bool,
    /// Told how far the replay of the commit log is.
    pub progress: Arc<ReplayProgress>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            index_classes: IndexClasses::own(),
            is_compacting: true,
            progress: Arc::default(),
        }
    }
}

impl Node {
    /// Opens the data directory, created if absent, and replays the commit log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(env: Arc<dyn Env>, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_alone(env, settings, Opening::default())
    }

    /// As [`Self::open`], with what the settings do not have.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_alone(env: Arc<dyn Env>, settings: &Settings, opening: Opening) -> Result<Self, OpenError> {
        refused_alone(settings).map_err(OpenError::Settings)?;
        let data_path = settings.data_path();
        if is_cluster_directory(&*env, &data_path) {
            return Err(OpenError::Settings(format!(
                "{} is the data directory of a node of a cluster: start it with the log of the cluster (--log), since a part of its data may be \
                 in the log only",
                data_path.display()
            )));
        }
        Self::open_over(env, settings, opening, |_, store| Ok(store))
    }

    /// As [`Self::open_alone`], but the query layer uses the storage that `over` makes of the engine's. For clusters.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_over(
        env: Arc<dyn Env>,
        settings: &Settings,
        opening: Opening,
        over: impl FnOnce(&Arc<Engine>, Arc<dyn Store>) -> Result<Arc<dyn Store>, OpenError>,
    ) -> Result<Self, OpenError> {
        check_access(settings)?;
        check_log_options(settings).map_err(OpenError::Settings)?;
        let mut options = engine_options(&*env, settings).map_err(OpenError::Settings)?;
        options.index_classes = opening.index_classes;
        options.is_compacting &= opening.is_compacting;
        options.commit_log.progress = opening.progress;
        let engine = Arc::new(Engine::open(env, options)?);
        let nobody = ClusterFacts {
            name: settings.cluster_name.clone(),
            snitch: String::new(),
            ranges: Vec::new(),
        };
        let store: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), nobody));
        let local = Arc::new(LocalNode::open(store, node_facts(settings, &engine))?);
        if local.is_of_another_version() {
            // The next start reads this row before it replays the commit log.
            let flushed = engine.flush(TableId::of_system_table("system", "local"));
            if let Err(error) = flushed
                && !error.is_shortage()
            {
                return Err(error.into());
            }
        }
        let store: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), local.clone()));
        let query_options = query_options(settings, machine_bytes(&**engine.env()));
        let disk_watch = watch_disk(&engine, settings, query_options.disk_usage.clone())?;
        let processor = Arc::new(QueryProcessor::new(over(&engine, store)?, query_options));
        system::register(&engine, settings);
        let costs = Arc::<StatementCosts>::default();
        let rates = Arc::<RecentRates>::default();
        system::register_costs(&engine, &costs, &rates);
        let rate_updates = rates.update(&costs, &engine).map_err(OpenError::Threads)?;
        system::register_ring(&engine, &local);
        system::register_batches(&engine, processor.batch_sizes());
        system::register_access(&engine, &processor);
        if let Err(error) = processor.access().sweep(&engine.schema()) {
            // A later start removes these grants; serving matters more.
            tracing::warn!(%error, "grants on dropped objects cannot be removed");
        }
        let settings = Arc::new(LiveSettings::new(settings, &engine, &processor));
        system::register_settings(&engine, &settings);
        Ok(Self {
            settings,
            engine,
            processor,
            local,
            costs,
            _tickers: disk_watch.into_iter().chain([rate_updates]).collect(),
        })
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Waits until the writes of a statement are durable, in the sense of the commit log's sync mode.
    ///
    /// # Errors
    /// The commit log has failed.
    pub fn wait_durable(&self, executed: &Executed) -> ilion_engine::Result<()> {
        self.wait_until_durable(executed.awaited.clone())
    }

    /// Waits until a write is durable. `awaited` is the position in the commit log or the write in the cluster; `None` returns at once.
    ///
    /// # Errors
    /// The commit log has failed, or the logs of the cluster did not acknowledge the write.
    pub fn wait_until_durable(&self, awaited: Option<Awaited>) -> ilion_engine::Result<()> {
        timed(Count::LogNanos, || match awaited {
            None => Ok(()),
            Some(Awaited::Log(position)) => self.engine.wait_durable(position.into()),
            Some(Awaited::Cluster(write)) => {
                let (sender, receiver) = bounded(1);
                write.on_done(move |done| drop(sender.send(done)));
                match receiver.recv() {
                    Ok(done) => done.map_err(|error| ilion_engine::Error::Refused(error.to_string())),
                    Err(_) => Err(ilion_engine::Error::Refused("the node stops".to_owned())),
                }
            }
        })
    }

    /// The query layer.
    pub fn processor(&self) -> &Arc<QueryProcessor> {
        &self.processor
    }

    /// Ends long-running SELECTs, because the node is about to stop.
    pub fn end_long_reads(&self) {
        self.processor.end_long_reads();
    }

    /// Identity and addresses of this node, as stored in `system.local`.
    pub fn local(&self) -> &Arc<LocalNode> {
        &self.local
    }

    /// The costs of statements, by shape.
    pub fn costs(&self) -> &Arc<StatementCosts> {
        &self.costs
    }

    /// The current settings.
    pub fn settings(&self) -> &Arc<LiveSettings> {
        &self.settings
    }

    /// Shows drivers that this node is a member of a cluster: `system.peers` has its peers, and changes of the cluster are events.
    ///
    /// Requires: the server has not started, and no view has been published.
    ///
    /// # Errors
    /// `system.local` cannot be written.
    pub fn follow(&self, peers: &Arc<Peers>) -> Result<(), OpenError> {
        self.local.follow(peers)?;
        system::register_peers(&self.engine, peers);
        Ok(())
    }
}

fn node_facts(settings: &Settings, engine: &Engine) -> NodeFacts {
    let rpc_address = settings.broadcast_rpc_address.unwrap_or(settings.rpc_address);
    NodeFacts {
        cluster_name: settings.cluster_name.clone(),
        data_center: settings.data_center.clone(),
        rack: settings.rack.clone(),
        host_id: engine.id(),
        initial_token: settings.initial_token.clone(),
        rpc_address: SocketAddr::new(rpc_address, settings.native_transport_port),
        listen_address: settings.listen_address.unwrap_or(rpc_address),
    }
}
