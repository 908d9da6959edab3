//! The parent of a span in another process, as W3C Trace Context writes it (`traceparent`).
//!
//! ```text
//! traceparent := version "-" trace_id "-" parent_id "-" flags      (2, 32, 16 and 2 lower-case hexadecimal digits)
//! ```

/// Flag: the caller records this trace.
const SAMPLED: u8 = 1;

/// A parsed `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// Id of the trace.
    pub trace_id: [u8; 16],
    /// Id of the span that has sent the request.
    pub span_id: [u8; 8],
    /// The caller records this trace.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Parses a `traceparent`; `None` if the text is invalid. Later versions of the standard may append fields.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut fields = text.split(|byte| *byte == b'-');
        let [version] = hex::<1>(fields.next()?)?;
        let trace_id = hex::<16>(fields.next()?)?;
        let span_id = hex::<8>(fields.next()?)?;
        let [flags] = hex::<1>(fields.next()?)?;
        let has_more = fields.next().is_some();
        let is_valid =
            version != 0xFF && !(version == 0 && has_more) && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_allows_is_a_parent() {
        let good = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(good).unwrap();
        assert_eq!(
            (parent.trace_id[0], parent.span_id[7], parent.is_sampled),
            (0x4B, 0xB7, true)
        );
        let unsampled = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        assert!(!TraceParent::parse(unsampled).unwrap().is_sampled);
        let later = b"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes";
        assert!(TraceParent::parse(later).is_some());
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
