//! The queue of spans, the thread that sends spans and metrics, and its requests.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};
use ilion_env::Env;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, redirect};
use tokio::sync::watch;

use crate::messages::{
    ExportAnswer, ExportMetrics, ExportTraces, KeyValue, Resource, ResourceMetrics, ResourceSpans, Scope,
    ScopeMetrics, ScopeSpans, Span,
};
use crate::openmetrics::{PointTimes, metrics_of};
use crate::span::WaitingSpan;
use crate::troubles::Troubles;
use crate::{FinishedSpan, TelemetryOptions};

/// Most spans in the queue; further ones are dropped. The default of `OTEL_BSP_MAX_QUEUE_SIZE`.
const WAITING_MAX: usize = 2048;
/// Most spans in a request. The default of `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`.
const BATCH_MAX: usize = 512;
/// How long a span waits for others. Shorter than the default of `OTEL_BSP_SCHEDULE_DELAY` (5 s), since people wait for their trace.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Pauses before a failed request is repeated. If the last repetition fails, its spans are dropped.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// How long sending the last spans may take when the node stops.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Returns the text of all metrics; `None` while the node stops.
type MetricsSource = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Sends spans and metrics until it is dropped.
pub struct Telemetry {
    sender: Sender<WaitingSpan>,
    /// Dropped to stop the thread.
    running: Mutex<Option<Sender<()>>>,
    /// Set to end a request that takes too long.
    is_stopping: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<OnceLock<MetricsSource>>,
    counts: Counts,
    sends_spans: bool,
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Telemetry")
    }
}

/// The exporter cannot start; the operator must change a setting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A URL cannot be used.
    #[error("{0}: expected http:// or https:// with a host")]
    Url(String),
    /// A header cannot be used.
    #[error("header {0}: the name or the value has a character that is not possible in a header")]
    Header(String),
    /// The client or its thread cannot be started.
    #[error("cannot start: {0}")]
    Thread(#[from] io::Error),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

#[derive(Clone, Default)]
struct Counts {
    spans_sent: Counter,
    spans_dropped: Counter,
    failures: Counter,
}

impl Telemetry {
    /// Starts the thread.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(env: Arc<dyn Env>, options: TelemetryOptions) -> Result<Self, StartError> {
        let mut is_encrypted = false;
        for url in [&options.traces_url, &options.metrics_url].into_iter().flatten() {
            match reqwest::Url::parse(url) {
                Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => {
                    is_encrypted |= parsed.scheme() == "https";
                }
                _ => return Err(StartError::Url(url.clone())),
            }
        }
        let mut client = reqwest::Client::builder()
            .timeout(options.timeout)
            .redirect(redirect::Policy::none())
            .default_headers(headers(&options)?);
        if !is_encrypted {
            // Without HTTPS the client must start on machines that have no certificates of issuers.
            client = client.tls_certs_only([]);
        }
        let client = client
            .build()
            .map_err(|error| StartError::Client(causes(&error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (sender, spans) = bounded(WAITING_MAX);
        let (running, stopping) = bounded(0);
        let (is_stopping, stop) = watch::channel(false);
        let (metrics, counts) = (Arc::<OnceLock<MetricsSource>>::default(), Counts::default());
        let sends_spans = options.traces_url.is_some();
        let exporter = Exporter {
            started_unix_nanos: unix_nanos(&*env),
            stopping,
            stop,
            metrics: metrics.clone(),
            counts: counts.clone(),
            troubles: Troubles::default(),
            runtime,
            client,
            options,
            env,
        };
        let thread = std::thread::Builder::new()
            .name("ilion-otlp".to_owned())
            .spawn(move || exporter.run(&spans))?;
        Ok(Self {
            sender,
            running: Mutex::new(Some(running)),
            is_stopping,
            thread: Mutex::new(Some(thread)),
            metrics,
            counts,
            sends_spans,
        })
    }

    /// True if spans are sent at all.
    pub fn sends_spans(&self) -> bool {
        self.sends_spans
    }

    /// Puts a span into the queue; drops it if the queue is full. Never waits.
    pub fn send(&self, span: FinishedSpan) {
        match self.sender.try_send(span.bounded()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.counts.spans_dropped.inc();
            }
        }
    }

    /// Sends the metrics of this source from now on. Only the first call has an effect.
    pub fn send_metrics_of(&self, source: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let _ = self.metrics.set(Box::new(source));
    }

    /// Registers the counters of spans and requests by outcome.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("otlp");
        registry.register(
            "spans_sent",
            "Spans that the OTLP collector has taken",
            self.counts.spans_sent.clone(),
        );
        registry.register(
            "spans_dropped",
            "Spans that were dropped, since too many waited or the OTLP collector did not take them",
            self.counts.spans_dropped.clone(),
        );
        registry.register(
            "failures",
            "Requests that the OTLP collector did not answer, or refused",
            self.counts.failures.clone(),
        );
    }

    /// Sends the last spans, for at most two seconds, and ends the thread.
    pub fn stop(&self) {
        drop(self.running.lock().take());
        self.is_stopping.send_replace(true);
        let thread = self.thread.lock().take();
        // A thread cannot wait for itself: if the source of metrics holds the last reference to `self`, the thread itself drops `self`.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.stop();
    }
}

fn headers(options: &TelemetryOptions) -> Result<HeaderMap, StartError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let bad = || StartError::Header(name.clone());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    Ok(headers)
}

fn unix_nanos(env: &dyn Env) -> u64 {
    u64::try_from(env.now_micros()).unwrap_or(0).saturating_mul(1000)
}

/// Why a request failed.
struct Failed {
    reason: String,
    /// True if the same request may succeed later.
    is_passing: bool,
    /// How many spans or points the collector refused, if it accepted the others.
    refused: Option<u64>,
}

/// The state of the thread.
struct Exporter {
    env: Arc<dyn Env>,
    options: TelemetryOptions,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    /// Disconnected when the node stops.
    stopping: Receiver<()>,
    stop: watch::Receiver<bool>,
    metrics: Arc<OnceLock<MetricsSource>>,
    counts: Counts,
    troubles: Troubles,
    started_unix_nanos: u64,
}

impl Exporter {
    fn run(mut self, spans: &Receiver<WaitingSpan>) {
        let mut batch: Vec<Span> = Vec::new();
        let mut batch_due = Instant::now();
        let mut metrics_due = Instant::now() + self.options.metrics_interval;
        let sends_metrics = self.options.metrics_url.is_some();
        loop {
            let due = match (batch.is_empty(), sends_metrics) {
                (false, true) => Some(batch_due.min(metrics_due)),
                (false, false) => Some(batch_due),
                (true, true) => Some(metrics_due),
                (true, false) => None,
            };
            let timer = due.map_or_else(crossbeam_channel::never, crossbeam_channel::at);
            select! {
                recv(spans) -> span => {
                    let Ok(span) = span else { break };
                    if batch.is_empty() {
                        batch_due = Instant::now() + BATCH_DELAY;
                    }
                    batch.push(self.encode(span));
                }
                recv(self.stopping) -> _ => break,
                recv(timer) -> _ => {}
            }
            let now = Instant::now();
            if batch.len() >= BATCH_MAX || (!batch.is_empty() && now >= batch_due) {
                self.send_spans(std::mem::take(&mut batch));
            }
            if sends_metrics && now >= metrics_due {
                self.send_metrics();
                metrics_due = Instant::now() + self.options.metrics_interval;
            }
        }
        self.finish(spans, batch);
    }

    /// Sends all spans that are left, each batch once.
    fn finish(&mut self, spans: &Receiver<WaitingSpan>, mut batch: Vec<Span>) {
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            let room = BATCH_MAX.saturating_sub(batch.len());
            batch.extend(spans.try_iter().take(room).map(|span| self.encode(span)));
            if batch.is_empty() {
                return;
            }
            let (count, left) = (batch.len(), deadline.saturating_duration_since(Instant::now()));
            let sent = match left.is_zero() {
                true => Err(Failed {
                    reason: "the node stops, and there is no time left".to_owned(),
                    is_passing: false,
                    refused: None,
                }),
                false => self.post_spans(self.body_of(std::mem::take(&mut batch)), left),
            };
            batch.clear();
            self.tell(&sent, count);
        }
    }

    fn encode(&self, span: WaitingSpan) -> Span {
        let mut ids = [0; 24];
        self.env.random_bytes(&mut ids);
        // An id must not be all zeros.
        ids[0] |= 1;
        ids[16] |= 1;
        span.encode(ids)
    }

    /// Sends a batch. Repeats the request after failures that may pass.
    fn send_spans(&mut self, batch: Vec<Span>) {
        let (count, body) = (batch.len(), self.body_of(batch));
        let mut pauses = PAUSES.into_iter();
        loop {
            let sent = self.post_spans(body.clone(), self.options.timeout);
            let pause = match &sent {
                Err(failed) if failed.is_passing => pauses.next(),
                _ => None,
            };
            self.tell(&sent, if pause.is_some() { 0 } else { count });
            let Some(pause) = pause else { return };
            // During the pause, new spans stay in the queue. If the node stops, the pause ends and the batch is dropped.
            if self.stopping.recv_timeout(pause) == Err(crossbeam_channel::RecvTimeoutError::Disconnected) {
                self.counts.spans_dropped.inc_by(count as u64);
                return;
            }
        }
    }

    fn body_of(&self, spans: Vec<Span>) -> Vec<u8> {
        let message = ExportTraces {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(self.scope()),
                    spans,
                }],
            }],
        };
        message.encode_to_vec()
    }

    fn post_spans(&self, body: Vec<u8>, timeout: Duration) -> Result<(), Failed> {
        match &self.options.traces_url {
            Some(url) => self.post(url, body, timeout),
            None => Ok(()),
        }
    }

    fn send_metrics(&mut self) {
        let Some(url) = self.options.metrics_url.clone() else {
            return;
        };
        let Some(text) = self.metrics.get().and_then(|source| source()) else {
            return;
        };
        let times = PointTimes {
            started_unix_nanos: self.started_unix_nanos,
            now_unix_nanos: unix_nanos(&*self.env),
        };
        let message = ExportMetrics {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(self.scope()),
                    metrics: metrics_of(&text, times),
                }],
            }],
        };
        // No retry: the points are cumulative, so the next request replaces this one.
        let sent = self.post(&url, message.encode_to_vec(), self.options.timeout);
        self.tell(&sent, 0);
    }

    fn post(&self, url: &str, body: Vec<u8>, timeout: Duration) -> Result<(), Failed> {
        let request = self.client.post(url).body(body).timeout(timeout);
        let mut stop = self.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                answered = exchange(request) => answered,
                () = no_more_patience(&mut stop) => Err(Failed {
                    reason: "the node stops, and it has not answered".to_owned(),
                    is_passing: false,
                    refused: None,
                }),
            }
        })
    }

    /// Counts and logs the outcome of a request that had this number of spans; 0 if they will be sent again.
    fn tell(&mut self, sent: &Result<(), Failed>, spans: usize) {
        let spans = spans as u64;
        match sent {
            Ok(()) => {
                self.counts.spans_sent.inc_by(spans);
                if self.troubles.succeeded() {
                    tracing::info!("the OTLP collector takes spans and metrics again");
                }
            }
            Err(failed) => {
                self.counts.failures.inc();
                let dropped = failed.refused.map_or(spans, |refused| refused.min(spans));
                self.counts.spans_dropped.inc_by(dropped);
                self.counts.spans_sent.inc_by(spans - dropped);
                if let Some(failures) = self.troubles.failed(Instant::now()) {
                    let dropped = self.counts.spans_dropped.get();
                    tracing::warn!(
                        failures,
                        spans_dropped = dropped,
                        "the OTLP collector does not take spans or metrics: {}",
                        failed.reason
                    );
                }
            }
        }
    }

    fn resource(&self) -> Resource {
        let pairs = self.options.resource.iter();
        Resource {
            attributes: pairs.map(|(name, value)| KeyValue::text(name, value)).collect(),
        }
    }

    fn scope(&self) -> Scope {
        Scope {
            name: "ilion".to_owned(),
            version: self.options.version.to_owned(),
        }
    }
}

/// Sends a request and reads the answer.
async fn exchange(request: reqwest::RequestBuilder) -> Result<(), Failed> {
    let passing = |error: reqwest::Error| Failed {
        reason: causes(&error),
        is_passing: true,
        refused: None,
    };
    let mut answer = request.send().await.map_err(passing)?;
    let status = answer.status();
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.map_err(passing)? {
        if body.len() + bytes.len() > ANSWER_BYTES_MAX {
            break;
        }
        body.extend_from_slice(&bytes);
    }
    judge(status, &body)
}

/// Returns when the node stops and `STOP_PATIENCE` has passed.
async fn no_more_patience(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, so nobody else can stop this.
    let _ = stop.wait_for(|is_stopping| *is_stopping).await;
    tokio::time::sleep(STOP_PATIENCE).await;
}

/// Turns status and body of an answer into the outcome of the request. Pure.
fn judge(status: StatusCode, body: &[u8]) -> Result<(), Failed> {
    if !status.is_success() {
        return Err(Failed {
            reason: format!("it answers {status}"),
            // The list in the specification of OTLP.
            is_passing: matches!(status.as_u16(), 429 | 502 | 503 | 504),
            refused: None,
        });
    }
    let partial = ExportAnswer::decode(body).ok().and_then(|answer| answer.partial);
    match partial {
        Some(partial) if partial.rejected > 0 => Err(Failed {
            reason: format!(
                "it refuses {} of a request: {}",
                partial.rejected, partial.message
            ),
            is_passing: false,
            refused: u64::try_from(partial.rejected).ok(),
        }),
        _ => Ok(()),
    }
}

/// The text of an error with its causes. The causes say what went wrong.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::PartialSuccess;

    #[test]
    fn an_answer_says_what_becomes_of_a_batch() {
        let answer = |rejected| {
            let partial = PartialSuccess {
                rejected,
                message: "too old".to_owned(),
            };
            let partial = Some(partial);
            ExportAnswer { partial }.encode_to_vec()
        };
        assert!(judge(StatusCode::OK, b"").is_ok());
        assert!(judge(StatusCode::OK, b"no protobuf \xff").is_ok());
        assert!(judge(StatusCode::OK, &answer(0)).is_ok());
        let part = judge(StatusCode::OK, &answer(3)).err().unwrap();
        assert_eq!((part.refused, part.is_passing), (Some(3), false));
        assert!(part.reason.ends_with("too old"));
        let passing = |status| judge(status, b"").err().unwrap().is_passing;
        assert!(passing(StatusCode::SERVICE_UNAVAILABLE) && passing(StatusCode::TOO_MANY_REQUESTS));
        assert!(!passing(StatusCode::BAD_REQUEST) && !passing(StatusCode::INTERNAL_SERVER_ERROR));
    }
}
