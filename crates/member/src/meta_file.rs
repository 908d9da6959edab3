//! What a node knows from the meta log, in the file `ilion.cluster` of the data directory: the bytes of a [`MetaSnapshot`].
//!
//! Without the file, the node reads the log from its beginning, or from its first snapshot.

use std::path::Path;

use ilion_env::Env;

use crate::meta_snapshot::MetaSnapshot;

const FILE: &str = "ilion.cluster";
/// Far above what 4,096 tablets and 1,024 members take.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The saved snapshot; `None` if there is no usable one.
pub(crate) fn read(env: &dyn Env, data_dir: &Path) -> Option<MetaSnapshot> {
    let path = data_dir.join(FILE);
    if !env.exists(&path) {
        return None;
    }
    let bytes = env
        .read_all(&path, FILE_BYTES_MAX)
        .map_err(|error| error.to_string());
    let decoded = bytes.and_then(|bytes| MetaSnapshot::decode(&bytes).map_err(|error| error.to_string()));
    match decoded {
        Ok(snapshot) => Some(snapshot),
        Err(reason) => {
            tracing::warn!(path = %path.display(), %reason, "the meta log is read from its beginning");
            None
        }
    }
}

pub(crate) fn write(env: &dyn Env, data_dir: &Path, snapshot: &MetaSnapshot) -> ilion_env::Result<()> {
    env.write_atomically(&data_dir.join(FILE), &snapshot.encode())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_env::MemEnv;

    use super::*;
    use crate::meta::position_of;
    use crate::meta_snapshot::tests::snapshot_at;

    #[test]
    fn a_snapshot_is_read_back_and_a_damaged_one_is_passed_over() {
        let env = MemEnv::new(1).shared();
        let dir = Path::new("/ilion");
        env.create_dir_all(dir).unwrap();
        assert_eq!(read(&*env, dir), None);
        let mut snapshot = snapshot_at(7, &[100_000, 200_000, 300_000]);
        write(&*env, dir, &snapshot).unwrap();
        assert_eq!(read(&*env, dir), Some(snapshot.clone()));
        // As parts in the log it is the same.
        let parts = snapshot.parts().unwrap();
        assert!(parts.len() == 3 && parts.iter().all(|part| part.position == position_of(7)));
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.to_vec()).collect();
        assert_eq!(MetaSnapshot::decode(&bytes), Ok(snapshot.clone()));
        let path = dir.join(FILE);
        let mut bytes = env.read_all(&path, 1 << 20).unwrap();
        bytes[20] ^= 1;
        env.write_atomically(&path, &bytes).unwrap();
        assert_eq!(read(&*env, dir), None);
        // A change that is not the one that the state counted.
        snapshot.changes[1].body = Bytes::from_static(b"y");
        write(&*env, dir, &snapshot).unwrap();
        assert_eq!(read(&*env, dir), None);
    }
}
