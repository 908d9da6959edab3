//! An EXECUTE that is encoded once and reused with other values, which have fixed sizes.
//!
//! Encoding a request costs several allocations; copying a few hundred bytes costs none. The values are the last part of the body,
//! so their offsets follow from their sizes.

use std::ops::Range;

use ilion_protocol::{Consistency, Execute, Prepared, QueryParams, Request, Value, Version, encode_request};

use ilion_client::request_frame;

/// Position of the stream id in an envelope.
const STREAM_AT: Range<usize> = 2..4;

/// An encoded request whose values are replaced.
#[derive(Clone, Debug)]
pub struct Template {
    envelope: Vec<u8>,
    /// Position of each value.
    places: Vec<Range<usize>>,
}

impl Template {
    /// An EXECUTE of a prepared statement with values of these sizes.
    ///
    /// # Errors
    /// The values do not fit into a frame.
    pub fn execute(
        version: Version,
        prepared: &Prepared,
        sizes: &[usize],
        consistency: Consistency,
    ) -> anyhow::Result<Self> {
        let zeros = vec![0; sizes.iter().copied().max().unwrap_or(0)];
        let execute = Execute {
            id: prepared.id.clone(),
            result_metadata_id: prepared.result_metadata_id.clone(),
            params: QueryParams {
                values: sizes.iter().map(|&size| Value::Bytes(&zeros[..size])).collect(),
                skip_metadata: true,
                consistency,
                ..QueryParams::default()
            },
        };
        let mut envelope = Vec::new();
        let frame = request_frame(version, 0, Request::Execute(execute));
        encode_request(&mut envelope, &frame, None)?;
        let places = places(envelope.len(), sizes);
        Ok(Self { envelope, places })
    }

    /// Appends the request; `fill` writes each value.
    #[inline]
    pub fn append(&self, stream: i16, out: &mut Vec<u8>, mut fill: impl FnMut(usize, &mut [u8])) {
        let begin = out.len();
        out.extend_from_slice(&self.envelope);
        let envelope = &mut out[begin..];
        envelope[STREAM_AT].copy_from_slice(&stream.to_be_bytes());
        for (index, place) in self.places.iter().enumerate() {
            fill(index, &mut envelope[place.clone()]);
        }
    }
}

/// The positions of the values. The last one ends with the envelope, and each comes after its length of four bytes.
fn places(envelope_len: usize, sizes: &[usize]) -> Vec<Range<usize>> {
    let mut end = envelope_len;
    let mut places: Vec<_> = sizes
        .iter()
        .rev()
        .map(|size| {
            let place = end - size..end;
            end = place.start - 4;
            place
        })
        .collect();
    places.reverse();
    places
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use ilion_protocol::{FrameDecoder, Limits, RequestFrame, Role};

    use super::*;

    /// What a server reads of a filled template.
    fn sent(version: Version) -> RequestFrame {
        let prepared = Prepared {
            id: Bytes::from_static(b"statement"),
            result_metadata_id: Bytes::from_static(b"columns"),
            ..Prepared::default()
        };
        let template = Template::execute(version, &prepared, &[3, 5], Consistency::Quorum).unwrap();
        let mut out = b"before".to_vec();
        template.append(258, &mut out, |index, place| {
            place.fill(b'a' + u8::try_from(index).unwrap())
        });

        let mut bytes = BytesMut::from(&out[6..]);
        let frame = FrameDecoder::new(Role::Server, Limits::default())
            .decode(&mut bytes)
            .unwrap()
            .unwrap();
        assert!(bytes.is_empty());
        RequestFrame::decode(&frame).unwrap()
    }

    #[test]
    fn a_filled_template_is_the_request_that_would_have_been_encoded() {
        for (version, result_metadata_id) in [(Version::V4, ""), (Version::V5, "columns")] {
            let decoded = sent(version);
            assert_eq!((decoded.version, decoded.stream), (version, 258));
            let Request::Execute(execute) = decoded.request else {
                panic!("an EXECUTE");
            };
            assert_eq!(execute.id, "statement");
            assert_eq!(execute.result_metadata_id, result_metadata_id);
            assert_eq!(execute.params.consistency, Consistency::Quorum);
            let values: Vec<_> = execute.params.values.iter().collect();
            assert_eq!(values, [Value::Bytes(b"aaa"), Value::Bytes(b"bbbbb")]);
        }
    }
}
