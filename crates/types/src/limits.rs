//! How deep and how large a type may be. Statements, `system_schema` and the headers of files have the same limits: each of them can
//! read the types that the others accept.
//!
//! User types count with their content: a type that uses another type four times counts it four times, and every Statistics.db
//! contains it four times.

use std::sync::Arc;

use crate::{CqlType, Error, UserType};

/// Deepest nesting of types; `frozen` does not count.
pub const TYPE_DEPTH_MAX: usize = 128;

/// Largest type: the approximate length of its class string, in bytes.
pub const TYPE_CLASS_LEN_MAX: usize = 4 << 20;

/// Approximate length of a class name with its package and parentheses.
const CLASS_LEN: usize = 48;

impl CqlType {
    /// Checks depth and size.
    ///
    /// # Errors
    /// The type is nested deeper than [`TYPE_DEPTH_MAX`] or larger than [`TYPE_CLASS_LEN_MAX`].
    pub fn check_limits(&self) -> Result<(), Error> {
        self.class_len_within(TYPE_CLASS_LEN_MAX).map(drop)
    }

    /// The approximate length of the class string in bytes.
    ///
    /// # Errors
    /// The type is nested deeper than [`TYPE_DEPTH_MAX`], or the class string is longer than `len_max`; then the walk through the type
    /// ends early.
    pub fn class_len_within(&self, len_max: usize) -> Result<usize, Error> {
        let mut rest = len_max;
        self.measure(1, &mut rest, len_max, None)?;
        Ok(len_max - rest)
    }

    /// Checks the size that this type would have if `new` replaced the user type of that name. The check comes before the
    /// replacement, since a type that is used many times makes the result many times larger.
    ///
    /// # Errors
    /// The result is larger than [`TYPE_CLASS_LEN_MAX`].
    pub fn check_limits_with(&self, new: &Arc<UserType>) -> Result<(), Error> {
        let altered = Self::Udt {
            definition: new.clone(),
            frozen: true,
        };
        let altered_len = altered.class_len_within(TYPE_CLASS_LEN_MAX)?;
        let mut rest = TYPE_CLASS_LEN_MAX;
        self.measure(1, &mut rest, TYPE_CLASS_LEN_MAX, Some((new, altered_len)))
    }

    fn measure(
        &self,
        depth: usize,
        rest: &mut usize,
        len_max: usize,
        altered: Option<(&UserType, usize)>,
    ) -> Result<(), Error> {
        let too_large = || {
            Error::InvalidType(format!(
                "Types larger than {len_max} bytes, with all types inside written out, are not supported"
            ))
        };
        if let (Self::Udt { definition, .. }, Some((new, len))) = (self, altered)
            && (&definition.keyspace, &definition.name) == (&new.keyspace, &new.name)
        {
            *rest = rest.checked_sub(len).ok_or_else(too_large)?;
            return Ok(());
        }
        if depth > TYPE_DEPTH_MAX {
            return Err(Error::InvalidType(format!(
                "Types nested deeper than {TYPE_DEPTH_MAX} levels are not supported"
            )));
        }
        let own = CLASS_LEN
            + match self {
                Self::Custom(class) => class.len(),
                Self::Udt { definition, .. } => {
                    let names = definition.fields.iter().map(|(name, _)| name.len());
                    2 * (definition.name.len() + names.sum::<usize>()) + definition.keyspace.len()
                }
                _ => 0,
            };
        *rest = rest.checked_sub(own).ok_or_else(too_large)?;
        self.inner_types()
            .try_for_each(|inner| inner.measure(depth + 1, rest, len_max, altered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> CqlType {
        (1..depth).fold(CqlType::Int, |element, _| CqlType::List {
            element: Arc::new(element),
            frozen: true,
        })
    }

    /// A type with four types of the level below in each level.
    fn fourfold(levels: usize) -> CqlType {
        (0..levels).fold(CqlType::Int, |field, level| CqlType::Udt {
            definition: Arc::new(UserType {
                keyspace: "ks".to_owned(),
                name: format!("t{level}"),
                fields: ["a", "b", "c", "d"]
                    .map(|name| (name.to_owned(), field.clone()))
                    .to_vec(),
            }),
            frozen: true,
        })
    }

    #[test]
    fn what_is_within_the_limits_reads_back_in_both_forms() {
        let deep = nested(TYPE_DEPTH_MAX);
        deep.check_limits().unwrap();
        assert_eq!(CqlType::from_class(&deep.to_class()), Ok((deep.clone(), false)));
        assert_eq!(CqlType::parse_cql(&deep.to_string(), "ks", &|_| None), Ok(deep));
        assert!(nested(TYPE_DEPTH_MAX + 1).check_limits().is_err());

        let large = fourfold(7);
        large.check_limits().unwrap();
        let class = large.to_class();
        assert!(class.len() <= TYPE_CLASS_LEN_MAX);
        assert_eq!(CqlType::from_class(&class).unwrap().0, large);
    }

    #[test]
    fn a_type_that_would_fill_the_memory_is_refused_without_writing_it_out() {
        for levels in [9, 12, 60] {
            let refused = fourfold(levels).check_limits().unwrap_err().to_string();
            assert!(refused.contains("larger than 4194304 bytes"), "{refused}");
        }
    }

    #[test]
    fn the_measured_length_is_close_to_the_written_one() {
        for ty in [nested(20), fourfold(4), CqlType::Int] {
            let (measured, written) = (ty.class_len_within(usize::MAX).unwrap(), ty.to_class().len());
            assert!(
                measured * 2 > written && measured < written * 2,
                "{measured} {written}"
            );
        }
    }
}
