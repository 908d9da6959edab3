//! Values as blobs and back: `int_as_blob`, `blob_as_int`, and the names that they had before 5.0.

use ilion_types::CqlType;

use super::ScalarFunction;
use crate::Error;

/// The functions of this name.
pub(super) fn candidates(name: &str, out: &mut Vec<ScalarFunction>) {
    let to_blob = name
        .strip_suffix("_as_blob")
        .or_else(|| name.strip_suffix("asblob"));
    if let Some(ty) = to_blob.and_then(native_type) {
        out.push(ScalarFunction::of_value(name, ty, CqlType::Blob, |value| {
            Ok(Some(value.clone()))
        }));
        return;
    }
    let from_blob = name
        .strip_prefix("blob_as_")
        .or_else(|| name.strip_prefix("blobas"));
    if let Some(ty) = from_blob.and_then(native_type) {
        let function = name.to_owned();
        let result = ty.clone();
        out.push(ScalarFunction::of_value(name, CqlType::Blob, result, move |blob| {
            ty.validate(blob).map_err(|_| {
                Error::Invalid(format!(
                    "In call to function system.{function}, value 0x{} is not a valid binary representation for type {ty}",
                    ilion_types::hex::print(blob)
                ))
            })?;
            Ok(Some(blob.clone()))
        }));
    }
}

fn native_type(name: &str) -> Option<CqlType> {
    CqlType::scalar(name).filter(|ty| !matches!(ty, CqlType::Blob | CqlType::Empty))
}
