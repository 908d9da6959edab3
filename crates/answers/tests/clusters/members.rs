//! Three members of a cluster answer the scripts of `tests/cql` as a single node does: every write goes through a log, every node applies
//! it, and clients talk to one of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::{Endpoint, Location};
use ilion_engine::Engine;
use ilion_env::RealEnv;
use ilion_member::{InProcess, MemLogs, Member, MemberOptions, NewCluster};
use ilion_node::{OpenError, Opening};
use ilion_query::Store;
use ilion_server::{ServerNode, ServerOptions};

use crate::compare::{all_answers_are_right, settings, small_pages};

const PATIENCE: Duration = Duration::from_secs(60);

/// A member, with its server.
struct Opened {
    node: ServerNode,
    member: Arc<Member>,
}

fn open(number: u32, directory: &Path, logs: &MemLogs, peers: &InProcess) -> Opened {
    let settings = settings(&directory.join(number.to_string()));
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
        let store = joined.store(Arc::new(peers.readers.clone()), small_pages());
        member = Some(joined);
        Ok(Arc::new(store))
    };
    let node = ServerNode::open_over(RealEnv::new(), &settings, Opening::default(), over).unwrap();
    let member = member.unwrap();
    Opened { node, member }
}

#[test]
fn three_members_answer_as_one_node() {
    let directory = tempfile::tempdir().unwrap();
    let logs = MemLogs::new(RealEnv::new());
    let peers = InProcess::default();
    let members: Vec<Opened> = (1..=3)
        .map(|number| open(number, directory.path(), &logs, &peers))
        .collect();
    let settings = settings(directory.path());
    let server = members[0].node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    all_answers_are_right(&address);
    for opened in &members {
        assert_eq!(opened.member.halted(), None);
    }
}
