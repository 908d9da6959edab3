//! Refuses objects that the Cassandra release of a data directory cannot load.

use ilion_types::CqlType;

use super::Applied;
use crate::error::invalid;
use crate::options::compaction;
use crate::{Diff, Error, Release, TableOptions, TableSchema, Transition};

/// The only class of custom indexes in 4.x, in full.
const SASI: &str = "org.apache.cassandra.index.sasi.SASIIndex";

impl Release {
    /// Refuses objects that this release cannot load.
    pub(super) fn check(self, applied: &Applied) -> Result<(), Error> {
        if self == Release::V5_0 {
            return Ok(());
        }
        applied.diffs.iter().try_for_each(|diff| match diff {
            Diff::Table(Transition::Created(table) | Transition::Updated { new: table, .. }) => {
                self.check_table(table)
            }
            Diff::Type(Transition::Created(ty) | Transition::Updated { new: ty, .. }) => {
                self.check_types(ty.fields.iter().map(|(_, field)| field))
            }
            Diff::Function(_, Transition::Created(function) | Transition::Updated { new: function, .. }) => {
                let arguments = function.arguments.iter().map(|(_, ty)| ty);
                self.check_types(arguments.chain([&function.return_type]))
            }
            Diff::Aggregate(
                _,
                Transition::Created(aggregate) | Transition::Updated { new: aggregate, .. },
            ) => self.check_types(aggregate.argument_types.iter().chain([&aggregate.state_type])),
            Diff::Index(_, Transition::Created(index)) => match index.options.get("class_name") {
                Some(class) if class != SASI => self.lacks(format!("indexes of class {class}")),
                _ => Ok(()),
            },
            _ => Ok(()),
        })
    }

    fn check_table(self, table: &TableSchema) -> Result<(), Error> {
        self.check_types(table.every_column().into_iter().map(|column| &column.ty))?;
        if table.has_masks() {
            return self.lacks("masks of columns");
        }
        self.check_options(&table.options)
    }

    fn check_types<'a>(self, mut types: impl Iterator<Item = &'a CqlType>) -> Result<(), Error> {
        if types.any(CqlType::contains_vector) {
            return self.lacks("vectors");
        }
        Ok(())
    }

    fn check_options(self, options: &TableOptions) -> Result<(), Error> {
        if self.lacks_compaction(compaction::class_of(&options.compaction)) {
            return self.lacks("UnifiedCompactionStrategy");
        }
        if !options.allow_auto_snapshot {
            return self.lacks("allow_auto_snapshot");
        }
        if !options.incremental_backups {
            return self.lacks("incremental_backups");
        }
        if self < Release::V4_1 && options.memtable != "default" {
            return self.lacks("memtable");
        }
        Ok(())
    }

    fn lacks<T>(self, what: impl std::fmt::Display) -> Result<T, Error> {
        invalid(format!(
            "{what}: not known to {self}, whose data directory this is; start with storage_compatibility_mode: NONE to give up the way back"
        ))
    }
}
