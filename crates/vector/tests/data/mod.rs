//! Test vectors that are the same in every run, and the exact results of a scan.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use ilion_vector::Similarity;

/// Xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 24) as f32
    }
}

pub fn uniform(count: usize, dimensions: usize, random: &mut Random) -> Vec<Vec<f32>> {
    let mut vector = || (0..dimensions).map(|_| random.unit() * 2.0 - 1.0).collect();
    (0..count).map(|_| vector()).collect()
}

pub fn clustered(count: usize, dimensions: usize, random: &mut Random) -> Vec<Vec<f32>> {
    let centres = uniform(count / 200 + 1, dimensions, random);
    let mut near = || {
        let centre = &centres[random.next() as usize % centres.len()];
        centre.iter().map(|value| value + random.unit() * 0.5).collect()
    };
    (0..count).map(|_| near()).collect()
}

pub fn score(similarity: Similarity, a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    match similarity {
        Similarity::Cosine => (1.0 + dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) / 2.0,
        Similarity::DotProduct => (1.0 + dot(a, b)) / 2.0,
        Similarity::Euclidean => 1.0 / (1.0 + a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>()),
    }
}

/// The ordinals of the nearest vectors, best first.
pub fn nearest(similarity: Similarity, vectors: &[Vec<f32>], query: &[f32], limit: usize) -> Vec<u32> {
    let mut scored: Vec<(f32, u32)> = (0..)
        .zip(vectors)
        .map(|(ordinal, vector)| (score(similarity, vector, query), ordinal))
        .collect();
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(limit);
    scored.into_iter().map(|(_, ordinal)| ordinal).collect()
}
