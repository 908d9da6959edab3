//! The shell for CQL: `ilion cql`.
//!
//! [`run`] opens a [`Session`]: on a server over the native protocol ([`Remote`]), or on a data directory in this process ([`Embedded`]).
//! A [`Shell`] cuts its input into statements and commands (`script`, with the lexer of `ilion_cql`), executes them one after another, and
//! prints what is answered. Commands and output are those of cqlsh, unless `docs/shell.md` says otherwise.
//!
//! | module | what |
//! | --- | --- |
//! | `args`, `run` | the command line, and the shell as a program |
//! | `session`, `remote`, `embedded` | where statements are executed |
//! | `sstables`, `read_only` | a folder of SSTables with a schema; a session that only reads |
//! | `row_batches`, `flight` | rows to write as requests of several rows; many of them under way on one connection |
//! | `script` | scripts to statements |
//! | `shell`, `answers` | executing scripts; executing a statement and printing its answer page by page |
//! | `command`, `run_command`, `help` | the commands of the shell itself |
//! | `describe` | answers to DESCRIBE |
//! | `copy`, `csv` | COPY; records of CSV files |
//! | `columnar` | Parquet and Arrow files, with the feature `columnar` |
//! | `paths`, `quotes` | files that users name; quotes of CQL |
//! | `output`, `format`, `table`, `columnize` | results as tables, lines, JSON or CSV; into a file or a terminal |
//! | `cell`, `number_text` | values as text for people |
//! | `error_text` | errors of the server as text |
//! | `trace`, `explain` | traces as tables, answers to EXPLAIN as trees |
//! | `editor` | lines from a terminal: colours, history |
//! | `catalog`, `complete` | the names of the schema, and completing them |
//!
//! A new command touches `command`, `run_command`, `help`, `docs/shell.md`, and `testdata`.

mod answers;
mod args;
mod catalog;
mod cell;
mod columnar;
mod columnize;
mod command;
mod complete;
mod copy;
mod csv;
mod describe;
mod editor;
mod embedded;
mod error_text;
mod explain;
mod flight;
mod format;
mod help;
mod number_text;
mod output;
mod paths;
mod quotes;
mod read_only;
mod remote;
mod row_batches;
mod run;
mod run_command;
mod script;
mod session;
mod shell;
mod sstables;
mod table;
mod trace;

pub use args::ShellArgs;
pub use embedded::Embedded;
pub use format::Format;
pub use output::Output;
pub use read_only::ReadOnly;
pub use remote::Remote;
pub use run::{Ended, run};
pub use session::{Answer, Body, Failure, How, Packing, RowFeed, Session, SessionTarget, WriteRow};
pub use shell::{Flow, PAGE_ROWS, Shell, ShellSettings};
pub use sstables::{SSTables, open_sstables};
