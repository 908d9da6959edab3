//! Who may use the HTTP port of a node with logins.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::{Env, MemEnv};
use ilion_protocol::{ErrorDetail, Version};
use ilion_server::admin::{AdminClient, AdminDoor, DoorOptions, EngineAdmin, RoleLogins, StatusReport};
use ilion_server::{Entrance, Port};
use ilion_settings::{CertificateValidator, Settings, Size};
use rustls::version::TLS13;
use rustls::{ClientConnection, StreamOwned};

use crate::client::{Client, error_of, patient};
use crate::logins::{BOB, ROOT, make_bob, make_root, start, with_logins};
use crate::{Setup, audit, certificates, run, start_with, tls};

const TOKEN: &str = "a-token-of-programs";

/// A node with its HTTP port.
pub(super) struct Node {
    door: AdminDoor,
    pub(super) setup: Setup,
}

/// An answer: status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The value of the cookie that it sets, with its name.
    fn cookie(&self) -> String {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        line.unwrap().split(';').next().unwrap().to_owned()
    }

    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }
}

impl Node {
    pub(super) fn open(setup: Setup) -> Self {
        let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
        let port = Port::take(Entrance::Administration, ([127, 0, 0, 1], 0).into()).unwrap();
        let env: Arc<dyn Env> = setup.env.clone();
        let options = DoorOptions::of(&env, &setup.settings).unwrap();
        let roles = RoleLogins::of(&setup.node, &setup.server);
        let door = AdminDoor::open(port, options, roles, Arc::new(admin)).unwrap();
        Self { door, setup }
    }

    fn start() -> Self {
        let setup = start();
        make_bob(&mut setup.log_in(ROOT));
        Self::open(setup)
    }

    fn send(&self, request: &str) -> Answer {
        let stream = patient(TcpStream::connect(self.door.address()).unwrap());
        exchange(stream, request)
    }

    /// A request with these headers, one a line.
    fn ask(&self, line: &str, headers: &str, body: &str) -> Answer {
        let address = self.door.address();
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {address}\r\n")
        };
        let headers: String = headers.lines().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        self.send(&format!(
            "{line} HTTP/1.1\r\n{host}{headers}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(&format!("GET {path}"), headers, "")
    }

    fn origin(&self) -> String {
        format!("Origin: http://{}", self.door.address())
    }

    fn log_in(&self, (role, password): (&str, &str)) -> Answer {
        let order = serde_json::json!({ "role": role, "password": password }).to_string();
        self.ask("POST /api/login", &self.origin(), &order)
    }

    /// The header of a new session.
    fn session(&self, who: (&str, &str)) -> String {
        let answer = self.log_in(who);
        assert_eq!(answer.status, 200, "{}", answer.body);
        format!("Cookie: {}", answer.cookie())
    }

    /// Executes a statement in a session.
    fn query(&self, session: &str, cql: &str) -> Answer {
        let order = serde_json::json!({ "cql": cql }).to_string();
        self.ask(
            "POST /api/query",
            &format!("{session}\n{}", self.origin()),
            &order,
        )
    }

    pub(super) fn client(&self, (role, password): (&str, &str)) -> AdminClient {
        AdminClient::new(self.door.address()).with_login(role, password)
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    stream.flush().unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Answer::of(&answer)
}

fn told(admin: &AdminClient, path: &str) -> String {
    admin.post(path).unwrap_err().to_string()
}

#[test]
fn without_a_login_only_the_page_is_shown() {
    let node = Node::start();
    for path in ["/", "/assets/app.js", "/api/session"] {
        assert_eq!(node.get(path, "").status, 200, "{path}");
    }
    let session = node.get("/api/session", "");
    assert!(
        session.body.contains(r#""asks_for":"login","role":null"#),
        "{}",
        session.body
    );
    for path in [
        "/metrics",
        "/admin/status",
        "/admin/clients",
        "/api/spectrogram",
        "/api/slowest?from=0&to=1",
        "/none",
    ] {
        let answer = node.get(path, "");
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer
                .body
                .contains("log in: with the name and password of a role"),
            "{}",
            answer.body
        );
        // A browser must not ask for a password by itself.
        assert!(!answer.head.to_lowercase().contains("basic"), "{}", answer.head);
    }
    for path in [
        "/admin/drain",
        "/admin/flush",
        "/admin/snapshot?tag=x",
        "/api/query",
    ] {
        assert_eq!(node.ask(&format!("POST {path}"), "", "{}").status, 401, "{path}");
    }
    for shown in [
        "Cookie: ilion=x",
        "Authorization: Bearer x",
        "Authorization: Basic eA==",
        "Authorization: x",
    ] {
        assert_eq!(node.get("/admin/status", shown).status, 401, "{shown}");
    }
}

#[test]
fn a_wrong_password_and_an_unknown_role_are_told_the_same() {
    let node = Node::start();
    for role in ["bob", "nobody"] {
        let answer = node.log_in((role, "wrong"));
        let expected = format!("Provided username {role} and/or password are incorrect");
        assert_eq!(answer.status, 401);
        assert!(answer.body.contains(&expected), "{}", answer.body);
        assert!(!answer.head.contains("set-cookie"), "{}", answer.head);
        assert!(told(&node.client((role, "wrong")), "/admin/drain").contains(&expected));
    }
    for (role, password) in [("", "x"), ("bob", ""), ("bob", &*"x".repeat(5000))] {
        assert_eq!(node.log_in((role, password)).status, 401);
    }
    assert_eq!(node.ask("POST /api/login", &node.origin(), "{}").status, 422);
}

#[test]
fn superusers_administer_and_others_see_what_they_may_select() {
    let node = Node::start();
    let root = node.client(ROOT);
    let _: StatusReport = root.get("/admin/status").unwrap();
    root.post("/admin/flush?keyspace=ks").unwrap();
    let bob = node.client(BOB);
    let refused = bob.get::<StatusReport>("/admin/status").unwrap_err().to_string();
    assert!(
        refused
            .contains("User bob has no SELECT permission on <keyspace system_views> or any of its parents"),
        "{refused}"
    );
    assert!(
        told(&bob, "/admin/flush?keyspace=ks")
            .contains("Only superusers may administer the node, and bob is none")
    );
    run(
        &mut node.setup.log_in(ROOT),
        "GRANT SELECT ON KEYSPACE system_views TO bob",
    );
    let _: StatusReport = bob.get("/admin/status").unwrap();
    let metrics = node.get("/metrics", "Authorization: Basic Ym9iOmJvYidz");
    assert!(
        metrics.body.contains("ilion_cql_logins_total"),
        "{}",
        metrics.body
    );
    assert!(told(&bob, "/admin/flush?keyspace=ks").contains("Only superusers"));
    assert!(told(&bob, "/admin/top-partitions?millis=1&top=1").contains("Only superusers"));
    let _client = node.setup.log_in(ROOT);
    assert!(
        root.get::<serde_json::Value>("/admin/clients")
            .unwrap()
            .to_string()
            .contains("cassandra")
    );
}

#[test]
fn statements_of_a_session_are_those_of_its_role() {
    let node = Node::start();
    let bob = node.session(BOB);
    assert_eq!(node.query(&bob, "SELECT * FROM ks.t").status, 200);
    let refused = node.query(&bob, "INSERT INTO ks.t (k) VALUES (1)");
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .body
            .contains("User bob has no MODIFY permission on <table ks.t>"),
        "{}",
        refused.body
    );
    assert!(node.query(&bob, "LIST ROLES").body.contains("readers"));
    let root = node.session(ROOT);
    assert_eq!(node.query(&root, "CREATE ROLE eve").status, 200);
    let session = node.get("/api/session", &root).body;
    assert!(
        session.contains(r#""role":"cassandra","may_watch":true,"may_administer":true"#),
        "{session}"
    );
    let session = node.get("/api/session", &bob).body;
    assert!(
        session.contains(r#""role":"bob","may_watch":false,"may_administer":false"#),
        "{session}"
    );
}

#[test]
fn the_cookie_is_for_this_page_only() {
    let node = Node::start();
    let answer = node.log_in(BOB);
    let cookie = answer
        .head
        .lines()
        .find(|line| line.starts_with("set-cookie: "))
        .unwrap();
    let name = format!("set-cookie: ilion-{}=", node.door.address().port());
    assert!(cookie.starts_with(&name), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert_eq!(answer.cookie().len(), name.len() - "set-cookie: ".len() + 64);
    assert_ne!(node.log_in(BOB).cookie(), answer.cookie());
    assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
    let page = node.get("/", "").head;
    let policy = page
        .lines()
        .find(|line| line.starts_with("content-security-policy: "))
        .unwrap();
    assert!(
        policy.contains("default-src 'none'; script-src 'self'; style-src 'self'"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[test]
fn pages_of_other_sites_are_refused_though_the_browser_sends_the_cookie() {
    let node = Node::start();
    let root = node.session(ROOT);
    let flush = |headers: &str| node.ask("POST /admin/flush?keyspace=ks", &format!("{root}\n{headers}"), "");
    assert_eq!(flush(&node.origin()).status, 200);
    let port = node.door.address().port();
    for headers in [
        "Origin: http://evil.example",
        "Origin: null",
        &format!("Origin: http://localhost:{port}"),
        "Origin: http://127.0.0.1:80",
        // Without an Origin a session changes nothing.
        "X-Other: 1",
        // Another name that leads here.
        &format!("Host: evil.example:{port}\nOrigin: http://evil.example:{port}"),
        &format!("Sec-Fetch-Site: same-site\n{}", node.origin()),
    ] {
        assert_eq!(flush(headers).status, 403, "{headers}");
    }
    let read = |headers: &str| node.get("/admin/status", &format!("{root}\n{headers}")).status;
    assert_eq!(read("Sec-Fetch-Site: same-origin"), 200);
    assert_eq!(read("Sec-Fetch-Site: cross-site"), 403);
    assert_eq!(read("Host: evil.example"), 403);
    let elsewhere = node.ask(
        "POST /api/login",
        "Origin: http://evil.example",
        r#"{"role":"bob","password":"bob's"}"#,
    );
    assert_eq!(elsewhere.status, 403);
    assert_eq!(node.get("/", "Host: evil.example").status, 403);
}

#[test]
fn names_of_the_node_are_those_in_its_settings() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        with_logins(settings);
        settings.admin_host_names.0 = vec!["db.example".to_owned()];
    });
    make_root(&setup);
    let node = Node::open(setup);
    assert_eq!(node.get("/", "Host: db.example:9043").status, 200);
    assert_eq!(node.get("/", "Host: other.example").status, 403);
}

#[test]
fn a_session_ends_after_a_while_at_logout_and_with_its_role_or_password() {
    let node = Node::start();
    let may = |session: &str| node.query(session, "SELECT * FROM ks.t").status;
    let mut root = node.setup.log_in(ROOT);
    let minutes = |count: i64| node.setup.env.advance_micros(count * 60_000_000);

    let session = node.session(BOB);
    minutes(29);
    assert_eq!(may(&session), 200);
    minutes(31);
    assert_eq!(may(&session), 401);

    let session = node.session(BOB);
    let out = node.ask("POST /api/logout", &format!("{session}\n{}", node.origin()), "");
    assert!(out.head.contains("Max-Age=0"), "{}", out.head);
    assert_eq!(may(&session), 401);

    let session = node.session(BOB);
    run(&mut root, "ALTER ROLE bob WITH PASSWORD = 'other'");
    assert_eq!(may(&session), 401);

    let session = node.session(("bob", "other"));
    run(&mut root, "ALTER ROLE bob WITH LOGIN = false");
    assert_eq!(may(&session), 401);
    run(&mut root, "ALTER ROLE bob WITH LOGIN = true");
    assert_eq!(may(&session), 200);
    run(&mut root, "DROP ROLE bob");
    assert_eq!(may(&session), 401);
}

/// A node with logins and a token.
fn start_with_token(adjust: impl FnOnce(&mut Settings)) -> Node {
    let env = MemEnv::new(1);
    env.write_atomically(Path::new("/token"), TOKEN.as_bytes())
        .unwrap();
    let setup = start_with(Arc::new(env), |settings| {
        with_logins(settings);
        settings.admin_token_file = Some("/token".into());
        adjust(settings);
    });
    make_root(&setup);
    Node::open(setup)
}

#[test]
fn programs_show_the_token_which_stands_for_no_role() {
    let node = start_with_token(|_| ());
    let with = |token: &str| AdminClient::new(node.door.address()).with_token(token);
    let _: StatusReport = with(TOKEN).get("/admin/status").unwrap();
    with(TOKEN).post("/admin/drain").unwrap();
    assert!(told(&with("a-token-of-program"), "/admin/drain").contains("the token is wrong"));
    let bearer = format!("Authorization: Bearer {TOKEN}");
    assert!(node.get("/metrics", &bearer).body.contains("# EOF"));
    let statement = node.query(&bearer, "SELECT * FROM system_auth.roles");
    assert_eq!(statement.status, 403);
    assert!(
        statement.body.contains("the token stands for no role"),
        "{}",
        statement.body
    );
    node.session(ROOT);
}

/// Guesses many times at once: some guesses are checked, the others are told to come later.
fn check_storm(guess: impl Fn() -> u16 + Sync) {
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let guessers: Vec<_> = (0..60).map(|_| scope.spawn(&guess)).collect();
        guessers
            .into_iter()
            .map(|guesser| guesser.join().unwrap())
            .collect()
    });
    assert!(
        statuses.iter().all(|status| [401, 503].contains(status)),
        "{statuses:?}"
    );
    let checked = statuses.iter().filter(|status| **status == 401).count();
    assert!(checked > 0 && checked < statuses.len(), "{checked}");
}

#[test]
fn a_storm_of_wrong_logins_is_slowed_and_bounded() {
    let node = Node::start();
    check_storm(|| node.log_in(("bob", "wrong")).status);
    // Who comes later and is right gets in, after the wait of the address.
    node.session(BOB);
}

#[test]
fn a_storm_of_wrong_tokens_is_slowed_and_bounded() {
    let node = start_with_token(|_| ());
    let status = |token: &str| {
        let answer = node.get("/admin/status", &format!("Authorization: Bearer {token}"));
        answer.status
    };
    check_storm(|| status("wrong"));
    assert_eq!(status(TOKEN), 200);
}

#[test]
fn orders_and_what_is_refused_are_in_the_audit_log() {
    let node = start_with_token(audit::on);
    make_bob(&mut node.setup.log_in(ROOT));
    node.client(ROOT)
        .post("/admin/flush?keyspace=system_auth")
        .unwrap();
    assert!(node.client(BOB).post("/admin/drain").is_err());
    node.get("/admin/status", "Authorization: Bearer wrong");
    AdminClient::new(node.door.address())
        .with_token(TOKEN)
        .post("/admin/settings?assignments=keystore_password%3Dhunter2")
        .unwrap_err();
    let entries = node.setup.audited();
    let first = entries.iter().position(|entry| entry["type"] == "ADMINISTRATION");
    // The login before the first order.
    let entries = &entries[first.unwrap() - 1..];
    let told: Vec<String> = entries
        .iter()
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
            ["user", "type", "category", "operation"].map(text).join(" | ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "cassandra | LOGIN_SUCCESS | AUTH | LOGIN SUCCESSFUL",
            "cassandra | ADMINISTRATION | OTHER | POST /admin/flush?keyspace=system_auth",
            "bob | LOGIN_SUCCESS | AUTH | LOGIN SUCCESSFUL",
            "bob | UNAUTHORIZED_ATTEMPT | AUTH | POST /admin/drain; Only superusers may administer the node, and bob is none",
            "- | LOGIN_ERROR | AUTH | LOGIN FAILURE; wrong token",
            "system | ADMINISTRATION | OTHER | POST /admin/settings?(hidden)",
            "system | REQUEST_FAILURE | ERROR | POST /admin/settings?(hidden); it failed: 400 Bad Request",
        ]
    );
    assert!(entries.iter().all(|entry| entry["source"] == "127.0.0.1"));
}

#[test]
fn passwords_of_the_port_are_not_checked_by_a_node_that_stops() {
    let node = Node::start();
    let Node { door, setup } = node;
    setup.server.stop(Duration::from_secs(5));
    let refused = AdminClient::new(door.address())
        .with_login(BOB.0, BOB.1)
        .post("/admin/drain");
    assert!(refused.unwrap_err().to_string().contains("The node is stopping"));
}

fn start_encrypted(adjust: impl FnOnce(&mut Settings)) -> Node {
    let setup = start_with(tls::env(), |settings| {
        with_logins(settings);
        tls::encrypts(settings);
        settings.admin_encryption_options_enabled = Some(true);
        adjust(settings);
    });
    make_root(&setup);
    Node::open(setup)
}

#[test]
fn the_port_is_encrypted_with_the_certificate_of_the_node() {
    let node = start_encrypted(|_| ());
    let address = node.door.address();
    let trusting = |name: &str| {
        AdminClient::new(address)
            .with_login(ROOT.0, ROOT.1)
            .with_encryption(tls::CA, name)
            .unwrap()
    };
    for name in ["localhost", "127.0.0.1"] {
        let _: StatusReport = trusting(name).get("/admin/status").unwrap();
    }
    // Whoever has another name, or another issuer, is not told the password.
    let wrong = trusting("other.example")
        .get::<StatusReport>("/admin/status")
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("NotValidForName") || wrong.contains("not valid for name"),
        "{wrong}"
    );
    let plain = AdminClient::new(address)
        .with_login(ROOT.0, ROOT.1)
        .get::<StatusReport>("/admin/status");
    assert!(plain.is_err());

    let stream = || {
        let connection = ClientConnection::new(
            Arc::new(tls::config(&TLS13, None)),
            "localhost".try_into().unwrap(),
        )
        .unwrap();
        StreamOwned::new(connection, patient(TcpStream::connect(address).unwrap()))
    };
    let order = format!(r#"{{"role":"{}","password":"{}"}}"#, ROOT.0, ROOT.1);
    let login = |origin: &str| {
        let length = order.len();
        exchange(
            stream(),
            &format!(
                "POST /api/login HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}://{address}\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n{order}"
            ),
        )
    };
    let answer = login("https");
    let cookie = answer
        .head
        .lines()
        .find(|line| line.starts_with("set-cookie: "))
        .unwrap();
    assert!(
        cookie.starts_with(&format!("set-cookie: __Host-ilion-{}=", address.port())),
        "{cookie}"
    );
    assert!(cookie.contains("; Secure"), "{cookie}");
    assert_eq!(login("http").status, 403);
}

#[test]
fn who_shows_a_certificate_needs_no_password() {
    let setup = certificates::start(|settings| {
        settings.authenticator_parameters_validator_class_name = CertificateValidator::CommonName;
        settings.admin_encryption_options_enabled = Some(true);
    });
    let mut root = certificates::root(&setup);
    let node = Node::open(setup);
    let address = node.door.address();
    let status = |shown: Option<&[u8]>| {
        let connection = ClientConnection::new(
            Arc::new(tls::config(&TLS13, shown)),
            "localhost".try_into().unwrap(),
        );
        let stream = StreamOwned::new(connection.unwrap(), patient(TcpStream::connect(address).unwrap()));
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        exchange(stream, &request).status
    };
    assert_eq!(status(Some(certificates::ROBOT)), 401);
    certificates::run(&mut root, "CREATE ROLE watcher WITH LOGIN = true");
    certificates::run(&mut root, "ADD IDENTITY 'robot' TO ROLE 'watcher'");
    assert_eq!(status(Some(certificates::ROBOT)), 403);
    certificates::run(&mut root, "GRANT SELECT ON KEYSPACE system_views TO watcher");
    assert_eq!(status(Some(certificates::ROBOT)), 200);
    assert_eq!(status(None), 401);
    certificates::run(&mut root, "DROP IDENTITY 'robot'");
    assert_eq!(status(Some(certificates::ROBOT)), 401);
}

#[test]
fn a_role_of_cql_may_be_used_here_only_with_its_password() {
    let node = Node::start();
    let mut client = Client::log_in(node.setup.server.address(), Version::V5, None, ROOT);
    run(&mut client, "CREATE ROLE robot WITH LOGIN = true");
    assert_eq!(node.log_in(("robot", "robot")).status, 401);
    assert_eq!(node.log_in(("readers", "x")).status, 401);
}

pub(super) fn start_capturing(adjust: impl FnOnce(&mut Settings)) -> Setup {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        with_logins(settings);
        settings.cdc_enabled = true;
        settings.dynamic_data_masking_enabled = true;
        adjust(settings);
    });
    make_root(&setup);
    let mut root = setup.log_in(ROOT);
    make_bob(&mut root);
    run(
        &mut root,
        "CREATE TABLE ks.c (k int PRIMARY KEY, v text) WITH cdc = true",
    );
    setup
}

#[test]
fn who_may_select_a_table_and_sees_its_values_may_read_its_changes() {
    let node = Node::open(start_capturing(|_| ()));
    let mut root = node.setup.log_in(ROOT);
    run(&mut root, "INSERT INTO ks.c (k, v) VALUES (1, 'secret')");
    let read = |who| {
        let mut lines = Vec::new();
        let path = "/admin/changes?keyspace=ks&table=c&from=earliest&once=true";
        let outcome = node.client(who).lines(path, &mut |line| {
            lines.push(line.to_owned());
            true
        });
        outcome.map(|()| lines).map_err(|error| error.to_string())
    };
    let refused = read(BOB).unwrap_err();
    assert!(
        refused.contains("bob has no SELECT permission on <table ks.c>"),
        "{refused}"
    );
    run(&mut root, "GRANT SELECT ON ks.c TO bob");
    let [change, end] = &read(BOB).unwrap()[..] else {
        panic!("one change and the end")
    };
    assert!(change.contains(r#""v":{"value":"secret","#), "{change}");
    let change: serde_json::Value = serde_json::from_str(change).unwrap();
    assert_eq!(change["op"], "i");
    assert!(end.starts_with(r#"{"end":""#), "{end}");
    run(&mut root, "ALTER TABLE ks.c ALTER v MASKED WITH DEFAULT");
    let refused = read(BOB).unwrap_err();
    assert!(
        refused.contains("bob has no UNMASK permission on <table ks.c>"),
        "{refused}"
    );
    assert_eq!(read(ROOT).unwrap().len(), 2);
    let refused = read(("nobody", "x")).unwrap_err();
    assert!(!refused.contains("SELECT"), "{refused}");
}

#[test]
fn a_write_is_refused_while_the_space_for_changes_is_used_up() {
    let setup = start_capturing(|settings| settings.cdc_total_space = Some(Size(1024)));
    let mut root = setup.log_in(ROOT);
    for statement in ["INSERT INTO ks.c (k, v) VALUES (1, 'x')", "TRUNCATE ks.c"] {
        let refused = error_of(root.query(statement));
        assert!(
            refused
                .message
                .starts_with("Rejecting mutation to keyspace ks. Free up space in "),
            "{refused:?}"
        );
        assert_eq!(refused.detail, ErrorDetail::CdcWriteFailure, "{statement}");
    }
    run(&mut root, "INSERT INTO ks.t (k, v) VALUES (1, 'x')");
}
