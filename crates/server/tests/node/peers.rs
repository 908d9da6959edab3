//! A node that is shown as one of a cluster of three; the other two are made up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use ilion_cluster::{
    Change, ClusterState, ClusterView, Endpoint, Entry, Eyes, Join, Location, Record, SchemaRecord, Takes,
    Traffic, Volume, apply,
};
use ilion_commitlog::{Origin, Position};
use ilion_env::MemEnv;
use ilion_node::Peers;
use ilion_protocol::{
    ChangeKind, Event, EventKind, NodeStatus, Response, ResultBody, Rows, SchemaChange, SchemaTarget,
    TopologyChange, Version,
};
use ilion_schema::{EventTarget, SchemaEvent};
use ilion_server::admin::{Admin as _, EngineAdmin, NodeReport};
use ilion_server::{ClusterCounts, ClusterProbe, MemberStanding, Server, ServerNode, ServerOptions};
use ilion_settings::Settings;
use ilion_types::collection_elements;
use uuid::Uuid;

use crate::client::{Client, rows_of};
use crate::run;

const TABLETS: u32 = 8;
const SECOND_MICROS: i64 = 1_000_000;
const SILENCE_MICROS: i64 = 5 * SECOND_MICROS;

/// The meta log of a cluster, as far as a test needs one.
struct Meta {
    state: Option<ClusterState>,
    time_micros: i64,
    records: u64,
}

fn endpoint(number: u8) -> Endpoint {
    Endpoint {
        ip: [127, 0, 0, number].into(),
        native_port: 9042,
        storage_port: 7000 + u16::from(number),
    }
}

fn native(number: u8) -> SocketAddr {
    SocketAddr::new(endpoint(number).ip, 9042)
}

impl Meta {
    /// A cluster whose only member is the node with this host id.
    fn of(host: Uuid) -> Self {
        let mut meta = Self {
            state: None,
            time_micros: SECOND_MICROS,
            records: 0,
        };
        meta.log(
            0,
            Change::Create {
                tablets: TABLETS,
                level: 1,
                down_max_micros: 3600 * SECOND_MICROS,
            },
        );
        meta.join(host, 1, (0..TABLETS).collect());
        meta
    }

    fn log(&mut self, node: u32, change: Change) {
        self.records += 1;
        let incarnation = self.state.as_ref().and_then(|state| state.members.get(&node));
        let entry = Entry {
            position: Position::new(self.records, 0),
            time_micros: self.time_micros,
            origin: Origin {
                node,
                incarnation: incarnation.map_or(0, |member| member.incarnation),
                seq: self.records,
            },
            record: Record {
                cluster: Uuid::from_u128(7),
                change,
            },
        };
        let (state, _) = apply(self.state.as_ref(), &entry).unwrap();
        self.state = Some(state);
    }

    fn join(&mut self, host: Uuid, number: u8, slices: Vec<u32>) {
        self.log(
            0,
            Change::Join(Join {
                host,
                session: host,
                endpoint: endpoint(number),
                location: Location {
                    datacenter: "dc1".to_owned(),
                    rack: format!("r{number}"),
                },
                understands: 2,
                takes: Takes::Slices(slices),
            }),
        );
    }

    /// A second or third member joins, and has its data.
    fn join_ready(&mut self, number: u8, slices: &[u32]) {
        self.join(Uuid::from_u128(u128::from(number)), number, slices.to_vec());
        self.ready(u64::from(number) - 1, &[u32::from(number)]);
    }

    fn ready(&mut self, transition: u64, nodes: &[u32]) {
        let schema_epoch = self.state.as_ref().unwrap().schema.epoch;
        for node in nodes {
            self.log(
                *node,
                Change::Ready {
                    transition,
                    schema_epoch,
                },
            );
        }
    }

    fn heartbeat(&mut self, node: u32, schema_epoch: u64) {
        self.log(node, Change::Heartbeat { schema_epoch });
    }

    fn change_schema(&mut self) {
        let checked_at = self.state.as_ref().unwrap().schema.epoch;
        self.log(
            1,
            Change::Schema(SchemaRecord {
                checked_at,
                keyspaces: Vec::new(),
                body: bytes::Bytes::from_static(b"a table"),
            }),
        );
    }

    fn view(&self) -> ClusterView {
        let state = self.state.as_ref().unwrap();
        ClusterView::of(
            state,
            Eyes {
                own: 1,
                schema_epoch: state.schema.epoch,
                silence_micros: SILENCE_MICROS,
            },
        )
    }
}

/// Members that say how they stand, but for one.
struct Silent(ilion_cluster::Node);

impl ClusterProbe for Silent {
    fn view(&self) -> Option<ClusterView> {
        None
    }

    fn silences(&self) -> BTreeMap<ilion_cluster::Node, f64> {
        [(2, 0.5), (3, 7.5)].into()
    }

    fn counts(&self) -> ClusterCounts {
        ClusterCounts::default()
    }

    fn traffic(&self) -> BTreeMap<ilion_cluster::Node, Traffic> {
        let volume = |count| Volume {
            count,
            bytes: 10 * count,
        };
        let second = Traffic {
            sent: volume(5),
            unanswered_in_time: volume(1),
            attempts: 3,
            connected: 2,
            open: 1,
            received: volume(9),
            answered: volume(8),
            ..Traffic::default()
        };
        [(2, second)].into()
    }

    fn catch_up(&self) -> Result<(), String> {
        Ok(())
    }

    fn ask(&self, members: &[ilion_cluster::Node]) -> BTreeMap<ilion_cluster::Node, MemberStanding> {
        let answering = members.iter().filter(|node| **node != self.0);
        let standing = |node: &ilion_cluster::Node| MemberStanding {
            load_bytes: u64::from(*node) * 1000,
            lag_records: (*node).into(),
            tablets_behind: 0,
            release: Some(format!("5.0.{node}")),
        };
        answering.map(|node| (*node, standing(node))).collect()
    }
}

struct Setup {
    node: ServerNode,
    server: Server,
    meta: Meta,
    peers: Arc<Peers>,
}

impl Setup {
    fn start() -> Self {
        let settings = Settings {
            directory: "/ilion".into(),
            native_transport_port: 0,
            ..Settings::default()
        };
        let node = ServerNode::open(Arc::new(MemEnv::new(1)), &settings).unwrap();
        let meta = Meta::of(node.local().host_id());
        let peers = Peers::new(meta.view());
        node.follow(&peers).unwrap();
        let server = node.serve(&ServerOptions::of(&settings)).unwrap();
        Self {
            node,
            server,
            meta,
            peers,
        }
    }

    /// As [`Self::start`], with three members.
    fn of_three() -> Self {
        let mut setup = Self::start();
        setup.meta.join_ready(2, &[1, 4, 7]);
        setup.meta.join_ready(3, &[2, 5]);
        setup.publish();
        setup
    }

    fn publish(&self) {
        self.peers.publish(self.meta.view());
    }

    fn client(&self, version: Version) -> Client {
        Client::open(self.server.address(), version, None)
    }

    fn listener(&self, version: Version) -> Client {
        let mut client = self.client(version);
        client.register(&EventKind::ALL);
        client
    }
}

fn ask(client: &mut Client, text: &str) -> Rows {
    rows_of(run(client, text))
}

/// The values of a column, one a row.
fn column(rows: &Rows, name: &str) -> Vec<Option<Vec<u8>>> {
    let columns = rows.metadata.columns.as_ref().unwrap();
    let index = columns.iter().position(|column| &*column.name == name).unwrap();
    rows.rows().map(|row| row[index].map(<[u8]>::to_vec)).collect()
}

fn texts(rows: &Rows, name: &str) -> Vec<String> {
    let values = column(rows, name).into_iter();
    values
        .map(|value| String::from_utf8(value.unwrap()).unwrap())
        .collect()
}

fn sets(rows: &Rows, name: &str) -> Vec<BTreeSet<String>> {
    let of_value = |value: Option<Vec<u8>>| {
        let value = value.unwrap();
        let elements = collection_elements(&value).unwrap();
        elements
            .map(|element| String::from_utf8(element.unwrap().to_vec()).unwrap())
            .collect()
    };
    column(rows, name).into_iter().map(of_value).collect()
}

fn status(status: NodeStatus, number: u8) -> Event {
    Event::Status {
        status,
        node: native(number),
    }
}

fn topology(change: TopologyChange, number: u8) -> Event {
    Event::Topology {
        change,
        node: native(number),
    }
}

#[test]
fn connections_to_other_members_have_their_rows() {
    let setup = Setup::of_three();
    let probe: Arc<dyn ClusterProbe> = Arc::new(Silent(3));
    setup.node.show_traffic(&setup.peers, Arc::downgrade(&probe));
    let mut client = setup.client(Version::V5);
    let number = |rows: &Rows, name: &str| {
        let [Some(value)] = &*column(rows, name) else {
            panic!("{name} of {} rows", rows.row_count)
        };
        i64::from_be_bytes(value[..].try_into().unwrap())
    };
    let outbound = ask(&mut client, "SELECT * FROM system_views.internode_outbound");
    assert_eq!(column(&outbound, "address"), [Some(vec![127, 0, 0, 2])]);
    assert_eq!(
        (texts(&outbound, "dc"), texts(&outbound, "rack")),
        (vec!["dc1".to_owned()], vec!["r2".to_owned()])
    );
    for (name, expected) in [
        ("sent_count", 5),
        ("sent_bytes", 50),
        ("expired_count", 1),
        ("error_count", 0),
        ("connection_attempts", 3),
        ("successful_connection_attempts", 2),
        ("active_connections", 1),
        ("pending_count", 0),
    ] {
        assert_eq!(number(&outbound, name), expected, "{name}");
    }
    let inbound = ask(
        &mut client,
        "SELECT * FROM system_views.internode_inbound WHERE address = '127.0.0.2' AND port = 7002",
    );
    for (name, expected) in [
        ("received_count", 9),
        ("processed_bytes", 80),
        ("throttled_nanos", 0),
    ] {
        assert_eq!(number(&inbound, name), expected, "{name}");
    }
    // All columns have values.
    for rows in [&inbound, &outbound] {
        assert!(rows.rows().all(|row| row.iter().all(Option::is_some)));
    }
}

#[test]
fn peers_are_the_other_members_with_their_tokens() {
    let setup = Setup::of_three();
    let mut client = setup.client(Version::V5);
    let local = ask(&mut client, "SELECT * FROM system.local WHERE key = 'local'");
    let peers = ask(&mut client, "SELECT * FROM system.peers");
    let with_ports = ask(&mut client, "SELECT * FROM system.peers_v2");
    assert_eq!((peers.row_count, with_ports.row_count), (2, 2));
    let tablets = setup.meta.state.as_ref().unwrap().tablets;
    let ends = |slices: &[u32]| -> BTreeSet<String> {
        slices
            .iter()
            .map(|slice| tablets.end(*slice).to_string())
            .collect()
    };
    let mut expected = vec![ends(&[1, 4, 7]), ends(&[2, 5])];
    expected.sort();
    for rows in [&peers, &with_ports] {
        let mut tokens = sets(rows, "tokens");
        tokens.sort();
        assert_eq!(tokens, expected);
        let racks: BTreeSet<String> = texts(rows, "rack").into_iter().collect();
        assert_eq!(racks, BTreeSet::from(["r2".to_owned(), "r3".to_owned()]));
        assert_eq!(texts(rows, "data_center"), ["dc1", "dc1"]);
        assert_eq!(texts(rows, "release_version"), ["5.0.9", "5.0.9"]);
    }
    assert_eq!(sets(&local, "tokens"), [ends(&[0, 3, 6])]);
    assert_eq!(texts(&local, "rack"), ["r1"]);
    assert_eq!(texts(&local, "bootstrapped"), ["COMPLETED"]);
    let one = ask(
        &mut client,
        "SELECT host_id, native_address, native_port, preferred_ip FROM system.peers_v2 WHERE peer = '127.0.0.3' AND peer_port = 7003",
    );
    assert_eq!(
        column(&one, "host_id"),
        [Some(Uuid::from_u128(3).as_bytes().to_vec())]
    );
    assert_eq!(column(&one, "native_address"), [Some(vec![127, 0, 0, 3])]);
    assert_eq!(
        column(&one, "native_port"),
        [Some(9042_i32.to_be_bytes().to_vec())]
    );
    assert_eq!(column(&one, "preferred_ip"), [None]);
    let by_address = ask(
        &mut client,
        "SELECT rpc_address FROM system.peers WHERE peer = '127.0.0.2'",
    );
    assert_eq!(column(&by_address, "rpc_address"), [Some(vec![127, 0, 0, 2])]);
}

#[test]
fn versions_of_the_schema_agree_once_all_nodes_have_it() {
    let mut setup = Setup::of_three();
    let mut client = setup.client(Version::V5);
    let mut versions = || {
        let local = ask(&mut client, "SELECT schema_version FROM system.local");
        let peers = ask(&mut client, "SELECT schema_version FROM system.peers");
        let mut all = column(&local, "schema_version");
        all.extend(column(&peers, "schema_version"));
        all.into_iter().collect::<BTreeSet<_>>().len()
    };
    assert_eq!(versions(), 1);
    setup.meta.change_schema();
    setup.meta.heartbeat(2, 1);
    setup.peers.publish(setup.meta.view());
    assert_eq!(versions(), 2, "node 3 has not applied the change");
    setup.meta.heartbeat(3, 1);
    setup.peers.publish(setup.meta.view());
    assert_eq!(versions(), 1);
}

#[test]
fn clients_are_told_of_nodes_that_come_fail_and_go() {
    for version in Version::SUPPORTED {
        let mut setup = Setup::start();
        let mut listener = setup.listener(version);
        // A node that joins is no news before it has its data.
        setup.meta.join(Uuid::from_u128(2), 2, vec![1, 3]);
        setup.publish();
        setup.meta.ready(1, &[2]);
        setup.publish();
        let expected = [
            topology(TopologyChange::NewNode, 2),
            topology(TopologyChange::MovedNode, 1),
            status(NodeStatus::Up, 2),
        ];
        for event in expected {
            assert_eq!(listener.receive_event(), event, "{version:?}");
        }
        // When a client is told, the tables say the same.
        let mut client = setup.client(version);
        assert_eq!(ask(&mut client, "SELECT * FROM system.peers").row_count, 1);
        let tokens = sets(&ask(&mut client, "SELECT tokens FROM system.local"), "tokens");
        assert_eq!(tokens[0].len(), 6);

        setup.meta.time_micros += 6 * SECOND_MICROS;
        setup.meta.heartbeat(1, 0);
        setup.publish();
        assert_eq!(listener.receive_event(), status(NodeStatus::Down, 2));
        assert_eq!(
            ask(&mut client, "SELECT * FROM system.peers").row_count,
            1,
            "it may come back"
        );
        setup.meta.heartbeat(2, 0);
        setup.publish();
        assert_eq!(listener.receive_event(), status(NodeStatus::Up, 2));
        // The same view again is no news.
        setup.publish();

        setup.meta.log(
            2,
            Change::Leave {
                node: 2,
                moves: vec![(1, 1), (3, 1)],
            },
        );
        setup.meta.ready(2, &[1]);
        setup.publish();
        assert_eq!(listener.receive_event(), topology(TopologyChange::RemovedNode, 2));
        assert_eq!(listener.receive_event(), topology(TopologyChange::MovedNode, 1));
        assert_eq!(ask(&mut client, "SELECT * FROM system.peers").row_count, 0);
    }
}

#[test]
fn a_change_of_the_schema_is_told_when_its_record_is_applied_and_only_then() {
    let setup = Setup::of_three();
    let mut listener = setup.listener(Version::V5);
    let mut author = setup.client(Version::V5);
    let created = SchemaChange {
        change: ChangeKind::Created,
        keyspace: "ks".to_owned(),
        target: SchemaTarget::Keyspace,
    };
    let answer = run(
        &mut author,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
    );
    assert_eq!(answer, Response::Result(ResultBody::SchemaChange(created)));
    // Another node's change comes by the log, too.
    setup.peers.schema_changed(&[SchemaEvent {
        kind: ilion_schema::ChangeKind::Created,
        keyspace: "ks".to_owned(),
        target: EventTarget::Table("by_another_node".to_owned()),
    }]);
    let told = listener.receive_event();
    assert_eq!(
        told,
        Event::Schema(SchemaChange {
            change: ChangeKind::Created,
            keyspace: "ks".to_owned(),
            target: SchemaTarget::Table("by_another_node".to_owned()),
        }),
        "the statement itself tells nobody"
    );
}

#[test]
fn more_replicas_than_nodes_are_warned_of() {
    let setup = Setup::of_three();
    let mut client = setup.client(Version::V5);
    let mut warnings = |keyspace: &str, factor: u32| {
        client.send_query(
            1,
            &format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
            ),
        );
        client.receive().warnings
    };
    assert!(warnings("three", 3).is_empty());
    assert_eq!(
        warnings("four", 4),
        ["Your replication factor 4 for keyspace four is higher than the number of nodes 3"]
    );
}

#[test]
fn describe_cluster_has_the_replicas_of_the_keyspace() {
    let setup = Setup::of_three();
    let mut client = setup.client(Version::V5);
    for (keyspace, factor) in [("one", 1), ("two", 2)] {
        run(
            &mut client,
            &format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
            ),
        );
        run(&mut client, &format!("USE {keyspace}"));
        let described = ask(&mut client, "DESCRIBE CLUSTER");
        assert_eq!(texts(&described, "snitch"), ["GossipingPropertyFileSnitch"]);
        let ownership = column(&described, "range_ownership")[0].clone().unwrap();
        let entries: Vec<(i64, Vec<String>)> = ilion_types::map_entries(&ownership)
            .unwrap()
            .map(|entry| {
                let (token, owners) = entry.unwrap();
                let owners = collection_elements(owners).unwrap();
                let owners = owners.map(|owner| String::from_utf8(owner.unwrap().to_vec()).unwrap());
                let token = String::from_utf8(token.to_vec()).unwrap().parse().unwrap();
                (token, owners.collect())
            })
            .collect();
        assert_eq!(entries.len(), TABLETS as usize);
        // Slices 0 to 7 are owned by 1, 2, 3, 1, 2, 3, 1, 2.
        let tablets = setup.meta.state.as_ref().unwrap().tablets;
        let of_slice = |slice: u32| {
            let found = entries.iter().find(|(token, _)| *token == tablets.end(slice));
            found.unwrap().1.clone()
        };
        let (first, last) = match factor {
            1 => (vec!["127.0.0.2:7002"], vec!["127.0.0.2:7002"]),
            _ => (
                vec!["127.0.0.2:7002", "127.0.0.3:7003"],
                vec!["127.0.0.2:7002", "127.0.0.1:7001"],
            ),
        };
        assert_eq!(of_slice(1), first);
        assert_eq!(of_slice(7), last);
    }
}

#[test]
fn gossip_names_all_members_and_estimates_cover_the_own_ranges() {
    let mut setup = Setup::of_three();
    setup.meta.time_micros += 6 * SECOND_MICROS;
    setup.meta.heartbeat(1, 0);
    setup.meta.heartbeat(2, 0);
    setup.publish();
    let mut client = setup.client(Version::V5);
    let gossip = ask(
        &mut client,
        "SELECT address, port, status, rpc_ready, load FROM system_views.gossip_info",
    );
    assert_eq!(gossip.row_count, 3);
    let ready: Vec<(Vec<u8>, String)> = column(&gossip, "address")
        .into_iter()
        .map(Option::unwrap)
        .zip(texts(&gossip, "rpc_ready"))
        .collect();
    for (address, is_ready) in [(1, "true"), (2, "true"), (3, "false")] {
        assert!(
            ready.contains(&(vec![127, 0, 0, address], is_ready.to_owned())),
            "{ready:?}"
        );
    }
    let unknown = column(&gossip, "load")
        .iter()
        .filter(|load| load.is_none())
        .count();
    assert_eq!(unknown, 2, "only the own load is known");
    run(
        &mut client,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run(&mut client, "CREATE TABLE ks.t (k int PRIMARY KEY)");
    let estimates = ask(
        &mut client,
        "SELECT range_start, range_end FROM system.size_estimates WHERE keyspace_name = 'ks'",
    );
    let tablets = setup.meta.state.as_ref().unwrap().tablets;
    let mut ranges: Vec<(i64, i64)> = texts(&estimates, "range_start")
        .iter()
        .map(|start| start.parse().unwrap())
        .zip(
            texts(&estimates, "range_end")
                .iter()
                .map(|end| end.parse().unwrap()),
        )
        .collect();
    ranges.sort_unstable();
    let of_slice = |slice: u32| (tablets.end(slice - 1), tablets.end(slice));
    assert_eq!(ranges, [(i64::MIN, tablets.end(0)), of_slice(3), of_slice(6)]);
}

#[test]
fn administration_knows_the_members_and_the_share_of_each() {
    let setup = Setup::of_three();
    let stored = setup.node.local().host_id();
    let mut client = setup.client(Version::V4);
    let host = ask(&mut client, "SELECT host_id FROM system.local");
    assert_eq!(column(&host, "host_id"), [Some(stored.as_bytes().to_vec())]);
    let admin = || EngineAdmin::new(&setup.node, &setup.server, &Settings::default());
    let known = |report: &NodeReport| -> Vec<bool> {
        let members = report.members.iter();
        members.map(|member| member.load_bytes.is_some()).collect()
    };
    let report = admin().node();
    assert_eq!(known(&report), [true, false, false], "nobody is asked");
    assert!(admin().status().is_of_cluster);
    // The second one does not answer.
    let asked = admin().with_cluster(Arc::new(Silent(2))).node();
    assert_eq!(known(&asked), [true, false, true]);
    let third = &asked.members[2];
    assert_eq!(
        (third.load_bytes, third.lag_records, third.tablets_behind),
        (Some(3000), Some(3), Some(0))
    );
    assert_eq!(asked.members[1].lag_records, None);
    let silences: Vec<Option<f64>> = asked.members.iter().map(|member| member.silence).collect();
    assert_eq!(silences, [None, Some(0.5), Some(7.5)]);
    let shares = &report.shares["system_auth"];
    let all: f64 = shares.values().sum();
    assert!((all - 1.0).abs() < 1e-9, "{shares:?}");
}

#[test]
fn each_member_is_shown_with_the_release_that_it_told_the_cluster() {
    let mut setup = Setup::of_three();
    let releases = |client: &mut Client, table: &str, key: &str| -> BTreeMap<String, String> {
        let rows = ask(client, &format!("SELECT {key}, release_version FROM {table}"));
        let addresses = column(&rows, key).into_iter();
        let addresses = addresses.map(|address| format!(".{}", address.unwrap()[3]));
        addresses.zip(texts(&rows, "release_version")).collect()
    };
    let shown = |client: &mut Client| {
        let peers = releases(client, "system.peers", "peer");
        assert_eq!(peers, releases(client, "system.peers_v2", "peer"));
        let mut gossip = releases(client, "system_views.gossip_info", "address");
        gossip.remove(".1");
        assert_eq!(peers, gossip);
        peers.into_iter().collect::<Vec<_>>()
    };
    let mut client = setup.client(Version::V5);
    let of = |two: &str, three: &str| {
        vec![
            (".2".to_owned(), two.to_owned()),
            (".3".to_owned(), three.to_owned()),
        ]
    };
    // Members of a version that does not tell its release are taken to have that of this node.
    assert_eq!(shown(&mut client), of("5.0.9", "5.0.9"));
    setup.meta.log(1, Change::Level { level: 2 });
    let release = "5.0.12".to_owned();
    setup.meta.log(3, Change::Release { release });
    setup.publish();
    assert_eq!(shown(&mut client), of("5.0.9", "5.0.12"));
}
