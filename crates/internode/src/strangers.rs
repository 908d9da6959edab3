//! Recognises programs that connect to the port for other nodes by mistake, and shows what other programs answer to this node.

use bytes::Bytes;

/// What the first bytes of a connection show about the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// A TLS handshake.
    Tls,
    /// A node or a tool of Cassandra.
    Cassandra,
    /// Probably an envelope.
    Other,
}

impl FirstBytes {
    /// Number of bytes that decide.
    pub const COUNT: usize = 4;

    /// Looks at the first bytes of a connection. Pure.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x16, 0x03, ..] => Self::Tls,
            // Compat: `Message.PROTOCOL_MAGIC` of Cassandra, in all versions.
            [0xCA, 0x55, 0x2D, 0xFA, ..] => Self::Cassandra,
            _ => Self::Other,
        }
    }
}

/// Why a node of Cassandra is refused.
pub(crate) const CASSANDRA: &str = "it speaks the protocol between nodes of Cassandra, which Ilion does not: Ilion and Cassandra cannot \
    be in one cluster. Instead of sstableloader use `ilion sstable load --host ADDRESS DIR`, which sends SSTables to the admin_port";

/// Bytes of an envelope's body as text for a message; for peers that answer something else.
pub(crate) fn printable(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    text.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_who_is_wrong_here() {
        assert_eq!(FirstBytes::of(&[0x16, 3, 1, 0]), FirstBytes::Tls);
        assert_eq!(FirstBytes::of(&[0xCA, 0x55, 0x2D, 0xFA]), FirstBytes::Cassandra);
        assert_eq!(FirstBytes::of(&[5, 0, 0, 0]), FirstBytes::Other);
        assert_eq!(FirstBytes::of(&[]), FirstBytes::Other);
    }
}
