//! Requests and reports about snapshots. The texts are those of Cassandra's nodetool.

use std::fmt;

use ilion_engine::{Engine, SnapshotChoice, SnapshotFacts, SnapshotMemtables, parse_instant, print_instant};
use ilion_schema::TableId;
use ilion_settings::parse_duration;
use serde::{Deserialize, Serialize};

use super::AdminError;
use super::handling::failed;
use super::layout::laid_out;

/// A snapshot to take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SnapshotOrder {
    /// Its tag.
    pub tag: String,
    /// Only tables of these keyspaces, one per line.
    pub keyspaces: Option<String>,
    /// Only this table; needs one keyspace.
    pub table: Option<String>,
    /// Only these tables, as `keyspace.table`, separated by commas.
    pub tables: Option<String>,
    /// How long it is kept, such as 1d.
    pub ttl: Option<String>,
    /// Leaves out data that is only in memory.
    #[serde(default)]
    pub skip_flush: bool,
}

/// Which snapshots to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClearOrder {
    /// Only snapshots with this tag.
    pub tag: Option<String>,
    /// Only snapshots of these keyspaces, one per line.
    pub keyspaces: Option<String>,
    /// Only snapshots older than this, such as 1d.
    pub older_than: Option<String>,
    /// Only snapshots taken before this instant, such as 2026-11-23T23:16:45Z.
    pub older_than_timestamp: Option<String>,
}

/// Switches incremental backups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BackupOrder {
    /// True switches them on.
    pub on: bool,
}

/// Whether flushed SSTables are backed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// True if they are.
    pub on: bool,
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.on {
            true => "running",
            false => "not running",
        })
    }
}

/// The lines of a parameter.
fn lines(text: Option<&str>) -> Vec<String> {
    let lines = text.unwrap_or_default().lines();
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

impl SnapshotOrder {
    pub(super) fn take(&self, engine: &Engine) -> Result<u64, AdminError> {
        let ttl = self.ttl.as_deref().map(parse_duration).transpose();
        let ttl = ttl.map_err(|expected| AdminError::Refused(format!("ttl: expected {expected}")))?;
        let order = ilion_engine::SnapshotOrder {
            tag: self.tag.clone(),
            tables: self.chosen(engine)?,
            ttl_secs: ttl.map(|ttl| ttl.as_secs()),
            memtables: match self.skip_flush {
                true => SnapshotMemtables::LeftOut,
                false => SnapshotMemtables::Flushed,
            },
        };
        engine.snapshot(&order).map_err(failed)?;
        Ok(order.tables.len() as u64)
    }

    /// The ids of the chosen tables; all tables if the order names none.
    fn chosen(&self, engine: &Engine) -> Result<Vec<TableId>, AdminError> {
        let refuse = |reason: String| Err(AdminError::Refused(reason));
        let schemas: Vec<_> = engine.tables().iter().map(|store| store.schema()).collect();
        let named = |keyspace: &str, name: &str| {
            let mut tables = schemas.iter();
            let found = tables.find(|table| table.keyspace == keyspace && table.name == name);
            found
                .map(|table| table.id)
                .ok_or_else(|| AdminError::Refused(format!("Unknown keyspace/cf pair ({keyspace}.{name})")))
        };
        let keyspaces = lines(self.keyspaces.as_deref());
        if let Some(tables) = &self.tables {
            if !keyspaces.is_empty() || self.table.is_some() {
                return refuse("a list of tables goes without keyspaces".to_owned());
            }
            let pairs = tables.split(',').map(|pair| {
                let pair = pair.trim();
                let Some((keyspace, name)) = pair.split_once('.') else {
                    return Err(AdminError::Refused(format!(
                        "{pair} does not name a table: expected keyspace.table"
                    )));
                };
                named(keyspace, name)
            });
            let mut ids = pairs.collect::<Result<Vec<_>, _>>()?;
            ids.sort_unstable();
            ids.dedup();
            return Ok(ids);
        }
        if let Some(table) = &self.table {
            return match &keyspaces[..] {
                [keyspace] => Ok(vec![named(keyspace, table)?]),
                _ => refuse("a table goes with one keyspace".to_owned()),
            };
        }
        let schema = engine.schema();
        if let Some(unknown) = keyspaces.iter().find(|name| schema.keyspace(name).is_none()) {
            return refuse(format!("Keyspace {unknown} does not exist"));
        }
        let is_chosen = |keyspace: &String| keyspaces.is_empty() || keyspaces.contains(keyspace);
        let chosen = schemas.iter().filter(|table| is_chosen(&table.keyspace));
        Ok(chosen.map(|table| table.id).collect())
    }
}

impl ClearOrder {
    pub(super) fn choice(&self, engine: &Engine) -> Result<SnapshotChoice, AdminError> {
        let refused = |reason: String| AdminError::Refused(reason);
        let before_millis = match (&self.older_than, &self.older_than_timestamp) {
            (None, None) => None,
            (Some(age), None) => {
                let age = parse_duration(age)
                    .map_err(|expected| refused(format!("older_than: expected {expected}")))?;
                let age_millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                let now_millis = engine.env().now_micros().div_euclid(1000);
                Some(now_millis.saturating_sub(age_millis))
            }
            (None, Some(instant)) => {
                let millis = parse_instant(instant);
                let reason = || {
                    refused(format!(
                        "older_than_timestamp: expected an instant like 2026-11-23T23:16:45Z, not {instant}"
                    ))
                };
                Some(millis.ok_or_else(reason)?)
            }
            (Some(_), Some(_)) => {
                return Err(refused(
                    "Specify only one of --older-than or --older-than-timestamp".to_owned(),
                ));
            }
        };
        if self.tag.is_some() && before_millis.is_some() {
            return Err(refused(
                "Specifying snapshot name together with an age is not allowed".to_owned(),
            ));
        }
        Ok(SnapshotChoice {
            tag: self.tag.clone(),
            keyspaces: lines(self.keyspaces.as_deref()),
            before_millis,
        })
    }
}

/// All snapshots, ordered by tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotsReport {
    /// One report for each table of each snapshot.
    pub snapshots: Vec<SnapshotReport>,
    /// Bytes of SSTables that only snapshots have.
    pub true_size_bytes: u64,
}

/// A snapshot of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotReport {
    /// Its tag.
    pub tag: String,
    /// Keyspace of its table.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its directory.
    pub directory: String,
    /// Bytes of its files that the table does not have any more.
    pub true_size_bytes: u64,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// When it was taken.
    pub created_at: String,
    /// When it expires; `None` means never.
    pub expires_at: Option<String>,
    /// Whether a repair of Cassandra took it.
    pub ephemeral: bool,
}

impl SnapshotsReport {
    pub(super) fn of(engine: &Engine) -> ilion_engine::Result<Self> {
        let mut snapshots: Vec<SnapshotReport> = engine.snapshots()?.into_iter().map(report).collect();
        snapshots.sort_by(|a, b| {
            (&a.tag, &a.keyspace, &a.table, &a.directory).cmp(&(&b.tag, &b.keyspace, &b.table, &b.directory))
        });
        Ok(Self {
            snapshots,
            true_size_bytes: engine.snapshots_only_bytes()?.values().sum(),
        })
    }

    /// The report as a table, with or without the column `Ephemeral`, as Cassandra's listsnapshots.
    pub fn table(&self, shows_ephemeral: bool) -> String {
        if self.snapshots.is_empty() {
            return "Snapshot Details: \nThere are no snapshots".to_owned();
        }
        let columns = match shows_ephemeral {
            true => HEADERS.len(),
            false => HEADERS.len() - 1,
        };
        let rows = [HEADERS.map(str::to_owned)]
            .into_iter()
            .chain(self.snapshots.iter().map(SnapshotReport::cells));
        let rows: Vec<Vec<String>> = rows.map(|row| row[..columns].to_vec()).collect();
        format!(
            "Snapshot Details: \n{}\nTotal TrueDiskSpaceUsed: {}\n",
            laid_out(&rows),
            file_size(self.true_size_bytes)
        )
    }
}

const HEADERS: [&str; 8] = [
    "Snapshot name",
    "Keyspace name",
    "Column family name",
    "True size",
    "Size on disk",
    "Creation time",
    "Expiration time",
    "Ephemeral",
];

impl SnapshotReport {
    fn cells(&self) -> [String; HEADERS.len()] {
        [
            self.tag.clone(),
            self.keyspace.clone(),
            self.table.clone(),
            file_size(self.true_size_bytes),
            file_size(self.size_bytes),
            self.created_at.clone(),
            self.expires_at.clone().unwrap_or_default(),
            self.ephemeral.to_string(),
        ]
    }
}

impl fmt::Display for SnapshotsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(false))
    }
}

fn report(facts: SnapshotFacts) -> SnapshotReport {
    SnapshotReport {
        tag: facts.tag,
        keyspace: facts.keyspace,
        table: facts.table,
        directory: facts.directory.display().to_string(),
        true_size_bytes: facts.true_size_bytes,
        size_bytes: facts.size_bytes,
        created_at: print_instant(facts.created_millis),
        expires_at: facts.expires_millis.map(print_instant),
        ephemeral: facts.is_ephemeral,
    }
}

/// Bytes with at most two decimals. Compat: `FileUtils.stringifyFileSize`.
pub fn file_size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, unit)) = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return format!("{bytes} bytes");
    };
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let number = format!("{:.2}", bytes as f64 / (1_u64 << shift) as f64);
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_by_nodetool() {
        let shown = [0, 1023, 1024, 12_605, 1 << 20, 3 << 29, 5 << 40].map(file_size);
        let expected = [
            "0 bytes",
            "1023 bytes",
            "1 KiB",
            "12.31 KiB",
            "1 MiB",
            "1.5 GiB",
            "5 TiB",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_list_is_laid_out_as_by_nodetool() {
        assert_eq!(
            SnapshotsReport::default().to_string(),
            "Snapshot Details: \nThere are no snapshots"
        );
        let one = SnapshotReport {
            tag: "one".to_owned(),
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            true_size_bytes: 1321,
            size_bytes: 12_605,
            created_at: "2026-11-23T23:16:45.252Z".to_owned(),
            ..SnapshotReport::default()
        };
        let report = SnapshotsReport {
            snapshots: vec![one],
            true_size_bytes: 0,
        };
        let expected = "Snapshot Details: \n\
            Snapshot name Keyspace name Column family name True size Size on disk Creation time            Expiration time\n\
            one           ks            t                  1.29 KiB  12.31 KiB    2026-11-23T23:16:45.252Z                \n\
            \nTotal TrueDiskSpaceUsed: 0 bytes\n";
        assert_eq!(report.to_string(), expected);
        assert!(report.table(true).contains("Expiration time Ephemeral\n"));
    }
}
