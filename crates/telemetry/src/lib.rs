//! OpenTelemetry: spans and metrics to a collector, over OTLP (HTTP with protobuf).
//!
//! [`Telemetry::start`] starts the thread `ilion-otlp`. A request that is over is given to [`Telemetry::send`], which puts it into a bounded
//! queue and never waits: a span that has no room is dropped and counted. The thread takes them in batches, encodes them (`span`,
//! `messages`), and posts them. Every [`TelemetryOptions::metrics_interval`] it asks the source of metrics for a text, converts it
//! (`openmetrics`), and posts it. A collector that is down, slow or refuses costs spans, and a line in the log each minute.
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
