//! What the server keeps in tables of its own.

/// Told of every change of the schema, before the client is.
pub trait SchemaListener: Send + Sync {
    /// The schema has changed.
    fn schema_changed(&self);
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl SchemaListener for NoListener {
    fn schema_changed(&self) {}
}
