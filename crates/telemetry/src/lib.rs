//! OpenTelemetry: sends spans and metrics to a collector, over OTLP (HTTP with protobuf).
//!
//! [`Telemetry::start`] starts the thread `ilion-otlp`. [`Telemetry::send`] puts a finished request into a bounded queue and never waits:
//! if the queue is full, the span is dropped and counted. The thread takes spans in batches, encodes them (`span`,
//! `messages`), and posts them. Every [`TelemetryOptions::metrics_interval`] it gets a text from the source of metrics, converts it
//! (`openmetrics`), and posts it. If the collector is down, slow or refuses, spans are lost, and the log gets a line each minute.
//!
//! | module | |
//! | --- | --- |
//! | `options` | [`TelemetryOptions`]: where to, how often; lists of headers and attributes |
//! | `traceparent` | [`TraceParent`]: the caller's span, W3C Trace Context |
//! | `span`, `openmetrics` | requests and metrics to messages |
//! | `messages` | what OTLP sends |
//! | `exporter` | [`Telemetry`]: queue, thread, HTTP |
//! | `troubles` | failures for the log, one line a minute |

mod exporter;
mod messages;
mod openmetrics;
mod options;
mod span;
mod traceparent;
mod troubles;

pub use exporter::{StartError, Telemetry};
pub use options::{TelemetryOptions, parse_pairs, url_below};
pub use span::{Attribute, FinishedSpan};
pub use traceparent::TraceParent;
