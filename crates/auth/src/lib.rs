//! Roles, permissions and passwords as values, without storage and without a clock.
//!
//! A login: [`plain::decode`] takes name and password from the client's token, [`password::check`] compares the password with the stored
//! hash. A statement needs [`Permission`]s on [`Resource`]s; the [`Grants`] of the role decide whether it has them, on the resource or
//! on one that contains it.
//!
//! | module | what |
//! | --- | --- |
//! | `permission` | [`Permission`], [`Permissions`]: one, and a set of them |
//! | `resource` | [`Resource`]: what permissions are granted on; its name in `system_auth`, its parents |
//! | `role` | [`Role`]; [`closure`]: all roles that a role has |
//! | `grants` | [`Grants`]: the permissions of a role and of the roles granted to it |
//! | `password` | bcrypt hashes |
//! | `right_passwords` | [`RightPasswords`]: recognises passwords that were right before |
//! | `plain` | the token of SASL PLAIN |
//! | `cidr` | [`Cidr`], [`groups_of`]: which groups an address belongs to |
//! | `pace` | [`LoginPace`]: how long an address waits after failed logins |
//! | `failure_share` | [`FailureShare`]: how much processor time failed logins may take |
//! | `login_queue` | [`LoginQueue`]: the order in which waiting logins are checked |
//! | `secret` | [`Secret`]: a password that is never printed |
//! | `sessions` | [`Sessions`]: the sessions of the HTTP port |
//!
//! Not here: the tables of `system_auth` and the statements (`ilion_query::access`), threads and sockets (`ilion_server`).
//! When you add a permission, add it to `Permission::ALL` and to the resources that it applies to.

mod cidr;
mod failure_share;
mod grants;
mod login_queue;
mod pace;
pub mod password;
mod permission;
pub mod plain;
mod resource;
mod right_passwords;
mod role;
mod secret;
mod sessions;

pub use cidr::{Cidr, groups_of};
pub use failure_share::{FailureShare, RunningCheck};
pub use grants::Grants;
pub use login_queue::LoginQueue;
pub use pace::{LoginPace, Standing};
pub use permission::{Permission, Permissions};
pub use resource::Resource;
pub use right_passwords::RightPasswords;
pub use role::{Role, closure};
pub use secret::Secret;
pub use sessions::Sessions;
