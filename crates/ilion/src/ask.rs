//! `ilion status`, `info`, `flush`, `drain`, `invalidate-caches`, `set-cache-..`, and helpers for all commands that send requests to
//! a running node.

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;

use ilion_env::{Env as _, RealEnv};
use ilion_server::ReloadReport;
use ilion_server::admin::{AdminClient, read_token};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;
use crate::cli::{
    AdminArguments, CacheArguments, CacheCapacityArguments, CacheKeysArguments, LoginArguments,
    TableArguments,
};

/// A client of the node that the arguments name.
pub fn client(arguments: &AdminArguments) -> Result<AdminClient, Failure> {
    let token = arguments.admin_token_file.as_ref();
    let token = token.map(|path| read_token(&*RealEnv::new(), path));
    let token = token.transpose().map_err(Failure::of)?;
    let address = SocketAddr::new(arguments.admin_address, arguments.admin_port);
    let client = AdminClient::new(address).with_token(token);
    Ok(match login(&arguments.login)? {
        Some((role, password)) => client.with_login(&role, &password),
        None => client,
    })
}

/// Role and password.
fn login(arguments: &LoginArguments) -> Result<Option<(String, String)>, Failure> {
    const FILE_BYTES_MAX: u64 = 1 << 20;
    let Some(role) = &arguments.username else {
        return match arguments.password.is_some() || arguments.password_file.is_some() {
            true => Err(Failure::Usage(
                "a password needs a role (-u, --username)".to_owned(),
            )),
            false => Ok(None),
        };
    };
    let password = match (&arguments.password, &arguments.password_file) {
        (Some(password), _) => password.clone(),
        (None, Some(path)) => {
            let bytes = RealEnv::new()
                .read_all(path, FILE_BYTES_MAX)
                .map_err(Failure::of)?;
            let text = String::from_utf8_lossy(&bytes);
            password_in(&text, role)
                .ok_or_else(|| Failure::Usage(format!("{} has no password of {role}", path.display())))?
        }
        (None, None) => {
            return Err(Failure::Usage(
                "name the password, too (-pwf, --password-file, or -pw, --password)".to_owned(),
            ));
        }
    };
    Ok(Some((role.clone(), password)))
}

/// Compat: nodetool's password file has lines of a role, blanks or tabs, and its password.
fn password_in(text: &str, role: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (known, password) = line.split_once([' ', '\t'])?;
        (known == role).then(|| password.trim().to_owned())
    })
}

/// Requests a report and prints it.
pub fn report<T: DeserializeOwned + Serialize + Display>(
    arguments: &AdminArguments,
    path: &str,
) -> Result<(), Failure> {
    let report: T = client(arguments)?.get(path).map_err(Failure::of)?;
    show(arguments, &report)
}

/// Prints a report: as JSON, or as text.
pub fn show<T: Serialize + Display>(arguments: &AdminArguments, report: &T) -> Result<(), Failure> {
    match arguments.json {
        true => say(&serde_json::to_string_pretty(report).map_err(Failure::of)?),
        false => say(&report.to_string()),
    }
    Ok(())
}

/// Requests an action on tables.
pub fn tables(arguments: &TableArguments, action: &str) -> Result<(), Failure> {
    ask(&arguments.admin, action, &of_tables(arguments), |done| {
        format!("{action}: {} tables done", done["tables"])
    })
}

/// The chosen tables as parameters of [`ask`].
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

/// Flushes everything.
pub fn drain(arguments: &AdminArguments) -> Result<(), Failure> {
    ask(arguments, "drain", &[], |_| "drain: done".to_owned())
}

/// Takes over the settings of the node's file.
pub fn reload(arguments: &AdminArguments) -> Result<(), Failure> {
    let report: ReloadReport = post_report(arguments, "reload", &[])?;
    show(arguments, &report)?;
    match report.needs_restart.is_empty() {
        true => Ok(()),
        false => Err(Failure::Told),
    }
}

/// Requests an action and prints its result: as JSON, or as the text of `told`.
pub fn ask(
    arguments: &AdminArguments,
    action: &str,
    parts: &[(&str, Option<&str>)],
    told: impl Fn(&Value) -> String,
) -> Result<(), Failure> {
    let done = post(arguments, action, parts)?;
    match arguments.json {
        true => say(&done.to_string()),
        false => say(&told(&done)),
    }
    Ok(())
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
    // Whoever reads it may have read enough (`| head`).
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
    use super::password_in;

    #[test]
    fn the_password_of_a_role_is_in_its_line() {
        let text = "# comment\nalice  secret word \nbob\tother\n";
        assert_eq!(password_in(text, "alice").as_deref(), Some("secret word"));
        assert_eq!(password_in(text, "bob").as_deref(), Some("other"));
        assert_eq!(password_in(text, "carol"), None);
    }
}
