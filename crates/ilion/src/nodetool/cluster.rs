//! The members of a cluster, as `nodetool status`, `ring`, `describecluster`, `describering`, `gossipinfo` and `getendpoints` print them.
//!
//! Compat: laid out as by Cassandra 5.0.9 with three nodes. The load of members that have not reported it is printed as `?`. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ilion_server::admin::{MemberReport, MemberState, NodeReport, file_size};

use super::layout::{laid_out_wide, line_of};

/// Cassandra's note if keyspaces are replicated differently, so that no ownership holds for all of them.
const MEANINGLESS: &str = "Note: Non-system keyspaces don't have the same replication settings, effective ownership \
                           information is meaningless";

/// Printed as the release of a member that is down or has not reported it.
const UNKNOWN: &str = "unknown";

/// Compat: keyspaces that do not count as those of users.
const OF_SYSTEM: [&str; 5] = [
    "system",
    "system_schema",
    "system_auth",
    "system_distributed",
    "system_traces",
];

/// The keyspace whose ownership is shown: the given one; else any user keyspace if all of them have the same replication, or
/// `system_traces` if there is no user keyspace; else `None`.
fn keyspace_shown<'n>(node: &'n NodeReport, given: Option<&'n str>) -> Option<&'n str> {
    if given.is_some() {
        return given;
    }
    let of_users = || {
        node.keyspaces
            .iter()
            .filter(|(name, _)| !OF_SYSTEM.contains(&name.as_str()))
    };
    match of_users().next() {
        None => Some("system_traces"),
        Some((name, options)) => of_users().all(|(_, others)| others == options).then_some(name),
    }
}

/// Host id to share of the data, in the given keyspace or the one that `keyspace_shown` chooses. `None` if there is no such keyspace.
pub fn ownership<'n>(node: &'n NodeReport, keyspace: Option<&'n str>) -> Option<&'n BTreeMap<String, f64>> {
    let shown = keyspace_shown(node, keyspace)?;
    node.shares.get(shown)
}

/// Two letters for a member: up or down, and its state, such as `UN`, `DN`, `UJ`, `UL`.
pub fn letters_of(member: &MemberReport) -> String {
    let up = if member.is_up { 'U' } else { 'D' };
    let state = match member.state {
        MemberState::Normal => 'N',
        MemberState::Leaving => 'L',
        MemberState::Joining => 'J',
    };
    format!("{up}{state}")
}

fn load_of(member: &MemberReport) -> String {
    member.load_bytes.map_or("?".to_owned(), file_size)
}

fn by_datacenter(node: &NodeReport) -> BTreeMap<&str, Vec<&MemberReport>> {
    let mut datacenters: BTreeMap<&str, Vec<&MemberReport>> = BTreeMap::new();
    for member in &node.members {
        datacenters.entry(&member.data_center).or_default().push(member);
    }
    datacenters
}

pub fn status_of(node: &NodeReport, keyspace: Option<&str>) -> String {
    let shown = keyspace_shown(node, keyspace);
    let shares = ownership(node, keyspace);
    let owns = match shown {
        Some(_) => "Owns (effective)",
        None => "Owns",
    };
    let mut text = String::new();
    for (datacenter, members) in by_datacenter(node) {
        let title = format!("Datacenter: {datacenter}");
        let line = "=".repeat(title.len());
        let mut rows = vec![
            ["--", "Address", "Load", "Tokens", owns, "Host ID", "Rack"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for member in members {
            let share = shares.map(|shares| shares.get(&member.host_id).copied().unwrap_or_default());
            let share = share.filter(|_| member.state != MemberState::Joining);
            rows.push(vec![
                letters_of(member),
                member.address.clone(),
                load_of(member),
                member.tokens.len().to_string(),
                share.map_or("?".to_owned(), |share| format!("{:.1}%", share * 100.0)),
                member.host_id.clone(),
                member.rack.clone(),
            ]);
        }
        let table = laid_out_wide(&rows);
        let _ = writeln!(
            text,
            "{title}\n{line}\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n{table}"
        );
    }
    if shown.is_none() {
        text.push_str(MEANINGLESS);
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len() + 1);
    text
}

pub fn ring_of(node: &NodeReport, keyspace: Option<&str>) -> String {
    let shown = keyspace_shown(node, keyspace);
    let shares = ownership(node, keyspace);
    let width = node.members.iter().map(|member| member.address.len());
    let width = width.max().unwrap_or(0).max(15);
    let mut text = String::new();
    for (datacenter, members) in by_datacenter(node) {
        let _ = write!(text, "\nDatacenter: {datacenter}\n==========\n");
        let header = ["Address", "Rack", "Status", "State", "Load", "Owns", "Token"];
        line_of(&mut text, width, header);
        let mut tokens: Vec<(i64, &MemberReport)> = members
            .iter()
            .flat_map(|member| {
                member
                    .tokens
                    .iter()
                    .filter_map(|token| Some((token.parse().ok()?, *member)))
            })
            .collect();
        tokens.sort_by_key(|(token, _)| *token);
        if let Some((last, _)) = tokens.last() {
            line_of(&mut text, width, ["", "", "", "", "", "", &last.to_string()]);
        }
        for (token, member) in tokens {
            let share = shares.map(|shares| shares.get(&member.host_id).copied().unwrap_or_default());
            let row = [
                &*member.address,
                &*member.rack,
                if member.is_up { "Up" } else { "Down" },
                match member.state {
                    MemberState::Normal => "Normal",
                    MemberState::Leaving => "Leaving",
                    MemberState::Joining => "Joining",
                },
                &load_of(member),
                &share.map_or("?".to_owned(), |share| format!("{:.2}%", share * 100.0)),
                &token.to_string(),
            ];
            line_of(&mut text, width, row);
        }
        text.push('\n');
    }
    if node.members.iter().any(|member| member.tokens.len() > 1) {
        text.push_str(
            "  Warning: \"nodetool ring\" is used to output all the tokens of a node.\n\
             \x20 To view status related info of a node use \"nodetool status\" instead.\n\n",
        );
    }
    text.push_str("\n  ");
    if shown.is_none() {
        text.push_str(MEANINGLESS);
    }
    text
}

/// The part of `describecluster` between its first lines and the keyspaces.
pub fn members_of(node: &NodeReport) -> String {
    let is_here = |member: &&MemberReport| member.is_up;
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for member in node.members.iter().filter(is_here) {
        versions
            .entry(&member.schema_version)
            .or_default()
            .push(&member.address);
    }
    let mut text = "\tSchema versions:\n".to_owned();
    for (version, addresses) in versions {
        let _ = writeln!(text, "\t\t{version}: [{}]\n", addresses.join(", "));
    }
    let down: Vec<&str> = node
        .members
        .iter()
        .filter(|member| !member.is_up)
        .map(|member| &*member.address)
        .collect();
    if !down.is_empty() {
        let _ = writeln!(text, "\t\tUNREACHABLE: [{}]\n", down.join(", "));
    }
    let count = |state| node.members.iter().filter(|member| member.state == state).count();
    let _ = write!(
        text,
        "Stats for all nodes:\n\tLive: {}\n\tJoining: {}\n\tMoving: 0\n\tLeaving: {}\n\tUnreachable: {}\n\nData Centers: \n",
        node.members.iter().filter(is_here).count(),
        count(MemberState::Joining),
        count(MemberState::Leaving),
        down.len(),
    );
    for (datacenter, members) in by_datacenter(node) {
        let down = members.iter().filter(|member| !member.is_up).count();
        let _ = writeln!(text, "\t{datacenter} #Nodes: {} #Down: {down}", members.len());
    }
    let mut releases: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for member in &node.members {
        let release = member.release_version.as_deref().unwrap_or(UNKNOWN);
        releases.entry(release).or_default().push(with_port(member));
    }
    text.push_str("\nDatabase versions:\n");
    for (release, addresses) in releases {
        let _ = writeln!(text, "\t{release}: [{}]", addresses.join(", "));
    }
    text.push('\n');
    text
}

fn with_port(member: &MemberReport) -> String {
    format!("{}:{}", member.address, member.storage_port)
}

/// The members at these indexes of the report.
fn named<'n>(node: &'n NodeReport, places: &[usize]) -> Vec<&'n MemberReport> {
    places
        .iter()
        .filter_map(|place| node.members.get(*place))
        .collect()
}

pub fn ranges_of(node: &NodeReport, keyspace: &str) -> String {
    let ranges = node.ranges.get(keyspace).map_or(&[][..], Vec::as_slice);
    let mut lines = vec![
        format!("Schema Version:{}", node.schema_version),
        "TokenRange: ".to_owned(),
    ];
    let starts = ranges.last().into_iter().chain(ranges).map(|(end, _)| end);
    for (start, (end, replicas)) in starts.zip(ranges) {
        let replicas = named(node, replicas);
        let addresses: Vec<&str> = replicas.iter().map(|member| &*member.address).collect();
        let addresses = addresses.join(", ");
        let details: Vec<String> = replicas
            .iter()
            .map(|member| {
                format!(
                    "EndpointDetails(host:{}, datacenter:{}, rack:{})",
                    member.address, member.data_center, member.rack
                )
            })
            .collect();
        lines.push(format!(
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{addresses}], rpc_endpoints:[{addresses}], \
             endpoint_details:[{}])",
            details.join(", ")
        ));
    }
    lines.join("\n")
}

/// The addresses of a token's replicas: those of the first range that ends at or after the token, else of the first range.
pub fn endpoints_of(node: &NodeReport, keyspace: &str, token: &str) -> String {
    let token: i64 = token.parse().unwrap_or_default();
    let ranges = node.ranges.get(keyspace).map_or(&[][..], Vec::as_slice);
    let ends_after = |(end, _): &&(String, Vec<usize>)| end.parse::<i64>().is_ok_and(|end| end >= token);
    let found = ranges.iter().find(ends_after).or(ranges.first());
    let replicas = found.map_or_else(Vec::new, |(_, replicas)| named(node, replicas));
    let addresses = replicas.iter().map(|member| &*member.address);
    addresses.collect::<Vec<_>>().join("\n")
}

/// The state of a member with its first token, as `gossipinfo` has it.
pub fn gossip_status_of(member: &MemberReport) -> String {
    let state = match member.state {
        MemberState::Normal => "NORMAL",
        MemberState::Leaving => "LEAVING",
        MemberState::Joining => "BOOT",
    };
    let token = member
        .tokens
        .first()
        .map_or(String::new(), |token| format!(",{token}"));
    format!("{state}{token}")
}

/// The facts about another member, as lines of `gossipinfo`.
pub fn gossip_of(member: &MemberReport) -> String {
    let status = gossip_status_of(member);
    let load = member.load_bytes.map(|bytes| ("LOAD", format!("{bytes}.0")));
    let release = member.release_version.clone();
    let facts = [
        ("SCHEMA", member.schema_version.clone()),
        ("DC", member.data_center.clone()),
        ("RACK", member.rack.clone()),
        ("RPC_ADDRESS", member.address.clone()),
        ("HOST_ID", member.host_id.clone()),
        ("RPC_READY", member.is_up.to_string()),
        (
            "NATIVE_ADDRESS_AND_PORT",
            format!("{}:{}", member.address, member.native_port),
        ),
        ("STATUS_WITH_PORT", status.clone()),
        ("TOKENS", "<hidden>".to_owned()),
    ];
    let lines = [("STATUS", status)]
        .into_iter()
        .chain(load)
        .chain(release.map(|release| ("RELEASE_VERSION", release)))
        .chain(facts)
        .zip(2..)
        .map(|((name, value), version)| format!("  {name}:{version}:{value}\n"));
    format!("/{}\n{}", member.address, lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u8, tokens: &[i64]) -> MemberReport {
        MemberReport {
            host_id: format!("bcf59194-cf4e-4020-9ec4-83d65710800{number}"),
            address: format!("127.0.0.{number}"),
            native_port: 9042,
            storage_port: 7000,
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            tokens: tokens.iter().map(i64::to_string).collect(),
            is_up: true,
            schema_version: "a3922f98-d3ef-358b-9ea8-d953c96ae9b5".to_owned(),
            ..MemberReport::default()
        }
    }

    /// Three nodes, two replicas of each range; the node that is asked is the first, and the third is down.
    fn report() -> NodeReport {
        let mut members = [
            member(1, &[i64::MIN]),
            member(2, &[-3_074_457_345_618_258_603]),
            member(3, &[3_074_457_345_618_258_602]),
        ];
        members[0].load_bytes = Some(111_790);
        members[2].is_up = false;
        for (member, release) in members.iter_mut().zip(["5.0.9", "5.0.8"]) {
            member.release_version = Some(release.to_owned());
        }
        let two_thirds = members.iter().map(|member| (member.host_id.clone(), 2.0 / 3.0));
        let options = |factor: &str| {
            [
                ("class".to_owned(), "SimpleStrategy".to_owned()),
                ("replication_factor".to_owned(), factor.to_owned()),
            ]
        };
        NodeReport {
            shares: [("r2".to_owned(), two_thirds.collect())].into(),
            ranges: [(
                "r2".to_owned(),
                vec![
                    (i64::MIN.to_string(), vec![0, 1]),
                    ("-3074457345618258603".to_owned(), vec![1, 2]),
                    ("3074457345618258602".to_owned(), vec![2, 0]),
                ],
            )]
            .into(),
            keyspaces: [
                ("r2".to_owned(), options("2").into()),
                ("r1".to_owned(), options("1").into()),
            ]
            .into(),
            members: members.into(),
            schema_version: "a3922f98-d3ef-358b-9ea8-d953c96ae9b5".to_owned(),
            release_version: "5.0.9".to_owned(),
            ..NodeReport::default()
        }
    }

    /// As 5.0.9 prints it, but for the loads.
    #[test]
    fn the_status_of_a_cluster_is_laid_out_as_by_cassandra() {
        let expected = "\
Datacenter: datacenter1
=======================
Status=Up/Down
|/ State=Normal/Leaving/Joining/Moving
--  Address    Load        Tokens  Owns (effective)  Host ID                               Rack 
UN  127.0.0.1  109.17 KiB  1       66.7%             bcf59194-cf4e-4020-9ec4-83d657108001  rack1
UN  127.0.0.2  ?           1       66.7%             bcf59194-cf4e-4020-9ec4-83d657108002  rack1
DN  127.0.0.3  ?           1       66.7%             bcf59194-cf4e-4020-9ec4-83d657108003  rack1
";
        assert_eq!(status_of(&report(), Some("r2")), expected);
    }

    /// As 5.0.9 prints it when keyspaces have different numbers of replicas.
    #[test]
    fn without_a_keyspace_there_may_be_no_ownership_to_show() {
        let text = status_of(&report(), None);
        assert!(text.contains("Tokens  Owns  Host ID"), "{text}");
        assert!(text.contains("  1       ?     bcf59194-"), "{text}");
        assert!(text.ends_with(&format!("\n\n{MEANINGLESS}\n")), "{text}");
        let mut alike = report();
        alike.keyspaces.remove("r1");
        assert!(status_of(&alike, None).contains("66.7%"));
    }

    /// As 5.0.9 prints it, but for the loads.
    #[test]
    fn the_ring_of_a_cluster_is_laid_out_as_by_cassandra() {
        let expected = "
Datacenter: datacenter1
==========
Address          Rack        Status State   Load            Owns                Token                                       
                                                                                3074457345618258602                         
127.0.0.1        rack1       Up     Normal  109.17 KiB      66.67%              -9223372036854775808                        
127.0.0.2        rack1       Up     Normal  ?               66.67%              -3074457345618258603                        
127.0.0.3        rack1       Down   Normal  ?               66.67%              3074457345618258602                         


  ";
        assert_eq!(ring_of(&report(), Some("r2")), expected);
    }

    /// As 5.0.9 prints it, but for members whose release is unknown.
    #[test]
    fn the_description_of_a_cluster_counts_its_members() {
        let expected = "\tSchema versions:
\t\ta3922f98-d3ef-358b-9ea8-d953c96ae9b5: [127.0.0.1, 127.0.0.2]

\t\tUNREACHABLE: [127.0.0.3]

Stats for all nodes:
\tLive: 2
\tJoining: 0
\tMoving: 0
\tLeaving: 0
\tUnreachable: 1

Data Centers: 
\tdatacenter1 #Nodes: 3 #Down: 1

Database versions:
\t5.0.8: [127.0.0.2:7000]
\t5.0.9: [127.0.0.1:7000]
\tunknown: [127.0.0.3:7000]

";
        assert_eq!(members_of(&report()), expected);
    }

    /// As 5.0.9 prints it.
    #[test]
    fn ranges_have_their_replicas() {
        let text = ranges_of(&report(), "r2");
        let line = "\tTokenRange(start_token:3074457345618258602, end_token:-9223372036854775808, endpoints:[127.0.0.1, \
                    127.0.0.2], rpc_endpoints:[127.0.0.1, 127.0.0.2], endpoint_details:[EndpointDetails(host:127.0.0.1, \
                    datacenter:datacenter1, rack:rack1), EndpointDetails(host:127.0.0.2, datacenter:datacenter1, rack:rack1)])";
        assert!(text.lines().any(|shown| shown == line), "{text}");
        assert_eq!(endpoints_of(&report(), "r2", "0"), "127.0.0.3\n127.0.0.1");
        assert_eq!(
            endpoints_of(&report(), "r2", "9223372036854775807"),
            "127.0.0.1\n127.0.0.2"
        );
    }

    #[test]
    fn gossip_tells_what_is_known_of_another_member() {
        let node = report();
        let text = gossip_of(&node.members[2]);
        for line in [
            "/127.0.0.3\n",
            "  STATUS:2:NORMAL,3074457345618258602\n",
            "  RPC_READY:8:false\n",
            "  NATIVE_ADDRESS_AND_PORT:9:127.0.0.3:9042\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("LOAD") && !text.contains("RELEASE"), "{text}");
        assert!(gossip_of(&node.members[1]).contains("  RELEASE_VERSION:3:5.0.8\n"));
    }
}
