//! How many files and sockets the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's own limit of open files and sockets (`ulimit -Sn`) to the highest one that it may set
/// (`ulimit -Hn`), and returns the limit that holds then. `None` is no limit.
pub fn raise_descriptor_limit() -> Option<u64> {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: found.maximum,
        maximum: found.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => found.maximum,
        // Some systems refuse more than a limit of their kernel: the old one still holds.
        Err(_) => found.current,
    }
}

/// The limit of open files and sockets as it is now. `None` is no limit.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
