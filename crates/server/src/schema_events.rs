//! Changes of the schema as events of the protocol.

use ilion_protocol::{ChangeKind, SchemaChange, SchemaTarget};
use ilion_schema::{EventTarget, SchemaEvent};

/// Converts an event of the query layer to one of the protocol.
pub(crate) fn schema_change(event: SchemaEvent) -> SchemaChange {
    let change = match event.kind {
        ilion_schema::ChangeKind::Created => ChangeKind::Created,
        ilion_schema::ChangeKind::Updated => ChangeKind::Updated,
        ilion_schema::ChangeKind::Dropped => ChangeKind::Dropped,
    };
    let target = match event.target {
        EventTarget::Keyspace => SchemaTarget::Keyspace,
        EventTarget::Table(name) => SchemaTarget::Table(name),
        EventTarget::Type(name) => SchemaTarget::Type(name),
        EventTarget::Function(name, arguments) => SchemaTarget::Function { name, arguments },
        EventTarget::Aggregate(name, arguments) => SchemaTarget::Aggregate { name, arguments },
    };
    SchemaChange {
        change,
        keyspace: event.keyspace,
        target,
    }
}
