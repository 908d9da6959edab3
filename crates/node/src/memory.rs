//! The machine's memory, for settings with the value `auto`.

use std::path::Path;

use ilion_env::Env;

/// Used if the system does not report its memory.
const ASSUMED_BYTES: u64 = 8 << 30;

/// Memory of the machine in bytes, or of its container if that has a lower limit.
pub fn machine_bytes(env: &dyn Env) -> u64 {
    let machine = read_kernel_file(env, Path::new("/proc/meminfo"))
        .and_then(|text| parse(&text))
        .unwrap_or(ASSUMED_BYTES);
    let allowed = read_kernel_file(env, Path::new("/sys/fs/cgroup/memory.max"));
    // The file contains `max` if there is no limit.
    match allowed.and_then(|text| text.trim().parse::<u64>().ok()) {
        Some(allowed) if allowed > 0 => machine.min(allowed),
        _ => machine,
    }
}

/// Reads up to 4 KiB of a file of the kernel, which reports the size of such files as zero.
pub fn read_kernel_file(env: &dyn Env, path: &Path) -> Option<String> {
    let mut bytes = vec![0; 4096];
    let size = env.open_read(path).ok()?.read_at(0, &mut bytes).ok()?;
    bytes.truncate(size);
    String::from_utf8(bytes).ok()
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
