//! The clock in the unit of deletion times and expirations.

use ilion_env::Env;

/// The wall clock, in seconds since 1970. From its largest value on, everything that expires has expired.
pub(crate) fn now_secs(env: &dyn Env) -> u32 {
    u32::try_from(env.now_secs()).unwrap_or(u32::MAX)
}
