//! `mask_hash`: the digest of a value.
//!
//! Compat: `HashMaskingFunction` of Cassandra 5.0, which takes the algorithms of Java by their names. Ilion lacks MD2 and the
//! family of SHA-3.

use bytes::Bytes;
use ilion_types::CqlType;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

use super::super::ScalarFunction;
use super::super::lookup::Lookup;
use super::{check_count, first, untyped};
use crate::Error;

/// The function for the type of its first argument, with or without the name of an algorithm.
pub(super) fn make(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    check_count(lookup, 1..=2)?;
    let masked = lookup.arguments[0].known_type(lookup.context);
    let masked = masked.ok_or_else(|| untyped(lookup))?;
    let types = [masked, CqlType::Text].into_iter().take(lookup.arguments.len());
    Ok(ScalarFunction::new(
        lookup.name,
        types,
        CqlType::Blob,
        |arguments, _| {
            let Some(value) = first(arguments) else {
                return Ok(None);
            };
            let algorithm = match arguments.get(1) {
                Some(Some(name)) => String::from_utf8_lossy(name),
                _ => "SHA-256".into(),
            };
            match digest(&algorithm, value) {
                Some(digest) => Ok(Some(digest.into())),
                None => Err(Error::Invalid(format!("Hash algorithm not found: {algorithm}"))),
            }
        },
    ))
}

/// The digest of a value; `None` if the algorithm is not known.
fn digest(algorithm: &str, value: &Bytes) -> Option<Vec<u8>> {
    let digest = match algorithm.to_ascii_uppercase().as_str() {
        "MD5" => of::<Md5>,
        "SHA" | "SHA1" | "SHA-1" => of::<Sha1>,
        "SHA224" | "SHA-224" => of::<Sha224>,
        "SHA256" | "SHA-256" => of::<Sha256>,
        "SHA384" | "SHA-384" => of::<Sha384>,
        "SHA512" | "SHA-512" => of::<Sha512>,
        "SHA512/224" | "SHA-512/224" => of::<Sha512_224>,
        "SHA512/256" | "SHA-512/256" => of::<Sha512_256>,
        _ => return None,
    };
    Some(digest(value))
}

fn of<D: Digest>(value: &[u8]) -> Vec<u8> {
    D::digest(value).to_vec()
}
