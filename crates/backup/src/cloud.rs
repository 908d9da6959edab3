//! [`Cloud`]: a destination in an object store. The only file that knows an async runtime.
//!
//! Keys, regions and endpoints come from the environment, under the names that the tools of each store use: `AWS_ACCESS_KEY_ID`,
//! `AWS_ENDPOINT`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` and so on.

use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, parse_url_opts};
use tokio::runtime::Runtime;
use url::Url;

use crate::{Error, Place, Result};

/// The schemes of the stores that this build has.
const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];
/// Threads that move the bytes of requests; the callers wait.
const RUNTIME_THREADS: usize = 2;

/// Objects of a bucket, below a prefix.
pub(crate) struct Cloud {
    name: String,
    store: Box<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl Cloud {
    pub(crate) fn open(text: &str) -> Result<Self> {
        let refused = |reason: String| Error::Refused(format!("{text}: {reason}"));
        let url = Url::parse(text).map_err(|error| refused(error.to_string()))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(refused(format!(
                "a destination is a directory, or a URL of {}",
                SCHEMES.join(", ")
            )));
        }
        let variables = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) = parse_url_opts(&url, variables).map_err(|error| refused(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("ilion-backup-io")
            .enable_all()
            .build()
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            name: text.to_owned(),
            store,
            prefix,
            runtime,
        })
    }

    fn path_of(&self, key: &str) -> Path {
        key.split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, action: &'static str, key: &str, error: &object_store::Error) -> Error {
        // The answer of the store is in the causes of the error.
        let mut reason = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = error.source();
        }
        Error::Place {
            action,
            object: format!("{}/{key}", self.name.trim_end_matches('/')),
            reason,
        }
    }

    async fn read_object(&self, key: &str, bytes_max: u64) -> Result<Option<Bytes>> {
        let found = match self.store.get(&self.path_of(key)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| self.failed("read", key, &error))?,
        };
        if found.meta.size > bytes_max {
            let problem = format!("has {} bytes, more than {bytes_max}", found.meta.size);
            return Err(Error::damaged(key, problem));
        }
        let bytes = found.bytes().await;
        Ok(Some(bytes.map_err(|error| self.failed("read", key, &error))?))
    }
}

impl Place for Cloud {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn list(&self, prefix: &str, found: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let below = self.path_of(prefix);
        self.runtime.block_on(async {
            let mut objects = self.store.list(Some(&below));
            while let Some(object) = objects.next().await {
                let object = object.map_err(|error| self.failed("list", prefix, &error))?;
                let parts = object.location.prefix_match(&below);
                let Some(parts) = parts else { continue };
                let rest: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
                found(&format!("{prefix}/{}", rest.join("/")), object.size);
            }
            Ok(())
        })
    }

    fn read(&self, key: &str, bytes_max: u64) -> Result<Option<Bytes>> {
        self.runtime.block_on(self.read_object(key, bytes_max))
    }

    fn write(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path_of(key);
        let put = self
            .runtime
            .block_on(self.store.put(&path, PutPayload::from_bytes(bytes)));
        put.map(drop).map_err(|error| self.failed("write", key, &error))
    }

    fn write_new(&self, key: &str, bytes: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let path = self.path_of(key);
        let put = self.store.put_opts(&path, PutPayload::from_bytes(bytes), options);
        match self.runtime.block_on(put) {
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            put => put
                .map(|_| true)
                .map_err(|error| self.failed("write", key, &error)),
        }
    }

    fn remove(&self, key: &str) -> Result<()> {
        let path = self.path_of(key);
        match self.runtime.block_on(self.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", key, &error)),
        }
    }
}
