//! Opens members of a cluster in one process, each with an engine and what serves clients.

use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::{Endpoint, Location};
use ilion_coordinator::ReadOptions;
use ilion_engine::Engine;
use ilion_env::RealEnv;
use ilion_member::{InProcess, MemLogs, Member, MemberOptions, NewCluster};
use ilion_node::{OpenError, Opening};
use ilion_query::Store;
use ilion_server::ServerNode;
use ilion_settings::Settings;

const PATIENCE: Duration = Duration::from_secs(60);

/// A member, with its server.
pub(crate) struct Opened {
    pub node: ServerNode,
    pub member: Arc<Member>,
}

/// Opens the member with this number, which joins the cluster of these logs, or makes it.
pub(crate) fn open(
    number: u32,
    settings: &Settings,
    pages: ReadOptions,
    logs: &MemLogs,
    peers: &InProcess,
) -> Opened {
    let mut member = None;
    let over = |engine: &Arc<Engine>, local: Arc<dyn Store>| -> Result<Arc<dyn Store>, OpenError> {
        let endpoint = Endpoint {
            ip: [127, 0, 0, number as u8].into(),
            native_port: 9042,
            storage_port: 7000,
        };
        let location = Location {
            datacenter: "datacenter1".to_owned(),
            rack: format!("rack{number}"),
        };
        let options = MemberOptions {
            create: Some(NewCluster {
                cluster: engine.id(),
                tablets: 8,
                down_max: Duration::from_secs(3600),
            }),
            heartbeat: Duration::from_millis(200),
            ..MemberOptions::new(engine.id(), endpoint, location, "5.0.9")
        };
        let joined = Arc::new(
            Member::start(
                engine,
                local,
                Arc::new(logs.clone()),
                Arc::new(peers.clone()),
                options,
            )
            .unwrap(),
        );
        let node = joined.wait_joined(PATIENCE).unwrap();
        peers.add(node, &joined);
        let store = joined.store(Arc::new(peers.readers.clone()), pages);
        member = Some(joined);
        Ok(Arc::new(store))
    };
    let node = ServerNode::open_over(RealEnv::new(), settings, Opening::default(), over).unwrap();
    let member = member.unwrap();
    Opened { node, member }
}
