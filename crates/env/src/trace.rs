//! The steps of a traced request (`TRACING ON`).
//!
//! Without tracing, a step costs one check of a thread-local flag: its text is only formatted for a trace.

use std::cell::{Cell, RefCell};
use std::time::Instant;

/// A step of a traced request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time since the start of the trace.
    pub elapsed_nanos: u64,
    /// What was done, in Cassandra's words where Cassandra does the same.
    pub activity: String,
}

/// Maximum number of steps of a trace.
const EVENTS_MAX: usize = 1000;

struct Trace {
    started: Instant,
    events: Vec<TraceEvent>,
    left_out: u64,
}

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
}

/// Starts to trace this thread.
pub fn begin() {
    TRACE.set(Some(Trace {
        started: Instant::now(),
        events: Vec::new(),
        left_out: 0,
    }));
    IS_ON.set(true);
}

/// Ends what [`begin`] started, and returns the steps.
pub fn finish() -> Vec<TraceEvent> {
    IS_ON.set(false);
    let Some(mut trace) = TRACE.take() else {
        return Vec::new();
    };
    if trace.left_out > 0 {
        let activity = format!("{} more steps were left out", trace.left_out);
        let elapsed_nanos = trace.elapsed_nanos();
        trace.events.push(TraceEvent {
            elapsed_nanos,
            activity,
        });
    }
    trace.events
}

/// True while this thread is traced.
#[inline]
pub fn is_on() -> bool {
    IS_ON.get()
}

/// Records a step, if this thread is traced.
#[inline]
pub fn note<S: Into<String>>(activity: impl FnOnce() -> S) {
    if is_on() {
        add(activity().into());
    }
}

#[cold]
fn add(activity: String) {
    TRACE.with_borrow_mut(|trace| {
        if let Some(trace) = trace {
            trace.add(activity);
        }
    });
}

impl Trace {
    fn elapsed_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn add(&mut self, activity: String) {
        if self.events.len() >= EVENTS_MAX {
            self.left_out += 1;
            return;
        }
        let elapsed_nanos = self.elapsed_nanos();
        self.events.push(TraceEvent {
            elapsed_nanos,
            activity,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activities() -> Vec<String> {
        finish().into_iter().map(|event| event.activity).collect()
    }

    #[test]
    fn steps_are_told_only_while_a_trace_goes_on() {
        note(|| -> String { panic!("nobody listens") });
        begin();
        note(|| "first");
        note(|| format!("second of {}", 2));
        assert_eq!(activities(), ["first", "second of 2"]);
        note(|| -> String { panic!("nobody listens any more") });
        assert!(activities().is_empty());
    }

    #[test]
    fn a_trace_does_not_grow_without_end() {
        begin();
        for step in 0..EVENTS_MAX + 5 {
            note(|| step.to_string());
        }
        let told = activities();
        assert_eq!(told.len(), EVENTS_MAX + 1);
        assert_eq!(told[EVENTS_MAX], "5 more steps were left out");
    }
}
