//! [`Shared`]: what all connections to other nodes share.

use std::sync::Arc;

use ilion_env::Env;
use ilion_tls::Encryption;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::counts::Counting;
use crate::hello::Identity;
use crate::incoming::Bounds;
use crate::options::Options;
use crate::peers::Peers;

/// See the module.
pub(crate) struct Shared {
    pub env: Arc<dyn Env>,
    pub identity: Identity,
    pub peers: Arc<dyn Peers>,
    pub options: Options,
    pub encryption: Option<Arc<Encryption>>,
    pub handle: Handle,
    pub bounds: Arc<Bounds>,
    pub counting: Arc<Counting>,
    pub stopping: watch::Receiver<bool>,
}
