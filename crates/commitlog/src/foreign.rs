//! Segments of Cassandra's commit log in our directory. They are ignored if they contain no writes, as after `nodetool drain`.
//!
//! ```text
//! segment  := version: u32, id: u64, size: u16, parameters: [u8; size], crc: u32, section*
//! section  := next: u32 (offset of the next section; 0: none), crc: u32, mutations       (big-endian)
//! ```
//! From `org.apache.cassandra.db.commitlog.{CommitLogDescriptor, CommitLogSegment}`.

use std::path::Path;

use ilion_env::Env;

use crate::Result;

/// Enough for the header (its parameters are a short JSON text) and many empty sections.
const HEAD_BYTES: usize = 4096;
const SECTION_BYTES: usize = 8;

/// True if the file is one of Cassandra's segments and has no mutation. Any other file may contain writes.
pub(crate) fn is_drained(env: &dyn Env, file: &Path) -> Result<bool> {
    let file = env.open_read(file)?;
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match file.read_at(filled as u64, &mut head[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    Ok(has_no_mutation(&head).unwrap_or(false))
}

/// `None` if the bytes are not a segment of Cassandra's.
fn has_no_mutation(head: &[u8]) -> Option<bool> {
    let parameters = head.get(12..14)?;
    let parameters = usize::from(u16::from_be_bytes(parameters.try_into().ok()?));
    let mut section = 14 + parameters + 4;
    // A segment that ends after its header was never written to.
    while let Some(next) = head.get(section..section + 4) {
        let next = u32::from_be_bytes(next.try_into().ok()?) as usize;
        match next {
            0 => return Some(true),
            _ if next == section + SECTION_BYTES => section = next,
            _ => return Some(false),
        }
    }
    Some(head.len() >= 14 + parameters + 4)
}

#[cfg(test)]
mod tests {
    use super::has_no_mutation;

    fn segment(sections: &[u32]) -> Vec<u8> {
        let mut bytes = vec![
            0, 0, 0, 7, 0, 0, 1, 161, 253, 233, 90, 103, 0, 2, b'{', b'}', 1, 2, 3, 4,
        ];
        for next in sections {
            bytes.extend_from_slice(&next.to_be_bytes());
            bytes.extend_from_slice(&[9; 4]);
        }
        bytes
    }

    #[test]
    fn a_segment_is_drained_if_all_its_sections_are_empty() {
        assert_eq!(has_no_mutation(&segment(&[])), Some(true));
        assert_eq!(has_no_mutation(&segment(&[0])), Some(true));
        assert_eq!(has_no_mutation(&segment(&[28, 0])), Some(true));
        assert_eq!(has_no_mutation(&segment(&[500])), Some(false));
        assert_eq!(has_no_mutation(&segment(&[28, 900])), Some(false));
    }

    #[test]
    fn what_is_no_segment_is_not_drained() {
        assert_eq!(has_no_mutation(b""), None);
        assert_eq!(has_no_mutation(b"x\n"), None);
        assert_ne!(has_no_mutation(&[0xff; 64]), Some(true));
        assert_ne!(has_no_mutation(&segment(&[])[..17]), Some(true));
    }
}
