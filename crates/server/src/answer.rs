//! Encodes answers as envelopes of the protocol.

use std::collections::HashMap;
use std::sync::Arc;

use ilion_codec::Rope;
use ilion_protocol::{
    ColumnSpec, Compression, ErrorCode, ErrorResponse, MetadataMode, Opcode, Response, ResponseHead,
    ResultBody, RowsHead, begin_response, encode_response,
};
use ilion_query::ResultSet;

/// An answer, not yet encoded.
pub(crate) enum Reply {
    /// Any response but rows.
    Response(Response),
    /// Rows of a QUERY, with full metadata.
    Rows(ResultSet),
    /// Rows of a prepared statement.
    PreparedRows { result: ResultSet, metadata: Metadata },
}

/// The metadata to send with the rows of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    Full,
    Skip,
    /// Full, under a new id, since the client knows an older version (v5).
    Changed([u8; 16]),
}

impl Reply {
    pub fn void() -> Self {
        Self::result(ResultBody::Void)
    }

    pub fn result(body: ResultBody) -> Self {
        Self::Response(Response::Result(body))
    }

    pub fn error(error: ErrorResponse) -> Self {
        Self::Response(Response::Error(error))
    }

    /// True if the answer changes the keyspace of the connection.
    pub fn sets_keyspace(&self) -> bool {
        matches!(self, Self::Response(Response::Result(ResultBody::SetKeyspace(_))))
    }

    /// The error; `None` if the answer is no error.
    pub fn refusal(&self) -> Option<&ErrorResponse> {
        match self {
            Self::Response(Response::Error(error)) => Some(error),
            _ => None,
        }
    }

    /// The error code; `None` if the answer is no error.
    pub fn error_code(&self) -> Option<ErrorCode> {
        self.refusal().map(|error| error.detail.code())
    }
}

/// Cache of converted columns of prepared statements, so that they are not converted for each answer.
#[derive(Default)]
pub(crate) struct Columns {
    /// By address of the source. Invariant: the entry keeps the source alive, so no other columns can get the same address.
    known: HashMap<usize, Converted>,
}

struct Converted {
    /// Never read: it keeps the address in use.
    _source: Arc<[ilion_query::ColumnSpec]>,
    columns: Arc<[ColumnSpec]>,
}

/// Most cached statements per thread; a full cache is emptied.
const COLUMNS_KEPT_MAX: usize = 1024;

impl Columns {
    fn of(&mut self, columns: &Arc<[ilion_query::ColumnSpec]>) -> Arc<[ColumnSpec]> {
        let address = columns.as_ptr() as usize;
        if let Some(known) = self.known.get(&address) {
            return known.columns.clone();
        }
        if self.known.len() >= COLUMNS_KEPT_MAX {
            self.known.clear();
        }
        let converted: Arc<[ColumnSpec]> = convert_columns(columns).into();
        let known = Converted {
            _source: columns.clone(),
            columns: converted.clone(),
        };
        self.known.insert(address, known);
        converted
    }
}

/// Converts columns to the types of the protocol.
pub(crate) fn convert_columns(columns: &[ilion_query::ColumnSpec]) -> Vec<ColumnSpec> {
    columns.iter().map(convert_column).collect()
}

fn convert_column(column: &ilion_query::ColumnSpec) -> ColumnSpec {
    ColumnSpec {
        keyspace: column.keyspace.clone(),
        table: column.table.clone(),
        name: column.name.clone(),
        cql_type: column.ty.clone(),
    }
}

/// Appends the envelope of an answer.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    head: &ResponseHead<'_>,
    reply: &Reply,
    compression: Option<Compression>,
    columns: &mut Columns,
) {
    let encoded = match reply {
        Reply::Response(response) => encode_response(out, head, response, compression),
        Reply::Rows(result) => {
            let columns = convert_columns(&result.columns);
            encode_rows(out, head, result, &columns, Metadata::Full, compression)
        }
        Reply::PreparedRows { result, metadata } => {
            let columns = columns.of(&result.columns);
            encode_rows(out, head, result, &columns, *metadata, compression)
        }
    };
    if let Err(error) = encoded {
        let response = Response::Error(ErrorResponse::invalid(format!(
            "the result is too large, ask for pages: {error}"
        )));
        // An error message is far below the limit of an envelope.
        let _ = encode_response(out, head, &response, compression);
    }
}

/// Encodes rows with large values, which are shared and not copied. Returns `None` if no value is large, the answer has no rows, or it
/// exceeds the limit of an envelope.
pub(crate) fn encode_shared(head: &ResponseHead<'_>, reply: &Reply, columns: &mut Columns) -> Option<Rope> {
    let (Reply::Rows(result) | Reply::PreparedRows { result, .. }) = reply else {
        return None;
    };
    if result.cells.shared_len() == 0 {
        return None;
    }
    let (columns, metadata) = match reply {
        Reply::PreparedRows { metadata, .. } => (columns.of(&result.columns), *metadata),
        _ => (convert_columns(&result.columns).into(), Metadata::Full),
    };
    let mut envelope = Vec::new();
    let start = begin_response(&mut envelope, head, Opcode::Result);
    rows_head(result, &columns, &metadata).begin_rows(&mut envelope, head.version, result.row_count);
    start.finish_before(&mut envelope, result.cells.len()).ok()?;
    let mut envelope = Rope::from(envelope);
    envelope.append(&result.cells);
    Some(envelope)
}

fn rows_head<'a>(result: &'a ResultSet, columns: &'a [ColumnSpec], metadata: &'a Metadata) -> RowsHead<'a> {
    RowsHead {
        columns,
        mode: match metadata {
            Metadata::Full => MetadataMode::Full,
            Metadata::Skip => MetadataMode::Skip,
            Metadata::Changed(id) => MetadataMode::Changed(id),
        },
        paging_state: result.paging_state.as_deref(),
    }
}

fn encode_rows(
    out: &mut Vec<u8>,
    head: &ResponseHead<'_>,
    result: &ResultSet,
    columns: &[ColumnSpec],
    metadata: Metadata,
    compression: Option<Compression>,
) -> Result<(), ilion_protocol::Error> {
    let start = begin_response(out, head, Opcode::Result);
    rows_head(result, columns, &metadata).begin_rows(out, head.version, result.row_count);
    out.reserve(result.cells.len());
    let pieces = result.cells.pieces();
    pieces.for_each(|piece| out.extend_from_slice(piece.bytes()));
    start.finish(out, compression)
}
