//! [`Encryption`]: the current configurations of rustls.
//!
//! When a connection begins, and at most every ten seconds, the times of the files are checked, so a new certificate needs no restart. If
//! new files cannot be used, the old certificates stay in use, and the log reports it.

use std::sync::Arc;

use ilion_env::Env;
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};

use crate::options::{Ready, TlsError, TlsOptions};

/// Minimum time between two checks of the files.
const LOOK_NANOS: u64 = 10_000_000_000;

/// Gives each connection the current certificate and key.
pub struct Encryption {
    options: TlsOptions,
    env: Arc<dyn Env>,
    current: Mutex<Current>,
}

struct Current {
    ready: Ready,
    /// When each file was written.
    written_secs: Vec<Option<i64>>,
    looked_nanos: u64,
}

impl Encryption {
    /// Reads the files.
    ///
    /// # Errors
    /// The files cannot be read or used.
    pub fn load(env: &Arc<dyn Env>, options: TlsOptions) -> Result<Self, TlsError> {
        let current = Current {
            written_secs: written(&**env, &options),
            ready: options.load(&**env)?,
            looked_nanos: env.monotonic_nanos(),
        };
        Ok(Self {
            options,
            env: env.clone(),
            current: Mutex::new(current),
        })
    }

    /// True if peers may also connect without encryption.
    pub fn is_optional(&self) -> bool {
        self.options.is_optional
    }

    /// The options that it was loaded with.
    pub fn options(&self) -> &TlsOptions {
        &self.options
    }

    /// The configuration for the next connection that is accepted.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.looked_at().server.clone()
    }

    /// The configuration for the next connection to another node; `None` if the options are for accepting only.
    pub fn connecting_config(&self) -> Option<Arc<ClientConfig>> {
        self.looked_at().client.clone()
    }

    /// The configurations. Checks the files first, if the last check is long ago.
    fn looked_at(&self) -> parking_lot::MappedMutexGuard<'_, Ready> {
        let mut current = self.current.lock();
        let now = self.env.monotonic_nanos();
        if now.saturating_sub(current.looked_nanos) >= LOOK_NANOS {
            current.looked_nanos = now;
            self.look_again(&mut current);
        }
        parking_lot::MutexGuard::map(current, |current| &mut current.ready)
    }

    /// Reads the files now; the old ones stay in use if the new ones cannot be used.
    ///
    /// # Errors
    /// The files cannot be read or used.
    pub fn reload(&self) -> Result<(), TlsError> {
        let mut current = self.current.lock();
        let written_secs = written(&*self.env, &self.options);
        current.ready = self.options.load(&*self.env)?;
        current.written_secs = written_secs;
        tracing::info!(keystore = %self.options.keystore.display(), "certificates were read again");
        Ok(())
    }

    /// A warning if the certificate has expired or soon will.
    pub fn warning(&self) -> Option<String> {
        self.current.lock().ready.warning(&self.options, &*self.env)
    }

    fn look_again(&self, current: &mut Current) {
        let written_secs = written(&*self.env, &self.options);
        if written_secs == current.written_secs {
            return;
        }
        match self.options.load(&*self.env) {
            Ok(ready) => {
                current.ready = ready;
                current.written_secs = written_secs;
                tracing::info!(keystore = %self.options.keystore.display(), "certificates were read again");
            }
            Err(error) => {
                tracing::error!(%error, "changed certificates cannot be used: the old ones stay in use")
            }
        }
    }
}

fn written(env: &dyn Env, options: &TlsOptions) -> Vec<Option<i64>> {
    options.files().map(|file| env.modified_secs(file).ok()).collect()
}
