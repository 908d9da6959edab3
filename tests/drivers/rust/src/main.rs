//! The scylla driver against a server: connect, metadata, prepared statements, paging, batches, all types, errors.

use std::env::var;
use std::fmt::Debug;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bigdecimal::BigDecimal;
use futures::TryStreamExt;
use num_bigint::BigInt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use scylla::client::Compression;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::value::DeserializeValue;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::PagingState;
use scylla::serialize::value::SerializeValue;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{Counter, CqlDate, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const KEYSPACE: &str = "check_rust";

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, host, port] = arguments.as_slice() else {
        return Err("say HOST PORT".into());
    };
    let compressions = [
        ("none", None),
        ("lz4", Some(Compression::Lz4)),
        ("snappy", Some(Compression::Snappy)),
    ];
    for (name, compression) in compressions {
        run(&format!("{host}:{port}"), compression).await?;
        println!("rust v4 {name}: ok");
    }
    Ok(())
}

/// The encryption that the variables ask for.
fn encryption() -> Outcome<Option<Arc<ClientConfig>>> {
    let Ok(issuers) = var("CHECK_CA") else {
        return Ok(None);
    };
    let mut trusted = RootCertStore::empty();
    for issuer in CertificateDer::pem_file_iter(issuers)? {
        trusted.add(issuer?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(trusted);
    let config = match var("CHECK_CERTIFICATE") {
        Err(_) => config.with_no_client_auth(),
        Ok(shown) => {
            let chain = CertificateDer::pem_file_iter(&shown)?.collect::<Result<_, _>>()?;
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(shown)?)?
        }
    };
    Ok(Some(Arc::new(config)))
}

async fn run(address: &str, compression: Option<Compression>) -> Outcome {
    let mut builder = SessionBuilder::new()
        .known_node(address)
        .compression(compression)
        .tls_context(encryption()?)
        .connection_timeout(Duration::from_secs(60));
    if let (Ok(user), Ok(password)) = (var("CHECK_USER"), var("CHECK_PASSWORD")) {
        builder = builder.user(user, password);
    }
    let session = builder.build().await?;
    connect(&session).await?;
    metadata(&session).await?;
    prepared(&session).await?;
    paging(&session).await?;
    batch(&session).await?;
    types(&session).await?;
    errors(&session).await?;
    execute(&session, &format!("DROP KEYSPACE {KEYSPACE}")).await
}

async fn execute(session: &Session, cql: &str) -> Outcome {
    session
        .query_unpaged(cql, ())
        .await
        .map_err(|error| format!("{cql}: {error}"))?;
    Ok(())
}

async fn connect(session: &Session) -> Outcome {
    let result = session
        .query_unpaged("SELECT release_version FROM system.local", ())
        .await?;
    let (version,) = result.into_rows_result()?.single_row::<(String,)>()?;
    assert!(!version.is_empty());
    execute(session, &format!("DROP KEYSPACE IF EXISTS {KEYSPACE}")).await?;
    execute(
        session,
        &format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"),
    )
    .await?;
    session.use_keyspace(KEYSPACE, false).await?;
    Ok(())
}

async fn metadata(session: &Session) -> Outcome {
    execute(
        session,
        "CREATE TABLE people (team text, id int, motto text STATIC, tags set<text>, PRIMARY KEY (team, id))",
    )
    .await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let table = state
        .get_keyspace(KEYSPACE)
        .and_then(|keyspace| keyspace.tables.get("people"))
        .ok_or("no metadata of people")?;
    assert_eq!(table.partition_key, ["team"]);
    assert_eq!(table.clustering_key, ["id"]);
    assert!(table.columns.contains_key("tags"));
    Ok(())
}

async fn prepared(session: &Session) -> Outcome {
    execute(
        session,
        "CREATE TABLE prepared (k int PRIMARY KEY, a text, b text)",
    )
    .await?;
    let insert = session
        .prepare("INSERT INTO prepared (k, a, b) VALUES (?, ?, ?)")
        .await?;
    session.execute_unpaged(&insert, (1, "one", None::<&str>)).await?;
    let select = session.prepare("SELECT a, b FROM prepared WHERE k = ?").await?;
    let result = session.execute_unpaged(&select, (1,)).await?.into_rows_result()?;
    let row = result.single_row::<(String, Option<String>)>()?;
    assert_eq!(row, ("one".to_owned(), None));
    Ok(())
}

async fn paging(session: &Session) -> Outcome {
    execute(session, "CREATE TABLE pages (k int, c int, PRIMARY KEY (k, c))").await?;
    let insert = session.prepare("INSERT INTO pages (k, c) VALUES (1, ?)").await?;
    for c in 0..230 {
        session.execute_unpaged(&insert, (c,)).await?;
    }
    let select = Statement::new("SELECT c FROM pages WHERE k = 1").with_page_size(50);
    let rows = session
        .query_iter(select.clone(), ())
        .await?
        .rows_stream::<(i32,)>()?;
    let seen: Vec<(i32,)> = rows.try_collect().await?;
    assert!(seen.iter().map(|row| row.0).eq(0..230));
    let (page, response) = session
        .query_single_page(select, (), PagingState::start())
        .await?;
    assert_eq!(page.into_rows_result()?.rows_num(), 50);
    assert!(!response.finished());
    Ok(())
}

async fn batch(session: &Session) -> Outcome {
    execute(session, "CREATE TABLE batched (k int PRIMARY KEY, v text)").await?;
    let insert = session
        .prepare("INSERT INTO batched (k, v) VALUES (?, ?)")
        .await?;
    let mut batch = Batch::new(BatchType::Logged);
    batch.append_statement(insert);
    batch.append_statement("INSERT INTO batched (k, v) VALUES (2, 'text')");
    session.batch(&batch, ((1, "bound"), ())).await?;
    let result = session.query_unpaged("SELECT COUNT(*) FROM batched", ()).await?;
    assert_eq!(result.into_rows_result()?.single_row::<(i64,)>()?, (2,));

    execute(session, "CREATE TABLE counted (k int PRIMARY KEY, hits counter)").await?;
    let mut counters = Batch::new(BatchType::Counter);
    counters.append_statement("UPDATE counted SET hits = hits + 5 WHERE k = 1");
    counters.append_statement("UPDATE counted SET hits = hits - 2 WHERE k = 1");
    session.batch(&counters, ((), ())).await?;
    let result = session
        .query_unpaged("SELECT hits FROM counted WHERE k = 1", ())
        .await?;
    assert_eq!(result.into_rows_result()?.single_row::<(Counter,)>()?.0.0, 3);
    Ok(())
}

async fn types(session: &Session) -> Outcome {
    round_trip(session, "ascii", "plain".to_owned()).await?;
    round_trip(session, "bigint", i64::MIN).await?;
    round_trip(session, "blob", vec![0u8, 255]).await?;
    round_trip(session, "boolean", true).await?;
    round_trip(session, "date", CqlDate((1 << 31) + 20_778)).await?;
    round_trip(
        session,
        "decimal",
        BigDecimal::from_str("-12345678901234567890.123456789")?,
    )
    .await?;
    round_trip(session, "double", 1.5e300f64).await?;
    let duration = CqlDuration {
        months: 14,
        days: 3,
        nanoseconds: 4_000_000_005,
    };
    round_trip(session, "duration", duration).await?;
    round_trip(session, "float", -0.5f32).await?;
    round_trip(session, "inet", IpAddr::from_str("2001:db8::1")?).await?;
    round_trip(session, "int", i32::MAX).await?;
    round_trip(session, "smallint", i16::MIN).await?;
    round_trip(session, "text", "Z\u{fc}rich \u{6771}\u{4eac}".to_owned()).await?;
    round_trip(session, "time", CqlTime(48_654_234_567_891)).await?;
    round_trip(session, "timestamp", CqlTimestamp(1_795_258_800_123)).await?;
    round_trip(
        session,
        "timeuuid",
        CqlTimeuuid::from_str("50554d6e-29bb-11e5-b345-feff819cdc9f")?,
    )
    .await?;
    round_trip(session, "tinyint", i8::MIN).await?;
    round_trip(
        session,
        "uuid",
        uuid::Uuid::from_str("123e4567-e89b-42d3-a456-426614174000")?,
    )
    .await?;
    round_trip(session, "varint", BigInt::from(10).pow(40)).await?;
    round_trip(session, "list<int>", vec![3, 1, 3]).await?;
    round_trip(session, "set<text>", vec!["a".to_owned(), "b".to_owned()]).await?;
    round_trip(
        session,
        "frozen<map<int, frozen<list<text>>>>",
        std::collections::BTreeMap::from([(1, vec!["a".to_owned()])]),
    )
    .await?;
    round_trip(session, "tuple<int, text>", (1, "a".to_owned())).await?;
    round_trip(session, "vector<float, 3>", vec![0.5f32, -1.0, 2.0]).await
}

async fn round_trip<T>(session: &Session, name: &str, value: T) -> Outcome
where
    T: SerializeValue + for<'f, 'm> DeserializeValue<'f, 'm> + PartialEq + Debug,
{
    let table: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    execute(
        session,
        &format!("CREATE TABLE t_{table} (k int PRIMARY KEY, v {name})"),
    )
    .await?;
    let insert = session
        .prepare(format!("INSERT INTO t_{table} (k, v) VALUES (?, ?)"))
        .await?;
    session.execute_unpaged(&insert, (1, &value)).await?;
    let select = session
        .prepare(format!("SELECT v FROM t_{table} WHERE k = 1"))
        .await?;
    let result = session.execute_unpaged(&select, ()).await?.into_rows_result()?;
    let (seen,) = result.single_row::<(T,)>()?;
    assert_eq!(seen, value, "{name}");
    Ok(())
}

async fn errors(session: &Session) -> Outcome {
    let code = |error: ExecutionError| match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => Ok(error),
        other => Err(format!("no answer from the server but {other}")),
    };
    let syntax = session
        .query_unpaged("SELEKT 1", ())
        .await
        .err()
        .ok_or("no error")?;
    assert_eq!(code(syntax)?, DbError::SyntaxError);
    let invalid = session
        .query_unpaged("SELECT * FROM no_such_table", ())
        .await
        .err()
        .ok_or("no error")?;
    assert_eq!(code(invalid)?, DbError::Invalid);
    let exists = session
        .query_unpaged("CREATE TABLE people (k int PRIMARY KEY)", ())
        .await
        .err()
        .ok_or("no error")?;
    assert!(matches!(code(exists)?, DbError::AlreadyExists { .. }));
    Ok(())
}
