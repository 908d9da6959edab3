//! VALIDATION of Statistics.db: facts on which a node and the file must agree.
//!
//! ```text
//! validation := partitioner_class:utf  bloom_filter_fp_chance:f64
//! ```

use ilion_codec::{Error as Malformed, Reader, Writer};

/// Facts on which a node and the file must agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Class of the partitioner that ordered the keys.
    pub partitioner: String,
    /// The false positive rate that Filter.db was built for.
    pub bloom_filter_fp_chance: f64,
}

impl Validation {
    pub(super) fn encode(&self, out: &mut Writer) {
        out.string16(&self.partitioner);
        out.f64(self.bloom_filter_fp_chance);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            partitioner: input.string16()?.to_owned(),
            bloom_filter_fp_chance: input.f64()?,
        })
    }
}
