//! The words of Cassandra's nodetool: `ilion nodetool VERB ...`, and the program under the name `nodetool`, are other names for the
//! commands of `ilion`. Verbs without such a command are refused by name.
//!
//! Pure: arguments become arguments.

use std::ffi::OsString;
use std::path::Path;

/// A verb of nodetool, and the command with its first arguments.
const VERBS: [(&str, &[&str]); 43] = [
    ("cfhistograms", &["table-histograms"]),
    ("cfstats", &["table-stats"]),
    ("clearsnapshot", &["clear-snapshot"]),
    ("clientstats", &["clients"]),
    ("compact", &["compact"]),
    ("compactionhistory", &["compaction-history"]),
    ("compactionstats", &["compactions"]),
    ("datapaths", &["data-paths"]),
    ("disableauditlog", &["audit-log", "off"]),
    ("disableautocompaction", &["autocompaction", "off"]),
    ("disablebackup", &["backup", "off"]),
    ("drain", &["drain"]),
    ("enableauditlog", &["audit-log", "on"]),
    ("enableautocompaction", &["autocompaction", "on"]),
    ("enablebackup", &["backup", "on"]),
    ("flush", &["flush"]),
    ("getauditlog", &["audit-log"]),
    ("getsstables", &["get-sstables"]),
    ("gettraceprobability", &["trace-probability"]),
    ("help", &["help"]),
    ("import", &["sstable", "import"]),
    ("info", &["info"]),
    ("invalidatecidrpermissionscache", &["invalidate-caches", "roles"]),
    ("invalidatecountercache", &["invalidate-caches", "counters"]),
    ("invalidatecredentialscache", &["invalidate-caches", "roles"]),
    ("invalidatekeycache", &["invalidate-caches", "keys"]),
    (
        "invalidatenetworkpermissionscache",
        &["invalidate-caches", "roles"],
    ),
    ("invalidatepermissionscache", &["invalidate-caches", "roles"]),
    ("invalidaterolescache", &["invalidate-caches", "roles"]),
    ("invalidaterowcache", &["invalidate-caches", "rows"]),
    ("listsnapshots", &["list-snapshots"]),
    ("rebuild_index", &["index", "rebuild"]),
    ("reloadcidrgroupscache", &["invalidate-caches", "roles"]),
    ("setcompactionthroughput", &["compaction-throughput"]),
    ("settraceprobability", &["trace-probability"]),
    ("snapshot", &["snapshot"]),
    ("status", &["status"]),
    ("statusbackup", &["backup"]),
    ("stop", &["stop"]),
    ("tablehistograms", &["table-histograms"]),
    ("tablestats", &["table-stats"]),
    ("tpstats", &["thread-pools"]),
    ("version", &["--version"]),
];

/// Options of nodetool that are spelled otherwise: with one dash and several letters, or by another name.
const OPTIONS: [(&str, &str, &[&str]); 12] = [
    ("-kt", "--kt-list", &["snapshot"]),
    ("-kc", "--kt-list", &["snapshot"]),
    ("-sf", "--skip-flush", &["snapshot"]),
    ("-cf", "--table", &["snapshot"]),
    ("-nt", "--no-ttl", &["list-snapshots"]),
    ("-c", "--copy-data", &["sstable"]),
    ("-id", "--id", &["stop"]),
    ("--compaction-id", "--id", &["stop"]),
    ("-s", "--split-output", &["compact"]),
    ("-st", "--start-token", &["compact"]),
    ("-et", "--end-token", &["compact"]),
    ("-hf", "--hex-format", &["get-sstables"]),
];

/// The arguments for `ilion`, with the name of the program first.
///
/// # Errors
/// The verb is not one of nodetool, or there is no command for it.
pub fn own_arguments(given: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let mut given: Vec<OsString> = given.collect();
    let is_named_so = given
        .first()
        .map(Path::new)
        .and_then(Path::file_stem)
        .is_some_and(|name| name == "nodetool");
    if is_named_so {
        return of_nodetool(&given[1..]);
    }
    if given.get(1).is_some_and(|verb| verb == "nodetool") {
        return of_nodetool(&given[2..]);
    }
    if let Some(verb) = given.get(1).and_then(|verb| verb.to_str()).map(own_name) {
        let verb = verb.to_owned();
        given
            .iter_mut()
            .skip(2)
            .for_each(|argument| *argument = own_option(&verb, argument));
    }
    Ok(given)
}

/// The first word of the command that has this alias.
fn own_name(verb: &str) -> &str {
    match verb {
        "listsnapshots" => "list-snapshots",
        "clearsnapshot" => "clear-snapshot",
        verb => verb,
    }
}

fn own_option(command: &str, argument: &OsString) -> OsString {
    let option = OPTIONS
        .iter()
        .find(|(option, _, commands)| argument == option && commands.contains(&command));
    option.map_or_else(|| argument.clone(), |(_, own, _)| OsString::from(own))
}

/// nodetool has the address of the node in front of the verb.
fn of_nodetool(given: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut place: Vec<OsString> = Vec::new();
    let mut rest = given.iter();
    let verb = loop {
        let Some(word) = rest.next() else {
            break "help".to_owned();
        };
        let word = word.to_string_lossy().into_owned();
        let option = match &*word {
            "-h" | "--host" => "--admin-address",
            "-p" | "--port" => "--admin-port",
            "-u" | "--username" => "--username",
            "-pw" | "--password" => "--password",
            "-pwf" | "--password-file" => "--password-file",
            _ if word.starts_with('-') => {
                return Err(format!(
                    "nodetool's option {word} is not known here: -h and -p name the node's admin_address and admin_port; -u, -pw and -pwf a \
                     role and its password"
                ));
            }
            _ => break word,
        };
        place.push(option.into());
        place.extend(rest.next().cloned());
    };
    let known = VERBS.iter().find(|(name, _)| *name == verb);
    let Some((_, command)) = known else {
        let names: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "nodetool {verb} is not built; these are: {}",
            names.join(", ")
        ));
    };
    let mut all: Vec<OsString> = ["ilion"].iter().chain(*command).map(OsString::from).collect();
    all.extend(rest.map(|argument| own_option(command[0], argument)));
    // These ask no node.
    if !["help", "version"].contains(&&*verb) {
        all.extend(place);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(given: &str) -> Result<String, String> {
        let words = given.split(' ').map(OsString::from);
        let all = own_arguments(words)?;
        Ok(all
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn words_of_nodetool_become_those_of_ilion() {
        for (given, expected) in [
            ("ilion snapshot -t x ks", "ilion snapshot -t x ks"),
            (
                "ilion snapshot -kt ks.t -sf",
                "ilion snapshot --kt-list ks.t --skip-flush",
            ),
            ("ilion listsnapshots -nt", "ilion listsnapshots --no-ttl"),
            ("ilion flush -kt", "ilion flush -kt"),
            ("ilion nodetool clearsnapshot --all", "ilion clear-snapshot --all"),
            (
                "/usr/bin/nodetool -p 9043 tablestats ks t",
                "ilion table-stats ks t --admin-port 9043",
            ),
            (
                "nodetool -h 127.0.0.1 disableautocompaction ks",
                "ilion autocompaction off ks --admin-address 127.0.0.1",
            ),
            (
                "nodetool import -c ks t /dir",
                "ilion sstable import --copy-data ks t /dir",
            ),
            (
                "nodetool -u bob -pw secret status",
                "ilion status --username bob --password secret",
            ),
            (
                "nodetool -u bob -pwf /file -h 127.0.0.1 drain",
                "ilion drain --username bob --password-file /file --admin-address 127.0.0.1",
            ),
            ("nodetool", "ilion help"),
            ("nodetool -p 9043 version", "ilion --version"),
        ] {
            assert_eq!(own(given).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn a_verb_without_a_command_is_refused_by_name() {
        let refused = own("ilion nodetool repair ks").unwrap_err();
        assert!(
            refused.starts_with("nodetool repair is not built; these are: cfhistograms, "),
            "{refused}"
        );
        assert!(
            own("nodetool --ssl status")
                .unwrap_err()
                .contains("option --ssl is not known")
        );
        assert!(VERBS.is_sorted_by_key(|(name, _)| *name));
    }
}
