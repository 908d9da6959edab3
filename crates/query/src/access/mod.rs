//! Logins and permissions.
//!
//! A login: [`AccessControl::log_in`] compares a password with the hash in `system_auth.roles`, or
//! [`AccessControl::log_in_by_identity`] looks up the identity of a certificate. Either returns the [`Login`] of the role, which its
//! session keeps. A statement: planning it finds its [`Needs`]; before each execution
//! [`AccessControl::check`] compares them with the [`Rights`] of the login. Rights are read from `system_auth` when they are
//! first needed and again after their validity, or at once after a statement changed roles or grants.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | [`AccessOptions`]: authenticator, authorizer, validities |
//! | `identity` | [`Identity`]: who sends a statement; [`Login`] |
//! | `rights` | [`Rights`]: the permissions of a role at one time |
//! | `needs` | [`Needs`]: the permissions that a statement needs |
//! | `control` | [`AccessControl`]: logins and checks |
//! | `operator` | [`Operation`]: permissions at the HTTP port |
//! | `turn` | the right to change roles and grants |
//! | `tables` | `system_auth`: the only module that knows its columns |
//! | `plan` | [`AccessPlan`]: statements about roles and permissions |
//! | `roles`, `identities`, `grants`, `lists` | CREATE ROLE and its kind; ADD and DROP IDENTITY; GRANT and REVOKE; LIST |
//! | `watched` | facts for operators: [`KeptAccess`], [`CidrCounts`] |
//! | `resource` | resources of statements |
//! | `schema` | grants to the creator of an object, and the end of grants on a dropped one |
//! | `setup` | the first superuser; a new password on a stopped node |
//!
//! Compat: rules, codes and messages are those of Cassandra 5.0 (`org.apache.cassandra.auth`, `ClientState` and the statements).
//! With AllowAllAuthenticator there are no logins: sessions are anonymous, and statements about roles are refused.

mod actor;
mod control;
mod find_needs;
mod grants;
mod identities;
mod identity;
mod lists;
mod needs;
mod operator;
mod options;
mod plan;
mod resource;
mod rights;
mod roles;
mod schema;
mod setup;
mod tables;
mod turn;
mod watched;

pub use control::AccessControl;
pub(crate) use find_needs::needs_of;
pub use identity::{Identity, Login};
pub(crate) use needs::Needs;
pub use operator::Operation;
pub use options::{AccessOptions, Authenticator, Authorizer, CidrAuthorizer, NetworkAuthorizer};
pub(crate) use plan::AccessPlan;
pub(crate) use resource::function_resource;
pub use setup::{FirstSuperuser, SetupError};
pub use watched::{CidrCounts, KeptAccess};
