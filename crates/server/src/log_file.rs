//! The log: to stderr, and to files.
//!
//! `ilion.log` is the newest; at 64 MiB it becomes `ilion.log.1`, and so on up to four old files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, WriteFile};
use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::recent_log::Keeper;
use crate::settings::LogFilter;

const NAME: &str = "ilion.log";
const FILE_BYTES_MAX: u64 = 64 << 20;
const OLD_FILES_MAX: u32 = 4;

/// Starts logging with a filter; returns the path of the log file.
///
/// # Errors
/// The filter does not parse, or the file cannot be opened.
pub fn start_logging(env: &Arc<dyn Env>, directory: &Path, filter: &LogFilter) -> Result<PathBuf, String> {
    let filter = EnvFilter::try_new(&filter.0).map_err(|error| format!("log_level: {error}"))?;
    env.create_dir_all(directory).map_err(|error| error.to_string())?;
    let file = LogFile::open(env.clone(), directory.join(NAME)).map_err(|error| error.to_string())?;
    let path = file.path.clone();
    let of_file = fmt::layer()
        .with_ansi(false)
        .with_writer(Writers(Mutex::new(file)));
    let of_stderr = fmt::layer().with_ansi(false).with_writer(io::stderr);
    tracing_subscriber::registry()
        .with(filter)
        .with(of_stderr)
        .with(of_file)
        .with(Keeper)
        .try_init()
        .map_err(|error| error.to_string())?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(path)
}

/// Logs a panic with the name of its thread.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let trace = std::backtrace::Backtrace::capture();
    tracing::error!("a bug, please report it: thread {name}: {panic}\n{trace}");
}

struct LogFile {
    env: Arc<dyn Env>,
    path: PathBuf,
    file: Box<dyn WriteFile>,
}

impl LogFile {
    fn open(env: Arc<dyn Env>, path: PathBuf) -> ilion_env::Result<Self> {
        let file = env.open_append(&path)?;
        Ok(Self { env, path, file })
    }

    fn write(&mut self, bytes: &[u8]) -> ilion_env::Result<()> {
        if self.file.position() >= FILE_BYTES_MAX {
            self.rotate()?;
        }
        self.file.append(bytes)
    }

    fn rotate(&mut self) -> ilion_env::Result<()> {
        let old = |number: u32| self.path.with_file_name(format!("{NAME}.{number}"));
        for number in (1..OLD_FILES_MAX).rev() {
            if self.env.exists(&old(number)) {
                self.env.rename(&old(number), &old(number + 1))?;
            }
        }
        self.env.rename(&self.path, &old(1))?;
        self.file = self.env.create_or_truncate(&self.path)?;
        Ok(())
    }
}

/// Locked for each line.
struct Writers(Mutex<LogFile>);

struct Writer<'a>(&'a Mutex<LogFile>);

impl<'a> MakeWriter<'a> for Writers {
    type Writer = Writer<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Writer(&self.0)
    }
}

impl io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes).map_err(|error| error.source)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn a_full_log_file_makes_way_and_the_oldest_goes() {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let directory = Path::new("/logs");
        env.create_dir_all(directory).unwrap();
        let mut log = LogFile::open(env.clone(), directory.join(NAME)).unwrap();
        for round in 0..=OLD_FILES_MAX + 1 {
            log.write(&[b'0' + u8::try_from(round).unwrap()]).unwrap();
            log.rotate().unwrap();
        }
        let names: Vec<String> = env
            .list(directory)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(
            names,
            [
                "ilion.log",
                "ilion.log.1",
                "ilion.log.2",
                "ilion.log.3",
                "ilion.log.4"
            ]
        );
        assert_eq!(env.read_all(&directory.join("ilion.log.1"), 9).unwrap(), b"5");
        assert_eq!(env.read_all(&directory.join("ilion.log.4"), 9).unwrap(), b"2");
    }
}
