//! COMPACTION of Statistics.db: an estimate of the number of different partition keys, by HyperLogLog++ (stream-lib 2.5.2, p =
//! 13, sp = 25) over their Murmur2 hashes.
//!
//! ```text
//! component := length:i32  estimator
//! estimator := -2:i32  p:varint  sp:varint  type:varint  ( normal | sparse )          varint is LEB128
//! normal    := 5464:varint  registers                  type 0: 1366 i32, six registers of 5 bits each
//! sparse    := count:varint  difference:varint *       type 1: of ascending encoded hashes
//! ```
//!
//! The value of a register is the highest number of leading zeros of its hashes, plus one.

mod bias;

use bias::{BIASES, RAW_ESTIMATES};
use ilion_codec::{Error as Malformed, Reader, Writer, murmur2_hash64};

const PRECISION: u32 = 13;
const SPARSE_PRECISION: u32 = 25;
const REGISTERS: usize = 1 << PRECISION;
const REGISTERS_PER_WORD: usize = 6;
const REGISTER_BITS: usize = 5;
const WORDS: usize = REGISTERS.div_ceil(REGISTERS_PER_WORD);
/// Above this number of hashes, the sparse form is larger (`0.75 * 2^p` in stream-lib).
const SPARSE_MAX: usize = REGISTERS / 4 * 3;
/// Below this number of keys, counting empty registers is more accurate (precision 13).
const LINEAR_BELOW: f64 = 6500.0;
/// Number of neighbours whose biases are averaged.
const NEIGHBOURS: usize = 6;
/// Bits of a sparse index below the register's index.
const SPARSE_EXTRA_MASK: u32 = (1 << (SPARSE_PRECISION - PRECISION)) - 1;

/// An estimate of the number of different keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cardinality(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Encoded hashes, unordered, with duplicates.
    Sparse(Vec<u32>),
    Normal(Box<[u8; REGISTERS]>),
}

impl Default for Cardinality {
    fn default() -> Self {
        Self(Form::Sparse(Vec::new()))
    }
}

impl Cardinality {
    /// Adds a serialized partition key.
    #[inline]
    pub fn add_key(&mut self, key: &[u8]) {
        let hash = murmur2_hash64(key, 0);
        match &mut self.0 {
            Form::Normal(registers) => {
                let (register, value) = register_of_hash(hash);
                registers[register] = registers[register].max(value);
            }
            Form::Sparse(_) => self.add_sparse(hash),
        }
    }

    /// This is its own function, since with many keys only the first ones take this path.
    #[inline(never)]
    fn add_sparse(&mut self, hash: u64) {
        if let Form::Sparse(hashes) = &mut self.0 {
            hashes.push(encode_hash(hash));
            if hashes.len() > 2 * SPARSE_MAX {
                self.tidy();
            }
        }
    }

    /// Sorts a sparse form and removes duplicates; converts it to the normal form if it is too long.
    fn tidy(&mut self) {
        if let Form::Sparse(hashes) = &mut self.0 {
            // Each used register has at least one hash: if enough registers are used, the form is too long even without duplicates.
            let registers = registers_of(hashes);
            if registers.iter().filter(|register| **register > 0).count() > SPARSE_MAX {
                self.0 = Form::Normal(registers);
                return;
            }
            sort_encoded(hashes);
            if hashes.len() > SPARSE_MAX {
                self.0 = Form::Normal(registers_of(hashes));
            }
        }
    }

    fn registers(&self) -> std::borrow::Cow<'_, [u8; REGISTERS]> {
        match &self.0 {
            Form::Normal(registers) => std::borrow::Cow::Borrowed(registers),
            Form::Sparse(hashes) => std::borrow::Cow::Owned(*registers_of(hashes)),
        }
    }

    /// Adds all keys of another estimate.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Form::Sparse(mine), Form::Sparse(theirs)) => mine.extend_from_slice(theirs),
            (_, theirs) => {
                let mut registers = Box::new(*self.registers());
                let theirs = match theirs {
                    Form::Normal(theirs) => theirs,
                    Form::Sparse(hashes) => &registers_of(hashes),
                };
                for (mine, theirs) in registers.iter_mut().zip(theirs.iter()) {
                    *mine = (*mine).max(*theirs);
                }
                self.0 = Form::Normal(registers);
            }
        }
        self.tidy();
    }

    /// The estimated number of different keys.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of a positive number"
    )]
    pub fn estimate(&self) -> u64 {
        if let Form::Sparse(hashes) = &self.0 {
            let mut hashes = hashes.clone();
            sort_encoded(&mut hashes);
            let buckets = f64::from(1u32 << SPARSE_PRECISION);
            return linear_count(buckets, buckets - hashes.len() as f64).round() as u64;
        }
        let registers = self.registers();
        let count = REGISTERS as f64;
        let zeros = registers.iter().filter(|register| **register == 0).count() as f64;
        let sum: f64 = registers
            .iter()
            .map(|register| (-f64::from(*register)).exp2())
            .sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let corrected = if raw <= 5.0 * count {
            raw - bias_of(raw)
        } else {
            raw
        };
        let linear = if zeros > 0.0 {
            linear_count(count, zeros)
        } else {
            corrected
        };
        (if linear < LINEAR_BELOW { linear } else { corrected }).round() as u64
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        let mut estimator = Writer::new();
        estimator.i32(-2);
        varint(&mut estimator, PRECISION);
        varint(&mut estimator, SPARSE_PRECISION);
        match &self.0 {
            Form::Sparse(hashes) => {
                let mut hashes = hashes.clone();
                sort_encoded(&mut hashes);
                if hashes.len() > SPARSE_MAX {
                    encode_normal(&registers_of(&hashes), &mut estimator);
                } else {
                    encode_sparse(&hashes, &mut estimator);
                }
            }
            Form::Normal(registers) => encode_normal(registers, &mut estimator),
        }
        out.bytes32(estimator.as_slice());
    }

    /// Decodes the component. `None` if it has other parameters: then there is no estimate, which is no error.
    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let mut input = Reader::new(input.bytes32()?);
        let is_known = input.i32()? == -2
            && read_varint(&mut input)? == PRECISION
            && read_varint(&mut input)? == SPARSE_PRECISION;
        if !is_known {
            return Ok(None);
        }
        match read_varint(&mut input)? {
            0 => decode_normal(&mut input).map(Some),
            1 => decode_sparse(&mut input).map(Some),
            _ => Ok(None),
        }
    }
}

/// The mean bias of the nearest estimates.
#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn bias_of(raw: f64) -> f64 {
    let distance = |index: &usize| (RAW_ESTIMATES[*index] - raw).abs();
    let mut nearest: Vec<usize> = (0..RAW_ESTIMATES.len()).collect();
    nearest.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.truncate(NEIGHBOURS);
    nearest.iter().map(|index| BIASES[*index]).sum::<f64>() / NEIGHBOURS as f64
}

fn linear_count(buckets: f64, zeros: f64) -> f64 {
    buckets * (buckets / zeros.max(1.0)).ln()
}

#[expect(clippy::cast_possible_truncation, reason = "13 bits; at most 52")]
fn register_of_hash(hash: u64) -> (usize, u8) {
    let register = hash >> (64 - PRECISION);
    let zeros = ((hash << PRECISION) | (1 << (PRECISION - 1))).leading_zeros();
    (register as usize, (zeros + 1) as u8)
}

/// The sparse form of a hash: 25 bits of index, and the register's value if the index does not determine it.
fn encode_hash(hash: u64) -> u32 {
    let index = (hash >> (64 - SPARSE_PRECISION)) as u32;
    if index & SPARSE_EXTRA_MASK != 0 {
        return index << 1;
    }
    let (_, value) = register_of_hash(hash);
    (((index << 6) | (u32::from(value) ^ 63)) << 1) | 1
}

fn sparse_index(encoded: u32) -> u32 {
    if encoded & 1 == 1 {
        encoded >> 7
    } else {
        encoded >> 1
    }
}

/// Sorts by index; keeps the hash with the most leading zeros for each index.
fn sort_encoded(hashes: &mut Vec<u32>) {
    hashes.sort_unstable_by_key(|encoded| (sparse_index(*encoded), *encoded));
    hashes.dedup_by_key(|encoded| sparse_index(*encoded));
}

#[expect(clippy::cast_possible_truncation, reason = "at most 63")]
fn registers_of(hashes: &[u32]) -> Box<[u8; REGISTERS]> {
    let mut registers = Box::new([0; REGISTERS]);
    for encoded in hashes {
        let index = sparse_index(*encoded);
        let value = if encoded & 1 == 1 {
            (encoded >> 1) & 63 ^ 63
        } else {
            (index << (32 - SPARSE_PRECISION + PRECISION)).leading_zeros() + 1
        };
        let register = &mut registers[(index >> (SPARSE_PRECISION - PRECISION)) as usize & (REGISTERS - 1)];
        *register = (*register).max(value as u8);
    }
    registers
}

fn encode_normal(registers: &[u8; REGISTERS], out: &mut Writer) {
    varint(out, 0);
    #[expect(clippy::cast_possible_truncation, reason = "a constant of 5464")]
    varint(out, (WORDS * 4) as u32);
    for word in registers.chunks(REGISTERS_PER_WORD) {
        let packed = word.iter().enumerate().fold(0, |packed, (index, register)| {
            packed | (u32::from((*register).min(31)) << (REGISTER_BITS * index))
        });
        out.u32(packed);
    }
}

fn encode_sparse(hashes: &[u32], out: &mut Writer) {
    varint(out, 1);
    varint(out, u32::try_from(hashes.len()).unwrap_or(u32::MAX));
    let mut previous = 0u32;
    for encoded in hashes {
        varint(out, encoded.wrapping_sub(previous));
        previous = *encoded;
    }
}

fn decode_normal(input: &mut Reader<'_>) -> Result<Cardinality, Malformed> {
    let refused = input.error("1366 words of registers");
    if read_varint(input)? as usize != WORDS * 4 {
        return Err(refused);
    }
    let mut registers = Box::new([0; REGISTERS]);
    for word in registers.chunks_mut(REGISTERS_PER_WORD) {
        let packed = input.u32()?;
        for (index, register) in word.iter_mut().enumerate() {
            *register = (packed >> (REGISTER_BITS * index) & 31) as u8;
        }
    }
    Ok(Cardinality(Form::Normal(registers)))
}

fn decode_sparse(input: &mut Reader<'_>) -> Result<Cardinality, Malformed> {
    let count = read_varint(input)? as usize;
    let mut hashes = Vec::with_capacity(input.capacity_for(count, size_of::<u32>()));
    let mut previous = 0u32;
    for _ in 0..count {
        previous = previous.wrapping_add(read_varint(input)?);
        hashes.push(previous);
    }
    let mut cardinality = Cardinality(Form::Sparse(hashes));
    cardinality.tidy();
    Ok(cardinality)
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn varint(out: &mut Writer, mut value: u32) {
    while value >= 0x80 {
        out.u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.u8(value as u8);
}

fn read_varint(input: &mut Reader<'_>) -> Result<u32, Malformed> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = input.u8()?;
        value |= u32::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(input.error("a LEB128 number of at most five bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_keys(keys: std::ops::Range<u64>) -> Cardinality {
        let mut cardinality = Cardinality::default();
        for key in keys {
            cardinality.add_key(&key.to_be_bytes());
        }
        cardinality
    }

    fn round_trip(cardinality: &Cardinality) -> Cardinality {
        let mut out = Writer::new();
        cardinality.encode(&mut out);
        out.u8(0xAA);
        let mut input = Reader::new(out.as_slice());
        let decoded = Cardinality::decode(&mut input).unwrap().unwrap();
        assert_eq!(input.rest(), [0xAA]);
        decoded
    }

    #[test]
    fn estimates_are_close_in_both_forms_and_survive_the_file() {
        for count in [0, 1, 100, 5_000, 20_000, 200_000] {
            let cardinality = of_keys(0..count);
            for estimate in [cardinality.estimate(), round_trip(&cardinality).estimate()] {
                assert!(
                    estimate.abs_diff(count) <= 1 + count / 20,
                    "{estimate} for {count}"
                );
            }
        }
    }

    #[test]
    fn the_union_counts_common_keys_once() {
        for (mine, theirs, all) in [
            (0..3_000, 2_000..4_000, 4_000u64),
            (0..9_000, 5_000..20_000, 20_000),
            (0..100, 50..30_000, 30_000),
        ] {
            let mut union = of_keys(mine);
            union.merge(&of_keys(theirs));
            assert!(
                union.estimate().abs_diff(all) < all / 20,
                "{} for {all}",
                union.estimate()
            );
        }
    }

    #[test]
    fn both_forms_agree_on_the_registers() {
        let mut sparse = of_keys(0..4_000);
        sparse.tidy();
        let mut normal = Cardinality(Form::Normal(Box::new([0; REGISTERS])));
        for key in 0..4_000u64 {
            normal.add_key(&key.to_be_bytes());
        }
        assert!(matches!(sparse.0, Form::Sparse(_)));
        assert_eq!(sparse.registers(), normal.registers());
    }
}
