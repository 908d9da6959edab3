//! Roles, passwords and permissions of a whole node, over a socket and over restarts.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::{CrashRule, Env, MemEnv};
use ilion_protocol::{ErrorDetail, Execute, Prepare, Request, Response, ResultBody, Version};
use ilion_server::SuperuserChoice;
use ilion_settings::{Authenticator, Authorizer, CidrAuthorizer, NetworkAuthorizer, Settings};

use crate::client::{Client, credentials, error_of, rows_of};
use crate::{Setup, run, start_with};

/// The superuser of these tests.
pub const ROOT: (&str, &str) = ("cassandra", "root's");

pub fn with_logins(settings: &mut Settings) {
    settings.authenticator = Authenticator::Password;
    settings.authorizer = Authorizer::Cassandra;
    settings.auth_bcrypt_work_factor = 4;
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let pairs = pairs.iter();
    pairs.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Makes the superuser of these tests.
pub fn make_root(setup: &Setup) {
    let given = variables(&[("ILION_SUPERUSER_PASSWORD", ROOT.1)]);
    let choice = SuperuserChoice::of(&*setup.env, given).unwrap();
    setup.node.ensure_superuser(&choice, Path::new("/ilion")).unwrap();
}

pub fn start_on(env: Arc<MemEnv>) -> Setup {
    let setup = start_with(env, with_logins);
    make_root(&setup);
    setup
}

pub fn start() -> Setup {
    start_on(Arc::new(MemEnv::new(1)))
}

impl Setup {
    pub fn log_in(&self, who: (&str, &str)) -> Client {
        Client::log_in(self.server.address(), Version::V4, None, who)
    }

    fn refused_login(&self, (role, password): (&str, &str)) -> String {
        let mut client = Client::connect(self.server.address(), Version::V4);
        client.startup(None);
        let refused = error_of(client.ask(credentials(role, password)));
        assert_eq!(refused.detail, ErrorDetail::BadCredentials);
        refused.message
    }
}

pub fn refused(client: &mut Client, text: &str) -> String {
    let refused = error_of(client.query(text));
    assert_eq!(refused.detail, ErrorDetail::Unauthorized, "{}", refused.message);
    refused.message
}

pub fn make_bob(root: &mut Client) {
    crate::make_table(root);
    run(root, "CREATE ROLE bob WITH PASSWORD = 'bob''s' AND LOGIN = true");
    run(root, "CREATE ROLE readers");
    run(root, "GRANT SELECT ON ks.t TO readers");
    run(root, "GRANT readers TO bob");
}

pub const BOB: (&str, &str) = ("bob", "bob's");

#[test]
fn a_role_may_do_what_was_granted_and_nothing_else() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    let mut bob = setup.log_in(BOB);
    run(&mut bob, "SELECT * FROM ks.t");
    assert_eq!(
        refused(&mut bob, "INSERT INTO ks.t (k) VALUES (1)"),
        "User bob has no MODIFY permission on <table ks.t> or any of its parents"
    );
    let named = rows_of(root.query("SELECT username FROM system_views.clients"));
    assert!(named.cells().any(|name| name == Some(b"bob".as_slice())));
}

#[test]
fn a_wrong_password_and_an_unknown_role_are_told_the_same() {
    let setup = start();
    make_bob(&mut setup.log_in(ROOT));
    let told = |role: &str| format!("Provided username {role} and/or password are incorrect");
    assert_eq!(setup.refused_login(("bob", "wrong")), told("bob"));
    assert_eq!(setup.refused_login(("nobody", "wrong")), told("nobody"));
    assert_eq!(setup.refused_login(("readers", "wrong")), told("readers"));
}

#[test]
fn what_is_revoked_or_dropped_ends_at_once_for_open_sessions() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    let mut bob = setup.log_in(BOB);
    let prepare = Request::Prepare(Prepare {
        text: "SELECT * FROM ks.t WHERE k = 1".to_owned(),
        keyspace: None,
    });
    let Response::Result(ResultBody::Prepared(prepared)) = bob.ask(prepare) else {
        panic!("it is not prepared");
    };
    let execute = || {
        Request::Execute(Execute {
            id: prepared.id.clone(),
            ..Execute::default()
        })
    };
    rows_of(bob.ask(execute()));
    run(&mut root, "REVOKE readers FROM bob");
    assert_eq!(error_of(bob.ask(execute())).detail, ErrorDetail::Unauthorized);
    run(&mut root, "GRANT readers TO bob");
    rows_of(bob.ask(execute()));
    run(&mut root, "REVOKE SELECT ON ks.t FROM readers");
    assert_eq!(error_of(bob.ask(execute())).detail, ErrorDetail::Unauthorized);
    run(&mut root, "GRANT SELECT ON KEYSPACE ks TO bob");
    rows_of(bob.ask(execute()));
    run(&mut root, "ALTER ROLE bob WITH PASSWORD = 'other'");
    assert!(setup.refused_login(BOB).contains("incorrect"));
    setup.log_in(("bob", "other"));
    run(&mut root, "DROP ROLE bob");
    assert_eq!(error_of(bob.ask(execute())).detail, ErrorDetail::Unauthorized);
    assert!(setup.refused_login(("bob", "other")).contains("incorrect"));
    // A role of the same name starts with nothing.
    run(
        &mut root,
        "CREATE ROLE bob WITH PASSWORD = 'bob''s' AND LOGIN = true",
    );
    let mut again = setup.log_in(BOB);
    refused(&mut again, "SELECT * FROM ks.t");
}

#[test]
fn rows_that_were_written_to_system_auth_hold_after_the_validity() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    let mut bob = setup.log_in(BOB);
    run(&mut bob, "SELECT * FROM ks.t");
    run(
        &mut root,
        "DELETE FROM system_auth.role_permissions WHERE role = 'readers'",
    );
    setup.env.advance_micros(3_000_000);
    refused(&mut bob, "SELECT * FROM ks.t");
}

#[test]
fn rows_that_were_written_to_system_auth_hold_once_the_caches_are_emptied() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    let mut bob = setup.log_in(BOB);
    run(&mut bob, "SELECT * FROM ks.t");
    run(
        &mut root,
        "DELETE FROM system_auth.role_permissions WHERE role = 'readers'",
    );
    // The clock of the test stands still: what was read is valid.
    run(&mut bob, "SELECT * FROM ks.t");
    let (_door, admin) = crate::admin::open(&setup);
    let done = admin.post("/admin/invalidate-caches?cache=roles").unwrap();
    assert_eq!(done["caches"], 1);
    refused(&mut bob, "SELECT * FROM ks.t");
}

#[test]
fn a_password_that_was_right_is_wrong_once_it_was_changed() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    setup.log_in(BOB);
    setup.log_in(BOB);
    run(&mut root, "ALTER ROLE bob WITH PASSWORD = 'new'");
    setup.refused_login(BOB);
    setup.log_in(("bob", "new"));
    setup.refused_login(("readers", "new"));
    run(&mut root, "DROP ROLE bob");
    setup.refused_login(("bob", "new"));
}

#[test]
fn a_role_without_login_does_not_get_in() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    run(&mut root, "CREATE ROLE quiet WITH PASSWORD = 'x'");
    assert_eq!(
        setup.refused_login(("quiet", "x")),
        "quiet is not permitted to log in"
    );
}

#[test]
fn roles_and_grants_survive_a_crash() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    run(&mut root, "REVOKE readers FROM bob");
    run(&mut root, "GRANT MODIFY ON ks.t TO bob");
    let crashed = Arc::new(setup.env.crash(CrashRule::LoseUnsynced));
    drop((root, setup));
    let setup = start_on(crashed);
    let mut root = setup.log_in(ROOT);
    let mut bob = setup.log_in(BOB);
    run(&mut bob, "INSERT INTO ks.t (k) VALUES (1)");
    refused(&mut bob, "SELECT * FROM ks.t");
    let listed = rows_of(root.query("LIST ROLES"));
    assert_eq!(listed.row_count, 3);
}

#[test]
fn a_grant_on_a_dropped_table_does_not_come_back_with_its_name() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    let mut bob = setup.log_in(BOB);
    run(&mut root, "DROP TABLE ks.t");
    run(&mut root, "CREATE TABLE ks.t (k int PRIMARY KEY)");
    refused(&mut bob, "SELECT * FROM ks.t");
    run(&mut root, "GRANT SELECT ON ks.t TO bob");
    run(&mut bob, "SELECT * FROM ks.t");
    run(&mut root, "DROP KEYSPACE ks");
    crate::make_table(&mut root);
    refused(&mut bob, "SELECT * FROM ks.t");
}

#[test]
fn what_a_crash_left_of_a_dropped_table_is_removed_at_the_start() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    run(
        &mut root,
        "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('bob', 'data/ks/gone', {'SELECT'})",
    );
    run(
        &mut root,
        "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ('data/ks/gone', 'bob')",
    );
    let crashed = Arc::new(setup.env.crash(CrashRule::KeepAll));
    drop((root, setup));
    let setup = start_on(crashed);
    let mut root = setup.log_in(ROOT);
    let mut bob = setup.log_in(BOB);
    run(&mut root, "CREATE TABLE ks.gone (k int PRIMARY KEY)");
    refused(&mut bob, "SELECT * FROM ks.gone");
    run(&mut bob, "SELECT * FROM ks.t");
}

#[test]
fn passwords_are_in_no_table_that_tells_of_statements() {
    let setup = start();
    let mut root = setup.log_in(ROOT);
    let text = "CREATE ROLE carol WITH PASSWORD = 'sEcReT' AND LOGIN = true";
    let prepare = Request::Prepare(Prepare {
        text: text.to_owned(),
        keyspace: None,
    });
    let Response::Result(ResultBody::Prepared(prepared)) = root.ask(prepare) else {
        panic!("it is not prepared");
    };
    root.ask(Request::Execute(Execute {
        id: prepared.id,
        ..Execute::default()
    }));
    setup.log_in(("carol", "sEcReT"));
    setup.node.observers().trace_probability.set(1.0);
    run(&mut root, "ALTER ROLE carol WITH PASSWORD = 'sEcReT'");
    error_of(root.query("ALTER ROLE carol WITH PASSWORD = sEcReT"));
    error_of(root.query("ALTER ROLE carol WITH PASSWORD = 'sEcReT"));
    setup.node.observers().trace_probability.set(0.0);
    for table in [
        "system.prepared_statements",
        "system_traces.sessions",
        "system_traces.events",
        "system_views.statements",
        "system_views.queries",
        "system_views.system_logs",
        "system_auth.roles",
    ] {
        let rows = rows_of(root.query(&format!("SELECT JSON * FROM {table}")));
        for cell in rows.cells().flatten() {
            let shown = String::from_utf8_lossy(cell).to_lowercase();
            assert!(!shown.contains("secret"), "{table}: {shown}");
        }
    }
    let traced = rows_of(root.query("SELECT parameters FROM system_traces.sessions"));
    assert!(traced.row_count >= 3);
}

#[test]
fn the_first_superuser_has_a_random_password_in_a_file_or_the_given_one() {
    let env = Arc::new(MemEnv::new(1));
    let setup = start_with(env.clone(), with_logins);
    let directory = Path::new("/ilion");
    let choice = SuperuserChoice::of(&*env, variables(&[("ILION_SUPERUSER", "admin")])).unwrap();
    let created = setup.node.ensure_superuser(&choice, directory).unwrap().unwrap();
    assert_eq!(created.role, "admin");
    let file = created.password_file.unwrap();
    let password = String::from_utf8(env.read_all(&file, 100).unwrap()).unwrap();
    let password = password.trim_end();
    assert_eq!(password.len(), 24);
    assert!(setup.refused_login(("admin", "admin")).contains("incorrect"));
    assert!(
        setup
            .refused_login(("cassandra", "cassandra"))
            .contains("incorrect")
    );
    let mut admin = setup.log_in(("admin", password));
    run(&mut admin, "CREATE ROLE x WITH SUPERUSER = true");
    // There is one already.
    assert_eq!(setup.node.ensure_superuser(&choice, directory).unwrap(), None);
}

#[test]
fn the_choice_of_the_first_superuser_is_checked() {
    let env = MemEnv::new(1).shared();
    let of = |pairs: &[(&str, &str)]| SuperuserChoice::of(&*env, variables(pairs));
    env.write_atomically(Path::new("/secret"), b"from a file\r\n")
        .unwrap();
    env.write_atomically(Path::new("/empty"), b"\n").unwrap();
    assert!(of(&[("ILION_SUPERUSER_PASSWORD_FILE", "/secret")]).is_ok());
    let wrong: [&[(&str, &str)]; 5] = [
        &[("ILION_SUPERUSER_PASSWORD", "")],
        &[("ILION_SUPERUSER", "")],
        &[("ILION_SUPERUSER_PASSWORD_FILE", "/empty")],
        &[("ILION_SUPERUSER_PASSWORD_FILE", "/not there")],
        &[
            ("ILION_SUPERUSER_PASSWORD", "x"),
            ("ILION_SUPERUSER_PASSWORD_FILE", "/secret"),
        ],
    ];
    for pairs in wrong {
        assert!(of(pairs).is_err(), "{pairs:?}");
    }
    use std::os::unix::ffi::OsStringExt as _;
    let not_utf8 = (
        OsString::from("ILION_SUPERUSER_PASSWORD"),
        OsString::from_vec(vec![0xff]),
    );
    let told = SuperuserChoice::of(&*env, [not_utf8]).unwrap_err().to_string();
    assert_eq!(told, "ILION_SUPERUSER_PASSWORD: the value is not UTF-8");
}

#[test]
fn a_password_is_set_anew_on_a_stopped_node() {
    let setup = start();
    make_bob(&mut setup.log_in(ROOT));
    let access = setup.node.processor().access();
    access.reset_password("bob", "new").unwrap();
    setup.log_in(("bob", "new"));
    let told = access.reset_password("nobody", "new").unwrap_err().to_string();
    assert_eq!(
        told,
        "there is no role nobody; the roles are: bob, cassandra, readers"
    );
}

#[test]
fn permissions_need_logins() {
    let refused = |adjust: fn(&mut Settings)| {
        let mut settings = Settings {
            directory: "/ilion".into(),
            ..Settings::default()
        };
        adjust(&mut settings);
        let opened = ilion_server::ServerNode::open(MemEnv::new(1).shared(), &settings);
        opened.err().unwrap().to_string()
    };
    let told = refused(|settings| settings.authorizer = Authorizer::Cassandra);
    assert!(
        told.contains("needs authenticator: PasswordAuthenticator"),
        "{told}"
    );
    let told = refused(|settings| settings.auth_bcrypt_work_factor = 3);
    assert!(told.contains("from 4 to 31"), "{told}");
}

/// The cells of an answer as text.
fn texts(client: &mut Client, text: &str) -> Vec<String> {
    let rows = rows_of(run(client, text));
    let cells = rows
        .cells()
        .map(|cell| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned());
    cells.collect()
}

#[test]
fn what_is_kept_of_roles_is_shown_and_forgotten_by_truncate() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        with_logins(settings);
        settings.network_authorizer = NetworkAuthorizer::Cassandra;
        settings.cidr_authorizer = CidrAuthorizer::Cassandra;
        settings.roles_validity = Duration::from_hours(1);
        settings.permissions_validity = Duration::from_hours(1);
        settings.credentials_validity = Duration::from_hours(1);
    });
    make_root(&setup);
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    run(
        &mut root,
        "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ('here', {('127.0.0.0', 8)})",
    );
    run(&mut root, "ALTER ROLE bob WITH ACCESS FROM CIDRS {'here'}");
    let mut bob = setup.log_in(BOB);
    run(&mut bob, "SELECT * FROM ks.t");
    // Each change of a role forgets what is kept: the hash of root's password is not read again.
    let views = [
        (
            "SELECT role FROM system_views.roles_cache_keys",
            vec!["bob", "cassandra", "readers"],
        ),
        (
            "SELECT role FROM system_views.credentials_cache_keys",
            vec!["bob"],
        ),
        (
            "SELECT role FROM system_views.network_permissions_cache_keys",
            vec!["bob", "cassandra"],
        ),
        (
            "SELECT role, resource FROM system_views.permissions_cache_keys",
            vec!["bob", "data/ks/t"],
        ),
    ];
    for (select, expected) in &views {
        let mut found = texts(&mut root, select);
        found.sort_unstable();
        assert_eq!(found, *expected, "{select}");
    }
    let counts = "SELECT name FROM system_views.cidr_filtering_metrics_counts";
    let accepted = "Number of CIDR accesses accepted from CIDR group - here".to_owned();
    assert!(texts(&mut root, counts).contains(&accepted));
    run(&mut root, "TRUNCATE system_views.credentials_cache_keys");
    assert!(texts(&mut root, views[1].0).is_empty());
    // Root's own rights are read again for this statement.
    run(&mut root, "TRUNCATE system_views.permissions_cache_keys");
    assert_eq!(texts(&mut root, views[0].0), ["cassandra"]);
    assert!(texts(&mut root, views[3].0).is_empty());
}
