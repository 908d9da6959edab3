//! Settings in files and variables, and the errors for mistakes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ilion_settings::{
    AuditLogger, Authenticator, Authorizer, CommitLogSync, Loaded, LogPlace, SETTINGS, SSTableFormat,
    SaslMechanism, Settings, Size, TabletCount, document,
};

fn from_text(text: &str) -> Result<Loaded, String> {
    let mut loaded = Loaded::default();
    loaded
        .add_text("ilion.yaml", text)
        .map_err(|error| error.to_string())?;
    Ok(loaded)
}

#[expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]
fn problem_of(text: &str) -> String {
    from_text(text).unwrap_err()
}

#[test]
fn every_default_is_shown_as_it_is_written() {
    let printed: Vec<_> = Settings::default().printed().collect();
    for (setting, (name, value)) in SETTINGS.iter().zip(printed) {
        assert_eq!((setting.name, setting.default), (name, value.as_str()));
    }
}

#[test]
fn a_file_in_cassandras_words_is_understood() {
    let loaded = from_text(
        "# comment\n\
         cluster_name: 'Test Cluster'\n\
         native_transport_port: 9142\n\
         rpc_address: localhost\n\
         data_file_directories:\n    - /var/lib/cassandra/data\n\
         commitlog_sync: periodic\n\
         commitlog_sync_period: 500ms\n\
         commitlog_segment_size_in_mb: 16\n\
         authenticator:\n  class_name: org.apache.cassandra.auth.AllowAllAuthenticator\n\
         sstable:\n  selected_format: big\n\
         file_cache_size:\n",
    )
    .unwrap();
    let settings = loaded.settings;
    assert_eq!(settings.cluster_name, "Test Cluster");
    assert_eq!(settings.native_transport_port, 9142);
    assert_eq!(settings.rpc_address, IpAddr::from([127, 0, 0, 1]));
    assert_eq!(settings.data_path(), Path::new("/var/lib/cassandra/data"));
    assert_eq!(settings.commitlog_sync, CommitLogSync::Periodic);
    assert_eq!(settings.commitlog_sync_period, Duration::from_millis(500));
    assert_eq!(settings.commitlog_segment_size, Size(16 << 20));
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn an_unknown_name_is_refused_with_its_line_and_the_nearest_name() {
    assert_eq!(
        problem_of("cluster_name: x\n\ncommitlog_sink: batch\n"),
        "ilion.yaml, line 3: unknown setting commitlog_sink; did you mean commitlog_sync?"
    );
    assert_eq!(
        problem_of("flux_capacitor: 3\n"),
        "ilion.yaml, line 1: unknown setting flux_capacitor; docs/settings.md lists all"
    );
}

#[test]
fn a_value_that_cannot_be_used_is_refused_with_what_was_expected() {
    for (text, problem) in [
        (
            "commitlog_segment_size: 32",
            "commitlog_segment_size: expected a size like 16MiB (units B, KiB, MiB, GiB), got \"32\"",
        ),
        (
            "commitlog_sync_period: 10 s",
            "commitlog_sync_period: expected a duration like 10s (units d, h, m, s, ms, us, ns), got \"10 s\"",
        ),
        (
            "commitlog_sync: sometimes",
            "commitlog_sync: expected one of batch, periodic, group, got \"sometimes\"",
        ),
        (
            "native_transport_port: 70000",
            "native_transport_port: expected a number from 0 to 65535, got \"70000\"",
        ),
        (
            "data_file_directories: [/a, /b]",
            "data_file_directories lists several directories; Ilion keeps all data in one",
        ),
        (
            "authenticator: KerberosAuthenticator",
            "authenticator: expected one of AllowAllAuthenticator, PasswordAuthenticator, MutualTlsAuthenticator, MutualTlsWithPasswordFallbackAuthenticator, got \"KerberosAuthenticator\"",
        ),
        (
            "authorizer: TransitionalAuthorizer",
            "authorizer: expected one of AllowAllAuthorizer, CassandraAuthorizer, got \"TransitionalAuthorizer\"",
        ),
        (
            "role_manager: LDAPRoleManager",
            "role_manager: expected one of CassandraRoleManager, got \"LDAPRoleManager\"",
        ),
        (
            "cidr_authorizer: {class_name: CassandraCIDRAuthorizer, parameters: {cidr_authorizer_mode: SOMETIMES}}",
            "cidr_authorizer_parameters_cidr_authorizer_mode: expected one of MONITOR, ENFORCE, got \"SOMETIMES\"",
        ),
    ] {
        assert_eq!(problem_of(text), format!("ilion.yaml, line 1: {problem}"));
    }
}

#[test]
fn logins_are_set_in_the_words_of_all_releases() {
    let loaded = from_text(
        "authenticator:\n  class_name: org.apache.cassandra.auth.PasswordAuthenticator\n\
         authorizer: CassandraAuthorizer\n\
         role_manager:\n  class_name: CassandraRoleManager\n\
         network_authorizer: AllowAllNetworkAuthorizer\n\
         cidr_authorizer:\n  class_name: AllowAllCIDRAuthorizer\n\
         roles_validity_in_ms: 1500\n\
         permissions_validity: 3s\n\
         credentials_validity: 0ms\n",
    )
    .unwrap();
    let settings = loaded.settings;
    assert_eq!(settings.authenticator, Authenticator::Password);
    assert_eq!(settings.authorizer, Authorizer::Cassandra);
    assert_eq!(settings.roles_validity, Duration::from_millis(1500));
    assert_eq!(settings.permissions_validity, Duration::from_secs(3));
    assert_eq!(settings.credentials_validity, Duration::ZERO);
}

#[test]
fn cassandras_settings_without_use_are_told_apart() {
    let loaded = from_text(
        "seed_provider:\n  - class_name: x\n    parameters:\n      - seeds: a\nauto_bootstrap: true\n",
    )
    .unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "ilion.yaml: passed over, since nodes of an Ilion cluster work together through a shared log, without gossip, hints, repair or streaming: seed_provider, auto_bootstrap",
        ]
    );
    assert!(from_text("partition_denylist_enabled: false\n").is_ok());
    assert_eq!(
        problem_of("partition_denylist_enabled: true\n"),
        "ilion.yaml, line 1: partition_denylist_enabled: true is refused: it asks for something that Ilion does not do"
    );
    let told = problem_of("start_native_transport: false\n");
    assert!(told.contains("line 1: start_native_transport: "), "{told}");
    let mut loaded = Loaded::default();
    loaded
        .set("auto_bootstrap", "true", || "--set".to_owned())
        .unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "--set: auto_bootstrap is passed over, since nodes of an Ilion cluster work together through a shared log, without gossip, hints, repair or streaming"
        ]
    );
}

#[test]
fn the_log_of_a_cluster_and_its_options_are_set() {
    let settings = from_text(
        "log: kafka://b1:9093,b2/prod.ilion\nlog_options:\n  tls: true\n  tls_ca: /ca.pem\n  sasl: SCRAM-SHA-512\n\
         \x20 sasl_username: ilion\n  sasl_password_file: /password\nstorage_port: 7001\nnum_tokens: 16\ntablets: 4096\n\
         down_max: 48h\ninitial_token:\n  - -1\n  - 5\n",
    );
    let settings = settings.unwrap().settings;
    let LogPlace::Kafka(url) = &settings.log else {
        panic!("{:?}", settings.log);
    };
    assert_eq!(url.brokers, ["b1:9093", "b2:9092"]);
    assert_eq!(url.prefix, "prod.ilion");
    assert!(settings.log_options_tls);
    assert_eq!(settings.log_options_sasl, SaslMechanism::ScramSha512);
    assert_eq!(settings.log_options_tls_ca.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!((settings.storage_port, settings.num_tokens), (7001, Some(16)));
    assert_eq!(settings.tablets, TabletCount(4096));
    assert_eq!(settings.down_max, Duration::from_secs(2 * 86_400));
    assert_eq!(settings.initial_token.as_deref(), Some("-1, 5"));
    let printed = settings.printed().find(|(name, _)| *name == "log").unwrap().1;
    assert_eq!(printed, "kafka://b1:9093,b2:9092/prod.ilion");
    assert_eq!(Settings::default().log, LogPlace::Local);
}

#[test]
fn a_log_that_is_none_is_refused_with_what_is_expected() {
    for log in [
        "kafka://b1:9092",
        "kafka:///p",
        "b1:9092",
        "kafka://b1:x/p",
        "kafka://b1/a b",
        "",
    ] {
        let mut loaded = Loaded::default();
        let refused = loaded
            .set("log", log, || "--log".to_owned())
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("--log: log: expected local or kafka://HOST:PORT,HOST:PORT/PREFIX"),
            "{refused}"
        );
    }
    for tablets in ["0", "4097", "-1", "many"] {
        assert!(problem_of(&format!("tablets: {tablets}\n")).contains("a number from 1 to 4096"));
    }
}

#[test]
fn the_audit_log_is_set_in_the_words_of_all_releases() {
    let settings = from_text(
        "audit_logging_options:\n  enabled: true\n  logger:\n    - class_name: org.apache.cassandra.audit.FileAuditLogger\n\
         \x20 audit_logs_dir: /var/log/audit\n  included_keyspaces:\n  excluded_keyspaces: \"a,b\"\n\
         \x20 included_categories: \"\"\n  excluded_categories: QUERY, dml\n  included_users: [bob, 'alice']\n\
         \x20 roll_cycle: DAILY\n  block: false\n  max_queue_weight: 268435456\n  max_log_size: 17179869184 # 16 GiB\n",
    )
    .unwrap()
    .settings;
    assert!(settings.audit_logging_options_enabled);
    assert_eq!(settings.audit_logging_options_logger, AuditLogger::File);
    assert_eq!(settings.audit_path(), Path::new("/var/log/audit"));
    assert_eq!(settings.audit_logging_options_excluded_keyspaces.0, ["a", "b"]);
    assert!(settings.audit_logging_options_included_categories.0.is_empty());
    let printed: Vec<(&str, String)> = settings.printed().collect();
    let printed = |name: &str| &printed.iter().find(|(printed, _)| *printed == name).unwrap().1;
    assert_eq!(printed("audit_logging_options_excluded_categories"), "QUERY, DML");
    assert_eq!(printed("audit_logging_options_included_users"), "bob, alice");
    assert_eq!(printed("audit_logging_options_roll_cycle"), "DAILY");
    assert_eq!(printed("audit_logging_options_block"), "false");
    assert_eq!(printed("audit_logging_options_max_queue_weight"), "256MiB");
    assert_eq!(printed("audit_logging_options_max_log_size"), "16GiB");
    // As in cassandra.yaml of 4.0.
    let older = from_text("audit_logging_options:\n  enabled: true\n  logger: NoOpAuditLogger\n").unwrap();
    assert_eq!(older.settings.audit_logging_options_logger, AuditLogger::NoOp);
    let defaults = Settings::default();
    assert!(!defaults.audit_logging_options_enabled);
    assert_eq!(defaults.audit_path(), defaults.log_path().join("audit"));
    assert_eq!(
        defaults.audit_logging_options_excluded_keyspaces.0,
        ["system", "system_schema", "system_virtual_schema"]
    );
}

#[test]
fn what_the_audit_log_does_not_do_is_refused_by_name() {
    let of = |option: &str| problem_of(&format!("audit_logging_options:\n  {option}\n"));
    for (option, told) in [
        (
            "archive_command: \"/bin/mv %path /x\"",
            "audit_logging_options_archive_command: ",
        ),
        (
            "allow_nodetool_archive_command: true",
            "audit_logging_options_allow_nodetool_archive_command: ",
        ),
        (
            "logger:\n    - class_name: FileAuditLogger\n      parameters:\n        - field_separator: \"|\"",
            "audit_logging_options_logger_parameters: ",
        ),
        (
            "roll_cycle: YEARLY",
            "audit_logging_options_roll_cycle: expected one of ",
        ),
        (
            "included_categories: JMX",
            "audit_logging_options_included_categories: expected a list of QUERY, ",
        ),
        (
            "logger: SomeLogger",
            "audit_logging_options_logger: expected one of FileAuditLogger, ",
        ),
        (
            "max_log_siez: 1",
            "did you mean audit_logging_options_max_log_size?",
        ),
    ] {
        let problem = of(option);
        assert!(problem.contains(told), "{option}: {problem}");
    }
    assert!(from_text("audit_logging_options:\n  archive_command:\n  max_archive_retries: 10\n").is_ok());
}

#[test]
fn a_umask_is_three_octal_digits() {
    for (text, umask) in [
        ("077", 0o077),
        ("'027'", 0o027),
        ("027", 0o027),
        ("000", 0),
        ("22", 0o022),
    ] {
        let loaded = from_text(&format!("umask: {text}\n")).unwrap();
        assert_eq!(loaded.settings.umask.0, umask, "{text}");
    }
    for text in ["700", "079", "0777", "private", "''"] {
        let told = problem_of(&format!("umask: {text}\n"));
        assert!(
            told.contains("umask: expected three octal digits"),
            "{text}: {told}"
        );
    }
}

fn stock(file: &str) -> Loaded {
    let path = format!("{}/testdata/{file}", env!("CARGO_MANIFEST_DIR"));
    from_text(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|problem| panic!("{file}: {problem}"))
}

const STOCK: [&str; 4] = [
    "cassandra-4.0.yaml",
    "cassandra-4.1.yaml",
    "cassandra-5.0.yaml",
    "cassandra_latest-5.0.yaml",
];

#[test]
fn a_stock_file_of_cassandra_is_taken_and_names_what_is_passed_over_once() {
    for file in STOCK {
        let loaded = stock(file);
        assert!(loaded.warnings.len() <= 6, "{file}: {:#?}", loaded.warnings);
        let mut passed_over: Vec<&str> = loaded
            .warnings
            .iter()
            .flat_map(|line| line.rsplit_once(": ").unwrap().1.split(", "))
            .collect();
        passed_over.sort_unstable();
        let all = passed_over.len();
        passed_over.dedup();
        assert!(all > 40 && all == passed_over.len(), "{file}: {passed_over:?}");
        let settings = loaded.settings;
        assert_eq!(settings.cluster_name, "Test Cluster", "{file}");
        assert_eq!(settings.commitlog_sync, CommitLogSync::Periodic, "{file}");
        assert_eq!(settings.commitlog_sync_period, Duration::from_secs(10), "{file}");
        assert_eq!(
            settings.counter_cache_save_period,
            Duration::from_secs(7200),
            "{file}"
        );
        assert_eq!(settings.batch_size_fail_threshold, Size(50 << 10), "{file}");
        assert_eq!(
            settings.partition_size_warn_threshold,
            Some(Size(100 << 20)),
            "{file}"
        );
        assert!(!settings.user_defined_functions_enabled, "{file}");
        assert!(!settings.materialized_views_enabled, "{file}");
    }
    let latest = stock("cassandra_latest-5.0.yaml").settings;
    assert_eq!(latest.sstable_format, SSTableFormat::Da);
    assert_eq!(latest.default_secondary_index, "sai");
}

#[test]
fn every_name_of_cassandras_configuration_is_known() {
    for name in include_str!("../testdata/names.txt").split_whitespace() {
        let is_known = |text: &str| {
            from_text(text)
                .err()
                .is_none_or(|problem| !problem.contains("unknown setting"))
        };
        let is_block_of_ours = is_known(&format!("{name}: {{enabled: false}}\n"));
        assert!(
            is_known(&format!("{name}: some value\n")) || is_block_of_ours,
            "{name}"
        );
    }
}

#[test]
fn the_environment_beats_the_file() {
    let mut loaded = from_text("native_transport_port: 1").unwrap();
    let variables = [
        ("HOME".to_owned(), "/root".to_owned()),
        ("ILION_CONFIG".to_owned(), "x.yaml".to_owned()),
        ("ILION_NATIVE_TRANSPORT_PORT".to_owned(), "2".to_owned()),
    ];
    loaded.add_environment(variables).unwrap();
    assert_eq!(loaded.settings.native_transport_port, 2);
    let wrong = [("ILION_NATIVE_TRANSPORT_PORT".to_owned(), "many".to_owned())];
    assert_eq!(
        loaded.add_environment(wrong).unwrap_err().to_string(),
        "environment variable ILION_NATIVE_TRANSPORT_PORT: native_transport_port: \
         expected a number from 0 to 65535, got \"many\""
    );
}

#[test]
fn a_variable_that_only_looks_like_ours_is_warned_about() {
    let mut loaded = Loaded::default();
    let variables = [("ILION_CLUSTER_NAM".to_owned(), "x".to_owned())];
    loaded.add_environment(variables).unwrap();
    assert_eq!(
        loaded.warnings,
        ["environment variable ILION_CLUSTER_NAM: unknown setting cluster_nam; did you mean cluster_name?"]
    );
}

fn with_variables(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let mut loaded = from_text(text).unwrap();
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    loaded
        .add_environment(variables)
        .map_err(|error| error.to_string())?;
    Ok(loaded)
}

#[test]
fn variables_of_opentelemetry_are_settings() {
    let loaded = with_variables(
        "otlp_endpoint: http://file:4318",
        &[
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_SERVICE_NAME", "theirs"),
            ("OTEL_RESOURCE_ATTRIBUTES", ""),
            ("ILION_OTLP_SERVICE_NAME", "ours"),
            ("OTEL_PROPAGATORS", "b3"),
        ],
    )
    .unwrap();
    let settings = loaded.settings;
    assert_eq!(settings.otlp_endpoint.as_deref(), Some("http://collector:4318"));
    assert_eq!(settings.otlp_metrics_endpoint.as_deref(), Some("none"));
    assert_eq!(settings.otlp_timeout, Duration::from_millis(1500));
    assert_eq!(settings.otlp_service_name.as_deref(), Some("ours"));
    assert_eq!(settings.otlp_resource_attributes, None);
    assert_eq!(
        loaded.warnings,
        ["environment variable OTEL_PROPAGATORS: passed over, since Ilion does not know it"]
    );
    let off = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    assert_eq!(with_variables("", &off).unwrap().settings.otlp_endpoint, None);
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
    ] {
        let refused = with_variables("", &[(name, value)]).unwrap_err();
        assert!(
            refused.starts_with(&format!("environment variable {name}: ")),
            "{refused}"
        );
    }
}

#[test]
fn variables_of_the_cassandra_image_count_where_the_file_says_so() {
    let variables = [
        ("CASSANDRA_CLUSTER_NAME", "Shop"),
        ("CASSANDRA_DC", "dc2"),
        ("CASSANDRA_RACK", "r7"),
        ("CASSANDRA_RPC_ADDRESS", "127.0.0.2"),
        ("CASSANDRA_LISTEN_ADDRESS", "auto"),
        ("CASSANDRA_SEEDS", "10.0.0.1"),
        ("MAX_HEAP_SIZE", "8G"),
        ("ILION_RACK", "r8"),
    ];
    let elsewhere = with_variables("", &variables).unwrap();
    assert_eq!(
        (elsewhere.settings.cluster_name.as_str(), elsewhere.warnings.len()),
        ("Ilion", 0)
    );
    let loaded = with_variables("cassandra_variables: true", &variables).unwrap();
    let settings = &loaded.settings;
    assert_eq!(
        (
            settings.cluster_name.as_str(),
            settings.data_center.as_str(),
            settings.rack.as_str()
        ),
        ("Shop", "dc2", "r8")
    );
    assert_eq!(settings.rpc_address, IpAddr::from([127, 0, 0, 2]));
    assert_eq!(
        loaded.warnings,
        [
            "environment variable CASSANDRA_SEEDS: seed_provider is passed over, since nodes of an Ilion cluster work together through a shared log, without gossip, hints, repair or streaming",
            "environment variable MAX_HEAP_SIZE: passed over, since there is no JVM"
        ]
    );
}

#[test]
fn a_log_level_that_would_silence_the_log_is_refused() {
    for known in [
        "info",
        "DEBUG",
        "ilion_server=debug,info",
        "warn,ilion_engine=trace",
        "ilion_query",
    ] {
        assert_eq!(
            from_text(&format!("log_level: {known}\n"))
                .unwrap()
                .settings
                .log_level
                .0,
            known
        );
    }
    for unknown in ["loud", "inf", "info,loud", "ilion_server=loud", "''"] {
        let told = problem_of(&format!("log_level: {unknown}\n"));
        assert!(
            told.contains("log_level: expected a level (off, error,"),
            "{unknown}: {told}"
        );
    }
}

#[test]
fn a_file_that_is_no_yaml_or_no_block_is_refused() {
    assert!(problem_of("- a\n- b\n").contains("`name: value`"));
    assert_eq!(
        problem_of("a: [1\nb"),
        "ilion.yaml: unclosed bracket '[' at line 1, column 4"
    );
    assert!(from_text("").is_ok());
    assert!(from_text("# nothing\n\n").is_ok());
}

#[test]
fn a_file_that_is_not_there_is_named_once() {
    let env = ilion_env::MemEnv::new(1).shared();
    let refused = Loaded::default().add_file(&*env, Path::new("d/ilion.yaml"));
    let told = refused.unwrap_err().to_string();
    assert!(told.starts_with("d/ilion.yaml: cannot be read: "), "{told}");
    assert_eq!(told.matches("ilion.yaml").count(), 1, "{told}");
}

#[test]
fn the_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == document(),
        "docs/settings.md is out of date: run this test with REWRITE=1"
    );
}

#[test]
fn encryption_between_nodes_that_would_leave_some_of_them_out_is_refused() {
    for (line, reason) in [
        (
            "internode_encryption: dc",
            "a node could not tell who may leave the encryption away",
        ),
        (
            "internode_encryption: rack",
            "a node could not tell who may leave the encryption away",
        ),
        ("internode_encryption: some", "expected all or none"),
        ("optional: true", "encrypts all connections between nodes"),
        ("legacy_ssl_storage_port_enabled: true", "on one port"),
        ("enabled: true", "internode_encryption: all encrypts"),
        ("outbound_keystore: x", "shows the certificate of its keystore"),
        ("cipher_suites: [x]", "accepted_protocols chooses"),
    ] {
        let told = problem_of(&format!("server_encryption_options:\n  {line}\n"));
        let name = line.split_once(':').unwrap().0;
        assert!(
            told.contains(&format!("server_encryption_options_{name}: ")),
            "{told}"
        );
        assert!(told.contains("line 2: ") && told.contains(reason), "{told}");
    }
}
