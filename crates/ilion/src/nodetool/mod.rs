//! Cassandra's nodetool: `ilion nodetool VERB ...`, or this program under the name `nodetool`.
//!
//! Verbs, options, output and exit codes are those of Cassandra 5.0, as far as they make sense for Ilion, so that scripts still work.
//! `verbs` lists all of them: some are other names for commands of `ilion`, some are implemented here, some are refused with the reason.
//!
//! | module | what |
//! | --- | --- |
//! | `verbs` | the table of verbs, by theme; the document is made from it |
//! | `shape`, `call` | what the arguments of a verb look like; those that were given |
//! | `node`, `ring` | the node and its place in the ring |
//! | `cluster` | the members of a cluster |
//! | `layout` | columns of both |
//! | `tables`, `files` | statistics of tables; actions on their files |
//! | `settings`, `guardrails`, `cidr` | getters and setters |

mod call;
mod cidr;
mod cluster;
#[cfg(test)]
mod document;
mod files;
mod guardrails;
mod layout;
mod node;
mod ring;
mod settings;
mod shape;
mod tables;
mod verbs;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::Failure;
use call::Call;
pub use cluster::{letters_of, ownership};
pub use ring::ring_text;
use verbs::{Act, VERBS};

/// What the arguments of the program ask for.
pub enum Route {
    /// A command of `ilion`; the first argument is the name of the program.
    Ilion(Vec<OsString>),
    /// The command of `ilion` for which a verb of nodetool is another name.
    Alias(Vec<OsString>),
    /// A verb of nodetool that is implemented here.
    Verb(fn(&Call) -> Result<(), Failure>, Call),
    /// Text to print: the list of verbs, or the usage of one.
    Help(String),
}

/// Options that nodetool spells differently: its spelling, that of `ilion`, and the commands that have the option.
const OPTIONS: [(&str, &str, &[&str]); 8] = [
    ("-kt", "--kt-list", &["snapshot"]),
    ("-kc", "--kt-list", &["snapshot"]),
    ("-sf", "--skip-flush", &["snapshot"]),
    ("-cf", "--table", &["snapshot"]),
    ("-nt", "--no-ttl", &["list-snapshots"]),
    ("-c", "--copy-data", &["sstable"]),
    ("-id", "--id", &["stop"]),
    ("--compaction-id", "--id", &["stop"]),
];

/// Decides what the arguments ask for. A program that is called `cqlsh` is `ilion cql`. Pure.
///
/// # Errors
/// The verb is not one of nodetool, is refused, or has other arguments.
pub fn route(given: impl Iterator<Item = OsString>) -> Result<Route, Failure> {
    let mut given: Vec<OsString> = given.collect();
    let name = given.first().map(Path::new).and_then(Path::file_stem);
    match name.and_then(OsStr::to_str) {
        Some("nodetool") => return of_nodetool(&given[1..]),
        Some("cqlsh") => given.insert(1, "cql".into()),
        _ => {}
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
    Ok(Route::Ilion(given))
}

/// The name of the command for which `verb` is an alias, else `verb` itself.
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

fn of_nodetool(given: &[OsString]) -> Result<Route, Failure> {
    let words: Option<Vec<String>> = given
        .iter()
        .map(|word| word.to_str().map(str::to_owned))
        .collect();
    let words = words.ok_or_else(|| Failure::nodetool("an argument is not UTF-8"))?;
    let (place, words) = call::take_connect_options(words)?;
    let Some((verb, rest)) = words.split_first() else {
        return Ok(Route::Help(verbs::list()));
    };
    if verb == "help" {
        return Ok(Route::Help(match rest.first() {
            None => verbs::list(),
            Some(verb) => find(verb)?.help(),
        }));
    }
    let known = find(verb)?;
    match known.act {
        Act::Own(run) => Ok(Route::Verb(run, Call::parse(known.shape(), place, rest)?)),
        Act::Is(command) => {
            let mut all: Vec<OsString> = ["ilion"].iter().chain(command).map(OsString::from).collect();
            all.extend(
                rest.iter()
                    .map(|word| own_option(command[0], &OsString::from(word))),
            );
            all.extend(place.arguments().into_iter().map(OsString::from));
            Ok(Route::Alias(all))
        }
        Act::Refused(reason) => Err(Failure::nodetool(format!("{verb} means nothing here: {reason}"))),
    }
}

fn find(verb: &str) -> Result<&'static verbs::Verb, Failure> {
    // Compat: Cassandra's message for an unknown verb.
    let unknown = || Failure::nodetool(format!("Found unexpected parameters: [{verb}]"));
    VERBS.iter().find(|known| known.name == verb).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(given: &str) -> impl Iterator<Item = OsString> {
        given.split(' ').map(OsString::from)
    }

    fn own(given: &str) -> String {
        match route(words(given)) {
            Ok(Route::Ilion(all) | Route::Alias(all)) => {
                let all: Vec<_> = all.iter().map(|word| word.to_string_lossy()).collect();
                all.join(" ")
            }
            Ok(Route::Verb(_, call)) => call.to_string(),
            Ok(Route::Help(text)) => text.lines().next().unwrap_or_default().to_owned(),
            Err(failure) => failure.to_string(),
        }
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
                "nodetool import -c ks t /dir",
                "ilion sstable import --copy-data ks t /dir",
            ),
            (
                "nodetool listsnapshots -h 127.0.0.1 -u me -pwf /f",
                "ilion list-snapshots --admin-address 127.0.0.1 --username me --password-file /f",
            ),
        ] {
            assert_eq!(own(given), expected, "{given}");
        }
    }

    #[test]
    fn the_place_of_the_node_comes_before_or_after_the_verb() {
        for given in [
            "/usr/bin/nodetool -p 9100 -H tablestats ks.t",
            "nodetool tablestats -H ks.t -p 9100",
            "nodetool tablestats --human-readable --port=9100 ks.t",
        ] {
            let expected = match given.contains("-p 9100 -H") {
                // An option of a verb stands behind it.
                true => "Found unexpected parameters: [-H]",
                false => "tablestats --human-readable ks.t at 127.0.0.1:9100",
            };
            assert_eq!(own(given), expected, "{given}");
        }
    }

    #[test]
    fn what_is_no_verb_or_has_wrong_arguments_is_refused_with_cassandras_words() {
        for (given, expected) in [
            ("nodetool nosuch", "Found unexpected parameters: [nosuch]"),
            ("nodetool clientstats --nosuch", "ilion clients --nosuch"),
            (
                "nodetool compactionstats --nosuch",
                "Found unexpected parameters: [--nosuch]",
            ),
            (
                "nodetool setcompactionthroughput",
                "Required parameters are missing: compaction_throughput",
            ),
            ("nodetool statusbinary x", "Found unexpected parameters: [x]"),
            (
                "nodetool assassinate",
                "assassinate means nothing here: a lost node is taken out by removenode, which copies its data from others",
            ),
        ] {
            assert_eq!(own(given), expected, "{given}");
        }
    }

    #[test]
    fn every_verb_of_cassandra_is_there_once() {
        let listed = include_str!("../../testdata/nodetool-5.0.9.txt");
        let known: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        assert!(known.is_sorted());
        let missing: Vec<&str> = listed.lines().filter(|verb| !known.contains(verb)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // The old names of tablestats and tablehistograms are hidden there.
        let listed: Vec<&str> = listed.lines().collect();
        let more: Vec<&str> = known.into_iter().filter(|verb| !listed.contains(verb)).collect();
        assert_eq!(more, ["cfhistograms", "cfstats"]);
    }
}
