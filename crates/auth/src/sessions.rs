//! Sessions of roles that have logged in at the HTTP port: logins by random key.
//!
//! A session ends `IDLE_MAX` after its last use, and `LIFE_MAX` after its login at the latest. Keys are kept as SHA-256, so that the
//! time of a search reveals no part of them. A role with `OF_ROLE_MAX` sessions loses its oldest one with the next.
//!
//! Pure: times are given by the caller, as nanoseconds of a clock that never steps back; so are the keys.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// A session ends when it was not used for this time.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// A session ends this long after its login.
const LIFE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of sessions of a role.
const OF_ROLE_MAX: usize = 32;
/// Maximum number of sessions of all roles together. Beyond it, the session that was not used for the longest time ends.
const ALL_MAX: usize = 1024;

struct Session<T> {
    role: String,
    login: T,
    began_nanos: u64,
    used_nanos: u64,
}

/// Sessions, each with a login of type `T`.
pub struct Sessions<T> {
    by_digest: HashMap<[u8; 32], Session<T>>,
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self {
            by_digest: HashMap::new(),
        }
    }
}

impl<T> Sessions<T> {
    /// Begins a session. The key must be random, of at least 128 bits.
    pub fn begin(&mut self, key: &str, role: &str, login: T, now_nanos: u64) {
        self.by_digest.retain(|_, session| session.is_open(now_nanos));
        let of_role = || self.by_digest.iter().filter(|(_, session)| session.role == role);
        let excess = if of_role().count() >= OF_ROLE_MAX {
            of_role().min_by_key(|(_, session)| session.began_nanos)
        } else if self.by_digest.len() >= ALL_MAX {
            self.by_digest
                .iter()
                .min_by_key(|(_, session)| session.used_nanos)
        } else {
            None
        };
        if let Some(digest) = excess.map(|(digest, _)| *digest) {
            self.by_digest.remove(&digest);
        }
        let session = Session {
            role: role.to_owned(),
            login,
            began_nanos: now_nanos,
            used_nanos: now_nanos,
        };
        self.by_digest.insert(digest_of(key), session);
    }

    /// The login of a session, which counts as used now; `None` if the key is unknown or the session has ended.
    pub fn use_now(&mut self, key: &str, now_nanos: u64) -> Option<&T> {
        let digest = digest_of(key);
        if !self.by_digest.get(&digest)?.is_open(now_nanos) {
            self.by_digest.remove(&digest);
            return None;
        }
        let session = self.by_digest.get_mut(&digest)?;
        session.used_nanos = now_nanos;
        Some(&session.login)
    }

    /// Ends a session.
    pub fn end(&mut self, key: &str) {
        self.by_digest.remove(&digest_of(key));
    }
}

impl<T> Session<T> {
    fn is_open(&self, now_nanos: u64) -> bool {
        let within =
            |since: u64, bound: Duration| u128::from(now_nanos.saturating_sub(since)) < bound.as_nanos();
        within(self.used_nanos, IDLE_MAX) && within(self.began_nanos, LIFE_MAX)
    }
}

fn digest_of(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn a_session_ends_when_it_is_not_used_and_in_any_case_after_its_life() {
        let mut sessions = Sessions::default();
        sessions.begin("a", "bob", 1, 0);
        assert_eq!(sessions.use_now("b", 0), None);
        assert_eq!(sessions.use_now("a", 29 * MINUTE), Some(&1));
        assert_eq!(sessions.use_now("a", 58 * MINUTE), Some(&1));
        assert_eq!(sessions.use_now("a", 88 * MINUTE), None);
        assert_eq!(sessions.use_now("a", 88 * MINUTE), None);
        sessions.begin("a", "bob", 1, 0);
        for minute in (0..720).step_by(20) {
            assert_eq!(sessions.use_now("a", minute * MINUTE), Some(&1), "{minute}");
        }
        assert_eq!(sessions.use_now("a", 720 * MINUTE), None);
    }

    #[test]
    fn a_session_can_be_ended() {
        let mut sessions = Sessions::default();
        sessions.begin("a", "bob", 1, 0);
        sessions.end("a");
        assert_eq!(sessions.use_now("a", 0), None);
    }

    #[test]
    fn sessions_are_bounded_for_each_role_and_for_all() {
        let mut sessions = Sessions::default();
        sessions.begin("root", "root", 0, 0);
        for index in 0..OF_ROLE_MAX as u64 + 1 {
            sessions.begin(&format!("bob {index}"), "bob", 1, 1 + index);
        }
        assert_eq!(sessions.use_now("bob 0", 100), None);
        assert_eq!(sessions.use_now("bob 1", 100), Some(&1));
        assert_eq!(sessions.use_now("root", 100), Some(&0));
        for index in 0..2 * ALL_MAX as u64 {
            sessions.begin(&format!("key {index}"), &format!("role {index}"), 2, 200 + index);
        }
        assert_eq!(sessions.by_digest.len(), ALL_MAX);
    }
}
