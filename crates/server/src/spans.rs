//! Requests as spans of OpenTelemetry, with the attributes that its conventions for databases name.
//!
//! A span has the text of the statement without its values. It has no text of an error, since that may quote values, too. Of the steps of
//! a trace only `Parsing` quotes the statement.

use std::borrow::Cow;
use std::net::IpAddr;

use ilion_env::trace::TraceEvent;
use ilion_env::{Cost, Count};
use ilion_protocol::{ErrorCode, RequestFrame};
use ilion_telemetry::{Attribute, FinishedSpan, TraceParent};
use uuid::Uuid;

use crate::described::{parameters, request_name};
use crate::subject::Subject;

/// Key of the caller's span in the custom payload of a request.
const PARENT_KEY: &str = "traceparent";

/// The parameters of a trace that become attributes of its span, and the names of these attributes.
const PARAMETERS: [(&str, &str); 2] = [
    ("consistency_level", "cassandra.consistency.level"),
    ("page_size", "cassandra.page.size"),
];

/// Start of the step that has the whole text of the statement.
const PARSING: &str = "Parsing";

/// The caller's span; `None` if the request names none.
pub(crate) fn parent_of(request: &RequestFrame) -> Option<TraceParent> {
    let payload = request.custom_payload.iter();
    let (_, value) = payload.into_iter().find(|(key, _)| key == PARENT_KEY)?;
    TraceParent::parse(value.as_ref()?)
}

/// The request and its answer.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub request: &'a RequestFrame,
    pub subject: &'a Subject,
    pub error: Option<ErrorCode>,
    pub client: IpAddr,
}

/// A finished request with its trace.
pub(crate) struct Done<'a> {
    pub ended: Ended<'a>,
    pub cost: &'a Cost,
    pub started_micros: i64,
    pub elapsed_nanos: u64,
    /// Id of the trace in `system_traces`; `None` if it is not stored there.
    pub session: Option<Uuid>,
    pub steps: &'a [TraceEvent],
}

impl Done<'_> {
    /// The span of the request.
    pub fn span(&self) -> FinishedSpan {
        let shape = self.ended.subject.shape();
        let operation = shape.text.split([' ', ';']).next().unwrap_or("").to_uppercase();
        let target = match (shape.keyspace.as_str(), shape.table.as_str()) {
            (keyspace, "") => keyspace.to_owned(),
            (keyspace, table) => format!("{keyspace}.{table}"),
        };
        let name = match operation.as_str() {
            "" => request_name(&self.ended.request.request).to_owned(),
            operation => format!("{operation} {target}").trim_end().to_owned(),
        };
        FinishedSpan {
            parent: parent_of(self.ended.request),
            name,
            started_unix_nanos: u64::try_from(self.started_micros)
                .unwrap_or(0)
                .saturating_mul(1000),
            elapsed_nanos: self.elapsed_nanos,
            attributes: self.attributes(&operation, &shape.keyspace, &shape.table, &shape.text),
            steps: self.steps.iter().map(without_values).collect(),
            error: self.ended.error.map(|code| format!("{code:?}")),
        }
    }

    fn attributes(
        &self,
        operation: &str,
        keyspace: &str,
        table: &str,
        text: &str,
    ) -> Vec<(Cow<'static, str>, Attribute)> {
        let mut all = vec![
            (
                Cow::from("db.system.name"),
                Attribute::Text("cassandra".to_owned()),
            ),
            (
                Cow::from("client.address"),
                Attribute::Text(self.ended.client.to_string()),
            ),
        ];
        let texts = [
            ("db.operation.name", operation),
            ("db.namespace", keyspace),
            ("db.collection.name", table),
            ("db.query.text", text),
        ];
        let texts = texts.into_iter().filter(|(_, value)| !value.is_empty());
        all.extend(texts.map(|(name, value)| (Cow::from(name), Attribute::Text(value.to_owned()))));
        for (name, value) in parameters(&self.ended.request.request, self.ended.subject) {
            let known = PARAMETERS.into_iter().find(|(known, _)| *known == name);
            all.extend(known.map(|(_, attribute)| (Cow::from(attribute), Attribute::Text(value))));
        }
        if let Some(session) = self.session {
            all.push((
                Cow::from("ilion.trace.session_id"),
                Attribute::Text(session.to_string()),
            ));
        }
        if let Some(code) = self.ended.error {
            let code = format!("{:#06x}", code.number());
            all.push((Cow::from("db.response.status_code"), Attribute::Text(code)));
        }
        let io = &self.cost.io;
        let of_disk = [
            ("disk_reads", io.reads),
            ("disk_bytes", io.bytes_read),
            ("disk_wait_nanos", io.read_nanos),
        ];
        let counts = Count::ALL
            .into_iter()
            .map(|count| (count.name(), self.cost.of(count)));
        let costs = of_disk
            .into_iter()
            .chain(counts)
            .filter(|(_, amount)| *amount > 0);
        all.extend(
            costs.map(|(name, amount)| (format!("ilion.cost.{name}").into(), Attribute::Number(amount))),
        );
        all
    }
}

/// Time and text of a step, without the statement that the step `Parsing` quotes.
fn without_values(step: &TraceEvent) -> (u64, String) {
    let activity = match step.activity.starts_with(PARSING) {
        true => PARSING,
        false => &step.activity,
    };
    (step.elapsed_nanos, activity.to_owned())
}
