//! [`Place`]: a destination of backups. Calls block; several threads may call at a time.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;

use crate::cloud::Cloud;
use crate::{Directory, Error, Result};

/// Stores objects by keys such as `objects/ab/abcd`. An object exists as a whole or not at all.
pub trait Place: Send + Sync {
    /// The destination, as the user named it.
    fn name(&self) -> String;
    /// Calls `found` with the key and size of each object below a prefix, in any order. The prefix is a directory without a final slash.
    ///
    /// # Errors
    /// [`Error::Place`], [`Error::Io`].
    fn list(&self, prefix: &str, found: &mut dyn FnMut(&str, u64)) -> Result<()>;
    /// Reads an object; `None` if it does not exist. An object that is larger than `bytes_max` is refused.
    ///
    /// # Errors
    /// Like [`Self::list`], and [`Error::Damaged`].
    fn read(&self, key: &str, bytes_max: u64) -> Result<Option<Bytes>>;
    /// Writes or replaces an object. The object is durable when the call returns.
    ///
    /// # Errors
    /// Like [`Self::list`].
    fn write(&self, key: &str, bytes: Bytes) -> Result<()>;
    /// Writes an object that does not exist yet; returns false if it exists. The object is durable when the call returns.
    ///
    /// # Errors
    /// Like [`Self::list`].
    fn write_new(&self, key: &str, bytes: Bytes) -> Result<bool>;
    /// Removes an object, if it exists.
    ///
    /// # Errors
    /// Like [`Self::list`].
    fn remove(&self, key: &str) -> Result<()>;
}

/// The destination of a text: a URL of an object store (`s3`, `gs`, `az` and others), or a directory.
///
/// # Errors
/// [`Error::Refused`] for any other URL, or if a parameter of the store is missing.
pub fn open_place(env: &Arc<dyn Env>, text: &str) -> Result<Box<dyn Place>> {
    if text.is_empty() {
        return Err(Error::Refused("the destination is empty".to_owned()));
    }
    match text.split_once("://") {
        None => Ok(Box::new(Directory::new(env.clone(), PathBuf::from(text)))),
        Some(_) => Ok(Box::new(Cloud::open(text)?)),
    }
}
