//! A finished request, as a span.

use std::borrow::Cow;

use crate::messages::{
    AnyScalar, Event, FLAG_REMOTE_PARENT, FLAGS_SAMPLED, KIND_SERVER, KeyValue, STATUS_ERROR, Status,
};
use crate::{TraceParent, messages};

/// Most characters of a name or text.
const TEXT_CHARS_MAX: usize = 4096;
/// Most steps of a span: the default of `OTEL_SPAN_EVENT_COUNT_LIMIT`.
const STEPS_MAX: usize = 128;

/// A finished request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishedSpan {
    /// The caller's span; `None` begins a trace.
    pub parent: Option<TraceParent>,
    /// The kind of request. Use few different names.
    pub name: String,
    /// When the request began, in nanoseconds since 1970.
    pub started_unix_nanos: u64,
    /// How long the request took, in nanoseconds.
    pub elapsed_nanos: u64,
    /// Facts about the request.
    pub attributes: Vec<(Cow<'static, str>, Attribute)>,
    /// Steps of the request: nanoseconds since it began, and what was done. Only the first 128 are sent.
    pub steps: Vec<(u64, String)>,
    /// Why the request failed; `None` if it succeeded.
    pub error: Option<String>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A text; very long ones are cut.
    Text(String),
    /// A number.
    Number(u64),
}

/// A span that waits for its batch: its size is bounded.
pub(crate) struct WaitingSpan {
    span: FinishedSpan,
    steps_left_out: usize,
}

impl FinishedSpan {
    /// Cuts long texts, and drops steps above the limit.
    pub(crate) fn bounded(mut self) -> WaitingSpan {
        let steps_left_out = self.steps.len().saturating_sub(STEPS_MAX);
        self.steps.truncate(STEPS_MAX);
        self.steps.shrink_to_fit();
        let steps = self.steps.iter_mut().map(|(_, name)| name);
        let texts = self.attributes.iter_mut().filter_map(|(_, value)| match value {
            Attribute::Text(text) => Some(text),
            Attribute::Number(_) => None,
        });
        let others = [&mut self.name].into_iter().chain(&mut self.error);
        steps.chain(texts).chain(others).for_each(cut);
        WaitingSpan {
            span: self,
            steps_left_out,
        }
    }
}

impl WaitingSpan {
    /// The message for this span, with these random bytes as trace id and span id.
    pub(crate) fn encode(self, ids: [u8; 24]) -> messages::Span {
        let steps_left_out = u32::try_from(self.steps_left_out).unwrap_or(u32::MAX);
        let span = self.span;
        let (of_trace, of_span) = ids.split_at(16);
        let remote = if span.parent.is_some() {
            FLAG_REMOTE_PARENT
        } else {
            0
        };
        messages::Span {
            trace_id: span
                .parent
                .map_or(of_trace.to_vec(), |parent| parent.trace_id.to_vec()),
            span_id: of_span.to_vec(),
            parent_span_id: span.parent.map_or(Vec::new(), |parent| parent.span_id.to_vec()),
            kind: KIND_SERVER,
            start_unix_nanos: span.started_unix_nanos,
            end_unix_nanos: span.started_unix_nanos.saturating_add(span.elapsed_nanos),
            attributes: span
                .attributes
                .into_iter()
                .map(|(name, value)| match value {
                    Attribute::Text(text) => KeyValue::text(name, text),
                    Attribute::Number(number) => {
                        let number = i64::try_from(number).unwrap_or(i64::MAX);
                        KeyValue::new(name, AnyScalar::Int(number))
                    }
                })
                .collect(),
            events: span
                .steps
                .into_iter()
                .map(|(nanos, name)| Event {
                    unix_nanos: span.started_unix_nanos.saturating_add(nanos),
                    name,
                })
                .collect(),
            dropped_events_count: steps_left_out,
            status: span.error.map(|message| Status {
                message,
                code: STATUS_ERROR,
            }),
            name: span.name,
            flags: FLAGS_SAMPLED | remote,
        }
    }
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
        text.truncate(end);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded() {
        let long = "x".repeat(2 * TEXT_CHARS_MAX);
        let span = FinishedSpan {
            name: long.clone(),
            attributes: vec![("db.query.text".into(), Attribute::Text(long.clone()))],
            steps: vec![(1, long.clone()); STEPS_MAX + 7],
            error: Some(long),
            ..FinishedSpan::default()
        };
        let sent = span.bounded().encode([1; 24]);
        assert_eq!((sent.events.len(), sent.dropped_events_count), (STEPS_MAX, 7));
        let status = sent.status.unwrap();
        for text in [&sent.name, &status.message, &sent.events[0].name] {
            assert_eq!(text.len(), TEXT_CHARS_MAX);
        }
        assert!(format!("{:?}", sent.attributes).len() < TEXT_CHARS_MAX + 200);
    }
}
