//! Watches the usage of the data disk, if one of the settings `data_disk_usage_percentage_*` has a threshold.
//!
//! Compat: as `DiskUsageMonitor` of Cassandra 5.0. SSTables and memtables count as used. The size of the disk is the SSTables plus the
//! free space, at most `data_disk_usage_max_disk_size`.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ilion_engine::Engine;
use ilion_query::{DiskUsage, Fullness};
use ilion_settings::Settings;

use crate::open_error::OpenError;
use crate::ticker::Ticker;

/// Compat: `cassandra.disk_usage.monitor_interval_ms`.
const INTERVAL: Duration = Duration::from_secs(30);

/// The limits of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thresholds {
    warn: Option<u64>,
    fail: Option<u64>,
    /// Upper bound of the size of the disk, in bytes.
    size_max: Option<u64>,
}

/// Bytes in use, and free bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DiskBytes {
    sstables: u64,
    memtables: u64,
    free: u64,
}

impl Thresholds {
    fn of(settings: &Settings) -> Result<Option<Self>, OpenError> {
        let thresholds = Self {
            warn: settings.data_disk_usage_percentage_warn_threshold.0,
            fail: settings.data_disk_usage_percentage_fail_threshold.0,
            size_max: settings.data_disk_usage_max_disk_size.map(|size| size.0),
        };
        let named = [
            ("data_disk_usage_percentage_warn_threshold", thresholds.warn),
            ("data_disk_usage_percentage_fail_threshold", thresholds.fail),
        ];
        for (name, percent) in named {
            let refused = |what: &str| OpenError::Settings(format!("Invalid value for {name}: {what}"));
            match percent {
                Some(0) => return Err(refused("0 is not allowed; if attempting to disable use -1")),
                Some(101..) => return Err(refused("maximum allowed value is 100")),
                _ => {}
            }
        }
        if let (Some(warn), Some(fail)) = (thresholds.warn, thresholds.fail)
            && fail < warn
        {
            return Err(OpenError::Settings(format!(
                "The warn threshold {warn} for data_disk_usage_percentage_warn_threshold should be lower than the fail \
                 threshold {fail}"
            )));
        }
        if thresholds.size_max == Some(0) {
            return Err(OpenError::Settings(
                "Invalid value for data_disk_usage_max_disk_size: 0 is not allowed; if attempting to disable use auto"
                    .to_owned(),
            ));
        }
        Ok((thresholds.warn.is_some() || thresholds.fail.is_some()).then_some(thresholds))
    }

    /// The percentage of the disk that is used, rounded up.
    fn percent(&self, taken: DiskBytes) -> u64 {
        let disk = taken.sstables.saturating_add(taken.free);
        let disk = self.size_max.map_or(disk, |max| disk.min(max)).max(1);
        let used = taken.sstables.saturating_add(taken.memtables);
        let percent = (u128::from(used) * 100).div_ceil(u128::from(disk));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }

    fn judge(&self, percent: u64) -> Fullness {
        let above = |limit: Option<u64>| limit.is_some_and(|limit| percent > limit);
        if above(self.fail) {
            Fullness::Full
        } else if above(self.warn) {
            Fullness::Stuffed
        } else {
            Fullness::Spacious
        }
    }
}

/// Measures the disk now, and then at intervals until the ticker is dropped. Returns `None` if no threshold is set.
///
/// # Errors
/// The thresholds are invalid, or the thread cannot be started.
pub(crate) fn watch_disk(
    engine: &Arc<Engine>,
    settings: &Settings,
    usage: Arc<DiskUsage>,
) -> Result<Option<Ticker>, OpenError> {
    let Some(thresholds) = Thresholds::of(settings)? else {
        return Ok(None);
    };
    let disk = WatchedDisk {
        engine: Arc::downgrade(engine),
        data_path: settings.data_path(),
        thresholds,
        usage,
    };
    disk.look();
    let ticker = Ticker::start("ilion-disk-watch", INTERVAL, move || disk.look());
    ticker.map(Some).map_err(OpenError::Threads)
}

struct WatchedDisk {
    engine: Weak<Engine>,
    data_path: PathBuf,
    thresholds: Thresholds,
    usage: Arc<DiskUsage>,
}

impl WatchedDisk {
    fn look(&self) {
        let Some(engine) = self.engine.upgrade() else {
            return;
        };
        let Ok(free) = engine.env().free_space_bytes(&self.data_path) else {
            return;
        };
        let tables = engine.table_facts();
        let taken = DiskBytes {
            sstables: tables.iter().map(|table| table.sstable_bytes).sum(),
            memtables: tables.iter().map(|table| table.memtable_bytes).sum(),
            free,
        };
        let percent = self.thresholds.percent(taken);
        let fullness = self.thresholds.judge(percent);
        if fullness == self.usage.fullness() {
            return;
        }
        self.usage.set(fullness);
        match fullness {
            Fullness::Spacious => {
                tracing::info!("Local data disk usage {percent}% is below its thresholds again")
            }
            Fullness::Stuffed => {
                tracing::warn!("Local data disk usage {percent}% exceeds the warning threshold")
            }
            Fullness::Full => tracing::error!(
                "Local data disk usage {percent}% exceeds the failure threshold, will stop accepting writes"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_settings::{Limit, Size};

    use super::*;

    const LIMITS: Thresholds = Thresholds {
        warn: Some(50),
        fail: Some(80),
        size_max: None,
    };

    #[test]
    fn the_disk_is_the_data_and_what_is_free() {
        let taken = |sstables, memtables, free| DiskBytes {
            sstables,
            memtables,
            free,
        };
        assert_eq!(LIMITS.percent(taken(25, 0, 75)), 25);
        assert_eq!(LIMITS.percent(taken(25, 10, 75)), 35, "memtables will be written");
        assert_eq!(LIMITS.percent(taken(1, 0, 999)), 1, "rounded up");
        assert_eq!(LIMITS.percent(taken(0, 0, 0)), 0);
        let bounded = Thresholds {
            size_max: Some(50),
            ..LIMITS
        };
        assert_eq!(bounded.percent(taken(25, 0, 75)), 50);
        assert_eq!(bounded.percent(taken(100, 0, 75)), 200);
    }

    #[test]
    fn above_one_threshold_it_is_stuffed_and_above_the_other_full() {
        assert_eq!(LIMITS.judge(50), Fullness::Spacious);
        assert_eq!(LIMITS.judge(51), Fullness::Stuffed);
        assert_eq!(LIMITS.judge(80), Fullness::Stuffed);
        assert_eq!(LIMITS.judge(81), Fullness::Full);
    }

    #[test]
    fn impossible_thresholds_are_refused() {
        let of = |warn, fail, size_max: Option<u64>| {
            let settings = Settings {
                data_disk_usage_percentage_warn_threshold: Limit(warn),
                data_disk_usage_percentage_fail_threshold: Limit(fail),
                data_disk_usage_max_disk_size: size_max.map(Size),
                ..Settings::default()
            };
            Thresholds::of(&settings).map_err(|refused| refused.to_string())
        };
        assert!(of(None, None, Some(1 << 30)).is_ok_and(|found| found.is_none()));
        assert!(of(Some(50), Some(80), None).is_ok_and(|found| found == Some(LIMITS)));
        for (refused, name) in [
            (
                of(Some(0), None, None),
                "data_disk_usage_percentage_warn_threshold",
            ),
            (
                of(None, Some(101), None),
                "data_disk_usage_percentage_fail_threshold",
            ),
            (of(Some(80), Some(50), None), "should be lower"),
            (of(None, None, Some(0)), "data_disk_usage_max_disk_size"),
        ] {
            assert!(refused.is_err_and(|said| said.contains(name)), "{name}");
        }
    }
}
