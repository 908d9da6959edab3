//! SCRAM (RFC 5802): a login that does not show the password.
//!
//! The client proves that it knows the password, and the broker that it knows the keys derived from it. [`Scram`] has the three messages
//! of the client; `connection` sends them. Passwords are taken as they are: those with letters beyond ASCII must be in the form
//! (SASLprep) that the broker stored.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Rounds of the hash that a broker may ask for: below, the password is too easy to guess; above, the client is kept busy.
const ROUNDS: std::ops::RangeInclusive<u32> = 4096..=100_000;

/// The hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha512,
}

/// A login under way.
pub(crate) struct Scram {
    hash: Hash,
    password: String,
    nonce: String,
    bare: String,
}

/// The last message of a client, and what the broker must answer.
#[derive(Debug)]
pub(crate) struct Proof {
    pub message: String,
    expected: String,
}

impl Scram {
    /// Begins a login. The nonce is random, of printable ASCII without commas.
    pub(crate) fn new(hash: Hash, username: &str, password: &str, nonce: String) -> Self {
        let escaped = username.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={escaped},r={nonce}");
        Self {
            hash,
            password: password.to_owned(),
            nonce,
            bare,
        }
    }

    pub(crate) fn first_message(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Answers the broker's first message; the error says what is wrong with it.
    pub(crate) fn prove(&self, challenge: &str) -> Result<Proof, &'static str> {
        let field = |name: &str| challenge.split(',').find_map(|field| field.strip_prefix(name));
        let nonce = field("r=").ok_or("the broker's challenge has no nonce")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(
                "the broker's nonce does not begin with this client's nonce, or adds nothing to it: its answer is not for this login",
            );
        }
        let salt = field("s=").and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or("the broker's challenge has no salt")?;
        let rounds = field("i=").and_then(|rounds| rounds.parse().ok());
        let rounds = rounds
            .filter(|rounds| ROUNDS.contains(rounds))
            .and_then(NonZeroU32::new)
            .ok_or(
                "the broker asks for a number of rounds of the hash that is not between 4096 and 100000",
            )?;
        let salted = self.salted(&salt, rounds);
        let without_proof = format!("c=biws,r={nonce}");
        let whole = format!("{},{challenge},{without_proof}", self.bare);
        let key = self.sign(&salted, b"Client Key");
        let signature = self.sign(self.digest(&key).as_ref(), whole.as_bytes());
        let proof: Vec<u8> = key
            .iter()
            .zip(&signature)
            .map(|(key, signature)| key ^ signature)
            .collect();
        let server_key = self.sign(&salted, b"Server Key");
        Ok(Proof {
            message: format!("{without_proof},p={}", STANDARD.encode(proof)),
            expected: format!("v={}", STANDARD.encode(self.sign(&server_key, whole.as_bytes()))),
        })
    }

    fn salted(&self, salt: &[u8], rounds: NonZeroU32) -> Vec<u8> {
        let (algorithm, bytes) = match self.hash {
            Hash::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
            Hash::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, 64),
        };
        let mut salted = vec![0; bytes];
        pbkdf2::derive(algorithm, rounds, salt, self.password.as_bytes(), &mut salted);
        salted
    }

    fn sign(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let algorithm = match self.hash {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), message)
            .as_ref()
            .to_vec()
    }

    fn digest(&self, bytes: &[u8]) -> digest::Digest {
        digest::digest(
            match self.hash {
                Hash::Sha256 => &digest::SHA256,
                Hash::Sha512 => &digest::SHA512,
            },
            bytes,
        )
    }
}

impl Proof {
    /// Whether the broker's last message shows that it knows the password, too.
    pub(crate) fn is_confirmed_by(&self, last: &str) -> bool {
        last.split(',').next() == Some(&self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn the_exchange_is_that_of_the_standard() {
        let login = Scram::new(Hash::Sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO".to_owned());
        assert_eq!(login.first_message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge =
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let proof = login.prove(challenge).unwrap();
        assert_eq!(
            proof.message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert!(proof.is_confirmed_by("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!proof.is_confirmed_by("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="));
        assert!(!proof.is_confirmed_by("e=invalid-proof"));
    }

    #[test]
    fn wrong_challenges_are_refused() {
        let login = Scram::new(Hash::Sha512, "a=b,c", "p", "abc".to_owned());
        assert_eq!(login.first_message(), "n,,n=a=3Db=2Cc,r=abc");
        for (challenge, problem) in [
            ("s=YQ==,i=4096", "no nonce"),
            ("r=abc,s=YQ==,i=4096", "does not begin with"),
            ("r=xyzabc,s=YQ==,i=4096", "does not begin with"),
            ("r=abcd,i=4096", "no salt"),
            ("r=abcd,s=YQ==", "rounds"),
            ("r=abcd,s=YQ==,i=1", "rounds"),
            ("r=abcd,s=YQ==,i=4000000000", "rounds"),
        ] {
            let refused = login.prove(challenge).unwrap_err();
            assert!(refused.contains(problem), "{challenge}: {refused}");
        }
    }
}
