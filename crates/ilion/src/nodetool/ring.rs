//! The node in the ring: `nodetool status`, `ring`, `describecluster`, `describering`, `gossipinfo`, `getendpoints`. For a node of a
//! cluster, `cluster` prints them.

use ilion_server::admin::{KeySampleReport, NodeReport, SSTablesReport, file_size};

use super::call::Call;
use super::cluster;
use super::layout::{laid_out_wide, line_of};
use crate::Failure;
use crate::ask::say;

/// Compat: Cassandra's port for other nodes, which is printed with the address of a single node.
const STORAGE_PORT: u16 = 7000;

fn node(call: &Call) -> Result<NodeReport, Failure> {
    call.get("node", &[])
}

/// The report of the node. Fails if the keyspace does not exist.
fn node_with(call: &Call, keyspace: Option<&str>) -> Result<NodeReport, Failure> {
    let node = node(call)?;
    match keyspace.filter(|keyspace| !node.keyspaces.contains_key(*keyspace)) {
        // Compat: the message for a keyspace that does not exist.
        Some(keyspace) => Err(Failure::nodetool(format!(
            "The keyspace {keyspace}, does not exist"
        ))),
        None => Ok(node),
    }
}

/// Prints the node, or all members of its cluster, with their load.
pub fn status(call: &Call) -> Result<(), Failure> {
    let node = node_with(call, call.value(0))?;
    say(&match node.members.is_empty() {
        true => status_of(&node),
        false => cluster::status_of(&node, call.value(0)),
    });
    Ok(())
}

fn status_of(node: &NodeReport) -> String {
    let title = format!("Datacenter: {}", node.data_center);
    let line = "=".repeat(title.len());
    let (header, shown) = match &*node.tokens {
        [token] => ("Token", token.clone()),
        tokens => ("Tokens", tokens.len().to_string()),
    };
    let load = file_size(node.load_bytes);
    let headers = [
        "--",
        "Address",
        "Load",
        "Owns (effective)",
        "Host ID",
        header,
        "Rack",
    ];
    let row = [
        "UN",
        &node.listen_address,
        &load,
        "100.0%",
        &node.host_id,
        &shown,
        &node.rack,
    ];
    let rows = [headers, row].map(|row| row.map(str::to_owned).to_vec());
    // Compat: two blanks between columns.
    let table = laid_out_wide(&rows);
    format!("{title}\n{line}\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n{table}")
}

/// Prints the tokens of the ring, each with its node.
pub fn ring(call: &Call) -> Result<(), Failure> {
    let node = node_with(call, call.value(0))?;
    say(&ring_text(&node, call.value(0)));
    Ok(())
}

/// The tokens, with the share of a keyspace that each member has. Pure.
pub fn ring_text(node: &NodeReport, keyspace: Option<&str>) -> String {
    match node.members.is_empty() {
        true => ring_of(node),
        false => cluster::ring_of(node, keyspace),
    }
}

fn ring_of(node: &NodeReport) -> String {
    let mut text = format!("\nDatacenter: {}\n==========\n", node.data_center);
    let width = node.listen_address.len().max(15);
    let header = ["Address", "Rack", "Status", "State", "Load", "Owns", "Token"];
    line_of(&mut text, width, header);
    // Compat: the last of several tokens is also printed above the first, since the ring is closed.
    match &*node.tokens {
        [_, .., last] => line_of(&mut text, width, ["", "", "", "", "", "", last]),
        _ => text.push('\n'),
    }
    let load = file_size(node.load_bytes);
    for token in &node.tokens {
        line_of(
            &mut text,
            width,
            [
                &node.listen_address,
                &node.rack,
                "Up",
                "Normal",
                &load,
                "100.00%",
                token,
            ],
        );
    }
    text + "\n"
}

/// Prints the cluster, the version of its schema, and the keyspaces.
pub fn describe_cluster(call: &Call) -> Result<(), Failure> {
    say(&cluster_of(&node(call)?));
    Ok(())
}

fn cluster_of(node: &NodeReport) -> String {
    let NodeReport {
        listen_address,
        cluster_name,
        snitch,
        partitioner,
        schema_version,
        release_version,
        data_center,
        ..
    } = node;
    let keyspaces = node.keyspaces.iter().map(|(name, options)| {
        let class = options.get("class").map_or("", String::as_str);
        let class = class.rsplit('.').next().unwrap_or(class);
        let others: Vec<String> = options
            .iter()
            .filter(|(option, _)| *option != "class")
            .map(|(option, value)| format!("{option}={value}"))
            .collect();
        format!("\t{name} -> Replication class: {class} {{{}}}", others.join(", "))
    });
    let keyspaces: Vec<String> = keyspaces.collect();
    let keyspaces = keyspaces.join("\n");
    let snitch = match snitch.contains('.') {
        true => snitch.clone(),
        false => format!("org.apache.cassandra.locator.{snitch}"),
    };
    let members = match node.members.is_empty() {
        false => cluster::members_of(node),
        true => format!(
            "\tSchema versions:\n\t\t{schema_version}: [{listen_address}]\n\n\
             Stats for all nodes:\n\tLive: 1\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0\n\n\
             Data Centers: \n\t{data_center} #Nodes: 1 #Down: 0\n\n\
             Database versions:\n\t{release_version}: [{listen_address}:{STORAGE_PORT}]\n\n"
        ),
    };
    format!(
        "Cluster Information:\n\tName: {cluster_name}\n\tSnitch: {snitch}\n\tDynamicEndPointSnitch: disabled\n\
         \tPartitioner: {partitioner}\n{members}Keyspaces:\n{keyspaces}"
    )
}

/// Prints the token ranges of a keyspace, with their replicas.
pub fn describe_ring(call: &Call) -> Result<(), Failure> {
    let node = node_with(call, call.value(0))?;
    if !node.members.is_empty() {
        say(&cluster::ranges_of(&node, call.value(0).unwrap_or_default()));
        return Ok(());
    }
    let NodeReport {
        listen_address: address,
        data_center,
        rack,
        ..
    } = &node;
    let native = node
        .native_address
        .rsplit_once(':')
        .map_or(&*node.native_address, |(ip, _)| ip);
    let mut lines = vec![
        format!("Schema Version:{}", node.schema_version),
        "TokenRange: ".to_owned(),
    ];
    let before = node.tokens.last().into_iter().chain(&node.tokens);
    for (start, end) in before.zip(&node.tokens) {
        lines.push(format!(
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{address}], rpc_endpoints:[{native}], \
             endpoint_details:[EndpointDetails(host:{address}, datacenter:{data_center}, rack:{rack})])"
        ));
    }
    say(&lines.join("\n"));
    Ok(())
}

/// Prints tokens of some partitions.
pub fn range_keys(call: &Call) -> Result<(), Failure> {
    let sample: KeySampleReport = call.get("key-sample", &[])?;
    // Compat: the first line ends with a blank.
    let mut text = "RangeKeySample: ".to_owned();
    for token in sample.tokens {
        text.push_str("\n\t");
        text.push_str(&token);
    }
    say(&text);
    Ok(())
}

/// Prints the addresses of the replicas of a partition key.
pub fn endpoints(call: &Call) -> Result<(), Failure> {
    let [keyspace, table] = [call.value(0), call.value(1)].map(Option::unwrap_or_default);
    let node = node_with(call, Some(keyspace))?;
    let mut tables = node.tables.iter();
    if !tables.any(|known| known.keyspace == keyspace && known.table == table) {
        return Err(Failure::nodetool(format!(
            "Unknown table '{table}' in keyspace '{keyspace}'"
        )));
    }
    if node.members.is_empty() {
        say(&node.listen_address);
        return Ok(());
    }
    let found: SSTablesReport = call.get(
        "sstables",
        &[
            ("keyspace", Some(keyspace)),
            ("table", Some(table)),
            ("key", call.value(2)),
        ],
    )?;
    say(&cluster::endpoints_of(&node, keyspace, &found.token));
    Ok(())
}

/// Prints the state of this node and of the other members, as Cassandra's gossip has it.
pub fn gossip(call: &Call) -> Result<(), Failure> {
    let node = node(call)?;
    let native = &node.native_address;
    let address = native.rsplit_once(':').map_or(&**native, |(ip, _)| ip);
    let token = node.tokens.first().map_or("", String::as_str);
    let own = node.members.iter().find(|member| member.host_id == node.host_id);
    let status = own.map_or(format!("NORMAL,{token}"), cluster::gossip_status_of);
    let facts = [
        ("generation", node.started_secs.to_string()),
        ("heartbeat", node.uptime_secs.to_string()),
        ("STATUS", status.clone()),
        ("LOAD", format!("{}.0", node.load_bytes)),
        ("SCHEMA", node.schema_version.clone()),
        ("DC", node.data_center.clone()),
        ("RACK", node.rack.clone()),
        ("RELEASE_VERSION", node.release_version.clone()),
        ("RPC_ADDRESS", address.to_owned()),
        ("HOST_ID", node.host_id.clone()),
        ("RPC_READY", node.is_open.to_string()),
        ("NATIVE_ADDRESS_AND_PORT", native.clone()),
        ("STATUS_WITH_PORT", status),
        ("TOKENS", "<hidden>".to_owned()),
    ];
    // Compat: facts that may change have a version between name and value. Ilion has no versions, so it prints the index of the line.
    let lines = facts
        .iter()
        .enumerate()
        .map(|(index, (name, value))| match index {
            0 | 1 => format!("  {name}:{value}"),
            index => format!("  {name}:{index}:{value}"),
        });
    let lines: Vec<String> = lines.collect();
    let mut text = format!("/{}\n{}\n", node.listen_address, lines.join("\n"));
    for member in node
        .members
        .iter()
        .filter(|member| member.host_id != node.host_id)
    {
        text.push_str(&cluster::gossip_of(member));
    }
    say(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> NodeReport {
        NodeReport {
            listen_address: "127.0.0.1".to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            host_id: "b51ee0c2-d8da-4b4d-a4cf-f7e4d9ae1706".to_owned(),
            tokens: vec!["0".to_owned()],
            load_bytes: 180_429,
            ..NodeReport::default()
        }
    }

    /// As 5.0.9 prints it.
    #[test]
    fn the_status_is_laid_out_as_by_cassandra() {
        let expected = "\
Datacenter: datacenter1
=======================
Status=Up/Down
|/ State=Normal/Leaving/Joining/Moving
--  Address    Load       Owns (effective)  Host ID                               Token  Rack 
UN  127.0.0.1  176.2 KiB  100.0%            b51ee0c2-d8da-4b4d-a4cf-f7e4d9ae1706  0      rack1
";
        assert_eq!(status_of(&report()), expected);
    }

    /// As 5.0.9 prints it.
    #[test]
    fn the_ring_is_laid_out_as_by_cassandra() {
        let expected = "
Datacenter: datacenter1
==========
Address          Rack        Status State   Load            Owns                Token                                       

127.0.0.1        rack1       Up     Normal  176.2 KiB       100.00%             0                                           

";
        assert_eq!(ring_of(&report()), expected);
    }
}
