//! Makes the entries of the audit log: of requests, logins, statements of the dashboard and orders to the HTTP port.
//!
//! A request makes its entries before its answer is sent. Passwords are hidden in the texts of statements; bound values are not
//! in the log at all.
//!
//! Compat: the entries are those of `AuditLogManager` of Cassandra 5.0. One difference: the entry of a failed statement that is CQL has
//! the statement's keyspace and scope, where Cassandra may have only the keyspace of the session.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hashbrown::HashMap;
use ilion_audit::{Audit, AuditLog, Entry, EntryType, Target};
use ilion_cql::hide_secrets;
use ilion_env::Env;
use ilion_protocol::{Batch, ErrorDetail, ErrorResponse, Request, StatementSource};
use ilion_query::{ClientState, Consistency, Error, Identity, Prepared};
use ilion_types::hex;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::request::Answered;
use crate::session::Session;
use crate::statements::Statements;
use crate::subject::Subject;

/// Most prepared statements whose targets are kept; a full cache is emptied.
const TARGETS_KEPT_MAX: usize = 10_000;
/// The name of a client without a login. Compat: `AuthenticatedUser.ANONYMOUS_USERNAME`.
const ANONYMOUS: &str = "anonymous";
/// The name of the process itself. Compat: `AuthenticatedUser.SYSTEM_USERNAME`.
const SYSTEM: &str = "system";
/// The source of statements that came from no client. Compat: `AuditLogEntry.DEFAULT_SOURCE`.
const NO_SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Makes the entries of the audit log.
pub struct Auditor {
    audit: Audit,
    env: Arc<dyn Env>,
    /// The address of the node, for the entries.
    host: IpAddr,
    /// Targets of prepared statements by id, so that their texts are not parsed for each execution.
    targets: RwLock<HashMap<[u8; 16], Option<Arc<Target>>>>,
}

/// A request that was executed.
#[derive(Clone, Copy)]
pub(crate) struct Done<'d> {
    pub session: &'d Session,
    pub client: &'d ClientState,
    pub request: &'d Request,
    pub answered: &'d Answered,
    pub statements: &'d dyn Statements,
    pub started_nanos: u64,
}

/// Why a request or a login failed.
struct Failed<'f> {
    entry_type: EntryType,
    message: Cow<'f, str>,
}

/// The parts that all entries of a request share.
struct Context<'c> {
    log: &'c AuditLog,
    host: IpAddr,
    user: Option<&'c str>,
    source: SocketAddr,
    timestamp_millis: i64,
    /// Keyspace of unqualified names.
    keyspace: Option<&'c str>,
    failed: Option<Failed<'c>>,
}

impl Auditor {
    /// Creates an auditor, whose log is off; `host` is the node's address in entries.
    pub fn new(env: Arc<dyn Env>, host: IpAddr) -> Self {
        Self {
            audit: Audit::new(env.clone()),
            env,
            host,
            targets: RwLock::default(),
        }
    }

    /// The log.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Records a request that was executed. While the log is off, this is one branch.
    #[inline]
    pub(crate) fn request(&self, done: Done<'_>) {
        if let Some(log) = self.audit.running() {
            self.record(&log, done);
        }
    }

    #[cold]
    fn record(&self, log: &AuditLog, done: Done<'_>) {
        let client = done.client;
        let context = Context {
            log,
            host: self.host,
            user: Some(user_of(&client.identity)),
            source: done.session.peer,
            timestamp_millis: self.millis_at(done.started_nanos),
            keyspace: keyspace_of(done.request).or(client.keyspace.as_deref()),
            failed: done.answered.reply.refusal().map(Failed::of_response),
        };
        match done.request {
            Request::Query(query) => {
                context.executed(&query.text, Target::of_text(&query.text).as_ref(), None)
            }
            Request::Prepare(prepare) => context.prepared(&prepare.text),
            Request::Execute(_) => match &done.answered.subject {
                Subject::Prepared(prepared) => {
                    context.executed(prepared.text(), self.target_of(prepared).as_deref(), None);
                }
                _ => context.executed("", None, None),
            },
            Request::Batch(batch) => self.batch(&context, batch, done.statements),
            _ => {}
        }
    }

    /// Compat: a batch has an entry of its own, then one for each statement; a failed batch has only the first.
    fn batch(&self, context: &Context<'_>, batch: &Batch, statements: &dyn Statements) {
        let count = batch.statements.len();
        if context.failed.is_some() {
            let level = Consistency(batch.consistency.number());
            let text = format!("BATCH of {count} statements at consistency {level}");
            return context.record(EntryType::Batch, None, &text, None);
        }
        let id = self.env.random_uuid();
        let text = format!("BatchId:[{id}] - BATCH of [{count}] statements");
        context.record(EntryType::Batch, None, &text, Some(id));
        for member in &batch.statements {
            match &member.source {
                StatementSource::Text(text) => {
                    context.executed(text, Target::of_text(text).as_ref(), Some(id));
                }
                StatementSource::Prepared(member) => match statements.prepared(member) {
                    Some(prepared) => {
                        context.executed(prepared.text(), self.target_of(&prepared).as_deref(), Some(id));
                    }
                    // It was executed, and has been removed from the cache since.
                    None => {
                        let text = format!("prepared statement 0x{}", hex::print(member));
                        context.record(EntryType::Batch, None, &text, Some(id));
                    }
                },
            }
        }
    }

    fn target_of(&self, prepared: &Prepared) -> Option<Arc<Target>> {
        if let Some(known) = self.targets.read().get(&prepared.id) {
            return known.clone();
        }
        let target = Target::of_text(prepared.text()).map(|mut target| {
            let keyspace = &prepared.shape().keyspace;
            if target.keyspace.is_none() && !keyspace.is_empty() {
                target.keyspace = Some(keyspace.clone());
            }
            Arc::new(target)
        });
        let mut targets = self.targets.write();
        if targets.len() >= TARGETS_KEPT_MAX {
            targets.clear();
        }
        targets.insert(prepared.id, target.clone());
        target
    }

    /// Records a statement of the dashboard, which a role has sent from this address.
    pub(crate) fn of_dashboard(
        &self,
        client: &ClientState,
        source: Option<SocketAddr>,
        text: &str,
        keyspace: Option<&str>,
        error: Option<&Error>,
    ) {
        let Some(log) = self.audit.running() else {
            return;
        };
        let context = Context {
            log: &log,
            host: self.host,
            user: Some(user_of(&client.identity)),
            source: source.unwrap_or(NO_SOURCE),
            timestamp_millis: self.env.now_micros().div_euclid(1000),
            keyspace,
            failed: error.map(Failed::of_error),
        };
        context.executed(text, Target::of_text(text).as_ref(), None);
    }

    /// Records a login. May block while the queue is full: call it on a thread that may wait.
    pub(crate) fn logged_in(&self, source: SocketAddr, role: &str) {
        if let Some(log) = self.audit.running() {
            log.record(&self.without_keyspace(
                source,
                Some(role),
                EntryType::LoginSuccess,
                "LOGIN SUCCESSFUL",
            ));
        }
    }

    /// Records a failed login. May block while the queue is full: call it on a thread that may wait.
    pub(crate) fn login_failed(&self, source: SocketAddr, message: &str) {
        if let Some(log) = self.audit.running() {
            let operation = format!("LOGIN FAILURE; {message}");
            log.record(&self.without_keyspace(source, None, EntryType::LoginError, &operation));
        }
    }

    /// As [`Self::login_failed`], for a task of tokio: the entry is dropped while the queue is full.
    pub(crate) fn login_failed_now(&self, source: SocketAddr, message: &str) {
        if let Some(log) = self.audit.running() {
            let operation = format!("LOGIN FAILURE; {message}");
            log.record_now(&self.without_keyspace(source, None, EntryType::LoginError, &operation));
        }
    }

    /// Records an order to the HTTP port; `role` is `None` for an operator without a role. Returns false while the log is off. Called by a
    /// thread that may wait.
    pub(crate) fn ordered(&self, role: Option<&str>, source: SocketAddr, order: &str) -> bool {
        self.record_order(role, source, EntryType::Administration, order)
    }

    /// Records an order that failed. Called by a thread that may wait.
    pub(crate) fn order_failed(&self, role: Option<&str>, source: SocketAddr, order: &str, why: &str) {
        let operation = format!("{order}; {why}");
        self.record_order(role, source, EntryType::RequestFailure, &operation);
    }

    fn record_order(
        &self,
        role: Option<&str>,
        source: SocketAddr,
        entry_type: EntryType,
        operation: &str,
    ) -> bool {
        let running = self.audit.running();
        if let Some(log) = &running {
            let user = role.unwrap_or(SYSTEM);
            log.record(&self.without_keyspace(source, Some(user), entry_type, operation));
        }
        running.is_some()
    }

    /// Records a role's request to the HTTP port that is not permitted. For a task of tokio: the entry is dropped while the queue is full.
    pub(crate) fn not_permitted_now(&self, role: &str, source: SocketAddr, request: &str, reason: &str) {
        if let Some(log) = self.audit.running() {
            let operation = format!("{request}; {reason}");
            let entry_type = EntryType::UnauthorizedAttempt;
            log.record_now(&self.without_keyspace(source, Some(role), entry_type, &operation));
        }
    }

    fn without_keyspace<'e>(
        &self,
        source: SocketAddr,
        user: Option<&'e str>,
        entry_type: EntryType,
        operation: &'e str,
    ) -> Entry<'e> {
        Entry {
            user,
            host: self.host,
            source,
            timestamp_millis: self.env.now_micros().div_euclid(1000),
            entry_type,
            batch: None,
            keyspace: None,
            scope: None,
            operation,
        }
    }

    /// Converts a time of the monotonic clock to wall-clock time.
    fn millis_at(&self, nanos: u64) -> i64 {
        let elapsed = self.env.monotonic_nanos().saturating_sub(nanos);
        let elapsed_micros = i64::try_from(elapsed / 1000).unwrap_or(0);
        self.env
            .now_micros()
            .saturating_sub(elapsed_micros)
            .div_euclid(1000)
    }
}

impl Context<'_> {
    /// Records a statement that was executed, or failed.
    fn executed(&self, text: &str, target: Option<&Target>, batch: Option<Uuid>) {
        // A text that is not CQL is not executed, so it has failed.
        let entry_type = target.map_or(EntryType::RequestFailure, |target| target.entry_type);
        self.record(entry_type, target, text, batch);
    }

    /// Records a statement that was prepared, or failed.
    fn prepared(&self, text: &str) {
        let target = Target::of_text(text);
        self.record(EntryType::PrepareStatement, target.as_ref(), text, None);
    }

    fn record(&self, entry_type: EntryType, target: Option<&Target>, text: &str, batch: Option<Uuid>) {
        let text = hide_secrets(text);
        let operation = match &self.failed {
            None => text,
            Some(failed) if text.is_empty() => Cow::Borrowed(&*failed.message),
            Some(failed) => Cow::Owned(format!("{text}; {}", failed.message)),
        };
        self.log.record(&Entry {
            user: self.user,
            host: self.host,
            source: self.source,
            timestamp_millis: self.timestamp_millis,
            entry_type: self
                .failed
                .as_ref()
                .map_or(entry_type, |failed| failed.entry_type),
            batch,
            keyspace: target
                .and_then(|target| target.keyspace.as_deref())
                .or(self.keyspace),
            scope: target.and_then(|target| target.scope.as_deref()),
            operation: &operation,
        });
    }
}

impl<'f> Failed<'f> {
    fn of_response(error: &'f ErrorResponse) -> Self {
        let entry_type = match error.detail {
            ErrorDetail::Unauthorized => EntryType::UnauthorizedAttempt,
            ErrorDetail::BadCredentials => EntryType::LoginError,
            _ => EntryType::RequestFailure,
        };
        Self {
            entry_type,
            message: Cow::Borrowed(&error.message),
        }
    }

    fn of_error(error: &Error) -> Self {
        let entry_type = match error {
            Error::Unauthorized(_) => EntryType::UnauthorizedAttempt,
            Error::BadCredentials(_) => EntryType::LoginError,
            _ => EntryType::RequestFailure,
        };
        Self {
            entry_type,
            message: Cow::Owned(error.to_string()),
        }
    }
}

fn user_of(identity: &Identity) -> &str {
    match identity {
        Identity::User(login) => &login.role,
        Identity::Anonymous => ANONYMOUS,
        Identity::Internal => SYSTEM,
    }
}

/// The keyspace that a request gives for unqualified names.
fn keyspace_of(request: &Request) -> Option<&str> {
    match request {
        Request::Query(query) => query.params.keyspace.as_deref(),
        Request::Prepare(prepare) => prepare.keyspace.as_deref(),
        Request::Execute(execute) => execute.params.keyspace.as_deref(),
        Request::Batch(batch) => batch.keyspace.as_deref(),
        _ => None,
    }
}
