//! Hashes of passwords: bcrypt, as Cassandra stores them in `system_auth.roles.salted_hash`.
//!
//! ```text
//! hash := "$2a$" cost "$" salt of 22 letters, digest of 31 letters
//! ```
//!
//! `$2b$` and `$2y$` mean the same and are accepted. Compat: only the first 72 bytes of a password count.

use bcrypt::{HashParts, Version, hash_with_salt, verify};

/// The bounds of the cost. Compat: `cassandra.auth_bcrypt_gensalt_log2_rounds`.
pub const COST_RANGE: std::ops::RangeInclusive<u32> = 4..=31;
/// The largest cost of a hash in a statement: one check then takes about a minute.
pub const GIVEN_COST_MAX: u32 = 20;
/// Bytes of a password that count.
pub const BYTES_COUNTED: usize = 72;
/// Length of a hash.
const HASH_LEN: usize = 60;

/// Hashes a password with a cost (2^cost rounds) and 16 random bytes. `None` if the cost is out of bounds.
pub fn hash(password: &str, cost: u32, salt: [u8; 16]) -> Option<String> {
    let hashed = hash_with_salt(password.as_bytes(), cost, salt).ok()?;
    Some(hashed.format_for_version(Version::TwoA))
}

/// Whether the password has this hash; false if the hash is invalid.
pub fn check(password: &str, hash: &str) -> bool {
    is_hash(hash) && verify(password.as_bytes(), hash).unwrap_or(false)
}

/// The cost of a hash; `None` if the text is no hash.
pub fn cost_of(hash: &str) -> Option<u32> {
    let parts: HashParts = is_hash(hash).then(|| hash.parse().ok())??;
    COST_RANGE.contains(&parts.get_cost()).then_some(parts.get_cost())
}

fn is_hash(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_known = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    is_known && bytes.len() == HASH_LEN && text.is_ascii() && bytes[4..6].iter().all(u8::is_ascii_digit)
}

/// A random password of 24 letters and digits (142 bits), from 24 random bytes.
pub fn of_random_bytes(random: [u8; 24]) -> String {
    // 64 letters, so that each byte selects one without bias; none needs quotes in CQL, YAML or a shell.
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let letter = |byte: u8| char::from(LETTERS[usize::from(byte % 64)]);
    let password: String = random.map(letter).iter().collect();
    // Programs would take a leading `-` for an option.
    password.replacen('-', "x", usize::from(password.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of jBCrypt, which Cassandra uses.
    #[test]
    fn hashes_of_cassandra_are_checked() {
        let vectors = [
            ("", "$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s."),
            (
                "a",
                "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe",
            ),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "$2a$06$.rCVZVOThsIa97pEDOxvGuRRgzG64bvtJ0938xuqzv18d3ZpQhstC",
            ),
        ];
        for (password, hash) in vectors {
            assert!(check(password, hash), "{password}");
            assert!(!check("wrong", hash));
            for version in ["$2b$", "$2y$"] {
                assert!(check(password, &hash.replacen("$2a$", version, 1)));
            }
        }
    }

    #[test]
    fn a_hash_fits_its_password_only() {
        let made = hash("sec\u{e9}ret", 4, [7; 16]).unwrap();
        assert!(made.starts_with("$2a$04$"));
        assert_eq!(cost_of(&made), Some(4));
        assert!(check("sec\u{e9}ret", &made));
        assert!(!check("secret", &made));
        assert_ne!(made, hash("sec\u{e9}ret", 4, [8; 16]).unwrap());
        assert_eq!(hash("x", 3, [0; 16]), None);
        assert_eq!(hash("x", 32, [0; 16]), None);
    }

    #[test]
    fn what_is_no_hash_is_never_the_hash_of_a_password() {
        let good = hash("x", 4, [1; 16]).unwrap();
        let wrong = [
            String::new(),
            "x".to_owned(),
            good[..59].to_owned(),
            format!("{good}a"),
            good.replacen("$2a$", "$2x$", 1),
            good.replacen("$04$", "$99$", 1),
            good.replacen("$04$", "$+4$", 1),
            good.replacen("$04$", "$0\u{e9}", 1),
            "$".repeat(60),
        ];
        for hash in wrong {
            assert!(!check("x", &hash), "{hash}");
            assert_eq!(cost_of(&hash), None, "{hash}");
        }
    }

    #[test]
    fn a_random_password_needs_no_quotes() {
        let mut random = [0; 24];
        random
            .iter_mut()
            .enumerate()
            .for_each(|(at, byte)| *byte = 62 + 3 * at as u8);
        let password = of_random_bytes(random);
        assert_eq!(password.len(), 24);
        assert!(password.starts_with('x'));
        assert!(
            password
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }
}
