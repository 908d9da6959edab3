//! What `ilion sstable load` sends, for tests.

use std::collections::BTreeMap;

use ilion_codec::crc32;
use ilion_server::admin::{AdminClient, ClientError};

/// Components of an SSTable: name and bytes.
pub type Components = Vec<(String, Vec<u8>)>;

/// The SSTables of files, by the common start of their names.
pub fn sstables(files: impl Iterator<Item = (String, Vec<u8>)>) -> BTreeMap<String, Components> {
    let mut sstables: BTreeMap<String, Components> = BTreeMap::new();
    for (name, bytes) in files {
        let mut parts = name.splitn(4, '-');
        let start: Vec<&str> = parts.by_ref().take(3).collect();
        if let Some(component) = parts.next() {
            let components = sstables.entry(start.join("-")).or_default();
            components.push((component.to_owned(), bytes));
        }
    }
    for components in sstables.values_mut() {
        components.sort_by_key(|(name, _)| name != "Statistics.db");
    }
    sstables
}

/// Announces an SSTable; returns the id of the load.
pub fn begin(
    admin: &AdminClient,
    table: &str,
    sstable: &str,
    components: &Components,
) -> Result<String, ClientError> {
    let lines: Vec<String> = components
        .iter()
        .map(|(name, bytes)| format!("{}%20{}", name.replace('+', "%2B"), bytes.len()))
        .collect();
    let (keyspace, table) = table.split_once('.').unwrap();
    let path = format!(
        "/admin/load/begin?keyspace={keyspace}&table={table}&sstable={sstable}&components={}",
        lines.join("%0A")
    );
    Ok(admin.post(&path)?["load"].as_str().unwrap().to_owned())
}

/// Sends one component in pieces of this many bytes.
pub fn send_component(
    admin: &AdminClient,
    load: &str,
    (name, bytes): &(String, Vec<u8>),
    piece: usize,
) -> Result<(), ClientError> {
    let mut offset = 0;
    loop {
        let all = bytes;
        let bytes = &all[offset..all.len().min(offset + piece)];
        let path = format!(
            "/admin/load/piece?load={load}&component={}&offset={offset}&crc={}",
            name.replace('+', "%2B"),
            crc32(bytes)
        );
        admin.post_bytes(&path, bytes)?;
        offset += bytes.len();
        if offset == all.len() {
            return Ok(());
        }
    }
}

/// Loads an SSTable in pieces of this many bytes; returns its path in the table.
pub fn send(
    admin: &AdminClient,
    table: &str,
    sstable: &str,
    components: &Components,
    piece: usize,
) -> Result<String, ClientError> {
    let load = begin(admin, table, sstable, components)?;
    for component in components {
        send_component(admin, &load, component, piece)?;
    }
    let done = admin.post(&format!("/admin/load/finish?load={load}"))?;
    Ok(done["to"].as_str().unwrap().to_owned())
}
