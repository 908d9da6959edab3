//! [`ReadOnly`]: a session that refuses statements which change something.

use ilion_cql::ast::Statement;
use ilion_cql::parse;
use ilion_protocol::ColumnSpec;

use crate::session::{Answer, Failure, How, Packing, RowFeed, Session, SessionTarget};

const REFUSED: &str = "SSTables are opened for reading only: SELECT, EXPLAIN, DESCRIBE, LIST and USE are possible. \
                       ilion cql --data DIR writes to a data directory.";

/// A session that refuses every statement which is no read.
pub struct ReadOnly<S> {
    inner: S,
}

impl<S: Session> ReadOnly<S> {
    /// Restricts a session.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

/// True for statements that change neither rows nor the schema, and for texts that are no statement, which get an error anyway.
fn only_reads(cql: &str) -> bool {
    parse(cql).map_or(true, |parsed| match parsed.statement {
        Statement::Select(_)
        | Statement::Explain(_)
        | Statement::Use(_)
        | Statement::ListRoles(_)
        | Statement::ListUsers
        | Statement::ListSuperusers
        | Statement::ListPermissions(_)
        | Statement::Describe(_) => true,
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_)
        | Statement::Truncate(_)
        | Statement::CreateKeyspace(_)
        | Statement::AlterKeyspace(_)
        | Statement::DropKeyspace(_)
        | Statement::CreateTable(_)
        | Statement::CreateTableLike(_)
        | Statement::AlterTable(_)
        | Statement::DropTable(_)
        | Statement::CreateType(_)
        | Statement::AlterType(_)
        | Statement::DropType(_)
        | Statement::CreateIndex(_)
        | Statement::DropIndex(_)
        | Statement::CreateView(_)
        | Statement::AlterView(_)
        | Statement::DropView(_)
        | Statement::CreateTrigger(_)
        | Statement::DropTrigger(_)
        | Statement::CreateFunction(_)
        | Statement::DropFunction(_)
        | Statement::CreateAggregate(_)
        | Statement::DropAggregate(_)
        | Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::DropRole(_)
        | Statement::GrantPermissions(_)
        | Statement::RevokePermissions(_)
        | Statement::GrantRole(_)
        | Statement::RevokeRole(_)
        | Statement::AddIdentity(_)
        | Statement::DropIdentity(_) => false,
    })
}

impl<S: Session> Session for ReadOnly<S> {
    fn execute(&mut self, cql: &str, how: &How) -> Result<Answer, Failure> {
        match only_reads(cql) {
            true => self.inner.execute(cql, how),
            false => Err(Failure::Impossible(REFUSED)),
        }
    }

    fn prepare(&mut self, _cql: &str) -> Result<Vec<ColumnSpec>, Failure> {
        Err(Failure::Impossible(REFUSED))
    }

    fn write_rows(&mut self, _how: &How, _packing: &Packing, _rows: &mut dyn RowFeed) -> Result<(), Failure> {
        Err(Failure::Impossible(REFUSED))
    }

    fn log_in(&mut self, role: &str, password: &str) -> Result<(), Failure> {
        self.inner.log_in(role, password)
    }

    fn target(&self) -> SessionTarget {
        self.inner.target()
    }
}
