//! The files of the audit log: the current one, and complete ones.
//!
//! A file has whole lines. A partial line that a crash or a failed write left is ended by a line break, or cut off.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, Result, WriteFile};

use crate::roll::{CURRENT_NAME, Limits, Written, name_of, number_of, to_remove};

/// The files in a directory, written by one thread.
pub(crate) struct Files {
    env: Arc<dyn Env>,
    directory: PathBuf,
    limits: Limits,
    /// `None` after a failed write: the next one opens the file again.
    current: Option<Current>,
}

struct Current {
    file: Box<dyn WriteFile>,
    period: i64,
}

impl Files {
    /// Creates the directory, if it is absent. Directory and files are for their owner only.
    ///
    /// # Errors
    /// The directory or the file cannot be created or read.
    pub(crate) fn open(env: Arc<dyn Env>, directory: &Path, limits: Limits) -> Result<Self> {
        let mut files = Self {
            env,
            directory: directory.to_path_buf(),
            limits,
            current: None,
        };
        match files.current().map(drop).and_then(|()| files.remove_old()) {
            // A node must start even if its disk is full; the first entry tries to open the file again.
            Err(error) if !error.is_shortage() => Err(error),
            _ => Ok(files),
        }
    }

    /// Completes the current file, if it is time.
    ///
    /// # Errors
    /// A step failed; the log goes on in the old or the new file.
    pub(crate) fn roll_before(&mut self, more_bytes: usize) -> Result<()> {
        let now_secs = self.env.now_secs();
        let Some(current) = &self.current else {
            return Ok(());
        };
        let written = Written {
            bytes: current.file.position(),
            period: current.period,
        };
        if self.limits.is_complete(written, now_secs, more_bytes as u64) {
            self.roll()?;
        }
        Ok(())
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// None of the lines is in the file, unless they could not be removed again, or the process crashes.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<()> {
        let current = self.current()?;
        let start = current.file.position();
        let appended = current.file.append(lines);
        if appended.is_err() {
            // If the truncation fails, too, the next open ends the partial line.
            let _ = current.file.truncate(start);
            self.current = None;
        }
        appended
    }

    /// Makes the written lines durable.
    ///
    /// # Errors
    /// A power loss may lose them.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.current
            .as_mut()
            .map_or(Ok(()), |current| current.file.sync())
    }

    fn current(&mut self) -> Result<&mut Current> {
        let current = match self.current.take() {
            Some(current) => current,
            None => self.open_current()?,
        };
        Ok(self.current.insert(current))
    }

    fn open_current(&self) -> Result<Current> {
        self.env.create_private_dir_all(&self.directory)?;
        let path = self.directory.join(CURRENT_NAME);
        let mut file = self.env.open_append_private(&path)?;
        let size = file.position();
        let mut written_secs = self.env.now_secs();
        if size > 0 {
            written_secs = self.env.modified_secs(&path)?;
            let mut last = [0];
            self.env.open_read(&path)?.read_exact_at(size - 1, &mut last)?;
            if last != *b"\n" {
                file.append(b"\n")?;
            }
        }
        Ok(Current {
            file,
            period: self.limits.period_of(written_secs),
        })
    }

    fn roll(&mut self) -> Result<()> {
        let synced = self.sync();
        if !self.env.exists(&self.directory) {
            self.current = None;
        }
        let number = self.complete()?.last().map_or(1, |(number, _)| number + 1);
        let from = self.directory.join(CURRENT_NAME);
        let renamed = self.env.rename(&from, &self.directory.join(name_of(number)));
        // A file that somebody else has moved or removed is not used further.
        if renamed.is_ok() || !self.env.exists(&from) {
            self.current = None;
        }
        renamed?;
        self.env.sync_dir(&self.directory)?;
        self.remove_old()?;
        synced
    }

    /// Numbers and sizes of the complete files, in order.
    fn complete(&self) -> Result<Vec<(u64, u64)>> {
        let listed = self.env.list(&self.directory)?.into_iter();
        let mut files: Vec<(u64, u64)> = listed
            .filter(|entry| !entry.is_dir)
            .filter_map(|entry| Some((number_of(&entry.name)?, entry.size_bytes)))
            .collect();
        files.sort_unstable();
        Ok(files)
    }

    fn remove_old(&mut self) -> Result<()> {
        for number in to_remove(self.complete()?, self.limits.log_bytes_max) {
            self.env
                .remove_file_if_any(&self.directory.join(name_of(number)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::{CrashRule, FaultEnv, MemEnv};

    use super::*;

    const LIMITS: Limits = Limits {
        period_secs: 60,
        log_bytes_max: 80,
    };

    fn open(env: &Arc<dyn Env>) -> Files {
        Files::open(env.clone(), Path::new("/audit"), LIMITS).unwrap()
    }

    fn write(files: &mut Files, lines: &str) {
        files.roll_before(lines.len()).unwrap();
        files.append(lines.as_bytes()).unwrap();
    }

    fn content(env: &dyn Env) -> Vec<(String, String)> {
        let listed = env.list(Path::new("/audit")).unwrap().into_iter();
        let read = |name: &str| env.read_all(&Path::new("/audit").join(name), 1000).unwrap();
        listed
            .map(|entry| {
                let text = String::from_utf8(read(&entry.name)).unwrap();
                (entry.name, text)
            })
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = expected.iter();
        owned
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_file_ends_with_its_period_and_with_its_size() {
        let disk = MemEnv::new(1);
        let env = disk.shared();
        let mut files = open(&env);
        write(&mut files, "a\n");
        disk.advance_micros(60_000_000);
        write(&mut files, "b\n");
        write(&mut files, "12345678\n");
        assert_eq!(
            content(&*env),
            pairs(&[
                ("audit-000001.log", "a\n"),
                ("audit-000002.log", "b\n"),
                ("audit.log", "12345678\n"),
            ])
        );
    }

    #[test]
    fn the_oldest_complete_files_go_first() {
        let disk = MemEnv::new(1);
        let env = disk.shared();
        let mut files = open(&env);
        // Each has 10 bytes, and 80 may stay.
        for number in 0..12 {
            write(&mut files, &format!("line {number:04}\n"));
        }
        let names: Vec<String> = content(&*env).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), 9);
        assert_eq!(names[0], "audit-000004.log");
        assert_eq!(names[7], "audit-000011.log");
        assert_eq!(names[8], "audit.log");
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_ended() {
        let disk = MemEnv::new(1);
        let env = disk.shared();
        let mut files = open(&env);
        write(&mut files, "ab\nc");
        files.sync().unwrap();
        env.sync_dir(Path::new("/audit")).unwrap();
        let env = disk.crash(CrashRule::LoseUnsynced).shared();
        write(&mut open(&env), "d\n");
        assert_eq!(content(&*env), pairs(&[("audit.log", "ab\nc\nd\n")]));
    }

    #[test]
    fn what_could_not_be_written_whole_is_not_there_at_all() {
        let faults = FaultEnv::new(MemEnv::new(1).shared());
        let env: Arc<dyn Env> = faults.clone();
        let mut files = open(&env);
        write(&mut files, "a\n");
        faults.add("short_write write \"audit.log\"").unwrap();
        assert!(files.append(b"b\n").is_err());
        faults.clear();
        write(&mut files, "c\n");
        assert_eq!(content(&*env), pairs(&[("audit.log", "a\nc\n")]));
    }

    #[test]
    fn a_file_that_cannot_be_completed_is_written_further() {
        let faults = FaultEnv::new(MemEnv::new(1).shared());
        let env: Arc<dyn Env> = faults.clone();
        let mut files = open(&env);
        write(&mut files, "12345678\n");
        faults.add("fail rename \"audit.log\"").unwrap();
        assert!(files.roll_before(2).is_err());
        files.append(b"b\n").unwrap();
        faults.clear();
        write(&mut files, "c\n");
        assert_eq!(
            content(&*env),
            pairs(&[("audit-000001.log", "12345678\nb\n"), ("audit.log", "c\n")])
        );
    }

    #[test]
    fn a_file_that_somebody_removed_is_made_again_at_its_end() {
        let disk = MemEnv::new(1);
        let env = disk.shared();
        let mut files = open(&env);
        write(&mut files, "a\n");
        for remove in [
            |env: &dyn Env| env.remove_file(Path::new("/audit/audit.log")),
            |env: &dyn Env| env.remove_dir_all(Path::new("/audit")),
        ] {
            remove(&*env).unwrap();
            disk.advance_micros(60_000_000);
            assert!(files.roll_before(2).is_err());
            files.append(b"b\n").unwrap();
            assert_eq!(content(&*env), pairs(&[("audit.log", "b\n")]));
        }
    }

    #[test]
    fn a_full_disk_is_no_reason_not_to_open_but_a_wrong_path_is() {
        let disk = MemEnv::new(1);
        let env = disk.shared();
        disk.set_capacity_bytes(0);
        let mut files = open(&env);
        assert!(files.append(b"a\n").is_err());
        disk.set_capacity_bytes(u64::MAX);
        write(&mut files, "b\n");
        assert_eq!(content(&*env), pairs(&[("audit.log", "b\n")]));
        env.write_atomically(Path::new("/file"), b"x").unwrap();
        assert!(Files::open(env, Path::new("/file/audit"), LIMITS).is_err());
    }
}
