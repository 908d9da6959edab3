//! The machine's memory, for settings with the value `auto`.

use std::path::{Path, PathBuf};

use ilion_env::Env;

/// Used if the system does not report its memory.
const ASSUMED_BYTES: u64 = 8 << 30;

/// Memory of the machine in bytes, or of its container or systemd unit if that has a lower limit.
pub fn machine_bytes(env: &dyn Env) -> u64 {
    let machine = read_kernel_file(env, Path::new("/proc/meminfo"))
        .and_then(|text| parse(&text))
        .unwrap_or(ASSUMED_BYTES);
    let groups = read_kernel_file(env, Path::new("/proc/self/cgroup")).unwrap_or_default();
    limit_files(&groups)
        .iter()
        .filter_map(|path| read_kernel_file(env, path))
        // A file of version 2 contains `max` if there is no limit, one of version 1 a number beyond all memory.
        .filter_map(|text| text.trim().parse().ok())
        .filter(|allowed| *allowed > 0)
        .fold(machine, u64::min)
}

/// The files with limits of memory for a process with these control groups (`/proc/self/cgroup`): a limit of a group holds for the groups in it,
/// too. Some of the files may be missing: a container may see the paths of its host, and its own group as the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    const VERSION_1: (&str, &str) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
    const VERSION_2: (&str, &str) = ("/sys/fs/cgroup", "memory.max");
    let mut files = [VERSION_1, VERSION_2]
        .map(|(root, name)| Path::new(root).join(name))
        .to_vec();
    for line in groups.lines() {
        // number : controllers : path
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, name) = if controllers.is_empty() {
            VERSION_2
        } else if controllers.split(',').any(|controller| controller == "memory") {
            VERSION_1
        } else {
            continue;
        };
        let path = Path::new(path.trim_start_matches('/'));
        // The root is there already.
        let below_root = path.ancestors().filter(|group| !group.as_os_str().is_empty());
        files.extend(below_root.map(|group| Path::new(root).join(group).join(name)));
    }
    files
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
    use ilion_env::MemEnv;

    use super::*;

    fn machine_with(files: &[(&str, &str)]) -> u64 {
        let env = MemEnv::new(1);
        for (path, text) in files {
            let path = Path::new(path);
            env.create_dir_all(path.parent().expect("a directory"))
                .expect("is created");
            let mut file = env.create_or_truncate(path).expect("is created");
            file.append(text.as_bytes()).expect("is written");
        }
        machine_bytes(&env)
    }

    #[test]
    fn the_least_limit_counts_of_the_group_and_those_around_it() {
        let machine = ("/proc/meminfo", "MemTotal:       1000 kB\n");
        let limit = |groups, files: &[(&str, &str)]| {
            machine_with(&[&[machine, ("/proc/self/cgroup", groups)], files].concat())
        };
        assert_eq!(limit("", &[]), 1000 << 10);
        // Version 2: a service of systemd in a slice with a limit.
        let service = "0::/system.slice/ilion.service\n";
        let of_service = "/sys/fs/cgroup/system.slice/ilion.service/memory.max";
        let of_slice = "/sys/fs/cgroup/system.slice/memory.max";
        assert_eq!(
            limit(service, &[(of_service, "70000\n"), (of_slice, "80000\n")]),
            70_000
        );
        assert_eq!(
            limit(service, &[(of_service, "max\n"), (of_slice, "80000\n")]),
            80_000
        );
        // A container, whose own group is the root.
        assert_eq!(
            limit("0::/\n", &[("/sys/fs/cgroup/memory.max", "90000\n")]),
            90_000
        );
        // Version 1: the container sees the path that its host has.
        let pod = "9:name=systemd:/kubepods/pod1\n4:cpu,memory:/kubepods/pod1\n";
        let of_container = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(limit(pod, &[(of_container, "60000\n")]), 60_000);
        assert_eq!(limit(pod, &[(of_container, "9223372036854771712\n")]), 1000 << 10);
        let of_pods = "/sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes";
        assert_eq!(limit(pod, &[(of_pods, "50000\n")]), 50_000);
        assert_eq!(
            limit(pod, &[("/sys/fs/cgroup/name=systemd/kubepods/memory.max", "1\n")]),
            1000 << 10
        );
    }

    #[test]
    fn the_kernels_line_is_understood() {
        assert_eq!(
            parse("MemTotal:       24689764 kB\nMemFree: 1 kB\n"),
            Some(24_689_764 * 1024)
        );
        assert_eq!(parse("MemFree: 1 kB\n"), None);
    }
}
