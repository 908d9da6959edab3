//! The dashboard: one page on the port of the administration, and the requests that it makes beside `/admin` and `/metrics`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` | the page |
//! | `GET /assets/..` | its parts, all of them inside this program |
//! | `GET /api/spectrogram` | `?from=slot`: I/O by time, latency, kind and table; JSON: [`SpectrogramReport`] |
//! | `GET /api/slowest` | the slowest reads, writes and syncs in a rectangle of it: [`SlowestOrder`]; JSON: [`SlowestReport`] |
//! | `GET /api/history` | `?after=millis`: what the node did in each of the last seconds; JSON: [`HistoryReport`] |
//! | `POST /api/query` | JSON [`QueryOrder`]: executes a statement as for any client; JSON: [`QueryReport`] |

mod assets;
mod history;
mod query;
mod spectrogram;

use axum::Router;
use axum::routing::get;

pub(crate) use self::history::{History, SAMPLE_INTERVAL, Standing};
pub use self::history::{HistoryOrder, HistoryReport, HistorySample, Sizes};
pub(crate) use self::query::run;
pub use self::query::{QueryColumn, QueryOrder, QueryReport, QueryStep};
pub(crate) use self::spectrogram::SpectrogramOrder;
pub use self::spectrogram::{SlowIo, SlowestOrder, SlowestReport, SpectrogramReport, SpectrumSlot};

/// Routes of the page and its files. They need no token, since the files contain no data of the node.
pub(crate) fn pages<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{name}", get(assets::asset))
}
