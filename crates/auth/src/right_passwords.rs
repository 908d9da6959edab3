//! Recognises passwords that were right before, without the slow hash: clients that all connect at once, for example after a network
//! failure, mostly log in as a few roles.
//!
//! For each password the SHA-256 of a random key of this process, the stored hash and the password is kept. So an entry becomes useless
//! when the password is changed, and outside of this process. A wrong password is hashed slowly each time.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// Maximum number of roles with a digest. When there would be more, all digests are dropped.
const ROLES_MAX: usize = 10_000;

/// Passwords that were right, by role.
pub struct RightPasswords {
    key: [u8; 32],
    digests: HashMap<String, [u8; 32]>,
}

impl RightPasswords {
    /// Starts without passwords. `key` must be random.
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            digests: HashMap::new(),
        }
    }

    /// Whether this password was the last right one, with the same stored hash.
    ///
    /// The comparison need not be constant-time: without the key nobody can choose a digest.
    pub fn contain(&self, role: &str, hash: &str, password: &str) -> bool {
        let known = self.digests.get(role);
        known.is_some_and(|known| *known == self.digest(hash, password))
    }

    /// Remembers the right password of a role.
    pub fn add(&mut self, role: &str, hash: &str, password: &str) {
        if self.digests.len() >= ROLES_MAX {
            self.digests.clear();
        }
        let digest = self.digest(hash, password);
        self.digests.insert(role.to_owned(), digest);
    }

    /// A digest of a stored hash alone: it changes when the password does.
    pub fn stamp(&self, hash: &str) -> [u8; 32] {
        self.digest(hash, "")
    }

    fn digest(&self, hash: &str, password: &str) -> [u8; 32] {
        let mut digest = Sha256::new_with_prefix(self.key);
        // The length keeps hash and password apart.
        digest.update((hash.len() as u64).to_be_bytes());
        digest.update(hash);
        digest.update(password);
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_password_of_the_same_role_and_hash_is_recognised() {
        let mut right = RightPasswords::new([7; 32]);
        assert!(!right.contain("bob", "hash", "secret"));
        right.add("bob", "hash", "secret");
        assert!(right.contain("bob", "hash", "secret"));
        for (role, hash, password) in [
            ("eve", "hash", "secret"),
            ("bob", "hash2", "secret"),
            ("bob", "hash", "secret2"),
            ("bob", "hashs", "ecret"),
            ("bob", "hash", ""),
        ] {
            assert!(!right.contain(role, hash, password), "{role} {hash} {password}");
        }
        right.add("bob", "hash2", "other");
        assert!(!right.contain("bob", "hash", "secret"));
        assert!(right.contain("bob", "hash2", "other"));
    }
}
