//! Composite partition keys (`CompositeType`).
//!
//! ```text
//! key := component, component...      component := length: u16, bytes, 0: u8      (big-endian)
//! ```
//!
//! A partition key of one column has that column's bytes only.

use ilion_codec::Reader;

use crate::Error;

/// Maximum length in bytes of a partition key, and of each component of a composite one.
pub const KEY_LEN_MAX: usize = 65535;

/// Appends the composite of `components`.
///
/// # Errors
/// A component or the key is longer than 65535 bytes.
pub fn encode_composite<'a>(
    components: impl IntoIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    for component in components {
        let len = u16::try_from(component.len()).map_err(|_| too_long(component.len()))?;
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(component);
        out.push(0);
    }
    if out.len() - start > KEY_LEN_MAX {
        return Err(too_long(out.len() - start));
    }
    Ok(())
}

fn too_long(len: usize) -> Error {
    Error::bytes(format!(
        "Key length of {len} is longer than maximum of {KEY_LEN_MAX}"
    ))
}

/// The components of a composite key.
///
/// # Errors
/// The bytes are not a composite.
pub fn decode_composite(key: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut reader = Reader::new(key);
    let mut components = Vec::new();
    while !reader.is_empty() {
        let component = reader
            .bytes16()
            .and_then(|component| reader.u8().map(|_| component))
            .map_err(|error| Error::bytes(format!("Not a composite key: {error}")))?;
        components.push(component);
    }
    Ok(components)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_notes_holds() {
        let mut key = Vec::new();
        encode_composite([&[0, 0, 0, 1][..], b"p"], &mut key).unwrap();
        assert_eq!(key, [0, 4, 0, 0, 0, 1, 0, 0, 1, 0x70, 0]);
        assert_eq!(decode_composite(&key).unwrap(), [&[0, 0, 0, 1][..], b"p"]);
        for cut in [1, 5, 6, 8, 10] {
            assert!(decode_composite(&key[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        let long = vec![0; 65533];
        assert!(encode_composite([&long[..]], &mut Vec::new()).is_err());
        assert!(encode_composite([&long[..65532]], &mut Vec::new()).is_ok());
    }
}
