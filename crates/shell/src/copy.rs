//! COPY: rows of a table to a CSV or Parquet file and back. Compat: statement, options and messages are those of cqlsh, as far as they mean
//! something here.
//!
//! ```text
//! copy   := COPY [keyspace .] table [ ( column, .. ) ] ( FROM file | TO ( file | STDOUT ) ) [ WITH option = value AND .. ]
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `statement` | [`Copy`]: a statement, parsed |
//! | `options` | the options behind WITH |
//! | `field` | values to fields of CSV, and back |
//! | `export`, `export_encoder`; `import`, `import_parquet` | COPY TO; COPY FROM |
//! | `failures` | what became of the records of an import |
//! | `progress`, `acknowledged` | how far a COPY has come, so that it can be resumed |
//! | `import_progress` | an import under way: what CSV and Parquet files share |

mod acknowledged;
mod export;
mod export_encoder;
mod failures;
mod field;
mod import;
mod import_parquet;
mod import_progress;
mod options;
mod progress;
pub(crate) mod statement;

use std::path::PathBuf;

use ilion_protocol::ColumnSpec;
use ilion_schema::ColumnKind;
use ilion_types::quote_name;

use crate::paths::expand;
use crate::session::{Failure, Packing};
use crate::shell::Shell;
use options::{FileFormat, Options};
use progress::ProgressFile;
use statement::{Copy, End};

/// A table whose columns are known.
struct Named {
    keyspace: String,
    table: String,
    /// The names of the columns to copy.
    columns: Vec<String>,
    /// All columns of the table.
    known: Vec<Column>,
}

/// A column of a table.
struct Column {
    name: String,
    kind: ColumnKind,
}

impl Named {
    /// The name as CQL.
    fn cql(&self) -> String {
        format!("{}.{}", quote_name(&self.keyspace), quote_name(&self.table))
    }

    /// The file for records that fail.
    fn error_file(&self, options: &Options) -> PathBuf {
        let path = options.error_file.clone();
        expand(&path.unwrap_or_else(|| format!("import_{}_{}.err", self.keyspace, self.table)))
    }

    /// How rows with values for these markers are sent.
    fn packing(&self, markers: &[ColumnSpec], options: &Options) -> Packing {
        let has_static = self
            .known
            .iter()
            .any(|column| column.kind == ColumnKind::Static && self.columns.contains(&column.name));
        // Rows with the same key write the same cells; rows of a partition, too, if they have static columns.
        let decides = |column: &&Column| match column.kind {
            ColumnKind::PartitionKey => true,
            ColumnKind::Clustering => !has_static,
            ColumnKind::Static | ColumnKind::Regular => false,
        };
        let place = |column: &Column| markers.iter().position(|marker| *marker.name == *column.name);
        let places = self.known.iter().filter(decides).filter_map(place);
        Packing {
            requests_max: options.requests_max,
            rows_max: options.batch_rows_max,
            key: places
                .map(|place| (place, markers[place].cql_type.clone()))
                .collect(),
        }
    }

    /// The columns as CQL.
    fn cql_columns(&self) -> String {
        let names: Vec<_> = self
            .columns
            .iter()
            .map(|name| quote_name(name).into_owned())
            .collect();
        names.join(", ")
    }
}

impl Shell<'_> {
    /// Carries out a COPY.
    pub(crate) fn copy(&mut self, copy: &Copy) -> std::io::Result<()> {
        let mut named = match self.resolve(copy) {
            Ok(named) => named,
            Err(problem) => return self.complain(&problem),
        };
        let format = match copy.format() {
            Ok(format) => format,
            Err(problem) => return self.complain(&problem),
        };
        let mut parquet = None;
        if let (End::From(path), FileFormat::Columnar(_)) = (&copy.end, format) {
            match self.open_parquet(path, &mut named, !copy.columns.is_empty()) {
                Ok(file) => parquet = Some(file),
                Err(problem) => return self.complain(&problem),
            }
        }
        self.say(
            copy,
            &format!(
                "\nStarting copy of {}.{} with columns [{}].",
                named.keyspace,
                named.table,
                named.columns.join(", ")
            ),
        )?;
        match &copy.end {
            End::From(path) => match parquet {
                Some(file) => self.import_parquet(path, file, &named, &copy.options),
                None => self.import(path, &named, &copy.options),
            },
            End::To(path) => self.export_to_file(path, &named, &copy.options, format),
            End::ToStdout if copy.options.is_resumed => {
                self.complain("RESUME needs a file: the standard output of an earlier COPY is gone.")
            }
            End::ToStdout => self.export_to_output(&named, &copy.options),
        }
    }

    /// Forgets how far an earlier COPY has come.
    fn begin_anew(&mut self, progress: &ProgressFile) -> std::io::Result<()> {
        match progress.forget() {
            Ok(false) => Ok(()),
            Ok(true) => self
                .output
                .say("The same COPY was interrupted before, and now begins anew: RESUME = true would have continued it."),
            Err(problem) => self.complain(&problem),
        }
    }

    /// Prints a message, unless rows go to standard output: the message would become part of them.
    fn say(&mut self, copy: &Copy, line: &str) -> std::io::Result<()> {
        match copy.end {
            End::ToStdout => Ok(()),
            _ => self.output.say(line),
        }
    }

    /// Finds the columns of the table.
    fn resolve(&mut self, copy: &Copy) -> Result<Named, String> {
        let keyspace = copy.keyspace.clone().or_else(|| self.keyspace.clone());
        let keyspace = keyspace.ok_or("Not in any keyspace.")?;
        let known = self
            .columns_of(&keyspace, &copy.table)
            .map_err(|failure| failure.to_string())?;
        if known.is_empty() {
            return Err(format!("There is no table {keyspace}.{}.", copy.table));
        }
        if let Some(missing) = copy
            .columns
            .iter()
            .find(|name| !known.iter().any(|column| column.name == **name))
        {
            return Err(format!("{keyspace}.{} has no column {missing}.", copy.table));
        }
        Ok(Named {
            keyspace,
            table: copy.table.clone(),
            columns: if copy.columns.is_empty() {
                known.iter().map(|column| column.name.clone()).collect()
            } else {
                copy.columns.clone()
            },
            known,
        })
    }

    /// The columns. Compat: the primary key first, then the others by name.
    fn columns_of(&mut self, keyspace: &str, table: &str) -> Result<Vec<Column>, Failure> {
        let literal = |name: &str| name.replace('\'', "''");
        let filter = format!(
            "keyspace_name = '{}' AND table_name = '{}'",
            literal(keyspace),
            literal(table)
        );
        let mut rows = Vec::new();
        for schema in ["system_schema", "system_virtual_schema"] {
            if rows.is_empty() {
                rows = self.ask(&format!(
                    "SELECT column_name, kind, position FROM {schema}.columns WHERE {filter}"
                ))?;
            }
        }
        let mut columns: Vec<(Column, i32)> = rows
            .into_iter()
            .filter_map(|row| {
                let [name, kind, position] = <[String; 3]>::try_from(row).ok()?;
                let kind = ColumnKind::named(&kind).unwrap_or(ColumnKind::Regular);
                Some((Column { name, kind }, position.parse().unwrap_or_default()))
            })
            .collect();
        // Rows come by name, and the sort keeps the order of equals.
        columns.sort_by_key(|(column, position)| match column.kind {
            ColumnKind::PartitionKey => (0, *position),
            ColumnKind::Clustering => (1, *position),
            ColumnKind::Static | ColumnKind::Regular => (2, 0),
        });
        Ok(columns.into_iter().map(|(column, _)| column).collect())
    }
}

/// A count and how long it took, as in cqlsh.
fn seconds(nanos: u64) -> String {
    format!(
        "{}.{:03} seconds",
        nanos / 1_000_000_000,
        nanos / 1_000_000 % 1000
    )
}
