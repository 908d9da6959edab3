//! A finished request, as a span.

use std::borrow::Cow;

use crate::messages::{
    AnyScalar, Event, FLAG_REMOTE_PARENT, FLAGS_SAMPLED, KIND_SERVER, KeyValue, STATUS_ERROR, Status,
};
use crate::{TraceParent, messages};

/// Most characters of a name or text.
const TEXT_CHARS_MAX: usize = 4096;

/// A request that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishedSpan {
    /// The caller's span; `None` begins a trace.
    pub parent: Option<TraceParent>,
    /// What was done; few different names.
    pub name: String,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_nanos: u64,
    /// How long it took.
    pub elapsed_nanos: u64,
    /// Facts about it.
    pub attributes: Vec<(Cow<'static, str>, Attribute)>,
    /// Its steps: nanoseconds since it began, and what was done.
    pub steps: Vec<(u64, String)>,
    /// Why it failed.
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

impl FinishedSpan {
    /// Its message, with these random bytes as its ids.
    pub(crate) fn encode(self, ids: [u8; 24]) -> messages::Span {
        let (of_trace, of_span) = ids.split_at(16);
        let remote = if self.parent.is_some() {
            FLAG_REMOTE_PARENT
        } else {
            0
        };
        messages::Span {
            trace_id: self
                .parent
                .map_or(of_trace.to_vec(), |parent| parent.trace_id.to_vec()),
            span_id: of_span.to_vec(),
            parent_span_id: self.parent.map_or(Vec::new(), |parent| parent.span_id.to_vec()),
            kind: KIND_SERVER,
            start_unix_nanos: self.started_unix_nanos,
            end_unix_nanos: self.started_unix_nanos.saturating_add(self.elapsed_nanos),
            attributes: self
                .attributes
                .into_iter()
                .map(|(name, value)| match value {
                    Attribute::Text(text) => KeyValue::text(name, cut(text)),
                    Attribute::Number(number) => {
                        let number = i64::try_from(number).unwrap_or(i64::MAX);
                        KeyValue::new(name, AnyScalar::Int(number))
                    }
                })
                .collect(),
            events: self
                .steps
                .into_iter()
                .map(|(nanos, name)| Event {
                    unix_nanos: self.started_unix_nanos.saturating_add(nanos),
                    name: cut(name),
                })
                .collect(),
            status: self.error.map(|message| Status {
                message: cut(message),
                code: STATUS_ERROR,
            }),
            name: cut(self.name),
            flags: FLAGS_SAMPLED | remote,
        }
    }
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
        text.truncate(end);
    }
    text
}
