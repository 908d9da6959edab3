//! The log: to stderr, to files or to the journal of systemd; as lines of text or of JSON.
//!
//! `ilion.log` is the newest file; at 64 MiB it is renamed to `ilion.log.1`, and so on up to four old files. A process has one log.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ilion_env::{Env, WriteFile};
use ilion_settings::{LogFilter, LogFormat, LogTarget, Settings};
use parking_lot::Mutex;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::recent_log::Keeper;

const NAME: &str = "ilion.log";
const FILE_BYTES_MAX: u64 = 64 << 20;
const OLD_FILES_MAX: u32 = 4;

/// The parts of this process's log that can be changed while it runs.
struct RunningLog {
    filter: reload::Handle<Targets, Registry>,
    file: Option<Arc<Mutex<LogFile>>>,
}

static RUNNING: OnceLock<RunningLog> = OnceLock::new();

/// Starts logging as the settings say; returns the path of the log file, or `None` if the log is no file.
///
/// # Errors
/// The filter does not parse, the file cannot be opened, or there is no journal.
pub fn start_logging(env: &Arc<dyn Env>, settings: &Settings) -> Result<Option<PathBuf>, String> {
    type Boxed = Box<dyn Layer<Filtered> + Send + Sync>;
    type Filtered = tracing_subscriber::layer::Layered<reload::Layer<Targets, Registry>, Registry>;
    let (filter, handle) = reload::Layer::new(parse(&settings.log_level)?);
    let mut layers: Vec<Boxed> = vec![Keeper.boxed()];
    let mut file = None;
    for target in settings.log_to.targets() {
        layers.push(match target {
            LogTarget::Stderr => lines(settings.log_format, io::stderr),
            LogTarget::File => {
                let directory = settings.log_path();
                env.create_dir_all(&directory)
                    .map_err(|error| error.to_string())?;
                let opened = LogFile::open(env.clone(), directory.join(NAME));
                let opened = Arc::new(Mutex::new(opened.map_err(|error| error.to_string())?));
                file = Some(opened.clone());
                lines(settings.log_format, Writers(opened))
            }
            LogTarget::Journal => tracing_journald::layer()
                .map_err(|error| format!("log_to: there is no journal of systemd: {error}"))?
                .with_field_prefix(Some("ILION".to_owned()))
                .boxed(),
        });
    }
    let path = file.as_ref().map(|file| file.lock().path.clone());
    tracing_subscriber::registry()
        .with(filter)
        .with(layers)
        .try_init()
        .map_err(|error| error.to_string())?;
    let is_first = RUNNING.set(RunningLog { filter: handle, file });
    debug_assert!(is_first.is_ok(), "the subscriber was the first of the process");
    std::panic::set_hook(Box::new(log_panic));
    Ok(path)
}

fn parse(filter: &LogFilter) -> Result<Targets, String> {
    filter
        .targets()
        .ok_or_else(|| format!("log_level: {} is no filter", filter.0))
}

/// The layer that writes lines.
fn lines<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'l> tracing_subscriber::registry::LookupSpan<'l>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

/// Changes the filter of the log. No effect if this process has no log.
///
/// # Errors
/// The filter does not parse.
pub(crate) fn set_log_filter(filter: &LogFilter) -> Result<(), String> {
    let filter = parse(filter)?;
    match RUNNING.get() {
        Some(running) => running
            .filter
            .reload(filter)
            .map_err(|error| format!("log_level: {error}")),
        None => Ok(()),
    }
}

/// Opens the log file again under its name, after a program for log rotation has renamed it.
///
/// # Errors
/// The file cannot be opened; the process continues to write to the old one.
pub fn reopen_log() -> Result<(), String> {
    let file = RUNNING.get().and_then(|running| running.file.as_ref());
    file.map_or(Ok(()), |file| {
        file.lock().reopen().map_err(|error| error.to_string())
    })
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

    fn reopen(&mut self) -> ilion_env::Result<()> {
        self.file = self.env.open_append(&self.path)?;
        Ok(())
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
struct Writers(Arc<Mutex<LogFile>>);

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
    use std::path::Path;

    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn a_renamed_log_file_is_opened_again() {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let directory = Path::new("/logs");
        env.create_dir_all(directory).unwrap();
        let mut log = LogFile::open(env.clone(), directory.join(NAME)).unwrap();
        log.write(b"old").unwrap();
        env.rename(&directory.join(NAME), &directory.join("kept"))
            .unwrap();
        log.write(b"er").unwrap();
        log.reopen().unwrap();
        log.write(b"new").unwrap();
        assert_eq!(env.read_all(&directory.join("kept"), 9).unwrap(), b"older");
        assert_eq!(env.read_all(&directory.join(NAME), 9).unwrap(), b"new");
    }

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
