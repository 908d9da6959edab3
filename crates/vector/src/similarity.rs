//! Similarity functions of vectors.

use crate::{DIMENSION_MAX, Error};

/// A similarity function, as in `similarity_function` of an index. Scores are those of the CQL functions `similarity_cosine`,
/// `similarity_dot_product` and `similarity_euclidean`: a higher score is nearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Similarity {
    /// The angle, independent of lengths.
    #[default]
    Cosine,
    /// The dot product; meant for vectors of length 1, but correct for others, too.
    DotProduct,
    /// The Euclidean distance.
    Euclidean,
}

/// Compat: Cassandra 5.0 refuses larger components.
const COMPONENT_MAX: f32 = 1e17;

impl Similarity {
    /// All functions, in Cassandra's order.
    pub const ALL: [Self; 3] = [Self::Euclidean, Self::DotProduct, Self::Cosine];

    /// Its name in the options of an index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "COSINE",
            Self::DotProduct => "DOT_PRODUCT",
            Self::Euclidean => "EUCLIDEAN",
        }
    }

    /// The function with this name, compared without case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(name))
    }

    /// Checks that a vector can be indexed or searched for.
    ///
    /// # Errors
    /// [`Error::Refused`] with Cassandra's message: a component is not finite or too large, or a zero vector has no direction
    /// for cosine.
    pub fn check(self, vector: &[f32]) -> Result<(), Error> {
        if vector.is_empty() || vector.len() > DIMENSION_MAX as usize {
            return Err(Error::Refused(format!(
                "vectors of {} dimensions cannot be indexed",
                vector.len()
            )));
        }
        for (at, value) in vector.iter().enumerate() {
            if !value.is_finite() {
                return Err(Error::Refused(format!(
                    "non-finite value at vector[{at}]={value}"
                )));
            }
            if value.abs() > COMPONENT_MAX {
                return Err(Error::Refused(format!(
                    "Out-of-bounds value at vector[{at}]={value:E}"
                )));
            }
        }
        if self == Self::Cosine && vector.iter().all(|value| *value == 0.0) {
            return Err(Error::Refused(
                "Zero vectors cannot be indexed or queried with cosine similarity".to_owned(),
            ));
        }
        Ok(())
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Cosine => 1,
            Self::DotProduct => 2,
            Self::Euclidean => 3,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cassandras_in_any_case() {
        for similarity in Similarity::ALL {
            assert_eq!(
                Similarity::parse(&similarity.name().to_lowercase()),
                Some(similarity)
            );
            assert_eq!(Similarity::of_code(similarity.code()), Some(similarity));
        }
        assert_eq!(Similarity::parse("dot"), None);
    }

    #[test]
    fn vectors_without_a_place_are_refused() {
        let refusal =
            |similarity: Similarity, vector: &[f32]| similarity.check(vector).map_err(|e| e.to_string());
        assert_eq!(refusal(Similarity::Euclidean, &[0.0, 0.0]), Ok(()));
        assert!(
            refusal(Similarity::Cosine, &[0.0, 0.0])
                .unwrap_err()
                .starts_with("Zero vectors")
        );
        assert!(
            refusal(Similarity::Euclidean, &[0.0, f32::NAN])
                .unwrap_err()
                .contains("vector[1]")
        );
        assert!(
            refusal(Similarity::DotProduct, &[2e17])
                .unwrap_err()
                .starts_with("Out-of-bounds")
        );
        assert!(refusal(Similarity::Euclidean, &[]).is_err());
    }
}
