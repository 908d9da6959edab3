//! The machine's memory, for settings with the value `auto`.

use std::path::Path;

use ilion_env::Env;

use crate::process::read;

/// Used if the system does not report its memory.
const ASSUMED_BYTES: u64 = 8 << 30;

/// Memory of the machine, or the limit of its container.
pub(crate) fn machine_bytes(env: &dyn Env) -> u64 {
    let machine = read(env, Path::new("/proc/meminfo"))
        .and_then(|text| parse(&text))
        .unwrap_or(ASSUMED_BYTES);
    let allowed = read(env, Path::new("/sys/fs/cgroup/memory.max"));
    // The file contains `max` if there is no limit.
    match allowed.and_then(|text| text.trim().parse::<u64>().ok()) {
        Some(allowed) if allowed > 0 => machine.min(allowed),
        _ => machine,
    }
}

fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_kernels_line_is_understood() {
        assert_eq!(
            parse("MemTotal:       24689764 kB\nMemFree: 1 kB\n"),
            Some(24_689_764 * 1024)
        );
        assert_eq!(parse("MemFree: 1 kB\n"), None);
    }
}
