//! Facts about this process from `/proc/self`.

use std::path::Path;

use ilion_env::Env;
use ilion_node::read_kernel_file as read;

/// Clock ticks per second of processor time. Linux fixes the number for programs (`USER_HZ`).
const TICKS_PER_SEC: f64 = 100.0;

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessFacts {
    /// Processor time in user and kernel mode.
    pub cpu_secs: f64,
    /// Virtual memory.
    pub virtual_bytes: u64,
    /// Number of threads.
    pub threads: u64,
}

/// The resources of this process; `None` if the system does not report them.
pub(crate) fn facts(env: &dyn Env) -> Option<ProcessFacts> {
    parse_stat(&read(env, Path::new("/proc/self/stat"))?)
}

/// Resident memory of this process; `None` if the system does not report it.
pub(crate) fn resident_bytes(env: &dyn Env) -> Option<u64> {
    parse_resident(&read(env, Path::new("/proc/self/status"))?)
}

/// Number of open file descriptors; `None` if the system does not report it.
pub(crate) fn open_descriptors(env: &dyn Env) -> Option<u64> {
    let open = env.list(Path::new("/proc/self/fd")).ok()?;
    Some(open.len() as u64)
}

/// The fields of `/proc/PID/stat`, see proc(5). The name in parentheses may have anything in it.
fn parse_stat(text: &str) -> Option<ProcessFacts> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    // The state is field 3.
    let field = |number: usize| fields.get(number - 3)?.trim().parse::<u64>().ok();
    #[expect(clippy::cast_precision_loss, reason = "hundredths of seconds")]
    let cpu_secs = (field(14)? + field(15)?) as f64 / TICKS_PER_SEC;
    Some(ProcessFacts {
        cpu_secs,
        threads: field(20)?,
        virtual_bytes: field(23)?,
    })
}

fn parse_resident(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_fields_are_understood() {
        let stat =
            "42 (a) name) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 7 0 1234 1048576 300 184467\n";
        assert_eq!(
            parse_stat(stat),
            Some(ProcessFacts {
                cpu_secs: 2.0,
                virtual_bytes: 1_048_576,
                threads: 7
            })
        );
        assert_eq!(parse_stat("42 (name) S 1"), None);
        assert_eq!(parse_resident("Name:\tx\nVmRSS:\t    12 kB\n"), Some(12 * 1024));
        assert_eq!(parse_resident("Name:\tx\n"), None);
    }
}
