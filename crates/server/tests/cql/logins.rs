//! AUTHENTICATE, AUTH_RESPONSE and AUTH_SUCCESS, with a double that checks passwords.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use ilion_env::Seeded;
use ilion_protocol::{
    Compression, ErrorDetail, EventKind, Prepare, Register, Request, Response, Startup, Version,
};
use ilion_query::{Error, Login};
use ilion_server::LoginCheck;

use crate::client::{Client, credentials, error_of, query, rows_of};
use crate::double::{Setup, start_with_logins};

/// Recognises the password `known`. Takes `right` after a check; `wait` as well, after a message; panics at `panic`.
struct Checks {
    begun: AtomicUsize,
    gate: Receiver<()>,
}

impl LoginCheck for Checks {
    fn requires_login(&self) -> bool {
        true
    }

    fn recognise(&self, role: &str, password: &str, _: IpAddr) -> Result<Option<Arc<Login>>, Error> {
        Ok((password == "known").then(|| Arc::new(Login::new(role))))
    }

    fn log_in(&self, role: &str, password: &str, _: IpAddr) -> Result<Arc<Login>, Error> {
        self.begun.fetch_add(1, SeqCst);
        match password {
            "panic" => panic!("the double panics as it was asked to"),
            "wait" => drop(self.gate.recv()),
            "right" => {}
            _ => return Err(Error::BadCredentials(format!("{role} is wrong"))),
        }
        Ok(Arc::new(Login::new(role)))
    }

    fn log_in_by_identity(&self, identity: &str, _: IpAddr) -> Result<Arc<Login>, Error> {
        Err(Error::BadCredentials(format!("{identity} is wrong")))
    }
}

struct Door {
    setup: Setup,
    checks: Arc<Checks>,
    gate: Sender<()>,
}

fn start() -> Door {
    let (gate, receiver) = unbounded();
    let checks = Arc::new(Checks {
        begun: AtomicUsize::new(0),
        gate: receiver,
    });
    let setup = start_with_logins(|options| options.login_threads = 3, checks.clone());
    Door { setup, checks, gate }
}

impl Door {
    fn connect(&self, version: Version) -> Client {
        let mut client = Client::connect(self.setup.server.address(), version);
        let answer = client.startup(None);
        let class = "org.apache.cassandra.auth.PasswordAuthenticator".to_owned();
        assert_eq!(answer, Response::Authenticate(class));
        client
    }

    fn wait_until_begun(&self, count: usize) {
        while self.checks.begun.load(SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

fn works(client: &mut Client) {
    assert_eq!(rows_of(client.query("SELECT zeros where 3")).cells().count(), 1);
}

#[test]
fn a_client_logs_in_in_every_version_after_a_wrong_password_too() {
    let door = start();
    for (version, compression) in [
        (Version::V3, None),
        (Version::V4, Some(Compression::Lz4)),
        (Version::V4, Some(Compression::Snappy)),
        (Version::V5, None),
        (Version::V5, Some(Compression::Lz4)),
    ] {
        let mut client = Client::connect(door.setup.server.address(), version);
        assert!(matches!(client.startup(compression), Response::Authenticate(_)));
        let refused = error_of(client.ask(credentials("bob", "wrong")));
        assert_eq!(refused.detail, ErrorDetail::BadCredentials, "{version}");
        assert_eq!(refused.message, "bob is wrong");
        assert_eq!(
            client.ask(credentials("bob", "right")),
            Response::AuthSuccess(None)
        );
        works(&mut client);
        let clients = door.setup.server.clients().list();
        assert!(clients.iter().any(|one| one.user.as_deref() == Some("bob")));
    }
}

#[test]
fn nothing_else_is_answered_before_the_login() {
    let door = start();
    let requests = || {
        [
            query("SELECT zeros where 3"),
            Request::Options,
            Request::Startup(Startup::new(None)),
            Request::Register(Register {
                events: vec![EventKind::SchemaChange],
            }),
            Request::Prepare(Prepare {
                text: "SELECT".to_owned(),
                keyspace: None,
            }),
        ]
    };
    for version in Version::SUPPORTED {
        let mut client = door.connect(version);
        for request in requests() {
            let opcode = request.opcode();
            let refused = error_of(client.ask(request));
            assert_eq!(refused.detail, ErrorDetail::Protocol);
            assert_eq!(
                refused.message,
                format!("Unexpected message {opcode}, expecting SASL_RESPONSE")
            );
        }
        assert_eq!(door.setup.double.begun.load(SeqCst), 0);
        client.ask(credentials("bob", "wrong"));
        assert_eq!(error_of(client.query("SELECT")).detail, ErrorDetail::Protocol);
    }
}

#[test]
fn of_two_logins_at_once_only_the_first_counts() {
    let door = start();
    for version in Version::SUPPORTED {
        let mut client = door.connect(version);
        let begun = door.checks.begun.load(SeqCst);
        let mut bytes = client.encode(1, credentials("first", "wait"));
        bytes.extend(client.encode(2, credentials("second", "right")));
        bytes.extend(client.encode(3, query("SELECT zeros where 3")));
        client.stream.write_all(&bytes).unwrap();
        for stream in [2, 3] {
            let refused = client.receive();
            assert_eq!(refused.stream, stream);
            assert_eq!(error_of(refused.response).detail, ErrorDetail::Protocol);
        }
        door.gate.send(()).unwrap();
        let done = client.receive();
        assert_eq!((done.stream, done.response), (1, Response::AuthSuccess(None)));
        assert_eq!(door.checks.begun.load(SeqCst), begun + 1);
        works(&mut client);
        let again = error_of(client.ask(credentials("second", "right")));
        assert_eq!(
            again.message,
            "Unexpected message AUTH_RESPONSE, the connection is already authenticated"
        );
        let clients = door.setup.server.clients().list();
        assert!(clients.iter().all(|one| one.user.as_deref() != Some("second")));
    }
}

#[test]
fn logins_that_take_long_stop_no_statement_and_no_known_password() {
    let door = start();
    let mut ready = door.connect(Version::V5);
    ready.ask(credentials("bob", "right"));
    let mut storm: Vec<Client> = (0..20).map(|_| door.connect(Version::V4)).collect();
    for client in &mut storm {
        client.send(1, credentials("slow", "wait"));
    }
    // Two threads check, the other logins wait.
    door.wait_until_begun(1 + 2);
    for _ in 0..100 {
        works(&mut ready);
    }
    assert_eq!(door.checks.begun.load(SeqCst), 1 + 2);
    // A password that was right before waits for none of them.
    let mut known = door.connect(Version::V5);
    assert_eq!(
        known.ask(credentials("bob", "known")),
        Response::AuthSuccess(None)
    );
    works(&mut known);
    assert_eq!(door.checks.begun.load(SeqCst), 1 + 2);
    for _ in &storm {
        door.gate.send(()).unwrap();
    }
    for client in &mut storm {
        assert_eq!(client.receive().response, Response::AuthSuccess(None));
    }
}

#[test]
fn a_check_that_panics_is_answered_and_the_next_one_is_done() {
    let door = start();
    let mut client = door.connect(Version::V4);
    for _ in 0..5 {
        let failed = error_of(client.ask(credentials("bob", "panic")));
        assert_eq!(failed.detail, ErrorDetail::Server);
        assert!(!failed.message.contains("panic"), "{}", failed.message);
    }
    client.ask(credentials("bob", "right"));
    works(&mut client);
}

#[test]
fn tokens_that_are_broken_or_huge_are_refused_and_not_checked() {
    let door = start();
    let mut client = door.connect(Version::V4);
    for token in [
        None,
        Some(Vec::new()),
        Some(b"bob".to_vec()),
        Some(b"\0bob\0".to_vec()),
        Some(b"\0bob\0\xff\xfe".to_vec()),
        Some(b"\0a\0b\0c".to_vec()),
        Some([b"\0bob\0".as_slice(), &[b'x'; 60_000]].concat()),
    ] {
        let refused = error_of(client.ask(Request::AuthResponse(token.map(Into::into))));
        assert_eq!(refused.detail, ErrorDetail::BadCredentials, "{}", refused.message);
    }
    assert_eq!(door.checks.begun.load(SeqCst), 0);
    // A frame that is longer than any login is passed over without being kept.
    let huge = vec![b'x'; 1 << 20];
    let refused = error_of(client.ask(Request::AuthResponse(Some(huge.into()))));
    assert_ne!(refused.detail, ErrorDetail::BadCredentials);
    client.ask(credentials("bob", "right"));
    works(&mut client);
}

/// The limit of a request before the login does not hold after it.
#[test]
fn requests_may_be_long_after_the_login() {
    let door = start();
    for version in Version::SUPPORTED {
        let mut client = door.connect(version);
        client.ask(credentials("bob", "right"));
        let comment = "x".repeat(300_000);
        assert_eq!(error_of(client.query(&comment)).detail, ErrorDetail::Syntax);
        works(&mut client);
    }
}

#[test]
fn the_time_for_the_login_ends_with_it() {
    let checks = start().checks;
    let setup = start_with_logins(
        |options| options.startup_timeout = Duration::from_millis(300),
        checks,
    );
    let address = setup.server.address();
    let mut ready = Client::log_in(address, Version::V4, None, ("bob", "right"));
    let mut idle = Client::connect(address, Version::V4);
    idle.startup(None);
    // When the one is closed that did not log in, the time of the other has passed, too.
    assert!(idle.try_receive().is_none());
    works(&mut ready);
}

/// The random choices of a seed.
struct Random(Seeded);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap()
    }

    fn request(&mut self) -> Request {
        match self.below(8) {
            0 => Request::Options,
            1 | 2 => Request::Startup(Startup::new(None)),
            3 => query("SELECT zeros where 3"),
            4 => Request::Prepare(Prepare {
                text: "SELECT".to_owned(),
                keyspace: None,
            }),
            5 => Request::Register(Register {
                events: vec![EventKind::SchemaChange],
            }),
            6 => Request::AuthResponse(Some(b"no token".as_slice().into())),
            _ => credentials("bob", "right"),
        }
    }
}

/// Prints its seed; `SEED=n` runs another one.
#[test]
fn requests_in_any_order_get_nothing_without_a_login() {
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Random(Seeded::new(seed));
    let door = start();
    let (mut with_login, mut without) = (0, 0);
    for round in 0..600 {
        let mut client = Client::connect(door.setup.server.address(), Version::V4);
        let mut bytes = Vec::new();
        let count = 1 + random.below(9);
        for stream in 0..i16::try_from(count).unwrap() {
            let request = random.request();
            let is_login = matches!(request, Request::AuthResponse(_));
            let mut request = client.encode(stream, request);
            // A wrong password would make later logins wait.
            if !is_login && random.below(8) == 0 {
                // A bit of the opcode or the body, so that each request is answered.
                let places: Vec<usize> = [4].into_iter().chain(9..request.len()).collect();
                request[places[random.below(places.len())]] ^= 1 << random.below(8);
            }
            bytes.extend(request);
        }
        let begun = door.checks.begun.load(SeqCst);
        // The server may have ended the connection already.
        let _ = client.stream.write_all(&bytes);
        let answers: Vec<Response> = std::iter::from_fn(|| client.try_receive())
            .take(count)
            .map(|answer| answer.response)
            .collect();
        match door.checks.begun.load(SeqCst) > begun {
            true => with_login += 1,
            false => {
                without += 1;
                let is_harmless = |answer: &Response| {
                    matches!(
                        answer,
                        Response::Error(_) | Response::Supported(_) | Response::Authenticate(_)
                    )
                };
                assert!(answers.iter().all(is_harmless), "round {round}: {answers:?}");
            }
        }
    }
    assert!(with_login > 10 && without > 10, "{with_login} {without}");
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    MustLogIn,
    Ready,
}

/// What a request is answered with, and where the session is then.
fn expected(stage: Stage, request: &Request) -> (&'static str, Stage) {
    let is_login = *request == credentials("bob", "right");
    match (stage, request) {
        (Stage::New | Stage::Ready, Request::Options) => ("supported", stage),
        (Stage::New, Request::Startup(_)) => ("authenticate", Stage::MustLogIn),
        (Stage::MustLogIn, Request::AuthResponse(_)) if is_login => ("success", Stage::Ready),
        (Stage::MustLogIn, Request::AuthResponse(_)) => ("bad credentials", stage),
        (Stage::Ready, Request::Query(_)) => ("result", stage),
        (Stage::Ready, Request::Prepare(_)) => ("of a statement", stage),
        (Stage::Ready, Request::Register(_)) => ("ready", stage),
        _ => ("protocol error", stage),
    }
}

fn kind(response: &Response, request: &Request) -> &'static str {
    match response {
        Response::Supported(_) => "supported",
        Response::Authenticate(_) => "authenticate",
        Response::AuthSuccess(_) => "success",
        Response::Ready => "ready",
        Response::Error(error) if error.detail == ErrorDetail::Protocol => "protocol error",
        Response::Error(error) if error.detail == ErrorDetail::BadCredentials => "bad credentials",
        _ if matches!(request, Request::Prepare(_)) => "of a statement",
        Response::Result(_) => "result",
        _ => "something else",
    }
}

/// Each request is answered as the stage of its session says, and no statement is executed before a login. Prints its seed; `SEED=n` runs
/// another one.
#[test]
fn sessions_go_through_their_stages_whatever_is_asked() {
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Random(Seeded::new(seed));
    let door = start();
    let mut ends = [0; 3];
    for round in 0..150 {
        let version = Version::SUPPORTED[round % Version::SUPPORTED.len()];
        let mut client = Client::connect(door.setup.server.address(), version);
        let mut stage = Stage::New;
        for _ in 0..=random.below(12) {
            let request = random.request();
            let begun = door.setup.double.begun.load(SeqCst);
            let (answer, next) = expected(stage, &request);
            let response = match &request {
                Request::Startup(startup) if stage == Stage::New => client.start(startup.clone()),
                request => client.ask(request.clone()),
            };
            assert_eq!(
                kind(&response, &request),
                answer,
                "{version} {stage:?}: {request:?}"
            );
            if stage != Stage::Ready {
                assert_eq!(door.setup.double.begun.load(SeqCst), begun);
            }
            stage = next;
        }
        ends[stage as usize] += 1;
    }
    assert!(ends.iter().all(|count| *count > 10), "{ends:?}");
}
