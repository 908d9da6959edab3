//! Constants: the kind of a literal, its type without a receiver, and its bytes for a receiver.

use bytes::Bytes;
use ilion_cql::ast::Literal;
use ilion_types::{ConstantKind, CqlType, Decimal};

use super::assignment::Assignment;
use crate::{ColumnSpec, Error};

/// The bytes of a constant for its receiver; `None` is null.
pub(super) fn plan(literal: &Literal, receiver: &ColumnSpec) -> Result<Option<Bytes>, Error> {
    let Some((kind, text)) = kind_and_text(literal) else {
        return match receiver.ty {
            CqlType::Counter => Err(Error::invalid(
                "Invalid null value for counter increment/decrement",
            )),
            _ => Ok(None),
        };
    };
    if test(literal, &receiver.ty) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Invalid {} constant ({}) for \"{}\" of type {}",
            kind.name(),
            shown(kind, &text),
            receiver.name,
            receiver.ty
        )));
    }
    let bytes = match kind {
        ConstantKind::Hex => CqlType::Blob.parse_plain(&text),
        _ => receiver.ty.parse_plain(&text),
    };
    Ok(Some(bytes?.into()))
}

/// How well a constant fits `ty`.
pub(super) fn test(literal: &Literal, ty: &CqlType) -> Assignment {
    let Some((kind, _)) = kind_and_text(literal) else {
        return match ty {
            CqlType::Counter => Assignment::No,
            _ => Assignment::Weak,
        };
    };
    // Compat: `Constants.Literal.testAssignment` returns `Weak` for every type that is neither native, a collection nor a user
    // type.
    if matches!(ty, CqlType::Custom(_) | CqlType::Tuple(_)) {
        return Assignment::Weak;
    }
    if own_type(literal).as_ref() == Some(ty) {
        return Assignment::Exact;
    }
    if ty.accepts_constant(kind) {
        Assignment::Weak
    } else {
        Assignment::No
    }
}

/// The type of a constant without a receiver: the smallest that can represent it.
pub(super) fn own_type(literal: &Literal) -> Option<CqlType> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text) if text.is_ascii() => CqlType::Ascii,
        Literal::String(_) => CqlType::Text,
        Literal::Integer(text) if text.parse::<i32>().is_ok() => CqlType::Int,
        Literal::Integer(text) if text.parse::<i64>().is_ok() => CqlType::BigInt,
        Literal::Integer(_) => CqlType::Varint,
        Literal::Float(text) if fits_double(text) => CqlType::Double,
        Literal::Float(_) => CqlType::Decimal,
        Literal::NaN | Literal::Infinity | Literal::NegativeInfinity => CqlType::Double,
        Literal::Boolean(_) => CqlType::Boolean,
        Literal::Uuid(_) => CqlType::Uuid,
        Literal::Blob(_) => CqlType::Blob,
        Literal::Duration(_) => CqlType::Duration,
    })
}

/// True if the decimal stays the same when converted to a double and back.
fn fits_double(text: &str) -> bool {
    let Ok(exact) = text.parse::<Decimal>() else {
        return true;
    };
    let Some(rounded) = text.parse::<f64>().ok().filter(|value| value.is_finite()) else {
        return false;
    };
    let encode = |decimal: &Decimal| {
        let mut out = Vec::new();
        decimal.encode(&mut out);
        out
    };
    match format!("{rounded:e}").parse::<Decimal>() {
        Ok(rounded) => CqlType::Decimal
            .compare(&encode(&exact), &encode(&rounded))
            .is_eq(),
        Err(_) => false,
    }
}

/// The kind and text of a constant; `None` for null.
fn kind_and_text(literal: &Literal) -> Option<(ConstantKind, String)> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text) => (ConstantKind::String, text.clone()),
        Literal::Integer(text) => (ConstantKind::Integer, text.clone()),
        Literal::Float(text) => (ConstantKind::Float, text.clone()),
        Literal::NaN => (ConstantKind::Float, "NaN".to_owned()),
        Literal::Infinity => (ConstantKind::Float, "Infinity".to_owned()),
        Literal::NegativeInfinity => (ConstantKind::Float, "-Infinity".to_owned()),
        Literal::Boolean(value) => (ConstantKind::Boolean, value.to_string()),
        Literal::Uuid(text) => (ConstantKind::Uuid, text.clone()),
        Literal::Blob(digits) => (ConstantKind::Hex, digits.clone()),
        Literal::Duration(text) => (ConstantKind::Duration, text.clone()),
    })
}

/// The text of a constant in messages.
fn shown(kind: ConstantKind, text: &str) -> String {
    match kind {
        ConstantKind::Hex => format!("0x{text}"),
        _ => text.to_owned(),
    }
}
