//! The dashboard: one page for people at the port of the administration, and what it asks for beside `/admin` and `/metrics`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` | the page |
//! | `GET /assets/..` | its parts, all of them inside this program |
//! | `GET /api/spectrogram` | `?from=slot`: I/O by time, latency, kind and table; JSON: [`SpectrogramReport`] |
//! | `GET /api/slowest` | the slowest reads of a rectangle of it: [`SlowestOrder`]; JSON: [`SlowestReport`] |
//! | `POST /api/query` | JSON [`QueryOrder`]: a statement, carried out as for any client; JSON: [`QueryReport`] |

mod assets;
mod query;
mod spectrogram;

use axum::Router;
use axum::routing::get;

pub(crate) use self::query::run;
pub use self::query::{QueryColumn, QueryOrder, QueryReport, QueryStep};
pub(crate) use self::spectrogram::SpectrogramOrder;
pub use self::spectrogram::{SlowRead, SlowestOrder, SlowestReport, SpectrogramReport, SpectrumSlot};

/// The page and its parts, which hold nothing secret.
pub(crate) fn pages<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{name}", get(assets::asset))
}
