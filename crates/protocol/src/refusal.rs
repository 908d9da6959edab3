//! Errors about the stream of bytes, as opposed to errors about one envelope.

use std::borrow::Cow;

use crate::error::{Blame, FrameError, Recovery};
use crate::segment::SegmentError;
use crate::version::Version;

/// Refuses v1 and v2 before nine bytes are there: their headers have eight bytes, so the ninth may never arrive.
pub(crate) fn refuse_legacy(buffer: &[u8]) -> Result<(), FrameError> {
    match *buffer {
        [version @ (1 | 2), _, stream, _, ..] => Err(FrameError {
            version: Version::NEWEST,
            stream: i16::from(stream.cast_signed()),
            message: Version::unsupported_message(version).into(),
            blame: Blame::Protocol,
            recovery: Recovery::AnswerAndClose,
            legacy_version: Some(version),
        }),
        _ => Ok(()),
    }
}

/// An error of a v5 segment. It has stream 0, since the affected envelope is unknown.
fn refuse_stream(message: Cow<'static, str>, recovery: Recovery) -> FrameError {
    FrameError {
        version: Version::V5,
        stream: 0,
        message,
        blame: Blame::Protocol,
        recovery,
        legacy_version: None,
    }
}

pub(crate) fn refuse_assembly(message: &'static str) -> FrameError {
    refuse_stream(Cow::Borrowed(message), Recovery::AnswerAndClose)
}

pub(crate) fn refuse_segment(error: SegmentError) -> FrameError {
    match error {
        SegmentError::Header => refuse_stream("corrupt header of a segment".into(), Recovery::Close),
        SegmentError::Payload { computed, stored } => refuse_stream(
            format!(
                "corrupt payload of a segment: its CRC32 is {computed:#010x}, announced as {stored:#010x}"
            )
            .into(),
            Recovery::AnswerAndClose,
        ),
        SegmentError::Compression(reason) => refuse_stream(
            format!("cannot decompress a segment: {reason}").into(),
            Recovery::AnswerAndClose,
        ),
    }
}
