//! Batches of statements.

use std::sync::Arc;

use ilion_node::Counted;
use ilion_query::{BatchKind, BatchStatement, ExecuteOptions, Executed, Shape, Values};

use crate::{Arguments, Database, Error, Rows, Statement};

/// Writes that are executed together, with the same timestamp. Of a logged batch, all are made or none.
///
/// ```
/// use ilion::BatchKind;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("USE k", ())?;
/// # database.execute("CREATE TABLE songs (id int PRIMARY KEY, title text)", ())?;
/// let insert = database.prepare("INSERT INTO songs (id, title) VALUES (?, ?)")?;
/// let mut batch = database.batch(BatchKind::Logged);
/// batch.add(&insert, (1, "La Grange"))?;
/// batch.add(&insert, (2, "Tush"))?;
/// batch.add_cql("DELETE FROM songs WHERE id = ?", (3,))?;
/// batch.execute()?;
/// # assert_eq!(database.execute("SELECT * FROM songs", ())?.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batch {
    database: Database,
    kind: BatchKind,
    members: Vec<(BatchStatement, Values)>,
}

impl Database {
    /// An empty batch.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let batch = database.batch(ilion::BatchKind::Unlogged);
    /// assert!(batch.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch(&self, kind: BatchKind) -> Batch {
        Batch {
            database: self.clone(),
            kind,
            members: Vec::new(),
        }
    }
}

impl Batch {
    /// Adds a prepared statement with values for its bind markers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// let mut batch = database.batch(ilion::BatchKind::Logged);
    /// batch.add(&insert, (1, "La Grange"))?.add(&insert, (2, "Tush"))?;
    /// batch.execute()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A value does not fit, or another database prepared the statement.
    pub fn add(&mut self, statement: &Statement, arguments: impl Arguments) -> Result<&mut Self, Error> {
        self.check(statement)?;
        let values = arguments.to_values(&statement.prepared.variables)?;
        Ok(self.push(statement, values))
    }

    /// Adds a prepared statement with a serialized value for each of its bind markers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// use ilion::{BatchKind, Bound};
    ///
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// let id = Bound::Bytes(7_i32.to_be_bytes().to_vec().into());
    /// let mut batch = database.batch(BatchKind::Unlogged);
    /// batch.add_bound(&insert, vec![id, Bound::Null])?;
    /// batch.execute()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Another database prepared the statement.
    pub fn add_bound(
        &mut self,
        statement: &Statement,
        values: Vec<ilion_query::Value>,
    ) -> Result<&mut Self, Error> {
        self.check(statement)?;
        Ok(self.push(statement, Values::Positional(values)))
    }

    fn check(&self, statement: &Statement) -> Result<(), Error> {
        if statement.database.is(&self.database) {
            return Ok(());
        }
        let refused = "the statement was prepared by another database than that of the batch".to_owned();
        Err(ilion_query::Error::Invalid(refused).into())
    }

    fn push(&mut self, statement: &Statement, values: Values) -> &mut Self {
        let statement = BatchStatement::Prepared(statement.prepared.clone());
        self.members.push((statement, values));
        self
    }

    /// Adds a statement with values for its bind markers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let mut batch = database.batch(ilion::BatchKind::Logged);
    /// batch.add_cql("UPDATE k.songs SET title = ? WHERE id = ?", ("Tush", 2))?;
    /// batch.add_cql("DELETE FROM k.songs WHERE id = 1", ())?;
    /// batch.execute()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text is no CQL or does not fit the schema, or a value does not fit. Without values, [`Self::execute`] finds errors of the text.
    pub fn add_cql(&mut self, cql: &str, arguments: impl Arguments) -> Result<&mut Self, Error> {
        if arguments.count() > 0 {
            let statement = self.database.prepare(cql)?;
            return self.add(&statement, arguments);
        }
        self.members
            .push((BatchStatement::Text(cql.to_owned()), Values::None));
        Ok(self)
    }

    /// Number of statements.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let mut batch = database.batch(ilion::BatchKind::Logged);
    /// batch.add_cql("DELETE FROM k.songs WHERE id = 1", ())?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True if no statement was added.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// assert!(database.batch(ilion::BatchKind::Logged).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Executes the batch. The result has rows if a statement has conditions: the column `[applied]` says whether they held.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let mut batch = database.batch(ilion::BatchKind::Logged);
    /// batch.add_cql("INSERT INTO k.songs (id, title) VALUES (?, ?) IF NOT EXISTS", (7, "Tush"))?;
    /// assert!(batch.execute()?.one()?.get::<bool>("[applied]")?);
    /// assert!(!batch.execute()?.one()?.get::<bool>("[applied]")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A statement is not possible in this batch, or the write failed.
    pub fn execute(&self) -> Result<Rows, Error> {
        let node = self.database.node();
        let counted = Counted::begin(node);
        let executed = self.execute_durably();
        counted.finish(node, &self.shape(), executed.is_err());
        self.database.rows(executed?, |_| None)
    }

    /// Executes the batch, and waits until the write is durable.
    fn execute_durably(&self) -> Result<Executed, Error> {
        let executed = match self.execute_members(self.members.clone()) {
            Err(ilion_query::Error::Unprepared { .. }) => self.execute_members(self.prepared_again()?)?,
            executed => executed?,
        };
        self.database.node().wait_durable(&executed)?;
        Ok(executed)
    }

    fn execute_members(
        &self,
        members: Vec<(BatchStatement, Values)>,
    ) -> Result<Executed, ilion_query::Error> {
        let mut client = self.database.client();
        let processor = self.database.node().processor();
        processor.batch(&mut client, self.kind, members, &ExecuteOptions::default())
    }

    /// The members; prepared statements are prepared again, since a schema change may have invalidated them.
    fn prepared_again(&self) -> Result<Vec<(BatchStatement, Values)>, ilion_query::Error> {
        let (client, processor) = (self.database.client(), self.database.node().processor());
        let again = |(statement, values): &(BatchStatement, Values)| {
            let statement = match statement {
                BatchStatement::Text(text) => BatchStatement::Text(text.clone()),
                BatchStatement::Prepared(prepared) => {
                    let prepared = processor.prepare(&client, prepared.text(), prepared.keyspace())?;
                    BatchStatement::Prepared(prepared)
                }
            };
            Ok((statement, values.clone()))
        };
        self.members.iter().map(again).collect()
    }

    /// The batch without its values, by which costs are counted.
    fn shape(&self) -> Arc<Shape> {
        let (client, processor) = (self.database.client(), self.database.node().processor());
        let of_text = |cql: &str| processor.shape_of(&client, cql, None);
        let shapes = self.members.iter().map(|(statement, _)| statement.shape(of_text));
        let members = Shape::members_of_batch(shapes);
        Arc::new(Shape::of_batch(
            self.kind.prefix(),
            members.iter().map(AsRef::as_ref),
        ))
    }
}
