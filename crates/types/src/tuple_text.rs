//! Parses a tuple from one text: `1:abc`. Compat: `TupleType.fromString`.
//!
//! ```text
//! tuple := part (":" part)*        part := "@" (null) | text, with "\\:" and "\\@" for ":" and "@"
//! ```

use crate::{CqlType, Error, encode_tuple};

/// Parses a tuple; returns the serialized value. If trailing parts are missing in the text, the value does not have them either.
pub(crate) fn parse(text: &str, tuple: &CqlType, types: &[CqlType]) -> Result<Vec<u8>, Error> {
    let parts = split(text);
    if parts.len() > types.len() {
        return Err(Error::literal(format!(
            "Invalid tuple literal: too many elements. Type {tuple} expects {} but got {}",
            types.len(),
            parts.len()
        )));
    }
    let values = parts.iter().zip(types).map(|(part, ty)| match part.as_str() {
        "@" => Ok(None),
        part => {
            let plain = part.replace("\\:", ":").replace("\\@", "@");
            ty.parse_printed(&plain).map(Some)
        }
    });
    let values = values.collect::<Result<Vec<_>, Error>>()?;
    Ok(encode_tuple(values.iter().map(Option::as_deref)))
}

/// Splits at colons without a backslash before them; parts keep their backslashes.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_escaped = false;
    for character in text.chars() {
        if character == ':' && !is_escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(character);
        }
        is_escaped = character == '\\';
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple_components;

    fn parts(text: &str) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let types = [CqlType::Int, CqlType::Text];
        let bytes = parse(text, &CqlType::Tuple(types.to_vec().into()), &types)?;
        let components = tuple_components(&bytes);
        Ok(components.map(|part| part.unwrap().map(<[u8]>::to_vec)).collect())
    }

    #[test]
    fn colons_separate_and_backslashes_protect() {
        let one = Some(1_i32.to_be_bytes().to_vec());
        assert_eq!(parts("1:a").unwrap(), [one.clone(), Some(b"a".to_vec())]);
        assert_eq!(
            parts("1:a\\:b\\@").unwrap(),
            [one.clone(), Some(b"a:b@".to_vec())]
        );
        assert_eq!(parts("@:a").unwrap(), [None, Some(b"a".to_vec())]);
        assert_eq!(parts("1").unwrap(), [one]);
        assert!(parts("1:a:b").is_err());
        assert!(parts("x").is_err());
    }
}
