//! Tokens of some partitions of an SSTable, evenly spread. They show where a ring with this data can be cut.

use ilion_types::Token;

use super::SSTable;
use crate::Result;
use crate::reader::key_in_data;

/// One of this many partitions is sampled. Compat: `min_index_interval`.
const INTERVAL: u64 = 128;

impl SSTable {
    /// The tokens of the first partition and of each 128th behind it. If these were more than `count_max`: of fewer partitions, evenly
    /// spread. Reads the keys in Data.db. Without a token map, returns only the first token.
    ///
    /// # Errors
    /// The token map or the data is damaged or cannot be read.
    pub fn sample_tokens(&self, count_max: u64) -> Result<Vec<Token>> {
        let Some(map) = self.parts.tokens.load_full() else {
            return Ok(vec![self.first_key().token.clone()]);
        };
        let count = map.partition_count();
        let interval = INTERVAL.max(count.div_ceil(count_max.max(1)));
        let mut tokens = Vec::new();
        let mut index = 0;
        while index < count {
            let key = key_in_data(self.parts.data()?, map.partition(index)?.position)?;
            tokens.push(self.partitioner().token(&key));
            index += interval;
        }
        Ok(tokens)
    }
}
