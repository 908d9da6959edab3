//! The state of the cluster in the file `ilion.cluster` of the data directory: the bytes of [`ClusterState::encode`].
//!
//! It is what a node would know after reading the meta log from its beginning. Without the file, the node reads that.

use std::path::Path;

use ilion_cluster::ClusterState;
use ilion_env::Env;

const FILE: &str = "ilion.cluster";
/// Far above what 4,096 tablets and 1,024 members take.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What was saved; `None` if there is none that can be used.
pub(crate) fn read(env: &dyn Env, data_dir: &Path) -> Option<ClusterState> {
    let path = data_dir.join(FILE);
    if !env.exists(&path) {
        return None;
    }
    let bytes = env
        .read_all(&path, FILE_BYTES_MAX)
        .map_err(|error| error.to_string());
    let state = bytes.and_then(|bytes| ClusterState::decode(&bytes).map_err(|error| error.to_string()));
    match state {
        Ok(state) => Some(state),
        Err(reason) => {
            tracing::warn!(path = %path.display(), %reason, "the meta log is read from its beginning");
            None
        }
    }
}

pub(crate) fn write(env: &dyn Env, data_dir: &Path, state: &ClusterState) -> ilion_env::Result<()> {
    env.write_atomically(&data_dir.join(FILE), &state.encode())
}

#[cfg(test)]
mod tests {
    use ilion_cluster::{Change, Entry, Record, apply};
    use ilion_commitlog::Origin;
    use ilion_env::MemEnv;
    use uuid::Uuid;

    use super::*;
    use crate::meta::position_of;

    #[test]
    fn a_state_is_read_back_and_a_damaged_one_is_passed_over() {
        let env = MemEnv::new(1).shared();
        let dir = Path::new("/ilion");
        env.create_dir_all(dir).unwrap();
        assert_eq!(read(&*env, dir), None);
        let entry = Entry {
            position: position_of(7),
            time_micros: 9,
            origin: Origin {
                node: 0,
                incarnation: 0,
                seq: 0,
            },
            record: Record {
                cluster: Uuid::from_u128(7),
                change: Change::Create {
                    tablets: 8,
                    level: 1,
                    down_max_micros: 1,
                },
            },
        };
        let (state, _) = apply(None, &entry).unwrap();
        write(&*env, dir, &state).unwrap();
        assert_eq!(read(&*env, dir), Some(state));
        let path = dir.join(FILE);
        let mut bytes = env.read_all(&path, 1 << 20).unwrap();
        bytes[20] ^= 1;
        env.write_atomically(&path, &bytes).unwrap();
        assert_eq!(read(&*env, dir), None);
    }
}
