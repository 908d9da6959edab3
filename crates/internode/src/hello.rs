//! [`Hello`] and [`Reply`]: the first message of each side, and the decision whether a node may connect.
//!
//! ```text
//! hello   := "ILION", oldest: u8, newest: u8, cluster: uuid, node: u32, session: uuid, host: uuid, wanted: u32,
//!            fields of newer versions, crc32 of all before it: u32
//! reply   := 0, version: u8, node: u32, session: uuid, host: uuid, fields of newer versions, crc32: u32
//!          | 1, reason: bytes (vint, UTF-8), crc32: u32
//! ```
//! Numbers are big-endian. Both travel in plain envelopes, as STARTUP does, so they have a checksum of their own. This layout is the
//! same in all versions, so that nodes of any two versions can tell each other why they are incompatible.

use ilion_cluster::Node;
use ilion_codec::{Error, Reader, Writer, crc32};
use uuid::Uuid;

/// The oldest version of the protocol between nodes that this program speaks.
pub const OLDEST: u8 = 1;
/// The newest version that it speaks.
pub const NEWEST: u8 = 1;

const MAGIC: &[u8; 5] = b"ILION";
const CRC_BYTES: usize = 4;
/// Longest reason of a refusal that is read.
const REASON_MAX: usize = 1024;

/// The identity of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its cluster.
    pub cluster: Uuid,
    /// Its number in the cluster.
    pub node: Node,
    /// The id of its process: another one after each start.
    pub session: Uuid,
    /// The id of its data directory.
    pub host: Uuid,
}

/// The first message of the node that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The oldest version that it speaks.
    pub oldest: u8,
    /// The newest one.
    pub newest: u8,
    /// The identity of the node that connects.
    pub identity: Identity,
    /// The node that it wants to reach.
    pub wanted: Node,
}

/// The answer of the node that was connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The connection is open.
    Welcome {
        /// The version that both will speak.
        version: u8,
        /// The number of the node that answers.
        node: Node,
        /// Its process.
        session: Uuid,
        /// Its data directory.
        host: Uuid,
    },
    /// The connection is refused, for this reason.
    Refused(String),
}

impl Hello {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(MAGIC);
        out.u8(self.oldest);
        out.u8(self.newest);
        out.bytes(self.identity.cluster.as_bytes());
        out.u32(self.identity.node);
        out.bytes(self.identity.session.as_bytes());
        out.bytes(self.identity.host.as_bytes());
        out.u32(self.wanted);
        with_crc(out)
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The bytes are damaged, or no hello.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(checked(bytes)?);
        if input.take(MAGIC.len())? != MAGIC {
            return Err(input.error("the greeting of a node before this"));
        }
        let (oldest, newest) = (input.u8()?, input.u8()?);
        let cluster = Uuid::from_bytes(input.uuid_bytes()?);
        let node = input.u32()?;
        let session = Uuid::from_bytes(input.uuid_bytes()?);
        let host = Uuid::from_bytes(input.uuid_bytes()?);
        let wanted = input.u32()?;
        if newest <= NEWEST && !input.is_empty() {
            return Err(input.error("the end of the greeting"));
        }
        let identity = Identity {
            cluster,
            node,
            session,
            host,
        };
        Ok(Self {
            oldest,
            newest,
            identity,
            wanted,
        })
    }
}

impl Reply {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Self::Welcome {
                version,
                node,
                session,
                host,
            } => {
                out.u8(0);
                out.u8(*version);
                out.u32(*node);
                out.bytes(session.as_bytes());
                out.bytes(host.as_bytes());
            }
            Self::Refused(reason) => {
                out.u8(1);
                out.bytes_vint(reason.as_bytes());
            }
        }
        with_crc(out)
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The bytes are damaged, or no reply.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader::new(checked(bytes)?);
        match input.u8()? {
            0 => {
                let version = input.u8()?;
                if !(OLDEST..=NEWEST).contains(&version) {
                    return Err(input.error("a version that was offered before this"));
                }
                let node = input.u32()?;
                let session = Uuid::from_bytes(input.uuid_bytes()?);
                let host = Uuid::from_bytes(input.uuid_bytes()?);
                Ok(Self::Welcome {
                    version,
                    node,
                    session,
                    host,
                })
            }
            1 => {
                let reason = input.bytes_vint()?;
                let reason = &reason[..reason.len().min(REASON_MAX)];
                Ok(Self::Refused(String::from_utf8_lossy(reason).into_owned()))
            }
            _ => Err(input.error("the kind of a reply before this")),
        }
    }
}

/// The version that two nodes will speak, or the reason for which `this` node refuses the other one. Pure.
pub fn judge(hello: &Hello, this: &Identity) -> Result<u8, String> {
    let other = &hello.identity;
    if hello.oldest > NEWEST || hello.newest < OLDEST {
        let (who, oldest, newest) = match hello.oldest > NEWEST {
            true => ("the node that was connected to", hello.oldest, hello.newest),
            false => ("the node that connects", hello.oldest, hello.newest),
        };
        return Err(format!(
            "node {} speaks versions {oldest} to {newest} of the protocol between nodes, node {} versions {OLDEST} to {NEWEST}: \
             upgrade {who}",
            other.node, this.node
        ));
    }
    if other.cluster != this.cluster {
        return Err(format!(
            "node {} belongs to the cluster {}, and this node to the cluster {}: are their addresses right?",
            other.node, other.cluster, this.cluster
        ));
    }
    if hello.wanted != this.node {
        return Err(format!(
            "node {} wants to reach node {}, but this is node {}: is its address one that another node had before?",
            other.node, hello.wanted, this.node
        ));
    }
    if other.node == this.node && other.host != this.host {
        return Err(format!(
            "the node that connects has the number of this node, {}, but another data directory ({}, and here {})",
            this.node, other.host, this.host
        ));
    }
    Ok(hello.newest.min(NEWEST))
}

fn with_crc(mut out: Writer) -> Vec<u8> {
    let crc = crc32(out.as_slice());
    out.u32(crc);
    out.into_vec()
}

/// The bytes before the checksum, if it is right.
fn checked(bytes: &[u8]) -> Result<&[u8], Error> {
    let reader = Reader::new(bytes);
    let Some((content, stored)) = bytes.split_last_chunk::<CRC_BYTES>() else {
        return Err(reader.error("a greeting with a checksum"));
    };
    match crc32(content) == u32::from_be_bytes(*stored) {
        true => Ok(content),
        false => Err(reader.error("a greeting whose checksum is right")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(node: Node) -> Identity {
        Identity {
            cluster: Uuid::from_u128(7),
            node,
            session: Uuid::from_u128(100 + u128::from(node)),
            host: Uuid::from_u128(200 + u128::from(node)),
        }
    }

    fn hello() -> Hello {
        Hello {
            oldest: OLDEST,
            newest: NEWEST,
            identity: identity(1),
            wanted: 2,
        }
    }

    fn replies() -> [Reply; 2] {
        let Identity {
            node, session, host, ..
        } = identity(2);
        [
            Reply::Welcome {
                version: 1,
                node,
                session,
                host,
            },
            Reply::Refused("it is full".to_owned()),
        ]
    }

    #[test]
    fn greetings_survive_their_bytes_and_nothing_else_is_one() {
        let bytes = hello().encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello()));
        for len in 0..bytes.len() {
            assert!(Hello::decode(&bytes[..len]).is_err(), "{len}");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Hello::decode(&flipped).is_err(), "{bit}");
        }
        for reply in replies() {
            let bytes = reply.encode();
            assert_eq!(Reply::decode(&bytes), Ok(reply));
            for len in 0..bytes.len() {
                assert!(Reply::decode(&bytes[..len]).is_err(), "{len}");
            }
            for bit in 0..8 * bytes.len() {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(Reply::decode(&flipped).is_err(), "{bit}");
            }
        }
    }

    #[test]
    fn a_node_that_fits_is_welcome() {
        assert_eq!(judge(&hello(), &identity(2)), Ok(1));
        let newer = Hello { newest: 9, ..hello() };
        assert_eq!(judge(&newer, &identity(2)), Ok(1), "both speak version 1");
    }

    /// A newer version may have more to say.
    #[test]
    fn greetings_of_newer_versions_are_understood() {
        let newer = Hello {
            oldest: 2,
            newest: 3,
            ..hello()
        };
        let mut bytes = newer.encode();
        bytes.truncate(bytes.len() - CRC_BYTES);
        bytes.extend_from_slice(b"and more");
        let crc = crc32(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
        assert_eq!(Hello::decode(&bytes), Ok(newer));
        let refused = judge(&newer, &identity(2)).unwrap_err();
        assert_eq!(
            refused,
            "node 1 speaks versions 2 to 3 of the protocol between nodes, node 2 versions 1 to 1: \
             upgrade the node that was connected to"
        );
    }

    #[test]
    fn a_node_that_does_not_fit_is_told_why() {
        let refused = |hello: Hello| judge(&hello, &identity(2)).unwrap_err();
        let mut other_cluster = hello();
        other_cluster.identity.cluster = Uuid::from_u128(8);
        assert!(refused(other_cluster).starts_with("node 1 belongs to the cluster 00000000-"));
        let swapped = Hello { wanted: 3, ..hello() };
        assert_eq!(
            refused(swapped),
            "node 1 wants to reach node 3, but this is node 2: is its address one that another node had before?"
        );
        let mut twin = hello();
        twin.identity.node = 2;
        assert!(refused(twin).contains("has the number of this node, 2, but another data directory"));
    }
}
