//! The open database that the objects of Python share.
//!
//! Rules: a thread that waits for the engine or for a lock here does not hold the lock of the interpreter. [`Shared::close`] waits for
//! calls that run and ends long SELECTs; later calls are refused. A process that was forked has no threads of the engine: its calls are
//! refused before they touch a lock, and it never closes the database of its parent.

use std::collections::HashMap;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ilion::{Database, Statement};
use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;

use crate::errors::{self, Refused};

/// A database, shared by its statements and results.
pub struct Shared {
    /// Held for reading by every call; `None` once closed.
    open: RwLock<Option<Open>>,
    process: u32,
    next_statement: AtomicU64,
}

/// What closing drops. Statements are here and not in the objects of Python: each of them keeps the database open.
struct Open {
    database: Database,
    /// Held only to copy a statement.
    statements: Mutex<HashMap<u64, Statement>>,
}

impl Shared {
    /// Opens a directory.
    pub fn open(directory: &Path, settings: &[(String, String)]) -> Result<Self, ilion::Error> {
        let settings = settings.iter().map(|(name, value)| (&**name, &**value));
        let open = Open {
            database: Database::open_named(directory, settings)?,
            statements: Mutex::default(),
        };
        Ok(Self {
            open: RwLock::new(Some(open)),
            process: process::id(),
            next_statement: AtomicU64::new(0),
        })
    }

    fn is_forked(&self) -> bool {
        process::id() != self.process
    }

    /// Calls the engine without the lock of the interpreter.
    pub fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Database) -> Result<T, ilion::Error> + Send,
    ) -> PyResult<T> {
        self.with(py, |open| call(&open.database))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Open) -> Result<T, ilion::Error> + Send,
    ) -> PyResult<T> {
        if self.is_forked() {
            return Err(errors::refused(py, Refused::Forked));
        }
        let done = py.detach(|| self.open.read().as_ref().map(call));
        match done {
            Some(done) => done.map_err(|error| errors::raised(py, &error)),
            None => Err(errors::refused(py, Refused::Closed)),
        }
    }

    /// Prepares a statement, and returns the number that [`Self::call_statement`] finds it by.
    pub fn prepare(&self, py: Python<'_>, cql: &str) -> PyResult<(u64, Statement)> {
        let number = self.next_statement.fetch_add(1, Ordering::Relaxed);
        let statement = self.with(py, |open| {
            let statement = open.database.prepare(cql)?;
            open.statements.lock().insert(number, statement.clone());
            Ok(statement)
        })?;
        Ok((number, statement))
    }

    /// Like [`Self::call`], with a prepared statement.
    pub fn call_statement<T: Send>(
        &self,
        py: Python<'_>,
        number: u64,
        call: impl FnOnce(&Statement) -> Result<T, ilion::Error> + Send,
    ) -> PyResult<T> {
        let done = self.with(py, |open| {
            let statement = open.statements.lock().get(&number).cloned();
            statement.as_ref().map(call).transpose()
        })?;
        // The object of Python that has the number keeps the statement, so it is there unless the database is not.
        done.ok_or_else(|| errors::refused(py, Refused::Closed))
    }

    /// Like [`Self::call`], with a function that finds prepared statements by their numbers.
    pub fn call_with_statements<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Database, &dyn Fn(u64) -> Option<Statement>) -> Result<T, ilion::Error> + Send,
    ) -> PyResult<T> {
        self.with(py, |open| {
            call(&open.database, &|number| {
                open.statements.lock().get(&number).cloned()
            })
        })
    }

    /// Forgets a statement.
    pub fn forget(&self, number: u64) {
        if self.is_forked() {
            return;
        }
        // If the lock is held for writing, `close` is dropping all statements, so there is no need to wait.
        if let Some(open) = self.open.try_read()
            && let Some(open) = open.as_ref()
        {
            open.statements.lock().remove(&number);
        }
    }

    /// True unless it was closed.
    pub fn is_open(&self) -> bool {
        // A lock that cannot be had at once is held by a call, or by `close`.
        self.open.try_read().is_some_and(|open| open.is_some())
    }

    /// Closes the database once calls that run are done. A closed one stays closed.
    pub fn close(&self, py: Python<'_>) {
        if self.is_forked() {
            return;
        }
        py.detach(|| {
            if let Some(open) = self.open.read().as_ref() {
                open.database.node().end_long_reads();
            }
            drop(self.open.write().take());
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let open = self.open.get_mut().take();
        if self.is_forked() {
            // The threads of the engine are not in this process, so nobody would answer.
            std::mem::forget(open);
        } else if open.is_some() {
            // Objects of Python are dropped with the lock of the interpreter; other threads may go on while the database closes.
            let mut open = Some(open);
            Python::try_attach(|py| py.detach(|| drop(open.take())));
        }
    }
}

/// A shared database, for objects of Python.
pub type SharedRef = Arc<Shared>;
