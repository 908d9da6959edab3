//! The binary: its output and its exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_ilion");

fn ilion(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running node, killed when the test is over.
struct Process {
    child: Child,
    greeting: Vec<String>,
}

impl Process {
    fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    fn start_with(data: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["serve", "--port", "0", "--admin-port", "0", "--data"])
            .arg(data)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let greeting: Vec<String> = stdout.lines().take(3).map(|line| line.unwrap()).collect();
        assert_eq!(greeting.len(), 3, "it did not start");
        Self { child, greeting }
    }

    /// The word after `words` in the first lines of output.
    fn word_after(&self, words: &str) -> String {
        let line = self.greeting.iter().find(|line| line.contains(words)).unwrap();
        let (_, rest) = line.split_once(words).unwrap();
        rest.split([',', ' ']).next().unwrap().to_owned()
    }

    fn cql_address(&self) -> String {
        self.word_after("connect to ")
    }

    fn admin_port(&self) -> String {
        let address = self.word_after("administration at http://");
        let (_, port) = address.rsplit_once(':').unwrap();
        port.trim_end_matches('.').to_owned()
    }

    fn end(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_node_says_where_things_are_serves_and_ends_in_order() {
    let directory = tempfile::tempdir().unwrap();
    for signal in ["-TERM", "-INT"] {
        let process = Process::start(directory.path());
        assert!(process.greeting[0].contains(directory.path().join("data").to_str().unwrap()));
        let mut stream = TcpStream::connect(process.cql_address()).unwrap();
        stream.write_all(&[4, 0, 0, 0, 5, 0, 0, 0, 0]).unwrap();
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head[4], 6, "OPTIONS is answered with SUPPORTED");
        assert_eq!(process.end(signal).code(), Some(0), "{signal}");
    }
    assert!(directory.path().join("logs/ilion.log").metadata().unwrap().len() > 0);
}

#[test]
fn the_log_tells_the_life_of_a_node_and_ends_with_stopped() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let process = Process::start(directory.path());
        let port = process.admin_port();
        for command in [["flush", "system", "local"], ["compact", "system", "local"]] {
            let done = ilion(&[&command[..], &["--admin-port", &port]].concat());
            assert!(done.status.success(), "{}", stderr_of(&done));
        }
        assert_eq!(process.end("-TERM").code(), Some(0));
    }
    let log = std::fs::read_to_string(directory.path().join("logs/ilion.log")).unwrap();
    let start = format!("Ilion starts version=\"{}\" pid=", env!("CARGO_PKG_VERSION"));
    for told in [
        start.as_str(),
        "settings that differ from their defaults: directory=",
        "native_transport_port=0",
        "serving cql=127.0.0.1:",
        "Startup complete",
        "flushed table=system.local sstable=",
        "compacted table=system.local sstables=2",
        "stopping signal=\"SIGTERM\"",
    ] {
        assert!(log.contains(told), "{told} in {log}");
    }
    let last = log.lines().last().unwrap();
    assert!(last.contains("stopped millis="), "{last}");
}

#[test]
fn everything_that_a_node_makes_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start(directory.path());
    let flushed = ilion(&["flush", "--admin-port", &process.admin_port()]);
    assert!(flushed.status.success(), "{}", stderr_of(&flushed));
    assert_eq!(process.end("-TERM").code(), Some(0));
    let mut files = 0;
    let mut left = vec![directory.path().to_path_buf()];
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let entry = entry.unwrap();
            let found = entry.metadata().unwrap();
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            let mode = found.permissions().mode() & 0o777;
            assert_eq!(mode, expected, "{}: {mode:o}", entry.path().display());
            match found.is_dir() {
                true => left.push(entry.path()),
                false => files += 1,
            }
        }
    }
    assert!(files > 10, "{files} files: data, commit log, logs");
}

#[test]
fn the_commands_for_operators_reach_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start(directory.path());
    let port = process.admin_port();
    let out = |arguments: &[&str]| {
        let output = ilion(&[arguments, &["--admin-port", &port]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr_of(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(out(&["status"]).starts_with("state        serving\n"));
    assert!(out(&["info"]).contains(&process.cql_address()));
    assert!(out(&["info", "--json"]).contains("\"release_version\": \"5.0.9\""));
    assert_eq!(out(&["flush", "system", "local"]), "flush: 1 tables done\n");
    assert_eq!(out(&["compact", "system", "local"]), "compact: 1 tables done\n");
    assert_eq!(out(&["drain"]), "drain: done\n");
    let refused = ilion(&["flush", "nobody", "--admin-port", &port]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr_of(&refused),
        "ilion: the node refused: keyspace nobody does not exist\n"
    );
}

#[test]
fn the_files_of_a_table_leave_a_node_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start(&directory.path().join("node"));
    let port = process.admin_port();
    let run = |arguments: &[&str], tail: &[&str]| {
        ilion(&[&["sstable"], arguments, &["--admin-port", &port], tail].concat())
    };
    let out = directory.path().join("out");
    let out = out.to_str().unwrap();
    let exported = run(&["export", "--format", "da"], &["system_schema", "tables", out]);
    assert!(exported.status.success(), "{}", stderr_of(&exported));
    let files: Vec<String> = std::fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        files.iter().any(|file| file.ends_with("-bti-Data.db")),
        "{files:?}"
    );
    assert!(files.iter().any(|file| file == "schema.cql"), "{files:?}");
    assert!(!Path::new(&format!("{out}.exported")).exists());
    let again = run(&["export"], &["system_schema", "tables", out]);
    assert!(
        stderr_of(&again).contains("is not empty"),
        "{}",
        stderr_of(&again)
    );
    let refused = run(&["import", "--copy-data"], &["system_schema", "tables", out]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr_of(&refused),
        "ilion: the node refused: system_schema keyspace is not user-modifiable\n"
    );
}

#[test]
fn tools_for_files_say_once_what_is_wrong_and_end_with_a_code_that_tells_it() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sstable/testdata");
    let is_data = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("-Data.db");
    let data = files_below(&fixtures).into_iter().find(is_data).unwrap();
    let data = data.to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let out = out.to_str().unwrap();
    let code = |arguments: &[&str]| ilion(arguments).status.code();
    assert_eq!(code(&["sstable", "convert", "--to", "oa", out, data]), Some(0));
    assert_eq!(code(&["sstable", "verify", out]), Some(0));
    assert_eq!(code(&["sstable", "convert", out, data]), Some(2));
    assert_eq!(code(&["sstable", "merge", out, "nowhere"]), Some(1));

    let below_a_file = format!("{data}/out");
    let refused = ilion(&["sstable", "merge", &below_a_file, data]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr_of(&refused);
    assert_eq!(said.matches("Not a directory").count(), 1, "{said}");
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

#[test]
fn a_directory_in_use_and_a_port_in_use_are_said_plainly() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start(directory.path());
    let data = directory.path().to_str().unwrap();
    let locked = ilion(&["serve", "--port", "0", "--admin-port", "0", "--data", data]);
    assert_eq!(locked.status.code(), Some(1));
    assert!(
        stderr_of(&locked).contains("is in use by another process"),
        "{}",
        stderr_of(&locked)
    );

    let other = tempfile::tempdir().unwrap();
    let data = other.path().to_str().unwrap();
    let address = process.cql_address();
    let (_, port) = address.rsplit_once(':').unwrap();
    let admin_port = process.admin_port();
    for (ports, setting) in [
        ([port, "0"], "native_transport_port"),
        (["0", &admin_port], "admin_port"),
    ] {
        let [port, admin_port] = ports;
        let taken = ilion(&[
            "serve",
            "--port",
            port,
            "--admin-port",
            admin_port,
            "--data",
            data,
        ]);
        assert_eq!(taken.status.code(), Some(1));
        let told = stderr_of(&taken);
        let hint = format!("; another server runs there, choose another port ({setting})");
        assert!(told.lines().any(|line| line.ends_with(&hint)), "{told}");
        assert!(
            !other.path().join("data").exists(),
            "it began to open the data: {told}"
        );
    }
}

#[test]
fn wrong_settings_and_arguments_end_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ilion.yaml");
    std::fs::write(&file, "cluster_name: x\ncommitlog_sink: batch\n").unwrap();
    let file = file.to_str().unwrap();
    let unknown = ilion(&["serve", "--config", file]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(
        stderr_of(&unknown),
        format!("ilion: {file}, line 2: unknown setting commitlog_sink; did you mean commitlog_sync?\n")
    );
    let data = directory.path().to_str().unwrap();
    let on_free_ports = |setting| {
        let ports = ["serve", "--port", "0", "--admin-port", "0"];
        [&ports[..], &["--data", data, "--set", setting]].concat()
    };
    for arguments in [
        &["serve", "--set", "cluster_name"][..],
        &["serve", "--data", data, "--set", "admin_address=0.0.0.0"],
        &["serve", "--data", data, "--address", "0.0.0.0"],
        &on_free_ports("authorizer=CassandraAuthorizer"),
        &on_free_ports("commitlog_segment_size=8GiB"),
        &["serve", "--nonsense"],
        &["set-cache-keys-to-save", "keys", "-2"],
        &["dance"],
    ] {
        assert_eq!(ilion(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(ilion(&["--version"]).status.code(), Some(0));
}

/// Starts a node whose clients must log in, with these variables, and waits for its end.
fn serve_with(data: &Path, variables: &[(&str, std::ffi::OsString)]) -> Output {
    Command::new(BINARY)
        .args(["serve", "--port", "0", "--admin-port", "0", "--set"])
        .args(["authenticator=PasswordAuthenticator", "--data"])
        .arg(data)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap()
}

#[test]
fn variables_of_the_first_superuser_that_cannot_be_used_end_with_2() {
    use std::os::unix::ffi::OsStringExt as _;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let not_utf8 = std::ffi::OsString::from_vec(vec![b'x', 0xff]);
    let cases = [
        (
            "ILION_SUPERUSER_PASSWORD",
            not_utf8.clone(),
            "the value is not UTF-8",
        ),
        ("ILION_SUPERUSER", not_utf8.clone(), "the value is not UTF-8"),
        ("ILION_SUPERUSER_PASSWORD", "".into(), "the value is empty"),
        ("ILION_CLUSTER_NAME", not_utf8, "the value is not UTF-8"),
    ];
    for (name, value, problem) in cases {
        let ended = serve_with(&data, &[(name, value)]);
        assert_eq!(ended.status.code(), Some(2), "{name}");
        let said = stderr_of(&ended);
        assert!(said.contains(name) && said.contains(problem), "{said}");
    }
    assert!(!data.exists());
}

#[test]
fn a_password_is_reset_on_a_stopped_node_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let reset = |more: &[&str]| {
        let mut command = Command::new(BINARY);
        command
            .args(["auth", "reset-password", "--data"])
            .arg(&data)
            .args(more);
        command.stdin(Stdio::null()).output().unwrap()
    };
    assert_eq!(
        reset(&["cassandra"]).status.code(),
        Some(1),
        "there is no directory"
    );
    assert!(!data.exists());
    let node = Process::start_with(&data, &["--set", "authenticator=PasswordAuthenticator"]);
    let file = data.join("superuser-password");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let running = reset(&["cassandra"]);
    assert_eq!(running.status.code(), Some(1), "the node runs");
    assert_eq!(node.end("-TERM").code(), Some(0));
    let done = reset(&["cassandra"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr_of(&done));
    let made = String::from_utf8(done.stdout).unwrap();
    assert_eq!(made.trim_end().len(), 24);
    let unknown = reset(&["nobody"]);
    assert!(stderr_of(&unknown).contains("the roles are: cassandra"));
    assert_eq!(
        reset(&["cassandra", "--stdin"]).status.code(),
        Some(2),
        "stdin is empty"
    );
}

/// Output and exit code of a verb of nodetool.
fn nodetool(port: &str, words: &[&str]) -> (String, Option<i32>) {
    let output = ilion(&[&["nodetool", "-p", port], words].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr_of(&output);
    (text, output.status.code())
}

#[test]
fn nodetool_ends_with_cassandras_codes_and_a_reload_takes_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ilion.yaml");
    std::fs::write(&file, "read_request_timeout: 3s\n").unwrap();
    let process = Process::start_with(directory.path(), &["--config", file.to_str().unwrap()]);
    let port = process.admin_port();
    let hint = "See 'nodetool help' or 'nodetool help <command>'.\n";
    for (words, expected, code) in [
        (
            &["gettimeout", "read"][..],
            "Current timeout for type read: 3000 ms\n".to_owned(),
            0,
        ),
        (&["statusbinary"], "running\n".to_owned(), 0),
        (
            &["flush", "nosuch"],
            format!("nodetool: Keyspace [nosuch] does not exist.\n{hint}"),
            1,
        ),
        (
            &["nosuch"],
            format!("nodetool: Found unexpected parameters: [nosuch]\n{hint}"),
            1,
        ),
        (
            &["assassinate"],
            format!(
                "nodetool: assassinate means nothing here: a lost node is taken out by removenode, which copies its data from others\n{hint}"
            ),
            1,
        ),
        (
            &["setguardrailsconfig", "tables_threshold", "20", "10"],
            String::new(),
            0,
        ),
        (
            &["getguardrailsconfig", "tables_threshold"],
            "[20, 10]\n".to_owned(),
            0,
        ),
        (
            &["setguardrailsconfig", "tables_threshold", "10", "20"],
            format!(
                "nodetool: Error occured when setting the config for setter tables_threshold with arguments [10, 20]: \
                 The warn threshold 20 for tables_warn_threshold should be lower than the fail threshold 10\n{hint}"
            ),
            1,
        ),
    ] {
        assert_eq!(nodetool(&port, words), (expected, Some(code)), "{words:?}");
    }
    assert!(nodetool(&port, &["status"]).0.contains("\nUN  127.0.0.1"));

    // What was set by hand goes back to what the file says.
    std::fs::write(
        &file,
        "read_request_timeout: 4s\nnative_transport_max_threads: 3\n",
    )
    .unwrap();
    let reloaded = ilion(&["reload", "--admin-port", &port]);
    let told = String::from_utf8_lossy(&reloaded.stdout).into_owned();
    assert_eq!(reloaded.status.code(), Some(1), "{told}");
    assert!(
        told.contains("next start: native_transport_max_threads\n"),
        "{told}"
    );
    assert_eq!(
        nodetool(&port, &["gettimeout", "read"]).0,
        "Current timeout for type read: 4000 ms\n"
    );
    assert_eq!(
        nodetool(&port, &["getguardrailsconfig", "tables_threshold"]).0,
        "[-1, -1]\n"
    );
}

#[test]
fn nodetool_changes_compactions_and_groups_of_addresses_and_stops_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start_with(directory.path(), &[]);
    let port = process.admin_port();
    let hint = "See 'nodetool help' or 'nodetool help <command>'.\n";
    let refused = |reason: &str| format!("nodetool: {reason}\n{hint}");
    for (words, expected, code) in [
        (
            "netstats",
            "Mode: NORMAL\nNot sending any streams.\n".to_owned(),
            0,
        ),
        ("statusgossip", "not running\n".to_owned(), 0),
        ("reloadlocalschema", String::new(), 0),
        ("setconcurrentcompactors 3", String::new(), 0),
        (
            "getconcurrentcompactors",
            "Current concurrent compactors in the system is: \n3\n".to_owned(),
            0,
        ),
        (
            "setconcurrentcompactors 0",
            refused("concurrent_compactors should be great than 0."),
            1,
        ),
        (
            "getconcurrency CompactionExecutor",
            format!(
                "{:<25}{:>16}{:>16}\n{:<25}{:>16}{:>16}\n",
                "Stage", "CorePoolSize", "MaximumPoolSize", "CompactionExecutor", 3, 3
            ),
            0,
        ),
        ("setcompactionthreshold system local 2 8", String::new(), 0),
        (
            "getcompactionthreshold system local",
            "Current compaction thresholds for system/local: \n min = 2,  max = 8\n".to_owned(),
            0,
        ),
        (
            "setcompactionthreshold system local 8 2",
            refused("Min threshold cannot be greater than max."),
            1,
        ),
        ("garbagecollect -g CELL system local", String::new(), 0),
        (
            "garbagecollect -g SOME system",
            refused("granularity: SOME is none of ROW and CELL"),
            1,
        ),
        ("recompress_sstables -j 2 system", String::new(), 0),
        ("forcecompact system local local", String::new(), 0),
        (
            "forcecompact system local",
            refused("forcecompact requires keyspace, table and keys args"),
            1,
        ),
        (
            "updatecidrgroup office 10.0.0.0/8 192.168.1.0/24",
            String::new(),
            0,
        ),
        ("updatecidrgroup desk 10.1.2.3/32", String::new(), 0),
        (
            "getcidrgroupsofip 10.9.9.9",
            "CIDR Groups\noffice     \n".to_owned(),
            0,
        ),
        ("getcidrgroupsofip 11.9.9.9", String::new(), 0),
        (
            "listcidrgroups office",
            "CIDRs         \n10.0.0.0/8    \n192.168.1.0/24\n".to_owned(),
            0,
        ),
        (
            "dropcidrgroup office",
            "Deleted CIDR group office\n".to_owned(),
            0,
        ),
        (
            "dropcidrgroup office",
            refused("there is no CIDR group office"),
            1,
        ),
        (
            "updatecidrgroup desk 10.1.2.3/33",
            refused("10.1.2.3/33 is not an address with a prefix, as 10.0.0.0/8"),
            1,
        ),
        ("listcidrgroups", "CIDR Groups\ndesk       \n".to_owned(), 0),
    ] {
        let given: Vec<&str> = words.split(' ').collect();
        assert_eq!(nodetool(&port, &given), (expected, Some(code)), "{words}");
    }
    let stats = nodetool(&port, &["cidrfilteringstats"]).0;
    assert!(stats.contains("CIDR groups cache reload count"), "{stats}");
    assert_eq!(
        nodetool(&port, &["stopdaemon"]),
        ("Cassandra has shutdown.\n".to_owned(), Some(0))
    );
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_log_of_json_objects_on_standard_error_is_all_that_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(BINARY)
        .args(["serve", "--port", "0", "--admin-port", "0", "--data"])
        .arg(directory.path())
        .args(["--set", "log_to=stderr", "--set", "log_format=json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(log.any(|line| line.contains("\"message\":\"Startup complete\"")));
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(log.all(|line| line.starts_with("{\"timestamp\":")));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]));
}

#[test]
fn a_hang_up_opens_the_log_file_again() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start_with(directory.path(), &["--set", "log_format=json"]);
    let log = directory.path().join("logs/ilion.log");
    let first = std::fs::read_to_string(&log).unwrap();
    assert!(
        first.lines().all(|line| line.starts_with("{\"timestamp\":")),
        "{first}"
    );
    std::fs::rename(&log, directory.path().join("logs/old.log")).unwrap();
    let pid = process.child.id().to_string();
    let sent = Command::new("kill").args(["-HUP", &pid]).status().unwrap();
    assert!(sent.success());
    let port = process.admin_port();
    let told = || std::fs::read_to_string(&log).unwrap_or_default();
    // The signal is seen at some time; the node answers meanwhile.
    let is_seen = (0..10_000).any(|_| {
        assert_eq!(nodetool(&port, &["statusbinary"]).1, Some(0));
        told().contains("SIGHUP")
    });
    assert!(is_seen, "{}", told());
    assert_eq!(process.end("-TERM").code(), Some(0));
    assert!(told().contains("\"message\":\"stopped\""), "{}", told());
}
