//! `ilion status`, `info`, `flush`, `compact`, `drain`, `invalidate-caches`, `set-cache-..`: asking a running node of this machine.

use std::fmt::Display;

use ilion_env::RealEnv;
use ilion_server::admin::{AdminClient, read_token};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::cli::{
    AdminArguments, CacheArguments, CacheCapacityArguments, CacheKeysArguments, TableArguments,
};

/// The node that is meant.
pub fn client(arguments: &AdminArguments) -> Result<AdminClient, Failure> {
    let token = arguments.admin_token_file.as_ref();
    let token = token.map(|path| read_token(&*RealEnv::new(), path));
    let token = token.transpose().map_err(Failure::of)?;
    Ok(AdminClient::new(arguments.admin_port).with_token(token))
}

/// Prints a report.
pub fn report<T: DeserializeOwned + Serialize + Display>(
    arguments: &AdminArguments,
    path: &str,
) -> Result<(), Failure> {
    let report: T = client(arguments)?.get(path).map_err(Failure::of)?;
    match arguments.json {
        true => say(&serde_json::to_string_pretty(&report).map_err(Failure::of)?),
        false => say(&report.to_string()),
    }
    Ok(())
}

/// Has something done to tables.
pub fn tables(arguments: &TableArguments, action: &str) -> Result<(), Failure> {
    let mut path = format!("/admin/{action}");
    if let Some(keyspace) = &arguments.keyspace {
        path.push_str(&format!("?keyspace={}", escape(keyspace)));
    }
    if let Some(table) = &arguments.table {
        path.push_str(&format!("&table={}", escape(table)));
    }
    let done = client(&arguments.admin)?.post(&path).map_err(Failure::of)?;
    match arguments.admin.json {
        true => say(&done.to_string()),
        false => say(&format!("{action}: {} tables done", done["tables"])),
    }
    Ok(())
}

/// Has caches forget what they hold.
pub fn invalidate_caches(arguments: &CacheArguments) -> Result<(), Failure> {
    let mut path = "/admin/invalidate-caches".to_owned();
    if let Some(cache) = &arguments.cache {
        path.push_str(&format!("?cache={}", escape(cache)));
    }
    let done = client(&arguments.admin)?.post(&path).map_err(Failure::of)?;
    match arguments.admin.json {
        true => say(&done.to_string()),
        false => say(&format!("invalidate-caches: {} caches done", done["caches"])),
    }
    Ok(())
}

/// Changes the size of a cache.
pub fn set_cache_capacity(arguments: &CacheCapacityArguments) -> Result<(), Failure> {
    let bytes_max = arguments.mebibytes.saturating_mul(1 << 20);
    let change = format!("bytes_max={bytes_max}");
    change_cache(&arguments.admin, &arguments.cache, &change, "set-cache-capacity")
}

/// Changes how many keys of a cache are saved.
pub fn set_cache_keys(arguments: &CacheKeysArguments) -> Result<(), Failure> {
    let change = format!("keys_to_save={}", arguments.keys);
    change_cache(
        &arguments.admin,
        &arguments.cache,
        &change,
        "set-cache-keys-to-save",
    )
}

fn change_cache(arguments: &AdminArguments, cache: &str, change: &str, command: &str) -> Result<(), Failure> {
    let path = format!("/admin/cache?cache={}&{change}", escape(cache));
    let done = client(arguments)?.post(&path).map_err(Failure::of)?;
    match arguments.json {
        true => say(&done.to_string()),
        false => say(&format!("{command}: done")),
    }
    Ok(())
}

/// Has everything brought to disk.
pub fn drain(arguments: &AdminArguments) -> Result<(), Failure> {
    let done = client(arguments)?.post("/admin/drain").map_err(Failure::of)?;
    match arguments.json {
        true => say(&done.to_string()),
        false => say("drain: done"),
    }
    Ok(())
}

/// Prints what the command is asked for.
#[expect(clippy::print_stdout, reason = "this is what the command is for")]
pub fn say(text: &str) {
    println!("{text}");
}

/// As a URL wants it.
pub fn escape(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
