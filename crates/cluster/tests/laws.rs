//! The state of a cluster in a notation: records in, effects out.
//!
//! ```text
//! log                                       records, one a line; the answer has the effects of each
//! create tablets=4 level=1 down=60
//! join HOST DC RACK SLICES|all|of=NODE      HOST is a letter; a capital one is another process with the same host id
//! NODE start SESSION ... understands=N, join ... understands=N    a process that understands feature level N (else 1)
//! NODE start SESSION [at=N]                 the next incarnation of the node, at 127.0.0.N (else 127.0.0.NODE; `join` uses the place of HOST in the alphabet)
//! NODE ready TRANSITION at=EPOCH
//! NODE leave NODE SLICE:NODE...
//! NODE move SLICE:NODE...
//! NODE cancel TRANSITION
//! NODE schema at=EPOCH KS=FACTOR | KS=DC:FACTOR,... | KS=drop ...
//! NODE flushed TABLET:POSITION...           TABLET may be `meta`
//! NODE trim TABLET:POSITION...
//! NODE heartbeat EPOCH
//! NODE level LEVEL
//! NODE release RELEASE
//! NODE digests TABLET:BLOCK:LETTER...       LETTER stands for the digest
//! NODE snapshot at=POSITION PART/PARTS
//! NODE~INCARNATION ...                      any of these, sent by another incarnation than the current one
//! again                                     a copy of the record before
//! wait SECONDS                              time passes in the log
//! of another cluster, of kind N, of version N, damaged       a record that halts
//! state                                     members, owners, transition, schema, positions
//! replicas KS                               for each tablet: now, and what it gains or loses
//! trim-points                               up to where logs may be deleted
//! view NODE silence=SECONDS [at=EPOCH]      members as this node sees them, and what changed since the view before
//! ranges KS                                 the replicas of each range in that view, and the share of each member
//! ```
//!
//! Every record goes through its bytes, and so does every state. `REWRITE=1 cargo test -p ilion-cluster` writes the answers; read the diff.

#![expect(clippy::unwrap_used, reason = "a mistake in a test file is to stop the test")]

use std::fmt::Write as _;

use bytes::Bytes;
use ilion_cluster::{
    BlockDigest, Change, ClusterState, ClusterView, Effect, Endpoint, Entry, Eyes, Halt, Join, Location,
    META_TABLET, MemberChange, Moment, Node, Record, SchemaRecord, SnapshotPart, Strategy, Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use uuid::Uuid;

const CLUSTER: Uuid = Uuid::from_u128(0xC1);

#[test]
fn states_follow_from_records_as_the_files_say() {
    datadriven::walk("testdata", |file| {
        let mut log = TestLog::default();
        file.run(|case| match case.directive.as_str() {
            "log" => case.input.lines().map(|line| log.run(line)).collect(),
            "state" => print_state(log.state.as_ref().unwrap()),
            "replicas" => print_replicas(log.state.as_ref().unwrap(), case.input.trim()),
            "view" => log.view(&case.input),
            "ranges" => log.print_ranges(case.input.trim()),
            "trim-points" => positions(log.state.as_ref().unwrap().trim_points()) + "\n",
            other => panic!("unknown directive {other}"),
        });
    });
}

#[derive(Default)]
struct TestLog {
    state: Option<ClusterState>,
    count: u64,
    seq: u64,
    time_secs: i64,
    last: Option<(Origin, Vec<u8>)>,
    view: Option<ClusterView>,
}

impl TestLog {
    fn run(&mut self, line: &str) -> String {
        if let Some(seconds) = line.strip_prefix("wait ") {
            self.time_secs += seconds.parse::<i64>().unwrap();
            return format!("{line}\n");
        }
        let (origin, bytes) = match line {
            "again" => self.last.clone().unwrap(),
            _ => self.parse(line),
        };
        self.last = Some((origin, bytes.clone()));
        self.count += 1;
        let position = Position::new(self.count, 0);
        let answer = match self.apply(position, origin, &bytes) {
            Ok(effects) if effects.is_empty() => "ok".to_owned(),
            Ok(effects) => effects.iter().map(print_effect).collect::<Vec<_>>().join("; "),
            Err(halt) => format!("HALT {halt}"),
        };
        format!("{}: {answer}\n", self.count)
    }

    fn apply(&mut self, position: Position, origin: Origin, bytes: &[u8]) -> Result<Vec<Effect>, Halt> {
        let entry = Entry::decode(position, self.time_secs * 1_000_000, origin, bytes)?;
        assert_eq!(entry.record.encode(), bytes);
        let (state, effects) = apply(self.state.as_ref(), &entry)?;
        assert_eq!(ClusterState::decode(&state.encode()), Ok(state.clone()));
        self.state = Some(state);
        Ok(effects)
    }

    fn parse(&mut self, line: &str) -> (Origin, Vec<u8>) {
        let record = |change| Record {
            cluster: CLUSTER,
            change,
        };
        let nobody = Origin::default();
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["of", "another", "cluster"] => {
                let mut record = record(Change::Cancel { transition: 1 });
                record.cluster = Uuid::from_u128(0xC2);
                (nobody, record.encode())
            }
            ["of", "kind", number] => (nobody, with_byte(17, number)),
            ["of", "version", number] => (nobody, with_byte(0, number)),
            ["damaged"] => {
                let mut bytes = record(Change::Cancel { transition: 1 }).encode();
                bytes[20] ^= 1;
                (nobody, bytes)
            }
            ["create", options @ ..] => {
                let value = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
                let change = Change::Create {
                    tablets: value("tablets=").unwrap().parse().unwrap(),
                    level: value("level=").map_or(1, |level| level.parse().unwrap()),
                    down_max_micros: value("down=").map_or(86_400, |secs| secs.parse::<i64>().unwrap())
                        * 1_000_000,
                };
                (nobody, record(change).encode())
            }
            ["join", host, datacenter, rack, takes, options @ ..] => {
                let mut join = self.join(host, datacenter, rack, takes);
                join.understands = understands(options);
                let change = Change::Join(join);
                (nobody, record(change).encode())
            }
            [sender, change @ ..] => {
                let origin = self.origin(sender, change[0] == "start");
                (origin, record(parse_change(origin.node, change)).encode())
            }
            [] => panic!("an empty line"),
        }
    }

    fn join(&self, host: &str, datacenter: &str, rack: &str, takes: &str) -> Join {
        let all = || self.state.as_ref().map_or(1, |state| state.tablets.count());
        let takes = match takes.strip_prefix("of=") {
            Some(node) => Takes::PlaceOf(node.parse().unwrap()),
            None if takes == "all" => Takes::Slices((0..all()).collect()),
            None => Takes::Slices(takes.split(',').map(|slice| slice.parse().unwrap()).collect()),
        };
        let (datacenter, rack) = (datacenter.to_owned(), rack.to_owned());
        Join {
            host: id(&host.to_lowercase()),
            session: id(host),
            endpoint: endpoint(host.to_lowercase().as_bytes()[0] - b'a' + 1),
            location: Location { datacenter, rack },
            understands: 1,
            takes,
        }
    }

    fn view(&mut self, input: &str) -> String {
        let state = self.state.as_ref().unwrap();
        let words: Vec<&str> = input.split_whitespace().collect();
        let value = |name: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(name)?.parse::<i64>().ok())
        };
        let own: Node = words[0].parse().unwrap();
        let view = ClusterView::of(
            state,
            Eyes {
                own,
                schema_epoch: value("at=").map_or(state.schema.epoch, |epoch| epoch as u64),
                silence_micros: value("silence=").unwrap() * 1_000_000,
            },
        );
        let newest = state.schema_version(state.schema.epoch);
        let mut out = String::new();
        for member in &view.members {
            let peer = match (member.node == own, view.peers().any(|peer| peer == member)) {
                (true, _) => "own ",
                (false, true) => "peer",
                (false, false) => "-   ",
            };
            let tokens: Vec<String> = member.tokens.iter().map(i64::to_string).collect();
            writeln!(
                out,
                "{peer} .{} {} {:?} {} schema {} [{}]",
                last_byte(&member.endpoint),
                member.location.rack,
                member.phase,
                if member.is_up { "up" } else { "down" },
                if member.schema_version == newest {
                    "newest"
                } else {
                    "old"
                },
                tokens.join(", ")
            )
            .unwrap();
        }
        if let Some(before) = &self.view {
            out += "changes:\n";
            out.extend(view.changes_since(before).iter().map(print_change));
        }
        self.view = Some(view);
        out
    }

    fn print_ranges(&self, keyspace: &str) -> String {
        let strategy = &self.state.as_ref().unwrap().schema.keyspaces[keyspace];
        let view = self.view.as_ref().unwrap();
        let mut out = String::new();
        for (end, replicas) in view.ranges(strategy) {
            let replicas: Vec<String> = replicas
                .iter()
                .map(|member| last_byte(&member.endpoint))
                .collect();
            writeln!(out, "up to {end}: .{}", replicas.join(" .")).unwrap();
        }
        for (node, share) in view.shares(strategy) {
            writeln!(out, "node {node}: {:.1} %", share * 100.0).unwrap();
        }
        out
    }

    fn origin(&mut self, sender: &str, is_start: bool) -> Origin {
        self.seq += 1;
        let seq = self.seq;
        let (node, incarnation) = sender.split_once('~').unwrap_or((sender, ""));
        let node: Node = node.parse().unwrap();
        let member = self.state.as_ref().and_then(|state| state.members.get(&node));
        let current = member.map_or(1, |member| member.incarnation);
        let incarnation = match incarnation.parse() {
            Ok(given) => given,
            Err(_) => current + u32::from(is_start),
        };
        Origin {
            node,
            incarnation,
            seq,
        }
    }
}

fn id(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Uuid::from_bytes(bytes)
}

fn endpoint(last: u8) -> Endpoint {
    Endpoint {
        ip: [127, 0, 0, last].into(),
        native_port: 9042,
        storage_port: 7000,
    }
}

/// A record with another byte and a checksum that fits.
fn with_byte(at: usize, value: &str) -> Vec<u8> {
    let change = Change::Heartbeat { schema_epoch: 0 };
    let cluster = CLUSTER;
    let mut bytes = Record { cluster, change }.encode();
    let end = bytes.len() - 4;
    bytes[at] = value.parse().unwrap();
    let crc = ilion_codec::crc32(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn parse_change(sender: Node, words: &[&str]) -> Change {
    let number = |word: &str| word.trim_start_matches("at=").parse::<u64>().unwrap();
    match words {
        ["start", session, options @ ..] => {
            let at = options.iter().find(|option| option.starts_with("at="));
            Change::Start {
                session: id(session),
                endpoint: endpoint(at.map_or(sender as u64, |at| number(at)) as u8),
                understands: understands(options),
            }
        }
        ["ready", transition, epoch] => Change::Ready {
            transition: number(transition),
            schema_epoch: number(epoch),
        },
        ["leave", node, moves @ ..] => Change::Leave {
            node: node.parse().unwrap(),
            moves: moves.iter().map(|word| parse_move(word)).collect(),
        },
        ["move", moves @ ..] => Change::Move {
            moves: moves.iter().map(|word| parse_move(word)).collect(),
        },
        ["cancel", transition] => Change::Cancel {
            transition: number(transition),
        },
        ["schema", epoch, keyspaces @ ..] => Change::Schema(SchemaRecord {
            checked_at: number(epoch),
            keyspaces: keyspaces.iter().map(|word| parse_keyspace(word)).collect(),
            body: Bytes::from_static(b"ddl"),
        }),
        ["flushed", positions @ ..] => Change::Flushed {
            positions: positions.iter().map(|word| parse_position(word)).collect(),
        },
        ["trim", positions @ ..] => Change::Trim {
            positions: positions.iter().map(|word| parse_position(word)).collect(),
        },
        ["heartbeat", epoch] => Change::Heartbeat {
            schema_epoch: number(epoch),
        },
        ["snapshot", position, part] => {
            let (part, parts) = part.split_once('/').unwrap();
            Change::Snapshot(SnapshotPart {
                position: Position::new(number(position), 0),
                part: part.parse().unwrap(),
                parts: parts.parse().unwrap(),
                bytes: Bytes::from_static(b"state"),
            })
        }
        ["level", level] => Change::Level {
            level: level.parse().unwrap(),
        },
        ["digests", digests @ ..] => Change::Digests {
            blocks: digests.iter().map(|word| parse_digest(word)).collect(),
        },
        ["release", release] => Change::Release {
            release: (*release).to_owned(),
        },
        _ => panic!("unknown record {words:?}"),
    }
}

/// The feature level that a process understands.
fn understands(options: &[&str]) -> u32 {
    let level = options
        .iter()
        .find_map(|option| option.strip_prefix("understands="));
    level.map_or(1, |level| level.parse().unwrap())
}

fn parse_move(word: &str) -> (u32, Node) {
    let (slice, node) = word.split_once(':').unwrap();
    (slice.parse().unwrap(), node.parse().unwrap())
}

fn parse_digest(word: &str) -> (u32, BlockDigest) {
    let words: Vec<&str> = word.split(':').collect();
    let [tablet, block, letter] = words[..] else {
        panic!("{word} is no digest");
    };
    let digest = [letter.as_bytes()[0]; 16];
    let block = block.parse().unwrap();
    (tablet.parse().unwrap(), BlockDigest { block, digest })
}

fn parse_position(word: &str) -> (u32, Position) {
    let (tablet, position) = word.split_once(':').unwrap();
    let tablet = match tablet {
        "meta" => META_TABLET,
        tablet => tablet.parse().unwrap(),
    };
    (tablet, Position::new(position.parse().unwrap(), 0))
}

fn parse_keyspace(word: &str) -> (String, Option<Strategy>) {
    let (name, factors) = word.split_once('=').unwrap();
    let strategy = match factors {
        "drop" => None,
        "local" => Some(Strategy::Local),
        _ => Some(factors.parse().map_or_else(
            |_| Strategy::Network(factors.split(',').map(parse_factor).collect()),
            Strategy::Simple,
        )),
    };
    (name.to_owned(), strategy)
}

fn parse_factor(word: &str) -> (String, u32) {
    let (datacenter, factor) = word.split_once(':').unwrap();
    (datacenter.to_owned(), factor.parse().unwrap())
}

fn last_byte(endpoint: &Endpoint) -> String {
    endpoint.ip.to_string().rsplit('.').next().unwrap().to_owned()
}

fn print_change(change: &MemberChange) -> String {
    let (what, endpoint) = match change {
        MemberChange::Joined(endpoint) => ("joined", endpoint),
        MemberChange::Left(endpoint) => ("left", endpoint),
        MemberChange::Moved(endpoint) => ("moved", endpoint),
        MemberChange::Up(endpoint) => ("up", endpoint),
        MemberChange::Down(endpoint) => ("down", endpoint),
    };
    format!("  .{} {what}\n", last_byte(endpoint))
}

fn print_effect(effect: &Effect) -> String {
    let joined = |numbers: &[u32]| {
        numbers
            .iter()
            .map(|number| tablet(*number))
            .collect::<Vec<_>>()
            .join(",")
    };
    match effect {
        Effect::Created => "created".to_owned(),
        Effect::Joined { node, .. } => format!("node {node} joined"),
        Effect::Started {
            node, incarnation, ..
        } => format!("node {node} started, incarnation {incarnation}"),
        Effect::Copy { transition, gains } => {
            let gains = gains
                .iter()
                .map(|(node, tablets)| format!(" {node}={}", joined(tablets)));
            format!("transition {transition}, to copy:{}", gains.collect::<String>())
        }
        Effect::RingChanged { version } => format!("ring {version}"),
        Effect::ReplicationChanged { keyspace } => format!("replication of {keyspace} changed"),
        Effect::Left { node } => format!("node {node} left"),
        Effect::Cancelled { transition } => format!("transition {transition} cancelled"),
        Effect::SchemaChanged { epoch, .. } => format!("schema {epoch}"),
        Effect::Trimmed { tablet: of, position } => format!("trim {}:{}", tablet(*of), position.segment),
        Effect::Stranded { node, tablets } => format!("node {node} is stranded: {}", joined(tablets)),
        Effect::LevelRaised { level } => format!("level {level}"),
        Effect::Differs { node, tablet, block } => {
            format!("node {node} differs in block {block} of tablet {tablet}")
        }
        Effect::Disputed { nodes, tablet, block } => {
            format!("nodes {nodes:?} do not agree on block {block} of tablet {tablet}")
        }
        Effect::Refused { refusal } => format!("refused: {refusal}"),
        Effect::Repeated => "repeated".to_owned(),
    }
}

fn tablet(tablet: u32) -> String {
    if tablet == META_TABLET {
        "meta".to_owned()
    } else {
        tablet.to_string()
    }
}

fn positions(positions: impl IntoIterator<Item = (u32, Position)>) -> String {
    let print = |(of, position): (u32, Position)| format!("{}:{}", tablet(of), position.segment);
    positions.into_iter().map(print).collect::<Vec<_>>().join(" ")
}

fn print_state(state: &ClusterState) -> String {
    let mut out = String::new();
    for (node, member) in &state.members {
        let (location, phase) = (&member.location, format!("{:?}", member.phase).to_lowercase());
        let slices: Vec<String> = (0..state.tablets.count())
            .filter(|slice| state.owner(*slice, Moment::Now) == Some(*node))
            .map(|slice| slice.to_string())
            .collect();
        writeln!(
            out,
            "node {node}: {phase} {} {} incarnation {} schema {} heard {}s owns {}{}",
            location.datacenter,
            location.rack,
            member.incarnation,
            member.schema_epoch,
            member.heard_micros / 1_000_000,
            if slices.is_empty() {
                "-".to_owned()
            } else {
                slices.join(",")
            },
            member
                .release
                .as_ref()
                .map_or_else(String::new, |release| format!(" release {release}")),
        )
        .unwrap();
        let tablets = (0..state.tablets.count()).chain([META_TABLET]);
        let flushed = tablets.map(|tablet| (tablet, state.flushed(tablet, *node)));
        let flushed = positions(flushed.filter(|(_, position)| *position > Position::START));
        if !flushed.is_empty() {
            writeln!(out, "  flushed {flushed}").unwrap();
        }
        let differing = state.differing(*node);
        if !differing.is_empty() {
            let tablets: Vec<&u32> = differing.keys().collect();
            writeln!(out, "  differs in {tablets:?}").unwrap();
        }
    }
    for node in state.former.values() {
        writeln!(out, "node {node}: left").unwrap();
    }
    if let Some(transition) = &state.transition {
        let (number, moves, ready) = (transition.number, &transition.moves, &transition.ready);
        writeln!(out, "transition {number}: moves {moves:?} ready {ready:?}").unwrap();
    }
    let keyspaces: Vec<&str> = state.schema.keyspaces.keys().map(String::as_str).collect();
    writeln!(out, "schema {} [{}]", state.schema.epoch, keyspaces.join(" ")).unwrap();
    out
}

fn print_replicas(state: &ClusterState, keyspace: &str) -> String {
    let router = ilion_cluster::Router::new(state);
    let gains = state.gains();
    let mut out = String::new();
    for tablet in 0..state.tablets.count() {
        let now = router.replicas(keyspace, state.tablets.end(tablet)).unwrap();
        let gaining = gains
            .iter()
            .filter(|(_, gained)| gained.contains(&(tablet, keyspace.to_owned())));
        let gaining: String = gaining.map(|(node, _)| format!(" +{node}")).collect();
        writeln!(out, "{tablet}: {now:?}{gaining}").unwrap();
    }
    out
}
