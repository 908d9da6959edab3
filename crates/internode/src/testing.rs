//! Messages, for fuzzing: their type is not public.

use bytes::Bytes;
use ilion_codec::Writer;

use crate::message::Message;

/// Decodes the body of a message, and encodes it again; `None` if it is no message.
pub fn again(body: &Bytes) -> Option<Vec<u8>> {
    let message = Message::decode(body).ok()?;
    let mut out = Writer::new();
    message.encode(&mut out);
    Some(out.into_vec())
}
