//! SSTables that `ilion sstable load` sends from another machine.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /admin/load/begin` | `?keyspace=k&table=t&sstable=nb-1-big&components=..`, lines of `Data.db 123`: name and bytes; JSON: [`LoadReport`] |
//! | `POST /admin/load/piece` | `?load=ID&component=Data.db&offset=0&crc=N`, and the bytes as body, at most [`PIECE_BYTES_MAX`] |
//! | `POST /admin/load/finish` | `?load=ID`: the SSTable is checked and imported, in a cluster written to all replicas; JSON: [`FinishedLoad`] |
//! | `POST /admin/load/abandon` | `?load=ID`: the files that were received are removed |
//!
//! Components come one after another, Statistics.db first. An error ends the load; so does a sender that is silent for [`SILENCE_MAX`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use ilion_engine::{Engine, Load};
use ilion_schema::TableId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::handling::{Shared, failed, in_thread};
use super::{Admin, AdminError, FinishedLoad};

/// Largest piece, in bytes.
pub const PIECE_BYTES_MAX: usize = 4 << 20;
/// Most loads at a time.
const LOADS_MAX: usize = 16;
/// A load ends if its sender is silent for longer.
const SILENCE_MAX: Duration = Duration::from_mins(5);
/// Time between two searches for loads whose senders are silent.
const SEARCH_INTERVAL: Duration = Duration::from_secs(30);

/// The path of pieces, whose bodies may be larger than others.
pub(super) const PIECE_PATH: &str = "/admin/load/piece";

/// Announces an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadOrder {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The common start of the names of its files: `nb-12-big`.
    pub sstable: String,
    /// Name and bytes of each component, one per line: `Data.db 123`.
    pub components: String,
}

/// A load that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Its id.
    pub load: String,
}

/// A piece of a component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadPiece {
    /// Id of the load.
    pub load: String,
    /// Name of the component.
    pub component: String,
    /// Where the piece begins.
    pub offset: u64,
    /// CRC-32 of its bytes.
    pub crc: u32,
}

/// The loads that are in progress.
#[derive(Default)]
pub(super) struct Loads(Mutex<HashMap<String, Open>>);

/// A load in progress.
struct Open {
    /// `None` after an error. The lock is held during I/O: only requests about this load take it, and they come one after another.
    load: Arc<Mutex<Option<Load>>>,
    used_nanos: u64,
}

impl LoadOrder {
    fn sizes(&self) -> Result<Vec<(&str, u64)>, AdminError> {
        let wrong = |line: &str| {
            AdminError::Refused(format!("components: expected a name and its bytes, not {line}"))
        };
        let size = |line: &'_ str| {
            let (name, bytes) = line.rsplit_once(' ')?;
            Some((name.len(), bytes.parse().ok()?))
        };
        let lines = self.components.lines();
        lines
            .map(|line| {
                size(line)
                    .map(|(end, bytes)| (&line[..end], bytes))
                    .ok_or_else(|| wrong(line))
            })
            .collect()
    }
}

impl Loads {
    /// Begins a load into this table.
    pub fn begin(
        &self,
        engine: &Engine,
        table: TableId,
        order: &LoadOrder,
    ) -> Result<LoadReport, AdminError> {
        let load = engine
            .begin_load(table, &order.sstable, &order.sizes()?)
            .map_err(failed)?;
        let env = engine.env();
        let (id, used_nanos) = (env.random_uuid().to_string(), env.monotonic_nanos());
        let load = Arc::new(Mutex::new(Some(load)));
        let mut loads = self.0.lock();
        if loads.len() >= LOADS_MAX {
            drop(loads);
            return Err(AdminError::Refused(format!(
                "{LOADS_MAX} loads are in progress; try again when one has ended"
            )));
        }
        loads.insert(id.clone(), Open { load, used_nanos });
        Ok(LoadReport { load: id })
    }

    /// Receives a piece.
    pub fn receive(&self, engine: &Engine, piece: &LoadPiece, bytes: &[u8]) -> Result<(), AdminError> {
        let open = self.open(engine, &piece.load)?;
        let mut load = open.lock();
        let received = load.as_mut().ok_or_else(|| ended(&piece.load))?;
        let received = received.receive(&piece.component, piece.offset, piece.crc, bytes);
        received.map_err(|error| {
            *load = None;
            self.0.lock().remove(&piece.load);
            failed(error)
        })
    }

    /// Ends a load with an import.
    pub fn finish(&self, engine: &Engine, id: &str) -> Result<FinishedLoad, AdminError> {
        self.finish_by(id, |load| {
            let to = Some(engine.finish_load(load).map_err(failed)?);
            Ok(FinishedLoad { to })
        })
    }

    /// Ends a load by what `finish` does with it.
    pub fn finish_by(
        &self,
        id: &str,
        finish: impl FnOnce(&Load) -> Result<FinishedLoad, AdminError>,
    ) -> Result<FinishedLoad, AdminError> {
        let open = self.0.lock().remove(id).ok_or_else(|| ended(id))?;
        let load = open.load.lock().take().ok_or_else(|| ended(id))?;
        finish(&load)
    }

    /// Ends a load without an import.
    pub fn abandon(&self, id: &str) {
        let open = self.0.lock().remove(id);
        drop(open.and_then(|open| open.load.lock().take()));
    }

    /// Ends the loads whose senders are silent.
    pub fn end_silent(&self, now_nanos: u64) {
        let silence = |open: &Open| Duration::from_nanos(now_nanos.saturating_sub(open.used_nanos));
        let silent: Vec<String> = {
            let loads = self.0.lock();
            let silent = loads.iter().filter(|(_, open)| silence(open) > SILENCE_MAX);
            silent.map(|(id, _)| id.clone()).collect()
        };
        for id in silent {
            tracing::warn!(load = %id, "nothing more came of an SSTable that is being loaded; what was received is removed");
            self.abandon(&id);
        }
    }

    fn open(&self, engine: &Engine, id: &str) -> Result<Arc<Mutex<Option<Load>>>, AdminError> {
        let mut loads = self.0.lock();
        let open = loads.get_mut(id).ok_or_else(|| ended(id))?;
        open.used_nanos = engine.env().monotonic_nanos();
        Ok(open.load.clone())
    }
}

fn ended(load: &str) -> AdminError {
    AdminError::Refused(format!(
        "there is no load {load}: it has ended, or the node was restarted; load the SSTable again"
    ))
}

/// The routes of loads.
pub(super) fn routes() -> Router<Arc<dyn Admin>> {
    Router::new()
        .route("/admin/load/begin", post(begin))
        .route(
            PIECE_PATH,
            post(piece).layer(DefaultBodyLimit::max(PIECE_BYTES_MAX)),
        )
        .route("/admin/load/finish", post(finish))
        .route("/admin/load/abandon", post(abandon))
}

/// Ends loads of silent senders every [`SEARCH_INTERVAL`], as long as the runtime runs.
pub(super) async fn watch(admin: Arc<dyn Admin>) {
    loop {
        tokio::time::sleep(SEARCH_INTERVAL).await;
        let admin = admin.clone();
        // A panic was logged; the next search may succeed.
        let _ = tokio::task::spawn_blocking(move || admin.end_silent_loads()).await;
    }
}

/// Selects a load.
#[derive(Clone, Debug, Deserialize)]
struct LoadChoice {
    load: String,
}

async fn begin(State(admin): Shared, Query(order): Query<LoadOrder>) -> Response {
    in_thread(move || Ok(Json(admin.begin_load(&order)?).into_response())).await
}

async fn piece(State(admin): Shared, Query(piece): Query<LoadPiece>, bytes: Bytes) -> Response {
    in_thread(move || {
        admin.receive_load(&piece, &bytes)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn finish(State(admin): Shared, Query(choice): Query<LoadChoice>) -> Response {
    in_thread(move || Ok(Json(admin.finish_load(&choice.load)?).into_response())).await
}

async fn abandon(State(admin): Shared, Query(choice): Query<LoadChoice>) -> Response {
    in_thread(move || {
        admin.abandon_load(&choice.load);
        Ok(Json(json!({})).into_response())
    })
    .await
}
