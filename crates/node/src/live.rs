//! The current settings of a node, and changing them while it runs.
//!
//! `UPDATE system_views.settings`, nodetool's setters and `ilion reload` all come here. A change is checked as a whole first: if one of
//! its settings cannot be changed while the node runs, or its value is invalid, none is changed. Changes last until the next start.
//! When you make another setting changeable, add it to [`LIVE`] and apply it in [`LiveSettings::apply`]; if only a server uses it,
//! add it to the list of [`is_of_server`], too, and apply it in `ServerNode`.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use ilion_engine::Engine;
use ilion_query::QueryProcessor;
use ilion_settings::{LIVE, Loaded, SETTINGS, Settings, is_of_server};
use parking_lot::Mutex;

use crate::budgets::Budgets;
use crate::layer_options::{compaction_threads, count, large_limits, query_options};
use crate::memory::machine_bytes;

/// The settings of a node while it runs.
pub struct LiveSettings {
    /// Held while a change is applied.
    current: Mutex<Arc<Settings>>,
    // Weak, since the engine owns the virtual table `settings`, which owns this.
    engine: Weak<Engine>,
    processor: Weak<QueryProcessor>,
    /// Applies settings of the server; empty if the node has no server.
    server: OnceLock<ApplyToServer>,
    /// Applies settings of a member of a cluster; empty for a single node.
    cluster: OnceLock<ApplyToCluster>,
}

/// Applies changed settings to the node as a member of a cluster.
type ApplyToCluster = Box<dyn Fn(&Settings) + Send + Sync>;

/// Applies the settings with these names to the server of the node. If it fails, it has changed nothing.
type ApplyToServer = Box<dyn Fn(&[&str], &Settings) -> Result<(), String> + Send + Sync>;

/// The effect of a new settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReloadReport {
    /// Settings that were changed, with their new values.
    pub changed: Vec<(String, String)>,
    /// Settings that differ and take effect at the next start.
    pub needs_restart: Vec<String>,
    /// Warnings about the sources of the settings.
    pub warnings: Vec<String>,
}

impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        for (name, value) in &self.changed {
            writeln!(f, "{name} is now {value}")?;
        }
        if !self.needs_restart.is_empty() {
            writeln!(
                f,
                "these differ, and cannot be changed while the node runs; they take effect at the next start: {}",
                self.needs_restart.join(", ")
            )?;
        }
        write!(f, "reload: {} settings changed", self.changed.len())
    }
}

impl LiveSettings {
    pub(crate) fn new(settings: &Settings, engine: &Arc<Engine>, processor: &Arc<QueryProcessor>) -> Self {
        Self {
            current: Mutex::new(Arc::new(settings.clone())),
            engine: Arc::downgrade(engine),
            processor: Arc::downgrade(processor),
            server: OnceLock::new(),
            cluster: OnceLock::new(),
        }
    }

    /// Makes this the settings of a member of a cluster: `apply` gets the new settings at each change. Only the first call has an effect.
    pub fn of_cluster(&self, apply: impl Fn(&Settings) + Send + Sync + 'static) {
        let _ = self.cluster.set(Box::new(apply));
    }

    /// Makes this the settings of a node with a server: `apply` gets the names of changed settings, and all settings. Only the first
    /// call has an effect.
    pub fn of_server(
        &self,
        apply: impl Fn(&[&str], &Settings) -> Result<(), String> + Send + Sync + 'static,
    ) {
        let _ = self.server.set(Box::new(apply));
    }

    /// The current settings.
    pub fn current(&self) -> Arc<Settings> {
        self.current.lock().clone()
    }

    /// Changes settings: all of them or none.
    ///
    /// # Errors
    /// A name is unknown, a value is invalid, or a setting cannot be changed while the node runs.
    pub fn change(&self, assignments: &[(&str, &str)]) -> Result<(), String> {
        let mut current = self.current.lock();
        let mut wanted = Loaded {
            settings: (**current).clone(),
            ..Loaded::default()
        };
        for (name, value) in assignments {
            wanted
                .set(name, value, || (*name).to_owned())
                .map_err(|error| error.problem)?;
        }
        // Otherwise a setting of Cassandra that Ilion ignores would be accepted silently.
        if let Some(warning) = wanted.warnings.first() {
            return Err(warning.clone());
        }
        let is_of_cluster = |(name, _): &(&str, &str)| *name == "write_request_timeout";
        if assignments.iter().any(is_of_cluster) && self.cluster.get().is_none() {
            return Err(
                "write_request_timeout has an effect in a cluster only: writes of a node that is alone wait for no other node".to_owned(),
            );
        }
        let of_server = assignments.iter().find(|(name, _)| is_of_server(name));
        if let Some((name, _)) = of_server.filter(|_| self.server.get().is_none()) {
            return Err(format!(
                "{name} has an effect in a server only: this database has none"
            ));
        }
        let fixed = differing(&current, &wanted.settings).filter(|name| !LIVE.contains(name));
        let fixed: Vec<&str> = fixed.collect();
        if !fixed.is_empty() {
            return Err(format!(
                "{} cannot be changed while the node runs: set it in the file, and start the node again",
                fixed.join(", ")
            ));
        }
        self.adopt(&mut current, wanted.settings).map(drop)
    }

    /// Adopts settings that were read again from their sources, as far as they can be changed while the node runs.
    ///
    /// # Errors
    /// A value is invalid; nothing has changed.
    pub fn reload(&self, loaded: Loaded) -> Result<ReloadReport, String> {
        let mut current = self.current.lock();
        let mut wanted = loaded.settings;
        let fixed = differing(&current, &wanted).filter(|name| !LIVE.contains(name));
        let needs_restart: Vec<String> = fixed.map(str::to_owned).collect();
        for setting in SETTINGS {
            if needs_restart.iter().any(|name| name == setting.name) {
                (setting.copy)(&current, &mut wanted);
            }
        }
        Ok(ReloadReport {
            changed: self.adopt(&mut current, wanted)?,
            needs_restart,
            warnings: loaded.warnings,
        })
    }

    /// Checks the changes, applies and logs them. Returns the changed settings with their new values.
    fn adopt(&self, current: &mut Arc<Settings>, wanted: Settings) -> Result<Vec<(String, String)>, String> {
        let names: Vec<&str> = differing(current, &wanted).collect();
        check_thresholds(&names, &wanted)?;
        let changed: Vec<(String, String)> = wanted
            .printed()
            .filter(|(name, _)| names.contains(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        self.apply(&names, current, &wanted)?;
        *current = Arc::new(wanted);
        for (name, value) in &changed {
            tracing::info!("{name} is now {value}, until the next start");
        }
        Ok(changed)
    }

    /// Applies the settings with these names, all or none.
    fn apply(&self, names: &[&str], before: &Settings, wanted: &Settings) -> Result<(), String> {
        let (Some(engine), Some(processor)) = (self.engine.upgrade(), self.processor.upgrade()) else {
            return Err("the node is stopping".to_owned());
        };
        let has = |name: &str| names.contains(&name);
        let (threads_before, threads) = (compaction_threads(before), compaction_threads(wanted));
        let set_threads = |threads| {
            let changed = engine.set_compaction_threads(threads);
            changed.map_err(|error| error.to_string())
        };
        // Steps that can fail come first. Compaction threads are started, then the server takes its settings: all of them or, if it
        // refuses one, none. Compaction threads are ended last, which cannot fail.
        let started = match threads > threads_before {
            true => set_threads(threads),
            false => Ok(()),
        };
        let serve = |()| self.server.get().map_or(Ok(()), |server| server(names, wanted));
        if let Err(reason) = started.and_then(serve) {
            if threads > threads_before {
                set_threads(threads_before)?;
            }
            return Err(reason);
        }
        let machine = machine_bytes(&**engine.env());
        processor.change_options(&query_options(wanted, machine));
        engine.set_snapshot_links_per_sec(Some(wanted.snapshot_links_per_second).filter(|links| *links > 0));
        engine.set_large_limits(large_limits(wanted));
        engine.set_column_index_bytes(wanted.column_index_size.map(|size| size.0));
        if let Some(cluster) = self.cluster.get() {
            cluster(wanted);
        }
        if has("compaction_throughput") {
            engine.set_compaction_throughput(Some(wanted.compaction_throughput.0).filter(|rate| *rate > 0));
        }
        if threads < threads_before {
            set_threads(threads)?;
        }
        if has("incremental_backups") {
            engine.set_backing_up(wanted.incremental_backups);
        }
        let budgets = Budgets::of(wanted, machine);
        for (cache, name, bytes) in [
            ("rows", "row_cache_size", budgets.rows),
            ("counters", "counter_cache_size", budgets.counters),
            ("keys", "key_cache_size", budgets.keys),
            ("chunks", "file_cache_size", budgets.chunks),
        ] {
            if has(name) {
                engine
                    .set_cache_capacity(cache, bytes)
                    .map_err(|error| error.to_string())?;
            }
        }
        for (cache, name, keys) in [
            ("rows", "row_cache_keys_to_save", wanted.row_cache_keys_to_save),
            (
                "counters",
                "counter_cache_keys_to_save",
                wanted.counter_cache_keys_to_save,
            ),
            ("keys", "key_cache_keys_to_save", wanted.key_cache_keys_to_save),
        ] {
            if has(name) {
                engine
                    .set_cache_keys_to_save(cache, count(keys))
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// The names of settings whose values differ.
fn differing<'s>(a: &'s Settings, b: &'s Settings) -> impl Iterator<Item = &'static str> + 's {
    let changed = SETTINGS.iter().filter(|setting| !(setting.is_same)(a, b));
    changed.map(|setting| setting.name)
}

/// Refuses changed thresholds if a value would reach the failing one before the warning one.
fn check_thresholds(changed: &[&str], wanted: &Settings) -> Result<(), String> {
    const WARN: &str = "_warn_threshold";
    const FAIL: &str = "_fail_threshold";
    let stems = changed
        .iter()
        .filter_map(|name| name.strip_suffix(WARN).or_else(|| name.strip_suffix(FAIL)));
    for stem in stems {
        let value = |suffix: &str| {
            let name = format!("{stem}{suffix}");
            wanted
                .printed()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        };
        let (Some(warn), Some(fail)) = (value(WARN), value(FAIL)) else {
            continue;
        };
        let (Some(low), Some(high)) = (quantity(&warn), quantity(&fail)) else {
            continue;
        };
        // Compat: messages of `GuardrailsOptions`.
        let (is_wrong, order) = match stem.starts_with("minimum_replication") {
            true => (low < high, "greater"),
            false => (low > high, "lower"),
        };
        if is_wrong {
            return Err(format!(
                "The warn threshold {warn} for {stem}{WARN} should be {order} than the fail threshold {fail}"
            ));
        }
    }
    Ok(())
}

/// A threshold as a number; `None` if it is switched off.
fn quantity(printed: &str) -> Option<u64> {
    use ilion_settings::{Size, parse_duration, parse_size};
    let count = printed.parse::<u64>().ok();
    count
        .or_else(|| parse_size(printed).ok().map(|Size(bytes)| bytes))
        .or_else(|| {
            let duration = parse_duration(printed).ok()?;
            u64::try_from(duration.as_nanos()).ok()
        })
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn a_warning_comes_before_the_failure() {
        let mut wanted = Loaded::default();
        for (name, value) in [
            ("tables_warn_threshold", "20"),
            ("tables_fail_threshold", "10"),
            ("collection_size_warn_threshold", "1MiB"),
            ("collection_size_fail_threshold", "1GiB"),
            ("minimum_replication_factor_warn_threshold", "3"),
            ("minimum_replication_factor_fail_threshold", "1"),
        ] {
            wanted.set(name, value, String::new).unwrap();
        }
        let check = |name: &str| check_thresholds(&[name], &wanted.settings);
        assert_eq!(
            check("tables_fail_threshold").unwrap_err(),
            "The warn threshold 20 for tables_warn_threshold should be lower than the fail threshold 10"
        );
        assert_eq!(check("collection_size_warn_threshold"), Ok(()));
        assert_eq!(check("minimum_replication_factor_warn_threshold"), Ok(()));
        assert_eq!(check("keyspaces_warn_threshold"), Ok(()));
    }

    #[test]
    fn a_change_that_the_server_refuses_starts_no_thread() {
        let env = Arc::new(MemEnv::new(1));
        let node = crate::Node::open(env, &Settings::default()).unwrap();
        let threads = || node.engine().facts().compaction_threads;
        node.settings()
            .of_server(|names, _| match names.contains(&"slow_query_log_timeout") {
                true => Err("no".to_owned()),
                false => Ok(()),
            });
        let change = |changes: &[(&str, &str)]| node.settings().change(changes);
        change(&[("concurrent_compactors", "5")]).unwrap();
        assert_eq!(threads(), 5);
        for count in ["3", "9"] {
            let both = [("concurrent_compactors", count), ("slow_query_log_timeout", "7s")];
            assert_eq!(change(&both), Err("no".to_owned()));
            assert_eq!(threads(), 5);
        }
        change(&[("concurrent_compactors", "3")]).unwrap();
        assert_eq!(threads(), 3);
    }

    #[test]
    fn every_live_setting_exists() {
        for name in LIVE {
            assert!(SETTINGS.iter().any(|setting| setting.name == *name), "{name}");
        }
    }
}
