//! `ilion status` and `ilion ring`: the node, and in a cluster all members.

use ilion_server::admin::{AdminClient, MemberReport, NodeReport, StatusReport, file_size, laid_out};
use serde_json::{Value, json};

use crate::Failure;
use crate::ask::{client, say, show};
use crate::cli::{AdminArguments, RingArguments};
use crate::nodetool::{letters_of, ownership, ring_text};

/// Prints the state of the node and its tables, and the members of its cluster.
pub fn status(arguments: &AdminArguments) -> Result<(), Failure> {
    let client = client(arguments)?;
    let status: StatusReport = client.get("/admin/status").map_err(Failure::of)?;
    if !status.is_of_cluster {
        return show(arguments, &status);
    }
    let node = node(&client)?;
    if !arguments.json {
        say(&format!("{status}\n\n{}", members_of(&node).trim_end()));
        return Ok(());
    }
    let mut value = serde_json::to_value(&status).map_err(Failure::of)?;
    let members = serde_json::to_value(&node.members).map_err(Failure::of)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("members".to_owned(), members);
    }
    say(&serde_json::to_string_pretty(&value).map_err(Failure::of)?);
    Ok(())
}

/// Prints the tokens, ascending, each with its member.
pub fn ring(arguments: &RingArguments) -> Result<(), Failure> {
    let node = node(&client(&arguments.admin)?)?;
    let keyspace = arguments.keyspace.as_deref();
    if let Some(unknown) = keyspace.filter(|name| !node.keyspaces.contains_key(*name)) {
        return Err(Failure::Failed(format!("keyspace {unknown} does not exist")));
    }
    match arguments.admin.json {
        true => say(&serde_json::to_string_pretty(&ring_json(&node)).map_err(Failure::of)?),
        false => say(ring_text(&node, keyspace).trim_start_matches('\n').trim_end()),
    }
    Ok(())
}

fn node(client: &AdminClient) -> Result<NodeReport, Failure> {
    client.get("/admin/node").map_err(Failure::of)
}

/// The members as a table. Pure.
fn members_of(node: &NodeReport) -> String {
    let shares = ownership(node, None);
    let mut rows = vec![
        ["--", "Address", "Load", "Owns", "Lag", "Host ID", "Rack"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for member in &node.members {
        let share = shares.map(|shares| shares.get(&member.host_id).copied().unwrap_or_default());
        rows.push(vec![
            letters_of(member),
            member.address.clone(),
            member.load_bytes.map_or("?".to_owned(), file_size),
            share.map_or("?".to_owned(), |share| format!("{:.1}%", share * 100.0)),
            lag_of(member),
            member.host_id.clone(),
            format!("{}/{}", member.data_center, member.rack),
        ]);
    }
    laid_out(&rows)
}

fn lag_of(member: &MemberReport) -> String {
    match (member.lag_records, member.tablets_behind) {
        (None, _) => "?".to_owned(),
        (Some(records), None | Some(0)) => records.to_string(),
        (Some(records), Some(tablets)) => format!("{records}, {tablets} tablets not ready"),
    }
}

/// The tokens with their members. Pure.
fn ring_json(node: &NodeReport) -> Value {
    if node.members.is_empty() {
        let own =
            |token: &String| json!({"token": token, "host_id": node.host_id, "address": node.listen_address});
        return node.tokens.iter().map(own).collect();
    }
    let mut tokens: Vec<(i64, &MemberReport)> = node
        .members
        .iter()
        .flat_map(|member| {
            let tokens = member.tokens.iter().filter_map(|token| token.parse().ok());
            tokens.map(move |token| (token, member))
        })
        .collect();
    tokens.sort_by_key(|(token, _)| *token);
    let line = |(token, member): &(i64, &MemberReport)| {
        json!({
            "token": token.to_string(),
            "host_id": member.host_id,
            "address": member.address,
            "is_up": member.is_up,
            "state": member.state,
            "load_bytes": member.load_bytes,
        })
    };
    tokens.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use ilion_server::admin::MemberState;

    use super::*;

    fn member(number: u8) -> MemberReport {
        MemberReport {
            host_id: format!("host-{number}"),
            address: format!("127.0.0.{number}"),
            data_center: "dc1".to_owned(),
            rack: format!("r{number}"),
            tokens: vec![i64::from(number).to_string(), (-i64::from(number)).to_string()],
            is_up: true,
            ..MemberReport::default()
        }
    }

    fn report() -> NodeReport {
        let (mut first, mut second, mut third) = (member(1), member(2), member(3));
        (first.load_bytes, first.lag_records, first.tablets_behind) = (Some(2048), Some(0), Some(0));
        (second.load_bytes, second.lag_records, second.tablets_behind) = (Some(0), Some(17), Some(4));
        second.state = MemberState::Joining;
        third.is_up = false;
        NodeReport {
            shares: [(
                "ks".to_owned(),
                [("host-1".to_owned(), 0.5), ("host-3".to_owned(), 0.5)].into(),
            )]
            .into(),
            keyspaces: [("ks".to_owned(), [].into())].into(),
            members: vec![first, second, third],
            ..NodeReport::default()
        }
    }

    #[test]
    fn members_are_shown_with_what_they_say_of_themselves() {
        let text = members_of(&report());
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "-- Address   Load    Owns  Lag                     Host ID Rack",
                "UN 127.0.0.1 2 KiB   50.0% 0                       host-1  dc1/r1",
                "UJ 127.0.0.2 0 bytes 0.0%  17, 4 tablets not ready host-2  dc1/r2",
                "DN 127.0.0.3 ?       50.0% ?                       host-3  dc1/r3",
            ]
        );
    }

    #[test]
    fn the_ring_has_the_tokens_of_all_members_in_their_order() {
        let ring = ring_json(&report());
        let tokens: Vec<&str> = ring
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["token"].as_str().unwrap())
            .collect();
        assert_eq!(tokens, ["-3", "-2", "-1", "1", "2", "3"]);
        assert_eq!(ring[0]["address"], "127.0.0.3");
        assert_eq!(ring[0]["is_up"], false);
    }
}
