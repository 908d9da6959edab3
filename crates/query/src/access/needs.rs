//! [`Needs`]: the permissions that a statement needs. `find_needs` finds them; they are compared with the rights of a role when the
//! statement is executed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_auth::{Permission, Resource};
use ilion_schema::TableSchema;
use smallvec::SmallVec;

/// One permission or rank that a statement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A permission on a resource or on one that contains it.
    Permission(Permission, Resource),
    /// UNMASK or SELECT_MASKED on a table, since the statement restricts these masked columns.
    MaskedColumns(Resource, Vec<String>),
    /// The role must be a superuser; the text names the action for the message.
    Superuser(&'static str),
}

/// All needs of a statement. If there are none, a login is enough.
#[derive(Debug)]
pub(crate) struct Needs {
    /// A number that no other value of this process has.
    pub id: u64,
    pub list: SmallVec<[Need; 1]>,
    /// The stamp of the rights that were last found to meet these needs.
    pub met_by: AtomicU64,
}

impl Needs {
    pub fn new(list: SmallVec<[Need; 1]>) -> Self {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            id: LAST_ID.fetch_add(1, Relaxed) + 1,
            list,
            // No rights have this stamp.
            met_by: AtomicU64::new(u64::MAX),
        }
    }

    /// The needs of a statement without checks.
    pub fn none() -> Self {
        Self::new(SmallVec::new())
    }

    /// The needs for reading the changes of a table. Changes have the stored values, so a table with masks needs UNMASK.
    pub fn of_changes(table: &TableSchema) -> Self {
        let resource = Resource::table(&table.keyspace, &table.name);
        let mut list = SmallVec::new();
        if table.has_masks() {
            list.push(Need::Permission(Permission::Unmask, resource.clone()));
        }
        list.push(Need::Permission(Permission::Select, resource));
        Self::new(list)
    }
}
