//! The parts of this program that `ilion bench` uses: databases in this process, and the administration of nodes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use ilion::{Database, Row, Settings, Statement};
use ilion_schema::TableId;
use ilion_server::admin::{AdminClient, StatusReport};
use ilion_settings::Loaded;
use ilion_tools::bench::{Admin, Embedded, Host, Judge, Prepared};

/// Opens databases in this process, and connects to nodes on this machine.
pub struct InProcess;

impl Host for InProcess {
    fn open(&self, directory: &Path, settings: &[String]) -> anyhow::Result<Box<dyn Embedded>> {
        let settings = settings_of(directory, settings)?;
        Ok(Box::new(Opened(Database::open_with(&settings)?)))
    }

    fn admin(&self, port: u16) -> Box<dyn Admin> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Box::new(Running(AdminClient::new(address)))
    }
}

fn settings_of(directory: &Path, assignments: &[String]) -> anyhow::Result<Settings> {
    let mut loaded = Loaded::default();
    loaded.settings.directory = directory.to_path_buf();
    // Benchmarks drop their tables; snapshots of these would only take space.
    loaded.settings.auto_snapshot = false;
    for assignment in assignments {
        loaded.set_assignment(assignment)?;
    }
    Ok(loaded.settings)
}

/// A database in this process.
struct Opened(Database);

impl Embedded for Opened {
    fn execute(&self, cql: &str) -> anyhow::Result<Vec<Vec<Option<Vec<u8>>>>> {
        let owned = |row: Row| row.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect();
        self.0
            .execute(cql, ())?
            .map(|row| row.map(owned).map_err(Into::into))
            .collect()
    }

    fn prepare(&self, cql: &str) -> anyhow::Result<Box<dyn Prepared>> {
        Ok(Box::new(OpenedStatement(self.0.prepare(cql)?)))
    }
}

impl Opened {
    fn table(&self, keyspace: &str, table: &str) -> anyhow::Result<TableId> {
        let schema = self.0.node().engine().schema();
        let found = schema.table(keyspace, table);
        Ok(found
            .with_context(|| format!("there is no table {keyspace}.{table}"))?
            .id)
    }
}

impl Admin for Opened {
    fn flush(&self, keyspace: &str, table: &str) -> anyhow::Result<()> {
        let id = self.table(keyspace, table)?;
        Ok(self.0.node().engine().flush(id)?)
    }

    fn compact(&self, keyspace: &str, table: &str) -> anyhow::Result<()> {
        let id = self.table(keyspace, table)?;
        Ok(self.0.node().engine().compact(id)?)
    }

    fn sstables(&self, keyspace: &str, table: &str) -> anyhow::Result<u64> {
        let tables = self.0.node().engine().table_facts();
        let mut found = tables
            .iter()
            .filter(|facts| facts.keyspace == keyspace && facts.table == table);
        Ok(found.next().map_or(0, |facts| facts.sstables))
    }

    fn read_bytes(&self) -> anyhow::Result<u64> {
        Ok(self.0.node().engine().io().bytes_read)
    }
}

struct OpenedStatement(Statement);

impl Prepared for OpenedStatement {
    fn execute(&self, values: &[&[u8]], judge: Judge<'_>) -> anyhow::Result<Result<u64, String>> {
        let rows: Vec<Row> = self.0.execute_serialized(values)?.collect::<Result<_, _>>()?;
        let cells: Vec<Vec<Option<&[u8]>>> = rows.iter().map(|row| row.cells().collect()).collect();
        Ok(judge(&cells))
    }
}

/// A node on this machine.
struct Running(AdminClient);

impl Admin for Running {
    fn flush(&self, keyspace: &str, table: &str) -> anyhow::Result<()> {
        self.0
            .post(&format!("/admin/flush?keyspace={keyspace}&table={table}"))?;
        Ok(())
    }

    fn compact(&self, keyspace: &str, table: &str) -> anyhow::Result<()> {
        self.0
            .post(&format!("/admin/compact?keyspace={keyspace}&table={table}"))?;
        Ok(())
    }

    fn sstables(&self, keyspace: &str, table: &str) -> anyhow::Result<u64> {
        let status: StatusReport = self.0.get("/admin/status")?;
        let mut tables = status.tables.iter();
        let found = tables.find(|report| report.keyspace == keyspace && report.table == table);
        Ok(found.map_or(0, |report| report.sstables))
    }

    fn read_bytes(&self) -> anyhow::Result<u64> {
        let status: StatusReport = self.0.get("/admin/status")?;
        Ok(status.disk_read_bytes)
    }
}
