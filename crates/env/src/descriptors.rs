//! The limit of files and sockets that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's limit of open files and sockets (`ulimit -Sn`) to the highest one that it may set (`ulimit -Hn`), and
/// returns the limit in force afterwards. `None` means no limit.
pub fn raise_descriptor_limit() -> Option<u64> {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: found.maximum,
        maximum: found.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => found.maximum,
        // Some systems refuse more than a kernel limit: the old limit stays.
        Err(_) => found.current,
    }
}

/// The current limit of open files and sockets. `None` means no limit.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
