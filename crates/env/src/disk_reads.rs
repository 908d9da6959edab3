//! Carries out the reads of parked requests: many at the same time, without a thread for each.
//!
//! With io_uring, the submitting threads pass their reads to one thread, which submits many with one system call and takes the results.
//! Where the kernel or a container forbids io_uring, a pool of threads reads.

#[cfg(target_os = "linux")]
mod ring;
mod threads;

use crate::parking::{OnRead, Waiting};

/// Reads that are under way for requests `T`.
pub struct DiskReads<T>(Way<T>);

enum Way<T> {
    #[cfg(target_os = "linux")]
    Ring(ring::Ring<T>),
    Threads(threads::Threads<T>),
}

impl<T: Send + 'static> std::fmt::Debug for DiskReads<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.way())
    }
}

impl<T: Send + 'static> DiskReads<T> {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(on_read: OnRead<T>) -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        let on_read = match ring::Ring::start(on_read)? {
            Ok(ring) => return Ok(Self(Way::Ring(ring))),
            Err(on_read) => on_read,
        };
        Self::start_threads(on_read)
    }

    /// Starts the threads of the pool, without io_uring.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start_threads(on_read: OnRead<T>) -> std::io::Result<Self> {
        Ok(Self(Way::Threads(threads::Threads::start(on_read)?)))
    }

    /// How the reads are carried out, for the log.
    pub fn way(&self) -> &'static str {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Way::Ring(_) => "io_uring",
            Way::Threads(_) => "threads",
        }
    }

    /// Starts reads. Each request is passed to `on_read` when its bytes were read, or when they could not be read.
    pub fn submit(&self, reads: Vec<(T, Waiting)>) {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Way::Ring(ring) => ring.submit(reads),
            Way::Threads(threads) => threads.submit(reads),
        }
    }

    /// Carries out the submitted reads, and ends the threads. No more reads may be submitted.
    pub fn stop(self) {
        match self.0 {
            #[cfg(target_os = "linux")]
            Way::Ring(ring) => ring.stop(),
            Way::Threads(threads) => threads.stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::parking::{Attempt, Given, Parks, attempt, may_park, read_exact_at};
    use crate::{Env, FaultEnv, ReadFile, RealEnv};

    const WORDS: u64 = 2_000;

    /// A file of numbers that are never in memory at once.
    fn file_of_words(env: &FaultEnv, directory: &Path) -> Arc<dyn ReadFile> {
        let path = directory.join("words");
        let bytes: Vec<u8> = (0..WORDS).flat_map(u64::to_le_bytes).collect();
        env.create(&path).unwrap().append(&bytes).unwrap();
        env.open_read(&path).unwrap()
    }

    fn word(file: &Arc<dyn ReadFile>, number: u64) -> crate::Result<u64> {
        let _may_park = may_park();
        let mut word = [0; 8];
        read_exact_at(file, number * 8, &mut word).map(|()| u64::from_le_bytes(word))
    }

    /// Parks reads of all words, and of one behind the end, at the same time.
    fn check(start: impl FnOnce(OnRead<u64>) -> DiskReads<u64>, file: &Arc<dyn ReadFile>) {
        let (sender, read) = mpsc::channel();
        let disk = start(Box::new(move |done| {
            for read in done {
                sender.send(read).unwrap();
            }
        }));
        let park = |number| match attempt(Given::default(), Parks::All, || word(file, number)) {
            Attempt::Waits(waiting) => (number, waiting),
            other => panic!("{other:?}, and not a read from the disk"),
        };
        let numbers: Vec<u64> = (0..=WORDS).collect();
        for some in numbers.chunks(7) {
            disk.submit(some.iter().copied().map(park).collect());
        }
        disk.stop();
        let mut seen: Vec<u64> = read
            .iter()
            .map(|(number, given)| {
                let Attempt::Done(result) = attempt(given, Parks::All, || word(file, number)) else {
                    panic!("word {number} was read already");
                };
                match result {
                    Ok(found) => assert_eq!(found, number),
                    Err(error) => assert!(number == WORDS && error.is_unexpected_end(), "{error}"),
                }
                number
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, numbers);
    }

    #[test]
    fn each_request_gets_its_bytes_or_its_error() {
        let directory = tempfile::tempdir().unwrap();
        let env = FaultEnv::new(RealEnv::new());
        let file = file_of_words(&env, directory.path());
        env.add(r#"wait read "words""#).unwrap();
        check(|on_read| DiskReads::start(on_read).unwrap(), &file);
        check(|on_read| DiskReads::start_threads(on_read).unwrap(), &file);
    }
}
