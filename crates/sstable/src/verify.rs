//! Checks that the parts of an SSTable agree: checksums, order, counts, and each component with the others.
//!
//! All components are compared with Data.db: the rows are read from start to end without the index, and the index is read
//! along with them. Damage is collected, and the check continues as far as the rest is readable.
//!
//! | module | what |
//! | --- | --- |
//! | `verification`, `findings` | the result; the damage found |
//! | `opened` | the parts that are needed to read rows |
//! | `components` | TOC.txt, Digest.crc32, Checksums.db, the chunks of Data.db |
//! | `contents` | reads the rows and checks their order |
//! | `index_check` | compares the partitions of index and data |
//! | `rows_check` | checks the row indexes of wide partitions |
//! | `key_check` | checks Filter.db and Summary.db |
//! | `totals` | compares Statistics.db with the rows |
//! | `cell_check`, `deleted_check`, `token_check` | compare Cells.db, Deleted.db and Tokens.db with the rows |

mod cell_check;
mod components;
mod contents;
mod deleted_check;
mod findings;
mod index_check;
mod key_check;
mod opened;
mod rows_check;
mod token_check;
mod totals;
mod verification;

use ilion_env::Env;

use crate::{ChunkReader, Component, Descriptor, Result};
use contents::Contents;
pub use findings::Findings;
use opened::Opened;
pub use verification::{OnProgress, Verification};

/// The total number of bytes for [`OnProgress`]: the stored and the uncompressed size of Data.db.
pub fn work_bytes(env: &dyn Env, descriptor: &Descriptor) -> u64 {
    let stored = env.file_size(&descriptor.path(&Component::Data)).unwrap_or(0);
    let opened = ChunkReader::open(env, descriptor, None);
    stored.saturating_add(opened.map_or(0, |data| data.data_length()))
}

/// Checks an SSTable.
///
/// # Errors
/// A file cannot be read. Damage is not an error here.
pub fn verify(env: &dyn Env, descriptor: &Descriptor, on_progress: OnProgress<'_>) -> Result<Verification> {
    descriptor.version.check_readable()?;
    let mut verification = Verification::default();
    components::check_toc(env, descriptor, &mut verification)?;
    let stored = components::check_digest(env, descriptor, &mut verification, on_progress)?;
    let opened = Opened::open(env, descriptor);
    if let Ok(opened) = &opened {
        components::check_checksums(env, opened, &mut verification)?;
    }
    let Some(opened) = verification.findings.take(opened)? else {
        verification
            .unchecked
            .push("the rows, since their format cannot be read".to_owned());
        return Ok(verification);
    };
    let mut after_digest = |done| on_progress(stored.saturating_add(done));
    let contents = Contents::new(env, &opened, &mut verification)?;
    let is_whole = contents.check(&mut verification, &mut after_digest)?;
    if !is_whole {
        verification
            .unchecked
            .push("what follows the first damage in Data.db; counts, and the rest of the index".to_owned());
        components::check_chunks(&opened.data, &mut verification, &mut after_digest)?;
    }
    Ok(verification)
}
