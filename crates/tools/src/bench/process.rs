//! CPU, memory and reads of a process, from Linux' `/proc`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ilion_env::Env;

/// Linux reports CPU time in ticks of 10 ms, independent of the kernel's clock.
const TICKS_PER_SEC: f64 = 100.0;
const FILE_MAX_BYTES: usize = 64 << 10;

/// CPU and memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time of all threads so far, in user and system mode.
    pub cpu_secs: f64,
    /// Current resident memory.
    pub memory_bytes: u64,
    /// Largest resident memory since the process began.
    pub memory_peak_bytes: u64,
}

impl Usage {
    /// Reads the usage of a process of this machine.
    ///
    /// # Errors
    /// There is no such process, or no `/proc`.
    pub fn of(env: &dyn Env, pid: u32) -> anyhow::Result<Self> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let stat = read(env, &directory.join("stat"))?;
        let status = read(env, &directory.join("status"))?;
        Self::parse(&stat, &status).with_context(|| format!("reading what process {pid} used"))
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        Some(Self {
            cpu_secs: cpu_ticks(stat)? as f64 / TICKS_PER_SEC,
            memory_bytes: memory(status, "VmRSS:")?,
            memory_peak_bytes: memory(status, "VmHWM:")?,
        })
    }
}

/// Bytes that a process has read and written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Read by system calls, from files and sockets; memory maps are not counted.
    pub by_calls: u64,
    /// From the disk.
    pub from_disk: u64,
    /// To the disk, or to pages that the system will write to the disk.
    pub to_disk: u64,
}

impl Transferred {
    /// Reads the counts of a process of this machine.
    ///
    /// # Errors
    /// There is no such process, or it belongs to another user.
    pub fn of(env: &dyn Env, pid: u32) -> anyhow::Result<Self> {
        let text = read(env, &PathBuf::from(format!("/proc/{pid}/io")))?;
        Self::parse(&text).with_context(|| format!("reading what process {pid} transferred"))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Some(Self {
            by_calls: field("rchar:")?,
            from_disk: field("read_bytes:")?,
            // Subtracts pages that were dropped before they were written, since their file was removed.
            to_disk: field("write_bytes:")?.saturating_sub(field("cancelled_write_bytes:").unwrap_or(0)),
        })
    }
}

fn read(env: &dyn Env, path: &Path) -> anyhow::Result<String> {
    let file = env.open_read(path)?;
    let mut bytes = vec![0; FILE_MAX_BYTES];
    let mut end = 0;
    // Files of /proc have size 0: read until the end.
    while end < bytes.len() {
        match file.read_at(end as u64, &mut bytes[end..])? {
            0 => break,
            count => end += count,
        }
    }
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Fields 14 and 15 of `stat`. They are counted from the name of the program, field 2, which may contain spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn memory(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use ilion_env::RealEnv;

    use super::*;

    const STATUS: &str = "Name:\tjava\nVmHWM:\t 1463952 kB\nVmRSS:\t  800000 kB\n";

    #[test]
    fn the_name_of_a_program_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 100 0 0";
        let usage = Usage::parse(stat, STATUS).unwrap();
        assert_eq!(usage.cpu_secs, 3.0);
        assert_eq!(usage.memory_bytes, 800_000 * 1024);
        assert_eq!(usage.memory_peak_bytes, 1_463_952 * 1024);
    }

    #[test]
    fn what_is_not_there_is_not_made_up() {
        assert_eq!(Usage::parse("42 (x) S 1 2", STATUS), None);
        assert_eq!(Usage::parse("", ""), None);
    }

    #[test]
    fn calls_and_disk_are_told_apart() {
        let text = "rchar: 12\nwchar: 5\nread_bytes: 4096\nwrite_bytes: 9\ncancelled_write_bytes: 2\n";
        let counted = Transferred::parse(text).unwrap();
        assert_eq!(
            (counted.by_calls, counted.from_disk, counted.to_disk),
            (12, 4096, 7)
        );
        assert_eq!(Transferred::parse("rchar: 12\n"), None);
    }

    #[test]
    fn a_process_can_see_itself() {
        let usage = Usage::of(RealEnv::new().as_ref(), std::process::id()).unwrap();
        assert!(usage.memory_bytes > 0);
        assert!(usage.memory_peak_bytes >= usage.memory_bytes);
    }
}
