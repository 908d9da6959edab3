//! Fault rules and their syntax.
//!
//! ```text
//! rule      := effect operation pattern [when]
//! effect    := "fail" | "no_space" | "no_descriptors" | "no_memory" | "short_write"
//!            | "full_midway" | "bit_flip" | "wait" | "delay" MILLIS
//! operation := "open" | "create" | "read" | "write" | "sync" | "sync_dir" | "rename" | "link" | "remove"
//!            | "list" | "lock" | "preallocate" | "any"
//! pattern   := '"' with * and ? '"'      matched with the file's name, or with the whole path if it has a '/'
//! when      := "at" N | "from" N ["to" N]      the first call that matches is 1; without `when`, every call
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a rule does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// EIO; the operation is not executed.
    Fail,
    /// ENOSPC; the operation is not executed.
    NoSpace,
    /// EMFILE; the operation is not executed. Applies only to calls that need a new descriptor, and counts only these.
    NoDescriptors,
    /// ENOMEM; the operation is not executed.
    NoMemory,
    /// The first half is written, then EIO.
    ShortWrite,
    /// The first half is written, then ENOSPC.
    FullMidway,
    /// Changes one bit of the bytes that are read or written; returns no error.
    BitFlip,
    /// Acts as if the file's bytes were not in memory: requests that can be parked are parked ([`crate::parking`]). Affects every call.
    Wait,
    /// Sleeps, then executes the operation.
    Delay {
        /// Duration.
        millis: u64,
    },
}

/// The operations that rules distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening a file that exists.
    Open,
    /// Creating a file or directory.
    Create,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Syncing a file.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Renaming; the path is the old one.
    Rename,
    /// Hard linking; the path is the new one.
    Link,
    /// Removing a file or directory.
    Remove,
    /// Listing a directory.
    List,
    /// Locking.
    Lock,
    /// Reserving space.
    Preallocate,
}

impl Operation {
    fn needs_descriptor(self) -> bool {
        use Operation::{Create, List, Lock, Open, SyncDir};
        matches!(self, Open | Create | SyncDir | List | Lock)
    }
}

const OPERATIONS: [(&str, Operation); 12] = [
    ("open", Operation::Open),
    ("create", Operation::Create),
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("sync", Operation::Sync),
    ("sync_dir", Operation::SyncDir),
    ("rename", Operation::Rename),
    ("link", Operation::Link),
    ("remove", Operation::Remove),
    ("list", Operation::List),
    ("lock", Operation::Lock),
    ("preallocate", Operation::Preallocate),
];

/// The text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a fault rule: `{text}`: {reason}")]
pub struct RuleError {
    /// The given text.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// One fault: which calls it matches, which of these it affects, and how.
#[derive(Debug)]
pub struct Rule {
    effect: Effect,
    /// `None` matches every operation.
    operation: Option<Operation>,
    pattern: String,
    first: u64,
    last: u64,
    matched: AtomicU64,
}

impl Rule {
    /// Parses a rule such as `fail write "*-Index.db" at 3`; see the grammar at the top of this file.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let fail = |reason| RuleError {
            text: text.to_owned(),
            reason,
        };
        let mut parts = text.splitn(3, '"');
        let (Some(head), Some(pattern), Some(tail)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(fail("the pattern must stand in double quotes"));
        };
        let head: Vec<&str> = head.split_whitespace().collect();
        let (effect, operation) = match *head.as_slice() {
            ["delay", millis, operation] => {
                let millis = millis
                    .parse()
                    .map_err(|_| fail("delay needs a number of milliseconds"))?;
                (Effect::Delay { millis }, operation)
            }
            [effect, operation] => (
                parse_effect(effect).ok_or_else(|| fail("unknown effect"))?,
                operation,
            ),
            _ => {
                return Err(fail(
                    "expected: effect operation \"pattern\" [at N | from N [to N]]",
                ));
            }
        };
        let operation = parse_operation(operation).ok_or_else(|| fail("unknown operation"))?;
        let (first, last) =
            parse_when(tail).ok_or_else(|| fail("expected `at N` or `from N [to N]` after the pattern"))?;
        if effect == Effect::Wait && !tail.trim().is_empty() {
            return Err(fail("wait concerns every call"));
        }
        Ok(Self {
            effect,
            operation,
            pattern: pattern.to_owned(),
            first,
            last,
            matched: AtomicU64::new(0),
        })
    }

    /// Whether reads of the file wait for the disk.
    pub(super) fn makes_wait(&self, path: &Path) -> bool {
        let is_read = self.operation.is_none_or(|wanted| wanted == Operation::Read);
        self.effect == Effect::Wait && is_read && path_matches(&self.pattern, path)
    }

    /// Counts the call if it matches, and returns the effect if the call is affected.
    pub(super) fn hit(&self, operation: Operation, path: &Path) -> Option<Effect> {
        if self.operation.is_some_and(|wanted| wanted != operation) || !path_matches(&self.pattern, path) {
            return None;
        }
        if self.effect == Effect::Wait {
            return None;
        }
        if self.effect == Effect::NoDescriptors && !operation.needs_descriptor() {
            return None;
        }
        let number = self.matched.fetch_add(1, Relaxed) + 1;
        (self.first..=self.last).contains(&number).then_some(self.effect)
    }
}

fn parse_effect(text: &str) -> Option<Effect> {
    match text {
        "fail" => Some(Effect::Fail),
        "no_space" => Some(Effect::NoSpace),
        "no_descriptors" => Some(Effect::NoDescriptors),
        "no_memory" => Some(Effect::NoMemory),
        "short_write" => Some(Effect::ShortWrite),
        "full_midway" => Some(Effect::FullMidway),
        "bit_flip" => Some(Effect::BitFlip),
        "wait" => Some(Effect::Wait),
        _ => None,
    }
}

fn parse_operation(text: &str) -> Option<Option<Operation>> {
    if text == "any" {
        return Some(None);
    }
    OPERATIONS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, operation)| Some(*operation))
}

fn parse_when(text: &str) -> Option<(u64, u64)> {
    match *text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => Some((1, u64::MAX)),
        ["at", number] => number.parse().ok().map(|number| (number, number)),
        ["from", number] => number.parse().ok().map(|number| (number, u64::MAX)),
        ["from", first, "to", last] => Some((first.parse().ok()?, last.parse().ok()?)),
        _ => None,
    }
}

fn path_matches(pattern: &str, path: &Path) -> bool {
    let text = path.to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let subject = if pattern.contains('/') { text } else { name };
    glob_matches(pattern.as_bytes(), subject.as_bytes())
}

/// Greedy matching that backtracks only to the last star.
fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut pos) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while pos < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, pos));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[pos] => {
                at += 1;
                pos += 1;
            }
            _ => match star {
                Some((star_at, star_pos)) => {
                    star = Some((star_at, star_pos + 1));
                    at = star_at + 1;
                    pos = star_pos + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Effect, Operation, Rule, glob_matches};

    #[test]
    fn a_rule_bends_the_call_it_names_and_no_other() {
        let rule = Rule::parse("fail write \"*-Index.db\" at 2").unwrap();
        let index = Path::new("data/ks/nb-1-big-Index.db");
        assert_eq!(rule.hit(Operation::Write, index), None);
        assert_eq!(rule.hit(Operation::Sync, index), None);
        assert_eq!(rule.hit(Operation::Write, Path::new("nb-1-big-Data.db")), None);
        assert_eq!(rule.hit(Operation::Write, index), Some(Effect::Fail));
        assert_eq!(rule.hit(Operation::Write, index), None);
    }

    #[test]
    fn what_a_rule_uses_up_comes_back() {
        let rule = Rule::parse("no_descriptors open \"*\" from 2 to 3").unwrap();
        let hits: Vec<bool> = (0..4)
            .map(|_| rule.hit(Operation::Open, Path::new("f")).is_some())
            .collect();
        assert_eq!(hits, [false, true, true, false]);
    }

    #[test]
    fn rules_read_their_own_grammar_and_refuse_the_rest() {
        assert!(Rule::parse("delay 5 any \"*\"").is_ok());
        assert!(Rule::parse("no_space preallocate \"a/*\" from 3").is_ok());
        for wrong in [
            "",
            "fail",
            "fail write *",
            "fail write \"x\" at",
            "explode read \"x\"",
            "fail fly \"x\"",
        ] {
            assert!(Rule::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn globs_match_as_shells_do() {
        let matches = |pattern: &str, text: &str| glob_matches(pattern.as_bytes(), text.as_bytes());
        assert!(matches("*-Data.db", "nb-1-big-Data.db"));
        assert!(matches("a*b*c", "aXbYbZc"));
        assert!(matches("a?c*", "abc"));
        assert!(!matches("a?c", "abcd"));
        assert!(!matches("*-Data.db", "nb-1-big-Data.db2"));
    }
}
