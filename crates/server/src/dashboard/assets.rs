//! The files of the dashboard.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Content security policy: the page may load and request its own origin only, has no inline code and no inline styles, and no other
/// page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const INDEX: &str = include_str!("../../assets/index.html");

const ASSETS: [(&str, &str, &str); 31] = [
    ("advice.js", SCRIPT, include_str!("../../assets/advice.js")),
    (
        "advice_view.js",
        SCRIPT,
        include_str!("../../assets/advice_view.js"),
    ),
    ("app.js", SCRIPT, include_str!("../../assets/app.js")),
    ("ask.js", SCRIPT, include_str!("../../assets/ask.js")),
    ("charts.js", SCRIPT, include_str!("../../assets/charts.js")),
    ("cluster.js", SCRIPT, include_str!("../../assets/cluster.js")),
    (
        "cluster_view.js",
        SCRIPT,
        include_str!("../../assets/cluster_view.js"),
    ),
    ("complete.js", SCRIPT, include_str!("../../assets/complete.js")),
    (
        "complete_view.js",
        SCRIPT,
        include_str!("../../assets/complete_view.js"),
    ),
    ("format.js", SCRIPT, include_str!("../../assets/format.js")),
    ("heat.js", SCRIPT, include_str!("../../assets/heat.js")),
    ("heat_view.js", SCRIPT, include_str!("../../assets/heat_view.js")),
    ("history.js", SCRIPT, include_str!("../../assets/history.js")),
    ("markers.js", SCRIPT, include_str!("../../assets/markers.js")),
    ("metrics.js", SCRIPT, include_str!("../../assets/metrics.js")),
    ("overview.js", SCRIPT, include_str!("../../assets/overview.js")),
    ("plan.js", SCRIPT, include_str!("../../assets/plan.js")),
    ("query.js", SCRIPT, include_str!("../../assets/query.js")),
    ("ramp.js", SCRIPT, include_str!("../../assets/ramp.js")),
    ("route.js", SCRIPT, include_str!("../../assets/route.js")),
    ("schema.js", SCRIPT, include_str!("../../assets/schema.js")),
    (
        "spectrogram.js",
        SCRIPT,
        include_str!("../../assets/spectrogram.js"),
    ),
    (
        "statements.js",
        SCRIPT,
        include_str!("../../assets/statements.js"),
    ),
    ("steps.js", SCRIPT, include_str!("../../assets/steps.js")),
    (
        "table_view.js",
        SCRIPT,
        include_str!("../../assets/table_view.js"),
    ),
    ("tables.js", SCRIPT, include_str!("../../assets/tables.js")),
    (
        "values_view.js",
        SCRIPT,
        include_str!("../../assets/values_view.js"),
    ),
    ("words.js", SCRIPT, include_str!("../../assets/words.js")),
    ("style.css", STYLE, include_str!("../../assets/style.css")),
    // uPlot 1.6.32, MIT license, as published (docs/dependencies.md).
    (
        "uplot.js",
        SCRIPT,
        include_str!("../../assets/vendor/uPlot.iife.min.js"),
    ),
    (
        "uplot.css",
        STYLE,
        include_str!("../../assets/vendor/uPlot.min.css"),
    ),
];

pub(super) async fn index() -> Response {
    answer(HTML, INDEX)
}

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => answer(kind, text),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The next request may reach another version of the program.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_completes_the_functions_of_the_query_layer() {
        let (.., script) = ASSETS.iter().find(|(name, ..)| *name == "complete.js").unwrap();
        let (_, list) = script.split_once("const FUNCTIONS = (").unwrap();
        let (list, _) = list.split_once(").split").unwrap();
        let words = list.split(|character: char| !(character.is_alphanumeric() || character == '_'));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ilion_query::FUNCTION_NAMES);
    }
}
