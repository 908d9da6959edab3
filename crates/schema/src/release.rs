//! [`Release`]: the oldest Cassandra that must be able to read the files.
//!
//! A directory of Cassandra 4.x stays readable for it: its system tables keep the columns of 4.x, and objects that 4.x cannot
//! load are refused.

use ilion_types::CqlType;

use crate::change::Applied;
use crate::error::invalid;
use crate::options::compaction;
use crate::{Diff, Error, TableOptions, TableSchema, Transition};

/// The only class of custom indexes in 4.x, in full.
const SASI: &str = "org.apache.cassandra.index.sasi.SASIIndex";

/// A release of Cassandra, if its tables and objects differ from those of other releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// 4.0
    V4_0,
    /// 4.1
    V4_1,
    /// 5.0, the release that Ilion corresponds to.
    #[default]
    V5_0,
}

impl Release {
    /// The release of `system.local.release_version`.
    ///
    /// # Errors
    /// Directories of that release are not supported.
    pub fn of(version: &str) -> Result<Release, Error> {
        let mut numbers = version.split(['.', '-', '~']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(4)), Some(Ok(0))) => Ok(Release::V4_0),
            (Some(Ok(4)), Some(Ok(1))) => Ok(Release::V4_1),
            (Some(Ok(5)), Some(Ok(0))) => Ok(Release::V5_0),
            _ => invalid(format!(
                "the data directory is one of Cassandra {version:?}; Ilion opens those of 4.0, 4.1 and 5.0: bring it there with Cassandra first"
            )),
        }
    }

    /// True if this release does not have a class of compaction.
    pub fn lacks_compaction(self, class: &str) -> bool {
        self < Release::V5_0 && class.ends_with("UnifiedCompactionStrategy")
    }

    /// Refuses objects that this release cannot load.
    pub(crate) fn check(self, applied: &Applied) -> Result<(), Error> {
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

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V4_0 => "Cassandra 4.0",
            Self::V4_1 => "Cassandra 4.1",
            Self::V5_0 => "Cassandra 5.0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_releases_that_are_not_understood_are_refused() {
        assert_eq!(Release::of("4.0.19"), Ok(Release::V4_0));
        assert_eq!(Release::of("4.1-beta1"), Ok(Release::V4_1));
        assert_eq!(Release::of("5.0.9-SNAPSHOT"), Ok(Release::V5_0));
        for strange in ["3.11.17", "5.1.0", "6.0", "", "four"] {
            assert!(Release::of(strange).is_err(), "{strange}");
        }
    }
}
