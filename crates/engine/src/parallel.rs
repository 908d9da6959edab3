//! Work that a start divides among threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::{EngineOptions, Error, Result};

/// Number of threads for the work of a start; with 0 the caller does the work.
pub(crate) fn thread_count(options: &EngineOptions) -> usize {
    match options.is_stepped {
        true => 0,
        false => std::thread::available_parallelism().map_or(1, |count| count.get().min(16)),
    }
}

/// Each thread opens at least this many SSTables.
const OPENS_A_THREAD: usize = 8;

/// Calls `work` for each item, on at most this many threads; the results are in the order of the items.
pub(crate) fn in_parallel<I: Sync, T: Send>(
    threads_max: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let threads = threads_max.min(items.len() / OPENS_A_THREAD);
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<T>>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(item), Some(result)) = (items.get(at), results.get(at)) else {
                        return;
                    };
                    *result.lock() = Some(work(item));
                }
            });
        }
    });
    let missing = || Err(Error::Refused("a thread that opens SSTables is gone".to_owned()));
    results
        .into_iter()
        .map(|result| result.into_inner().unwrap_or_else(missing))
        .collect()
}
