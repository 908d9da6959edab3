//! ALTER TABLE.

use std::sync::Arc;

use ilion_types::CqlType;

use super::create_table::{COLUMN_COUNT_MAX, STATIC_WITHOUT_CLUSTERING, check_column_type};
use super::tables::{absent, table_missing, views_of};
use super::{NewColumn, TableAlteration};
use crate::compatible::{expand_user_types, is_serialization_compatible};
use crate::error::{config, invalid};
use crate::{
    Column, ColumnKind, ColumnMask, DroppedColumn, Error, Keyspace, Properties, Schema, TableKind,
    TableSchema,
};

impl Schema {
    pub(super) fn alter_table(
        &self,
        keyspace: &str,
        table: &str,
        if_exists: bool,
        alteration: &TableAlteration,
        now_micros: i64,
    ) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(keyspace)
            .and_then(|owner| Some((owner, owner.tables.get(table)?)));
        let Some((owner, table)) = found else {
            return absent(if_exists, || table_missing(keyspace, table));
        };
        if table.kind == TableKind::View {
            return invalid(
                "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead",
            );
        }
        let mut altered = Altered {
            keyspace: Keyspace::clone(owner),
            table: table.clone(),
        };
        match alteration {
            TableAlteration::AddColumns {
                columns,
                if_not_exists,
            } => {
                columns
                    .iter()
                    .try_for_each(|column| altered.add(column, *if_not_exists))?;
            }
            TableAlteration::DropColumns {
                columns,
                if_exists,
                timestamp_micros,
            } => {
                // Compat: `system_schema` stores milliseconds, so the value in memory is rounded to milliseconds, too.
                let dropped_micros = timestamp_micros
                    .unwrap_or(now_micros)
                    .div_euclid(1000)
                    .saturating_mul(1000);
                columns
                    .iter()
                    .try_for_each(|column| altered.remove(column, *if_exists, dropped_micros))?;
            }
            TableAlteration::RenameColumns { renames, if_exists } => {
                renames
                    .iter()
                    .try_for_each(|(from, to)| altered.rename(from, to, *if_exists))?;
            }
            TableAlteration::AlterColumnType => {
                return invalid("Altering column types is no longer supported");
            }
            TableAlteration::MaskColumn {
                column,
                if_exists,
                mask,
            } => altered.mask(column, *if_exists, mask.as_ref())?,
            TableAlteration::DropCompactStorage => altered.drop_compact_storage()?,
            TableAlteration::Options(properties) => altered.set_options(properties)?,
        }
        Ok(Some(self.with(altered.finish())))
    }
}

/// A table that is being altered, and its keyspace, whose views change with it.
struct Altered {
    keyspace: Keyspace,
    table: Arc<TableSchema>,
}

impl Altered {
    fn finish(mut self) -> Keyspace {
        self.keyspace.tables.insert(self.table.name.clone(), self.table);
        self.keyspace
    }

    fn add(&mut self, column: &NewColumn, if_not_exists: bool) -> Result<(), Error> {
        let name = &column.name;
        if self.table.column_named(name).is_some() {
            return match if_not_exists {
                true => Ok(()),
                false => invalid(format!("Column with name '{name}' already exists")),
            };
        }
        if self.table.is_compact() {
            return invalid("Cannot add new column to a COMPACT STORAGE table");
        }
        if column.is_static && self.table.clustering().len() == 0 {
            return invalid(STATIC_WITHOUT_CLUSTERING);
        }
        check_column_type(&column.ty)?;
        self.check_dropped(column)?;
        self.check_counters(column)?;
        if usize::from(self.table.column_id_end()) >= COLUMN_COUNT_MAX {
            return invalid(format!(
                "Table {} has had {COLUMN_COUNT_MAX} columns",
                full_name(&self.table)
            ));
        }
        let kind = if column.is_static {
            ColumnKind::Static
        } else {
            ColumnKind::Regular
        };
        self.table = with_column(&self.table, column, kind);
        if !column.is_static {
            self.add_to_views(column);
        }
        Ok(())
    }

    fn check_counters(&self, column: &NewColumn) -> Result<(), Error> {
        let name = &column.name;
        let message = match (self.table.is_counter(), column.ty == CqlType::Counter) {
            (true, false) => format!("Cannot have a non counter column (\"{name}\") in a counter table"),
            (false, true) => format!("Cannot have a counter column (\"{name}\") in a non counter table"),
            _ => return Ok(()),
        };
        config(format!("{}: {message}", full_name(&self.table)))
    }

    /// Refuses to add a dropped column again with a type that cannot read its old cells.
    fn check_dropped(&self, column: &NewColumn) -> Result<(), Error> {
        let NewColumn {
            name, ty, is_static, ..
        } = column;
        let Some(dropped) = self.table.dropped.get(name) else {
            return Ok(());
        };
        if !is_serialization_compatible(ty, &dropped.ty) {
            return invalid(format!(
                "Cannot add a column '{name}' of type {ty}, incompatible with previously dropped column \
                 '{name}' of type {}",
                dropped.ty
            ));
        }
        if *is_static != (dropped.kind == ColumnKind::Static) {
            let word = |is_static| if is_static { "STATIC" } else { "REGULAR" };
            return invalid(format!(
                "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
                word(*is_static),
                word(!*is_static)
            ));
        }
        if self.table.is_counter() {
            return invalid(format!("Cannot re-add previously dropped counter column {name}"));
        }
        Ok(())
    }

    fn add_to_views(&mut self, column: &NewColumn) {
        let all: Vec<String> = self
            .keyspace
            .views
            .values()
            .filter(|view| view.base_table == self.table.name && view.include_all_columns)
            .map(|view| view.name.clone())
            .collect();
        for name in all {
            if let Some(view) = self.keyspace.tables.get_mut(&name) {
                *view = with_column(view, column, ColumnKind::Regular);
            }
        }
    }

    fn remove(&mut self, name: &str, if_exists: bool, dropped_micros: i64) -> Result<(), Error> {
        let Some(column) = self.table.shown_named(name) else {
            return match if_exists {
                true => Ok(()),
                false => invalid(format!(
                    "Column {name} was not found in table '{}'",
                    full_name(&self.table)
                )),
            };
        };
        if column.is_primary_key() {
            return invalid(format!("Cannot drop PRIMARY KEY column {name}"));
        }
        if self.table.is_compact() && column.kind == ColumnKind::Regular {
            return invalid(format!("Cannot drop the value {name} of a COMPACT STORAGE table"));
        }
        if matches!(column.ty, CqlType::Udt { frozen: false, .. }) {
            return invalid(format!(
                "Cannot drop non-frozen column {name} of user type {}",
                column.ty
            ));
        }
        self.check_indexes("Cannot drop", name)?;
        if views_of(&self.keyspace, &self.table.name).next().is_some() {
            return invalid(format!(
                "Cannot drop column {name} on base table {} with materialized views",
                self.table.name
            ));
        }
        let record = dropped_column(column, dropped_micros);
        let mut builder = self.table.to_builder().remove(name);
        builder.dropped.insert(name.to_owned(), record);
        self.table = builder.build();
        Ok(())
    }

    /// Masks a column of the table, and of its views.
    fn mask(&mut self, name: &str, if_exists: bool, mask: Option<&ColumnMask>) -> Result<(), Error> {
        if self.table.shown_named(name).is_none() {
            return match if_exists {
                true => Ok(()),
                false => invalid(format!(
                    "Column with name '{name}' doesn't exist on table '{}'",
                    self.table.name
                )),
            };
        }
        let mask = mask.cloned().map(Arc::new);
        let views: Vec<String> = views_of(&self.keyspace, &self.table.name)
            .map(str::to_owned)
            .collect();
        for view in views {
            if let Some(view) = self.keyspace.tables.get_mut(&view) {
                *view = view.to_builder().mask(name, mask.clone()).build();
            }
        }
        self.table = self.table.to_builder().mask(name, mask).build();
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str, if_exists: bool) -> Result<(), Error> {
        let table = full_name(&self.table);
        let Some(column) = self.table.shown_named(from) else {
            return match if_exists {
                true => Ok(()),
                false => invalid(format!(
                    "Undefined column name {} in table {table}",
                    ilion_types::quote_name(from)
                )),
            };
        };
        if !column.is_primary_key() {
            return invalid(format!("Cannot rename non PRIMARY KEY column {from}"));
        }
        if self.table.column_named(to).is_some() {
            return invalid(format!(
                "Cannot rename column {from} to {to} in table '{table}'; another column with that name \
                 already exists"
            ));
        }
        self.check_indexes("Can't rename", from)?;
        let views: Vec<String> = views_of(&self.keyspace, &self.table.name)
            .map(str::to_owned)
            .collect();
        for name in views {
            self.keyspace.rename_in_view(&name, from, to);
        }
        self.table = self.table.to_builder().rename(from, to).build();
        Ok(())
    }

    fn check_indexes(&self, action: &str, column: &str) -> Result<(), Error> {
        let dependent: Vec<&str> = self
            .keyspace
            .indexes
            .values()
            .filter(|index| index.table == self.table.name)
            .filter(|index| index.target().is_none_or(|(target, _)| target == column))
            .map(|index| index.name.as_str())
            .collect();
        if dependent.is_empty() {
            return Ok(());
        }
        invalid(format!(
            "{action} column {column} because it has dependent secondary indexes ({})",
            dependent.join(", ")
        ))
    }

    fn drop_compact_storage(&mut self) -> Result<(), Error> {
        if !self.table.is_compact() {
            return invalid("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
        }
        let is_counter = self.table.is_counter();
        let flags = ["compound", "counter"].into_iter();
        let kept = flags.filter(|flag| *flag == "compound" || is_counter);
        let mut builder = self.table.to_builder();
        builder.flags = kept.map(str::to_owned).collect();
        self.table = builder.build();
        Ok(())
    }

    fn set_options(&mut self, properties: &Properties) -> Result<(), Error> {
        let options = self.table.options.altered(properties)?;
        if self.table.is_counter() && options.default_time_to_live_secs > 0 {
            return invalid("Cannot set default_time_to_live on a table with counters");
        }
        if options.gc_grace_secs == 0 && views_of(&self.keyspace, &self.table.name).next().is_some() {
            return invalid(
                "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since this \
                 value is used to TTL undelivered updates. Setting gc_grace_seconds too low might cause \
                 undelivered updates to expire before being replayed.",
            );
        }
        let mut builder = self.table.to_builder();
        builder.options = options;
        self.table = builder.build();
        Ok(())
    }
}

fn with_column(table: &TableSchema, column: &NewColumn, kind: ColumnKind) -> Arc<TableSchema> {
    let order = crate::ClusteringOrder::Asc;
    table
        .to_builder()
        .add(column.name.clone(), kind, column.ty.clone(), order)
        .mask(&column.name, column.mask.clone().map(Arc::new))
        .build()
}

fn dropped_column(column: &Column, dropped_micros: i64) -> DroppedColumn {
    DroppedColumn {
        name: column.name.clone(),
        kind: column.kind,
        ty: expand_user_types(&column.ty),
        dropped_micros,
    }
}

pub(super) fn full_name(table: &TableSchema) -> String {
    format!("{}.{}", table.keyspace, table.name)
}
