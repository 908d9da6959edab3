//! Reads and writes whole components that are small enough to be decoded and encoded in memory.

use ilion_env::Env;

use crate::{Component, Descriptor, Result};

/// Longer components are refused. No component that is read whole is that long, not even the chunk map of many terabytes of data.
const COMPONENT_LEN_MAX: u64 = 16 << 30;

/// The bytes of a component; `None` if it does not exist.
///
/// # Errors
/// The file cannot be read.
pub fn read_component(
    env: &dyn Env,
    descriptor: &Descriptor,
    component: &Component,
) -> Result<Option<Vec<u8>>> {
    match env.read_all(&descriptor.path(component), COMPONENT_LEN_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Creates a component with these bytes and syncs it. Its name is durable after the directory's sync.
///
/// # Errors
/// The file cannot be written, or exists.
pub fn write_component(
    env: &dyn Env,
    descriptor: &Descriptor,
    component: &Component,
    bytes: &[u8],
) -> Result<()> {
    let mut file = env.create(&descriptor.path(component))?;
    file.append(bytes)?;
    file.sync()?;
    Ok(())
}
