//! Traces of requests as tables. Compat: as cqlsh prints them, with times in UTC.

use std::io;
use std::thread;
use std::time::Duration;

use ilion_types::{Uuid, civil_from_days, ticks_of_unix_micros, time_uuid_ticks};

use crate::cell::Cell;
use crate::session::Failure;
use crate::shell::Shell;
use crate::table::Table;

/// How often a trace that is not complete is read again, and how long the shell waits in between.
const READS_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The row of a trace in `system_traces.sessions`.
struct Head {
    request: String,
    started_micros: i64,
    coordinator: String,
    /// Empty until the trace is complete.
    duration_micros: String,
    client: String,
}

impl Shell<'_> {
    /// Prints a trace as soon as it is complete.
    pub(crate) fn show_trace(&mut self, id: Uuid) -> io::Result<()> {
        let mut reads = 1;
        let head = loop {
            match self.trace_head(id) {
                Ok(Some(head)) if !head.duration_micros.is_empty() => break head,
                Ok(_) if reads < READS_MAX => thread::sleep(PAUSE),
                Ok(Some(head)) => break head,
                Ok(None) => return self.complain(&format!("Session {id} wasn't found.")),
                Err(failure) => return self.complain_of(&failure),
            }
            reads += 1;
        };
        let table = match self.trace_table(id, &head) {
            Ok(table) => table,
            Err(failure) => return self.complain_of(&failure),
        };
        self.output.result("")?;
        self.output.result(&format!("Tracing session: {id}"))?;
        self.output.result("")?;
        table.print(true, &mut self.output)?;
        self.output.result("")
    }

    fn trace_head(&mut self, id: Uuid) -> Result<Option<Head>, Failure> {
        let rows = self.ask(&format!(
            "SELECT request, toUnixTimestamp(started_at), coordinator, duration, client FROM system_traces.sessions WHERE session_id = {id}"
        ))?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let text = |index: usize| row.get(index).cloned().unwrap_or_default();
        Ok(Some(Head {
            request: text(0),
            started_micros: text(1).parse::<i64>().unwrap_or_default().saturating_mul(1000),
            coordinator: text(2),
            duration_micros: text(3),
            client: text(4),
        }))
    }

    fn trace_table(&mut self, id: Uuid, head: &Head) -> Result<Table, Failure> {
        let events = self.ask(&format!(
            "SELECT event_id, activity, thread, source, source_elapsed FROM system_traces.events WHERE session_id = {id}"
        ))?;
        let names = ["activity", "timestamp", "source", "source_elapsed", "client"];
        let row = |cells: [&str; 5]| cells.map(Cell::of_text).to_vec();
        let started = print_micros(head.started_micros);
        let mut rows = vec![row([
            &head.request,
            &started,
            &head.coordinator,
            "0",
            &head.client,
        ])];
        for event in &events {
            let text = |index: usize| event.get(index).map_or("", String::as_str);
            let activity = format!("{} [{}]", text(1), text(2));
            let time = Uuid::try_parse(text(0))
                .map(|id| print_micros(micros_of(&id)))
                .unwrap_or_default();
            rows.push(row([&activity, &time, text(3), text(4), &head.client]));
        }
        if let Ok(duration) = head.duration_micros.parse::<i64>() {
            let ended = print_micros(head.started_micros.saturating_add(duration));
            rows.push(row([
                "Request complete",
                &ended,
                &head.coordinator,
                &head.duration_micros,
                &head.client,
            ]));
        }
        Ok(Table {
            names: names.map(Cell::of_name).to_vec(),
            rows,
        })
    }
}

/// Microseconds since 1970 of a version 1 UUID.
fn micros_of(id: &Uuid) -> i64 {
    let ticks = time_uuid_ticks(id).saturating_sub(ticks_of_unix_micros(0));
    i64::try_from(ticks / 10).unwrap_or_default()
}

fn print_micros(micros: i64) -> String {
    let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
    let micros = micros.rem_euclid(MICROS_PER_DAY);
    let seconds = micros / 1_000_000;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:06}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        micros % 1_000_000
    )
}
