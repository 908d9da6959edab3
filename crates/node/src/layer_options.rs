//! The options of engine and query layer, from the settings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_commitlog::{Capture, Damage, Mode, WhenFull};
use ilion_engine::{CacheOptions, EngineOptions, Finding, LargeLimits, SSTableVersion, SnapshotOptions};
use ilion_env::Env;
use ilion_query::{AccessOptions, QueryOptions};
use ilion_rows::TombstoneLimits;
use ilion_settings::{
    CommitLogSync, Limit, LogPlace, SSTableFormat, SSTableLookup, Settings, Size, StorageCompatibility,
};

use crate::budgets::Budgets;
use crate::guardrails::guardrails;
use crate::memory::machine_bytes;

/// Most bytes of captured segments, unless a setting says otherwise.
const CAPTURE_BYTES_MAX: u64 = 4 << 30;

fn access_options(settings: &Settings) -> AccessOptions {
    AccessOptions {
        authenticator: match settings.authenticator {
            ilion_settings::Authenticator::AllowAll => ilion_query::Authenticator::AllowAll,
            ilion_settings::Authenticator::Password => ilion_query::Authenticator::Password,
            ilion_settings::Authenticator::MutualTls => ilion_query::Authenticator::MutualTls,
            ilion_settings::Authenticator::MutualTlsWithPasswordFallback => {
                ilion_query::Authenticator::MutualTlsWithPasswordFallback
            }
        },
        authorizer: match settings.authorizer {
            ilion_settings::Authorizer::AllowAll => ilion_query::Authorizer::AllowAll,
            ilion_settings::Authorizer::Cassandra => ilion_query::Authorizer::Cassandra,
        },
        network_authorizer: match settings.network_authorizer {
            ilion_settings::NetworkAuthorizer::AllowAll => ilion_query::NetworkAuthorizer::AllowAll,
            ilion_settings::NetworkAuthorizer::Cassandra => ilion_query::NetworkAuthorizer::Cassandra,
        },
        cidr_authorizer: match (
            settings.cidr_authorizer,
            settings.cidr_authorizer_parameters_cidr_authorizer_mode,
        ) {
            (ilion_settings::CidrAuthorizer::AllowAll, _) => ilion_query::CidrAuthorizer::AllowAll,
            (ilion_settings::CidrAuthorizer::Cassandra, ilion_settings::CidrMode::Monitor) => {
                ilion_query::CidrAuthorizer::Monitor
            }
            (ilion_settings::CidrAuthorizer::Cassandra, ilion_settings::CidrMode::Enforce) => {
                ilion_query::CidrAuthorizer::Enforce
            }
        },
        checks_addresses_of_superusers: settings.cidr_authorizer_parameters_cidr_checks_for_superusers,
        roles_validity: settings.roles_validity,
        permissions_validity: settings.permissions_validity,
        credentials_validity: settings.credentials_validity,
        bcrypt_cost: u32::from(settings.auth_bcrypt_work_factor),
    }
}

pub(crate) fn query_options(settings: &Settings, machine_bytes: u64) -> QueryOptions {
    QueryOptions {
        prepared_bytes_max: Budgets::of(settings, machine_bytes).prepared,
        prepared_count_max: settings.prepared_statements_max,
        page_bytes_max: bytes(settings.native_transport_max_page_size.0),
        batch_size_warn_bytes: bytes(settings.batch_size_warn_threshold.0),
        batch_size_fail_bytes: bytes(settings.batch_size_fail_threshold.0),
        expiry_secs_max: sstable_version(settings).expiry_secs_max(),
        data_center: settings.data_center.clone(),
        allow_filtering: settings.allow_filtering_enabled,
        guardrails: guardrails(settings),
        access: access_options(settings),
        disk_usage: Arc::default(),
        materialized_views_enabled: settings.materialized_views_enabled,
        default_secondary_index_enabled: settings.default_secondary_index_enabled,
        default_secondary_index: settings.default_secondary_index.clone(),
        sasi_indexes_enabled: settings.sasi_indexes_enabled,
        default_compaction: Some(settings.default_compaction.0.clone()),
        user_functions_enabled: settings.user_defined_functions_enabled,
        dynamic_data_masking_enabled: settings.dynamic_data_masking_enabled,
        user_function_time_max: settings.user_defined_functions_fail_timeout,
        tombstone_limits: TombstoneLimits {
            warn: settings.tombstone_warn_threshold.0.unwrap_or(u64::MAX),
            fail: settings.tombstone_failure_threshold.0.unwrap_or(u64::MAX),
        },
        read_timeout: Some(settings.read_request_timeout).filter(|timeout| !timeout.is_zero()),
        range_timeout: Some(settings.range_request_timeout).filter(|timeout| !timeout.is_zero()),
        has_capture: settings.cdc_enabled,
        ..QueryOptions::default()
    }
}

/// How changes are captured.
fn capture(env: &dyn Env, settings: &Settings) -> Capture {
    let bytes_max = capture_bytes(env, settings);
    Capture {
        dir: settings.cdc_raw_path(),
        bytes_max,
        // What is in the log of a cluster must be applied.
        excess_bytes: match settings.log {
            LogPlace::Local => 0,
            LogPlace::Kafka(_) => bytes_max / 2,
        },
        when_full: match settings.cdc_block_writes {
            true => WhenFull::Block,
            false => WhenFull::DropOldest,
        },
        check_interval_millis: u64::try_from(settings.cdc_free_space_check_interval.as_millis())
            .unwrap_or(u64::MAX),
    }
}

/// Most bytes of captured segments. Compat: like `DatabaseDescriptor` of Cassandra 5, takes an eighth of the file system, at most 4 GiB,
/// if the setting has no value or is 0.
fn capture_bytes(env: &dyn Env, settings: &Settings) -> u64 {
    if let Some(Size(bytes @ 1..)) = settings.cdc_total_space {
        return bytes;
    }
    let path = settings.cdc_raw_path();
    // Before the first start the directory does not exist: asks for the space of its nearest ancestor.
    let existing = path.ancestors().find(|path| env.exists(path));
    let existing = existing.unwrap_or(Path::new("."));
    match env.total_space_bytes(existing) {
        Ok(bytes) if bytes / 8 < CAPTURE_BYTES_MAX => {
            tracing::info!(
                bytes = bytes / 8,
                "cdc_total_space is an eighth of the file system"
            );
            bytes / 8
        }
        Ok(_) => CAPTURE_BYTES_MAX,
        Err(error) => {
            tracing::warn!(%error, "cdc_total_space is 4 GiB");
            CAPTURE_BYTES_MAX
        }
    }
}

fn compactors_auto() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    (processors / 2).clamp(2, 8)
}

pub(crate) fn count(limit: Limit) -> usize {
    limit
        .0
        .map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

fn cache_options(bytes_max: u64, save_period: Duration, keys_to_save: Limit) -> CacheOptions {
    CacheOptions {
        bytes_max,
        save_period: Some(save_period).filter(|period| !period.is_zero()),
        keys_to_save: count(keys_to_save),
    }
}

/// The error says which setting cannot be used.
pub(crate) fn engine_options(env: &dyn Env, settings: &Settings) -> Result<EngineOptions, String> {
    let budgets = Budgets::of(settings, machine_bytes(env));
    budgets.tell();
    let segment_bytes = settings.commitlog_segment_size.0;
    let rate = settings.compaction_throughput.0;
    Ok(EngineOptions {
        data_dir: settings.data_path(),
        commitlog_dir: settings.commitlog_path(),
        partitioner: settings.partitioner,
        commit_log: ilion_commitlog::Options {
            segment_bytes: u32::try_from(segment_bytes)
                .map_err(|_| format!("commitlog_segment_size is at most 1GiB, not {segment_bytes} bytes"))?,
            mode: log_mode(settings),
            damage: match settings.commitlog_ignore_replay_errors {
                true => Damage::Skip,
                false => Damage::Refuse,
            },
            archive_dir: settings.commitlog_archive_directory.clone(),
            capture: settings.cdc_enabled.then(|| capture(env, settings)),
            ..ilion_commitlog::Options::default()
        },
        commit_log_bytes_max: settings.commitlog_total_space.0,
        memtable_bytes_max: bytes(budgets.memtables),
        chunk_cache_bytes: budgets.chunks,
        row_cache: cache_options(
            budgets.rows,
            settings.row_cache_save_period,
            settings.row_cache_keys_to_save,
        ),
        counter_cache: cache_options(
            budgets.counters,
            settings.counter_cache_save_period,
            settings.counter_cache_keys_to_save,
        ),
        saved_caches_dir: settings.saved_caches_path(),
        cache_load_timeout: settings.cache_load_timeout,
        large: large_limits(settings),
        column_index_bytes: settings.column_index_size.map(|size| size.0),
        index_summary_bytes: budgets.summaries,
        sorted_view_bytes: budgets.sorted_views,
        index_page_bytes: budgets.pages,
        index_summary_resize_interval_secs: match settings.index_summary_resize_interval.as_secs() {
            0 => None,
            secs => Some(secs),
        },
        key_cache: cache_options(
            budgets.keys,
            settings.key_cache_save_period,
            settings.key_cache_keys_to_save,
        ),
        stays_compatible: settings.storage_compatibility_mode == StorageCompatibility::Cassandra4,
        finding: match settings.sstable_lookup {
            SSTableLookup::TokenMap => Finding::TokenMap,
            SSTableLookup::Summary => Finding::Summary,
            SSTableLookup::WholeIndex => Finding::WholeIndex,
        },
        compaction_threads: compaction_threads(settings),
        compaction_bytes_per_sec: (rate > 0).then_some(rate),
        sstable_version: sstable_version(settings),
        snapshots: snapshot_options(settings),
        ..EngineOptions::below(Path::new(&settings.directory))
    })
}

pub(crate) fn compaction_threads(settings: &Settings) -> usize {
    let wanted = settings.concurrent_compactors;
    wanted.map_or_else(compactors_auto, usize::from)
}

pub(crate) fn large_limits(settings: &Settings) -> LargeLimits {
    LargeLimits {
        partition_bytes: settings.partition_size_warn_threshold.map(|size| size.0),
        partition_bytes_fail: settings.partition_size_fail_threshold.map(|size| size.0),
        partition_tombstones: settings.partition_tombstones_warn_threshold.0,
        partition_tombstones_fail: settings.partition_tombstones_fail_threshold.0,
        row_bytes: settings.row_size_warn_threshold.map(|size| size.0),
        cell_bytes: settings.cell_size_warn_threshold.map(|size| size.0),
    }
}

fn snapshot_options(settings: &Settings) -> SnapshotOptions {
    SnapshotOptions {
        is_automatic: settings.auto_snapshot,
        automatic_ttl_secs: settings.auto_snapshot_ttl.map(|ttl| ttl.as_secs()),
        is_before_compaction: settings.snapshot_before_compaction,
        is_backing_up: settings.incremental_backups,
        links_per_sec: Some(settings.snapshot_links_per_second).filter(|links| *links > 0),
    }
}

fn sstable_version(settings: &Settings) -> SSTableVersion {
    match settings.sstable_format {
        SSTableFormat::Nb => SSTableVersion::NB,
        SSTableFormat::Oa => SSTableVersion::OA,
        SSTableFormat::Da => SSTableVersion::DA,
    }
}

fn log_mode(settings: &Settings) -> Mode {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match settings.commitlog_sync {
        CommitLogSync::Batch => Mode::Batch,
        CommitLogSync::Group => Mode::Group {
            window_millis: millis(settings.commitlog_sync_group_window),
        },
        CommitLogSync::Periodic => Mode::Periodic {
            period_millis: millis(settings.commitlog_sync_period),
        },
    }
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn an_eighth_of_the_disk_is_for_changes_and_at_most_four_gibibytes() {
        let env = MemEnv::new(1);
        for (disk, setting, bytes) in [
            (1 << 30, None, 128 << 20),
            (1 << 30, Some(Size(0)), 128 << 20),
            (1 << 30, Some(Size(5)), 5),
            (32 << 30, None, 4 << 30),
            (1 << 40, None, 4 << 30),
        ] {
            env.set_capacity_bytes(disk);
            let settings = Settings {
                cdc_total_space: setting,
                ..Settings::default()
            };
            assert_eq!(
                capture_bytes(&*env.shared(), &settings),
                bytes,
                "{disk} {setting:?}"
            );
        }
    }
}
