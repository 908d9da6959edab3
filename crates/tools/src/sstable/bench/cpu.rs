//! CPU time of this thread.

use std::path::Path;

use ilion_env::Env;

/// CPU time of this thread so far; monotonic time if the system does not report CPU time.
pub(super) fn thread_nanos(env: &dyn Env) -> u64 {
    of_linux(env).unwrap_or_else(|| env.monotonic_nanos())
}

/// The first field of `schedstat`.
fn of_linux(env: &dyn Env) -> Option<u64> {
    let file = env.open_read(Path::new("/proc/thread-self/schedstat")).ok()?;
    let mut bytes = [0; 64];
    let length = file.read_at(0, &mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Shortest measurement, since Linux counts a thread's time in ticks of up to 10 ms.
const LONG_ENOUGH_NANOS: u64 = 300_000_000;
/// Most repetitions.
const TIMES_MAX: u64 = 40;

/// CPU time of one execution of the work. Short work is repeated until it can be measured.
pub(super) fn timed_often(
    env: &dyn Env,
    mut work: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let (once, ()) = timed(env, &mut work)?;
    let times = LONG_ENOUGH_NANOS.div_ceil(once.max(1)).min(TIMES_MAX);
    if times <= 1 {
        return Ok(once);
    }
    let (nanos, ()) = timed(env, || (0..times).try_for_each(|_| work()))?;
    Ok(nanos / times)
}

/// CPU time of the work, and its result.
pub(super) fn timed<T>(env: &dyn Env, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(u64, T)> {
    let before = thread_nanos(env);
    let outcome = work()?;
    Ok((thread_nanos(env).saturating_sub(before), outcome))
}
