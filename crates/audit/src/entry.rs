//! An entry of the audit log, and its line.
//!
//! ```text
//! {"user":"bob","host":"127.0.0.1","source":"127.0.0.1","port":40112,"timestamp":1795486440123,"type":"SELECT",
//!  "category":"QUERY","ks":"shop","scope":"orders","operation":"SELECT * FROM shop.orders"}      (on one line)
//! ```
//!
//! `batch`, `ks`, `scope` and `operation` are left out if they are missing. Compat: the names of `AuditLogEntry.getLogString`.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use uuid::Uuid;

/// A group of entry types. Compat: `AuditLogEntryCategory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Reads.
    Query,
    /// Writes.
    Dml,
    /// Changes of the schema.
    Ddl,
    /// Roles and permissions.
    Dcl,
    /// USE, DESCRIBE and orders to the HTTP port.
    Other,
    /// Logins, and requests that were not permitted.
    Auth,
    /// Requests that failed.
    Error,
    /// Statements that were prepared.
    Prepare,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 8] = [
        Self::Query,
        Self::Dml,
        Self::Ddl,
        Self::Dcl,
        Self::Other,
        Self::Auth,
        Self::Error,
        Self::Prepare,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "QUERY",
            Self::Dml => "DML",
            Self::Ddl => "DDL",
            Self::Dcl => "DCL",
            Self::Other => "OTHER",
            Self::Auth => "AUTH",
            Self::Error => "ERROR",
            Self::Prepare => "PREPARE",
        }
    }

    /// The category of this name, in any case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.name().eq_ignore_ascii_case(name))
    }
}

macro_rules! entry_types {
    ($($variant:ident = $category:ident),+ $(,)?) => {
        /// What was done. Compat: `AuditLogEntryType`; as in Cassandra, an INSERT is an `UPDATE`. Only Ilion has `ADMINISTRATION`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        #[expect(missing_docs, reason = "they are the statements and events of these names")]
        pub enum EntryType {
            $($variant),+
        }

        impl EntryType {
            /// Its category.
            pub fn category(self) -> Category {
                match self {
                    $(Self::$variant => Category::$category),+
                }
            }
        }
    };
}

entry_types! {
    Select = Query,
    Update = Dml,
    Delete = Dml,
    Batch = Dml,
    Truncate = Ddl,
    CreateKeyspace = Ddl,
    AlterKeyspace = Ddl,
    DropKeyspace = Ddl,
    CreateTable = Ddl,
    CreateTableLike = Ddl,
    AlterTable = Ddl,
    DropTable = Ddl,
    CreateType = Ddl,
    AlterType = Ddl,
    DropType = Ddl,
    CreateIndex = Ddl,
    DropIndex = Ddl,
    CreateView = Ddl,
    AlterView = Ddl,
    DropView = Ddl,
    CreateTrigger = Ddl,
    DropTrigger = Ddl,
    CreateFunction = Ddl,
    DropFunction = Ddl,
    CreateAggregate = Ddl,
    DropAggregate = Ddl,
    CreateRole = Dcl,
    AlterRole = Dcl,
    DropRole = Dcl,
    Grant = Dcl,
    Revoke = Dcl,
    ListRoles = Dcl,
    ListSuperusers = Dcl,
    ListPermissions = Dcl,
    CreateIdentity = Dcl,
    DropIdentity = Dcl,
    UseKeyspace = Other,
    Describe = Other,
    Administration = Other,
    PrepareStatement = Prepare,
    RequestFailure = Error,
    UnauthorizedAttempt = Auth,
    LoginError = Auth,
    LoginSuccess = Auth,
}

/// An entry of the audit log. It has no secrets: the caller hides them in the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'e> {
    /// The role of the client; `anonymous` without logins, `None` before a login.
    pub user: Option<&'e str>,
    /// Address of this node.
    pub host: IpAddr,
    /// Address of the client.
    pub source: SocketAddr,
    /// When the request began, in milliseconds since 1970.
    pub timestamp_millis: i64,
    /// What was done.
    pub entry_type: EntryType,
    /// The batch that a statement belongs to.
    pub batch: Option<Uuid>,
    /// Keyspace of the statement, otherwise that of the session.
    pub keyspace: Option<&'e str>,
    /// The table, or another object of the keyspace.
    pub scope: Option<&'e str>,
    /// Text of the statement; if it failed, followed by the error message.
    pub operation: &'e str,
}

/// The fields of a line, in the order in which they are written.
#[derive(Serialize)]
struct Line<'e> {
    user: Option<&'e str>,
    host: IpAddr,
    source: IpAddr,
    port: u16,
    timestamp: i64,
    #[serde(rename = "type")]
    entry_type: EntryType,
    category: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ks: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'e str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    operation: &'e str,
}

impl Entry<'_> {
    /// The entry as a line of JSON, with the line break.
    pub(crate) fn line(&self) -> Vec<u8> {
        let line = Line {
            user: self.user,
            host: self.host,
            source: self.source.ip(),
            port: self.source.port(),
            timestamp: self.timestamp_millis,
            entry_type: self.entry_type,
            category: self.entry_type.category().name(),
            batch: self.batch.map(|id| id.to_string()),
            ks: self.keyspace,
            scope: self.scope,
            operation: self.operation,
        };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            user: Some("bob"),
            host: IpAddr::from([127, 0, 0, 1]),
            source: SocketAddr::from(([127, 0, 0, 2], 40112)),
            timestamp_millis: 1_795_486_440_123,
            entry_type: EntryType::Select,
            batch: None,
            keyspace: Some("shop"),
            scope: Some("orders"),
            operation: "SELECT *\nFROM shop.orders WHERE k = '\u{e9}\"'",
        }
    }

    #[test]
    fn a_line_has_the_fields_of_cassandra_and_one_line_break() {
        let line = String::from_utf8(entry().line()).unwrap();
        assert_eq!(
            line,
            "{\"user\":\"bob\",\"host\":\"127.0.0.1\",\"source\":\"127.0.0.2\",\"port\":40112,\
             \"timestamp\":1795486440123,\"type\":\"SELECT\",\"category\":\"QUERY\",\"ks\":\"shop\",\
             \"scope\":\"orders\",\"operation\":\"SELECT *\\nFROM shop.orders WHERE k = '\u{e9}\\\"'\"}\n"
        );
    }

    #[test]
    fn what_an_entry_does_not_have_is_left_out_but_for_the_user() {
        let login = Entry {
            user: None,
            entry_type: EntryType::LoginError,
            batch: Some(Uuid::nil()),
            keyspace: None,
            scope: None,
            operation: "",
            ..entry()
        };
        let line = String::from_utf8(login.line()).unwrap();
        assert!(line.starts_with("{\"user\":null,"), "{line}");
        assert!(
            line.ends_with(
                "\"type\":\"LOGIN_ERROR\",\"category\":\"AUTH\",\
                 \"batch\":\"00000000-0000-0000-0000-000000000000\"}\n"
            ),
            "{line}"
        );
    }

    #[test]
    fn categories_are_found_by_their_names_in_any_case() {
        for category in Category::ALL {
            assert_eq!(Category::of_name(&category.name().to_lowercase()), Some(category));
        }
        assert_eq!(Category::of_name("JMX"), None);
    }
}
