//! `ilion backup`: backups of a node, and restores.

mod node;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ilion_backup::{
    Catalogue, CreateOptions, Created, Error, Manifest, Pace, Place, RestoreOptions, Restored, RestoredTable,
    TableChoice, Until, create, delete, open_place, restore_node, restore_table, ship_log, verify,
};
use ilion_engine::{parse_instant, print_instant};
use ilion_env::{Env, RealEnv};
use ilion_server::admin::TablePlan;
use serde_json::{Value, json};

use self::node::BackedUp;
use crate::Failure;
use crate::ask::say;
use crate::bar::Steps;
use crate::cli::{
    BackupArguments, BackupCommand, CreateArguments, DeleteArguments, ListArguments, LogArguments,
    MoveArguments, RestoreArguments, VerifyArguments,
};
use crate::snapshots;

/// Most findings of `verify` that are printed.
const FINDINGS_MAX: usize = 100;

/// Runs the command. Without a subcommand, prints whether incremental backups are on.
pub fn run(arguments: &BackupArguments) -> Result<(), Failure> {
    match &arguments.command {
        None => snapshots::backup(&arguments.admin, None),
        Some(BackupCommand::On(admin)) => snapshots::backup(admin, Some(true)),
        Some(BackupCommand::Off(admin)) => snapshots::backup(admin, Some(false)),
        Some(BackupCommand::Create(arguments)) => make(arguments),
        Some(BackupCommand::Log(arguments)) => log(arguments),
        Some(BackupCommand::List(arguments)) => list(arguments),
        Some(BackupCommand::Verify(arguments)) => check(arguments),
        Some(BackupCommand::Restore(arguments)) => restore(arguments),
        Some(BackupCommand::Delete(arguments)) => remove(arguments),
    }
}

/// What all commands need: files and clock, the place of the backups, a progress bar.
struct Bench {
    env: Arc<dyn Env>,
    place: Box<dyn Place>,
    bar: Steps,
}

impl Bench {
    fn at(destination: &str) -> Result<Self, Failure> {
        let env: Arc<dyn Env> = RealEnv::new();
        let place = open_place(&env, destination).map_err(Failure::of)?;
        Ok(Self {
            env,
            place,
            bar: Steps::default(),
        })
    }

    fn pace(&self, arguments: &MoveArguments) -> Pace {
        let rate = arguments.rate.map(|mebibytes| mebibytes.saturating_mul(1 << 20));
        Pace::new(self.env.clone(), rate)
    }

    fn create_options(
        &self,
        moved: &MoveArguments,
        name: Option<String>,
        prunes_archive: bool,
    ) -> CreateOptions<'_> {
        CreateOptions {
            name,
            threads: moved.jobs.into(),
            pace: self.pace(moved),
            chunk_bytes: None,
            prunes_archive,
            progress: &self.bar,
        }
    }

    /// Time since `began_nanos` of the monotonic clock.
    fn since(&self, began_nanos: u64) -> Duration {
        Duration::from_nanos(self.env.monotonic_nanos().saturating_sub(began_nanos))
    }
}

fn make(arguments: &CreateArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let node = BackedUp::open(&arguments.node)?;
    let began = bench.env.monotonic_nanos();
    let options = bench.create_options(&arguments.moved, arguments.name.clone(), arguments.prune_archive);
    let created = create(&bench.env, &*bench.place, &options, &mut || node.begin());
    let ended = node.end();
    let created = created.map_err(Failure::of)?;
    ended.map_err(Failure::of)?;
    match arguments.node.admin.json {
        true => say(&created_json(&created).to_string()),
        false => say(&created_text(&created, bench.since(began))),
    }
    Ok(())
}

fn created_json(created: &Created) -> Value {
    let mut value = manifest_json(&created.manifest);
    value["uploaded_bytes"] = created.uploaded_bytes.into();
    value["uploaded_objects"] = created.uploaded_objects.into();
    value["archived_segments"] = created.archived_segments.into();
    value
}

fn created_text(created: &Created, took: Duration) -> String {
    let manifest = &created.manifest;
    format!(
        "backup {}: {} in {} files; {} uploaded as {} objects in {:.1} s",
        manifest.name,
        size(manifest.bytes()),
        manifest.files().count(),
        size(created.uploaded_bytes),
        created.uploaded_objects,
        took.as_secs_f64()
    )
}

fn log(arguments: &LogArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let node = BackedUp::open(&arguments.node)?;
    let options = bench.create_options(&arguments.moved, None, arguments.prune_archive);
    let shipped = ship_log(&bench.env, &*bench.place, &options, &mut || node.archive_log());
    let shipped = shipped.map_err(Failure::of)?;
    match arguments.node.admin.json {
        true => say(&json!({ "segments": shipped.segments, "uploaded_bytes": shipped.bytes }).to_string()),
        false => say(&format!(
            "log: {} segments uploaded, {}",
            shipped.segments,
            size(shipped.bytes)
        )),
    }
    Ok(())
}

fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let catalogue = Catalogue::open(&*bench.place).map_err(Failure::of)?;
    let backups = catalogue.backups().map_err(Failure::of)?;
    if arguments.json {
        let all = backups.iter().map(|backup| match &backup.manifest {
            Ok(manifest) => manifest_json(manifest),
            Err(error) => json!({ "name": backup.name, "error": error.to_string() }),
        });
        say(&json!({ "backups": all.collect::<Vec<_>>() }).to_string());
        return Ok(());
    }
    if backups.is_empty() {
        say("there are no backups");
    }
    for backup in &backups {
        match &backup.manifest {
            Ok(manifest) => say(&format!(
                "{}  {}  {} in {} tables  cluster {}, node {}",
                manifest.name,
                manifest.at,
                size(manifest.bytes()),
                manifest.tables.len(),
                manifest.cluster,
                manifest.node
            )),
            Err(error) => say(&format!("{}  cannot be read: {error}", backup.name)),
        }
    }
    Ok(())
}

fn manifest_json(manifest: &Manifest) -> Value {
    json!({
        "name": manifest.name,
        "at": manifest.at,
        "cluster": manifest.cluster,
        "node": manifest.node.to_string(),
        "bytes": manifest.bytes(),
        "tables": manifest.tables.iter().map(|table| json!({
            "keyspace": table.keyspace,
            "name": table.name,
            "bytes": table.bytes(),
        })).collect::<Vec<_>>(),
    })
}

fn check(arguments: &VerifyArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let began = bench.env.monotonic_nanos();
    let verified = verify(
        &*bench.place,
        &arguments.names,
        arguments.moved.jobs.into(),
        &bench.pace(&arguments.moved),
        &bench.bar,
    );
    let verified = verified.map_err(Failure::of)?;
    let findings = &verified.findings;
    if arguments.json {
        let findings = findings.iter();
        let findings =
            findings.map(|finding| json!({ "backup": finding.backup, "problem": finding.problem }));
        say(&json!({
            "backups": verified.backups,
            "objects": verified.objects,
            "bytes": verified.bytes,
            "findings": findings.collect::<Vec<_>>(),
        })
        .to_string());
    } else {
        for finding in findings.iter().take(FINDINGS_MAX) {
            say(&format!("{}: {}", finding.backup, finding.problem));
        }
        say(&format!(
            "{} backups: {} in {} objects read in {:.1} s",
            verified.backups,
            size(verified.bytes),
            verified.objects,
            bench.since(began).as_secs_f64()
        ));
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!(
            "{count} findings: the backup is damaged"
        ))),
    }
}

fn remove(arguments: &DeleteArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let deleted =
        delete(&bench.env, &*bench.place, &arguments.names, arguments.force).map_err(Failure::of)?;
    match arguments.json {
        true => say(&json!({
            "backups": deleted.backups,
            "segments": deleted.segments,
            "objects": deleted.objects,
            "bytes": deleted.bytes,
        })
        .to_string()),
        false => say(&format!(
            "{} backups, {} segments of the log and {} objects removed, {}",
            deleted.backups,
            deleted.segments,
            deleted.objects,
            size(deleted.bytes)
        )),
    }
    Ok(())
}

fn restore(arguments: &RestoreArguments) -> Result<(), Failure> {
    let bench = Bench::at(&arguments.destination)?;
    let options = RestoreOptions {
        until: until(arguments)?,
        node: arguments.of_node,
        threads: arguments.moved.jobs.into(),
        pace: bench.pace(&arguments.moved),
        progress: &bench.bar,
    };
    let began = bench.env.monotonic_nanos();
    let restored = match (&arguments.into, &arguments.keyspace) {
        (Some(target), _) => {
            restore_node(&bench.env, &*bench.place, &options, target).map_err(Failure::of)?
        }
        (None, Some(keyspace)) => into_node(&bench, arguments, keyspace, &options)?,
        // Unreachable: the parser requires one of the two.
        (None, None) => return Err(Failure::Usage("say --into or --keyspace".to_owned())),
    };
    match arguments.node.admin.json {
        true => say(&restored_json(&restored).to_string()),
        false => say(&restored_text(&restored, bench.since(began))),
    }
    Ok(())
}

/// Restores tables into a running or stopped node.
fn into_node(
    bench: &Bench,
    arguments: &RestoreArguments,
    keyspace: &str,
    options: &RestoreOptions<'_>,
) -> Result<Restored, Failure> {
    let node = BackedUp::open(&arguments.node)?;
    let scratch = match &arguments.scratch {
        Some(scratch) => crate::serve::absolute(scratch),
        None => {
            let mut name = node.data_directory().as_os_str().to_owned();
            name.push(".restoring");
            PathBuf::from(name)
        }
    };
    let renamed = arguments.renamed.as_ref().map(|name| match name.split_once('.') {
        Some((keyspace, name)) => (keyspace.to_owned(), name.to_owned()),
        None => (keyspace.to_owned(), name.clone()),
    });
    let choice = TableChoice {
        keyspace: keyspace.to_owned(),
        table: arguments.table.clone(),
        renamed,
    };
    let mut take = |tables: &[RestoredTable]| -> ilion_backup::Result<()> {
        for table in tables {
            let plan = TablePlan {
                keyspace: table.keyspace.clone(),
                name: table.name.clone(),
                directory: table.directory.clone(),
                statements: table.statements.clone(),
                indexes: table.indexes.clone(),
                merges: arguments.merge,
            };
            let text = serde_json::to_vec(&plan).map_err(|error| Error::Refused(error.to_string()))?;
            let path = table.directory.with_extension("plan.json");
            bench.env.write_atomically(&path, &text)?;
            node.restore_table(&path)?;
        }
        Ok(())
    };
    restore_table(&bench.env, &*bench.place, options, &choice, &scratch, &mut take).map_err(Failure::of)
}

fn restored_json(restored: &Restored) -> Value {
    let tables = restored.tables.iter();
    json!({
        "backup": restored.backup,
        "node": restored.node.to_string(),
        "bytes": restored.bytes,
        "log_segments": restored.segments,
        "newest_record": restored.newest_micros.map(|micros| print_instant(micros.div_euclid(1000))),
        "tables": tables.map(|table| json!({
            "keyspace": table.keyspace,
            "name": table.name,
            "views_left_out": table.views,
        })).collect::<Vec<_>>(),
    })
}

fn restored_text(restored: &Restored, took: Duration) -> String {
    let mut text = format!(
        "restored backup {}: {} in {:.1} s",
        restored.backup,
        size(restored.bytes),
        took.as_secs_f64()
    );
    if restored.segments > 0 {
        text += &format!("; {} segments of the log behind it", restored.segments);
    }
    for table in &restored.tables {
        text += &format!("\ntable {}.{}", table.keyspace, table.name);
        if !table.views.is_empty() {
            text += &format!("; create its views again: {}", table.views.join(", "));
        }
    }
    text
}

/// The moment that the arguments choose for the restore.
fn until(arguments: &RestoreArguments) -> Result<Until, Failure> {
    match arguments.to.as_deref() {
        None => Ok(Until::Backup(arguments.name.clone())),
        Some("latest") => Ok(Until::Latest),
        Some(text) => {
            let millis = parse_instant(text).ok_or_else(|| {
                Failure::Usage(format!(
                    "--to: expected an instant like 2026-11-24T05:30:00Z, or latest, not {text}"
                ))
            })?;
            // In microseconds; the restore includes the whole millisecond.
            Ok(Until::Time(millis.saturating_mul(1000).saturating_add(999)))
        }
    }
}

/// A number of bytes with a unit, for people.
fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, unit)) = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return format!("{bytes} B");
    };
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let number = bytes as f64 / (1_u64 << shift) as f64;
    format!("{number:.1} {unit}")
}
