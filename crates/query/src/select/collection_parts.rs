//! Parts of collections: keys of elements, ends of slices; lists with nulls.

use bytes::Bytes;
use ilion_codec::Writer;
use ilion_types::CqlType;

use crate::context::Execution;
use crate::term::Term;
use crate::{Error, Value};

/// The key of an element. `text` is the name of the collection in messages.
pub(super) fn element_key(key: &Term, text: &str, execution: &Execution<'_>) -> Result<Bytes, Error> {
    let kind = match key.evaluate(execution)? {
        Value::Bytes(bytes) => return Ok(bytes),
        Value::Null => "null",
        Value::Unset => "unset",
    };
    Err(Error::invalid(format!(
        "Invalid {kind} value for element selection on {text}"
    )))
}

/// An end of a slice; `None` is unbounded. `text` is the name of the collection in messages.
pub(super) fn slice_end(
    end: Option<&Term>,
    text: &str,
    execution: &Execution<'_>,
) -> Result<Option<Bytes>, Error> {
    let Some(end) = end else {
        return Ok(None);
    };
    match end.evaluate(execution)? {
        Value::Bytes(bytes) => Ok(Some(bytes)),
        Value::Unset => Ok(None),
        Value::Null => Err(Error::invalid(format!(
            "Invalid null value for slice selection on {text}"
        ))),
    }
}

/// True if a key is within a slice, whose ends are included; `None` is unbounded.
pub(super) fn is_within(ty: &CqlType, key: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> bool {
    from.is_none_or(|from| ty.compare(from, key).is_le()) && to.is_none_or(|to| ty.compare(key, to).is_le())
}

/// A list in which members may be null.
pub(super) fn list_with_nulls(members: &[Option<Bytes>]) -> Bytes {
    let mut out = Writer::new();
    out.i32(i32::try_from(members.len()).unwrap_or(i32::MAX));
    for member in members {
        out.bytes32_or_null(member.as_deref());
    }
    out.into_vec().into()
}
