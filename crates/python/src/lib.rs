//! The engine inside a process of Python: the module `ilion._engine` of the wheel.
//!
//! Python code in `python/src/ilion` is what programs import: sessions, statements, results, errors and types are there. This module has
//! what must be in Rust: calls of the engine without the lock of the interpreter, and values in both directions.
//!
//! Main path: `Database.execute` or `Statement.execute` takes parameters, `bind` serializes them by the types of the markers, the engine
//! executes without the lock of the interpreter, and the answer is a `Cursor`, which converts a page of rows at a time.
//!
//! | module | what |
//! | --- | --- |
//! | `database` | `Database`: open, prepare, execute, close |
//! | `shared` | the open database that all objects share; refuses calls after the end and in forked processes |
//! | `statement` | `Statement`: prepared statements |
//! | `batch` | `Batch` |
//! | `cursor` | `Cursor`: a page of rows, and the way to the next one |
//! | `bind` | parameters of Python as serialized values |
//! | `from_python`, `times` | one value of Python as a CQL value |
//! | `to_python` | CQL values as Python has them |
//! | `to_arrow` | CQL values as arrays of Arrow are built from |
//! | `classes` | the classes of Python that values are made of |
//! | `errors` | errors as exceptions |
//!
//! The crate has no global allocator: the process belongs to Python. When you add a type to CQL, add it to `from_python`, `to_python`,
//! `to_arrow`, and to `python/src/ilion/arrow.py`.

mod batch;
mod bind;
mod classes;
mod cursor;
mod database;
mod errors;
mod from_python;
mod shared;
mod statement;
mod times;
mod to_arrow;
mod to_python;

/// The compiled part of the package ilion.
#[pyo3::pymodule(name = "_engine")]
mod engine {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::statement::Statement;
}
