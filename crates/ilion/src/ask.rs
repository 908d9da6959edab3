//! `ilion status`, `ready`, `info`, `flush`, `drain`, `invalidate-caches`, `set-cache-..`, and helpers for all commands that send requests to
//! a running node.

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;

use ilion_env::{Env, RealEnv};
use ilion_node::ReloadReport;
use ilion_server::admin::{AdminClient, read_token};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;
use crate::bar::{Shown, while_node_works};
use crate::cli::{
    AdminArguments, CacheArguments, CacheCapacityArguments, CacheKeysArguments, LoginArguments,
    ReadyArguments, TableArguments,
};

/// Largest file with passwords or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A client of the node that the arguments name.
pub fn client(arguments: &AdminArguments) -> Result<AdminClient, Failure> {
    let env = RealEnv::new();
    let client = AdminClient::new(SocketAddr::new(arguments.admin_address, arguments.admin_port));
    let client = match (&arguments.admin_token_file, credentials(&*env, &arguments.login)?) {
        (Some(path), _) => client.with_token(&read_token(&*env, path).map_err(Failure::of)?),
        (None, Some((role, password))) => client.with_login(&role, &password),
        (None, None) => client,
    };
    let Some(path) = &arguments.admin_ca else {
        return Ok(client);
    };
    let issuers = env.read_all(path, FILE_BYTES_MAX).map_err(Failure::of)?;
    let address = arguments.admin_address.to_string();
    let name = arguments.admin_host_name.as_ref().unwrap_or(&address);
    client.with_encryption(&issuers, name).map_err(Failure::of)
}

/// The role and its password that the arguments give, if any.
fn credentials(env: &dyn Env, login: &LoginArguments) -> Result<Option<(String, String)>, Failure> {
    let role = login.username.as_deref();
    if let (Some(role), Some(password)) = (role, &login.password) {
        return Ok(Some((role.to_owned(), password.clone())));
    }
    match (&login.password_file, role) {
        (Some(path), role) => {
            let bytes = env.read_all(path, FILE_BYTES_MAX).map_err(Failure::of)?;
            let found = find_credentials(&String::from_utf8_lossy(&bytes), role);
            found
                .map(Some)
                .map_err(|problem| Failure::Usage(format!("{}: {problem}", path.display())))
        }
        (None, None) => Ok(None),
        (None, Some(role)) => Err(Failure::Usage(format!(
            "{role} needs a password: --password-file, or ILION_PASSWORD"
        ))),
    }
}

/// Finds a role and its password in the text of a file. Compat: the file of `nodetool -pwf`.
fn find_credentials(text: &str, role: Option<&str>) -> Result<(String, String), String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs: Option<Vec<(&str, &str)>> = lines.map(|line| line.split_once(char::is_whitespace)).collect();
    let pairs = pairs.ok_or("expected a role, a blank and its password in each line")?;
    let found = match (role, &pairs[..]) {
        (Some(role), pairs) => pairs.iter().find(|(name, _)| *name == role),
        (None, [only]) => Some(only),
        (None, _) => return Err("it has more than one role, or none: name one with --username".to_owned()),
    };
    let found = found.map(|(name, password)| ((*name).to_owned(), password.trim_start().to_owned()));
    found.ok_or_else(|| format!("it has no password of {}", role.unwrap_or_default()))
}

/// Requests a report and prints it.
pub fn report<T: DeserializeOwned + Serialize + Display>(
    arguments: &AdminArguments,
    path: &str,
) -> Result<(), Failure> {
    let report: T = client(arguments)?.get(path).map_err(Failure::of)?;
    show(arguments, &report)
}

/// Prints a report: as JSON with `--json`, else as text.
pub fn show<T: Serialize + Display>(arguments: &AdminArguments, report: &T) -> Result<(), Failure> {
    match arguments.json {
        true => say(&serde_json::to_string_pretty(report).map_err(Failure::of)?),
        false => say(&report.to_string()),
    }
    Ok(())
}

/// Succeeds if the node serves clients; with `--alive`, if it answers at all.
pub fn ready(arguments: &ReadyArguments) -> Result<(), Failure> {
    let (path, good) = match arguments.alive {
        true => ("/healthz", "alive"),
        false => ("/readyz", "ready"),
    };
    client(&arguments.admin)?.check(path).map_err(Failure::of)?;
    say(good);
    Ok(())
}

/// Flushes tables.
pub fn flush(arguments: &TableArguments) -> Result<(), Failure> {
    let (admin, parts) = (&arguments.admin, of_tables(arguments));
    ask_long(admin, "flush", &parts, Shown::Flushes, |done| {
        format!("flush: {} tables done", done["tables"])
    })
}

/// The keyspace and table that the arguments choose, as parameters of [`ask`].
pub fn of_tables(tables: &TableArguments) -> [(&'static str, Option<&str>); 2] {
    [
        ("keyspace", tables.keyspace.as_deref()),
        ("table", tables.table.as_deref()),
    ]
}

/// Empties caches.
pub fn invalidate_caches(arguments: &CacheArguments) -> Result<(), Failure> {
    let parts = [("cache", arguments.cache.as_deref())];
    ask(&arguments.admin, "invalidate-caches", &parts, |done| {
        format!("invalidate-caches: {} caches done", done["caches"])
    })
}

/// Changes the size of a cache.
pub fn set_cache_capacity(arguments: &CacheCapacityArguments) -> Result<(), Failure> {
    let bytes_max = arguments.mebibytes.saturating_mul(1 << 20).to_string();
    let parts = [
        ("cache", Some(&*arguments.cache)),
        ("bytes_max", Some(&*bytes_max)),
    ];
    ask(&arguments.admin, "cache", &parts, |_| {
        "set-cache-capacity: done".to_owned()
    })
}

/// Changes how many keys of a cache are saved.
pub fn set_cache_keys(arguments: &CacheKeysArguments) -> Result<(), Failure> {
    let keys = arguments.keys.to_string();
    let parts = [("cache", Some(&*arguments.cache)), ("keys_to_save", Some(&*keys))];
    ask(&arguments.admin, "cache", &parts, |_| {
        "set-cache-keys-to-save: done".to_owned()
    })
}

/// Flushes all tables.
pub fn drain(arguments: &AdminArguments) -> Result<(), Failure> {
    ask_long(arguments, "drain", &[], Shown::Flushes, |_| {
        "drain: done".to_owned()
    })
}

/// Makes the node read its settings file again.
pub fn reload(arguments: &AdminArguments) -> Result<(), Failure> {
    let report: ReloadReport = post_report(arguments, "reload", &[])?;
    show(arguments, &report)?;
    match report.needs_restart.is_empty() {
        true => Ok(()),
        false => Err(Failure::Told),
    }
}

/// Requests an action and prints its result: as JSON, or as the text that `told` makes of it.
pub fn ask(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
    told: impl Fn(&Value) -> String,
) -> Result<(), Failure> {
    let done = post(arguments, action, parts)?;
    say_done(arguments, &done, told);
    Ok(())
}

fn say_done(arguments: &AdminArguments, done: &Value, told: impl Fn(&Value) -> String) {
    match arguments.json {
        true => say(&done.to_string()),
        false => say(&told(done)),
    }
}

/// Like [`ask`], with a progress bar until the node answers.
pub fn ask_long(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
    shown: Shown,
    told: impl Fn(&Value) -> String,
) -> Result<(), Failure> {
    let done = post_long(arguments, action, parts, shown)?;
    say_done(arguments, &done, told);
    Ok(())
}

/// Like [`post`], with a progress bar until the node answers.
pub fn post_long(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
    shown: Shown,
) -> Result<Value, Failure> {
    while_node_works(action, &client(arguments)?, shown, || {
        post(arguments, action, parts)
    })
}

/// Requests an action.
pub fn post(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
) -> Result<Value, Failure> {
    let path = path(action, parts);
    client(arguments)?.post(&path).map_err(Failure::of)
}

/// Requests an action that returns a report.
pub fn post_report<T: DeserializeOwned>(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
) -> Result<T, Failure> {
    serde_json::from_value(post(arguments, action, parts)?).map_err(Failure::of)
}

/// The path of an action, with the parameters that have a value.
pub fn path(action: &str, parts: &[(&str, Option<&str>)]) -> String {
    let given = parts.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let texts: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    match texts.is_empty() {
        true => format!("/admin/{action}"),
        false => format!("/admin/{action}?{}", texts.join("&")),
    }
}

/// Prints the output of a command.
pub fn say(text: &str) {
    // The reader may have closed the pipe (`| head`).
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Escapes a parameter for a URL.
fn escape(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_role_is_found() {
        let text = "# operators\n\nalice  a b\n bob\tsecret\n";
        let pair = |role: &str, password: &str| Ok((role.to_owned(), password.to_owned()));
        assert_eq!(find_credentials(text, Some("alice")), pair("alice", "a b"));
        assert_eq!(find_credentials(text, Some("bob")), pair("bob", "secret"));
        assert_eq!(find_credentials("bob secret", None), pair("bob", "secret"));
        let refused = |text, role| find_credentials(text, role).unwrap_err();
        assert!(refused(text, None).contains("--username"));
        assert_eq!(refused(text, Some("eve")), "it has no password of eve");
        assert!(refused("", None).contains("or none"));
        assert!(refused("secret\n", Some("bob")).contains("in each line"));
    }
}
