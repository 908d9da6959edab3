//! Opening and closing an [`Engine`].

use std::sync::Arc;

use ilion_env::Env;

use crate::work::Work;
use crate::{Engine, EngineOptions, Result, background, load, recovery};

impl Engine {
    /// Opens a data directory, created if absent, and replays the commit log.
    ///
    /// # Errors
    /// The directory is in use or belongs to another program, a file is damaged, or the operating system returned an error. Acknowledged
    /// data is neither lost nor changed then.
    pub fn open(env: Arc<dyn Env>, options: EngineOptions) -> Result<Self> {
        let (shared, lock) = recovery::open(env, options)?;
        let shared = Arc::new(shared);
        let engine = Self { shared, _lock: lock };
        load::remove_unfinished(&engine.shared)?;
        engine.store_own_keyspaces()?;
        background::start(&engine.shared)?;
        engine.shared.ask_for_token_maps();
        engine.shared.resume_builds()?;
        Ok(engine)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.pacer.stop();
        if !self.shared.options.is_stepped {
            self.shared.background.send(Work::Stop);
            self.shared.remover.stop();
            self.shared.releaser.stop();
            self.shared.background.join();
        }
        self.shared.save_reached_at_end();
    }
}
