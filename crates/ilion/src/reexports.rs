//! Types of other crates that callers of the library meet, each with an example.

/// ```
/// use ilion::{Database, EngineError, Error, OpenError};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().to_owned();
/// let first = Database::open(&directory)?;
/// match Database::open(&directory) {
///     Err(Error::Open(OpenError::Engine(EngineError::InUse(path)))) => assert!(path.starts_with(&directory)),
///     Err(other) => panic!("{other}"),
///     Ok(_) => panic!("it is open"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_engine::Error as EngineError;

/// ```
/// use ilion::{Database, Error, LocalError, OpenError, Settings};
///
/// # let directory = tempfile::tempdir()?;
/// let mut settings = Settings {
///     directory: directory.path().to_owned(),
///     cluster_name: "one".to_owned(),
///     ..Settings::default()
/// };
/// drop(Database::open_with(&settings)?);
/// settings.cluster_name = "two".to_owned();
/// match Database::open_with(&settings) {
///     Err(Error::Open(OpenError::Local(LocalError::Foreign { stored, wanted, .. }))) => {
///         assert_eq!((&*stored, &*wanted), ("one", "two"));
///     }
///     Err(other) => panic!("{other}"),
///     Ok(_) => panic!("it is open"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_node::LocalError;

/// ```
/// use ilion::{Database, Error, OpenError, Settings};
///
/// # let directory = tempfile::tempdir()?;
/// let settings = Settings {
///     directory: directory.path().to_owned(),
///     initial_token: Some("first".to_owned()),
///     ..Settings::default()
/// };
/// match Database::open_with(&settings) {
///     Err(Error::Open(OpenError::Local(problem))) => println!("change the settings: {problem}"),
///     Err(other) => panic!("{other}"),
///     Ok(_) => panic!("it is open"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_node::OpenError;

/// ```
/// use ilion::BatchKind;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.plays (song int PRIMARY KEY, times counter)", ())?;
/// let mut batch = database.batch(BatchKind::Counter);
/// batch.add_cql("UPDATE k.plays SET times = times + 1 WHERE song = ?", (7,))?;
/// batch.execute()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_query::BatchKind;

/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let statement = database.prepare("SELECT data_center FROM system.local WHERE key = ?")?;
/// let marker: &ilion::ColumnSpec = &statement.markers()[0];
/// assert_eq!((&*marker.name, &marker.ty), ("key", &ilion::CqlType::Text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_query::ColumnSpec;

/// ```
/// use ilion::Consistency;
///
/// assert_eq!(Consistency::LOCAL_QUORUM.to_string(), "LOCAL_QUORUM");
/// assert!(Consistency::SERIAL.is_serial());
/// ```
#[doc(inline)]
pub use ilion_query::Consistency;

/// ```
/// use ilion::{Error, StatementError};
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// match database.execute("SELECT * FROM system.nonsense", ()) {
///     Err(Error::Statement(StatementError::Invalid(message))) => assert!(message.contains("does not exist")),
///     Err(other) => panic!("{other:?}"),
///     Ok(_) => panic!("there is such a table"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_query::Error as StatementError;

/// ```
/// use ilion::{FailureReason, StatementError};
///
/// fn advice(error: &StatementError) -> &'static str {
///     match error {
///         StatementError::ReadFailure { reason: FailureReason::ReadTooManyTombstones, .. } => "compact the table",
///         StatementError::ReadFailure { reason: FailureReason::IndexNotAvailable, .. } => "wait for the index",
///         _ => "read the message",
///     }
/// }
/// # let error = StatementError::ReadFailure {
/// #     consistency: ilion::Consistency::ONE,
/// #     reason: FailureReason::IndexNotAvailable,
/// #     message: String::new(),
/// # };
/// assert_eq!(advice(&error), "wait for the index");
/// ```
#[doc(inline)]
pub use ilion_query::FailureReason;

/// ```
/// use ilion::Bound;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
/// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
/// // `Null` would delete the title, `Unset` leaves it as it is.
/// insert.execute_page(vec![Bound::Bytes(7_i32.to_be_bytes().to_vec().into()), Bound::Unset], ilion::PageOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_query::Value as Bound;

/// ```
/// use ilion::{StatementError, WriteType};
///
/// fn may_be_applied_twice(error: &StatementError) -> bool {
///     matches!(error, StatementError::WriteTimeout { write_type: WriteType::Counter, .. })
/// }
/// # let error = StatementError::WriteTimeout {
/// #     consistency: ilion::Consistency::QUORUM,
/// #     write_type: WriteType::Counter,
/// #     received: 1,
/// #     block_for: 2,
/// #     message: String::new(),
/// # };
/// assert!(may_be_applied_twice(&error), "do not send it again");
/// assert_eq!(WriteType::Counter.name(), "COUNTER");
/// ```
#[doc(inline)]
pub use ilion_query::WriteType;

/// ```
/// use ilion::{Database, Settings};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("music");
/// let settings = Settings {
///     directory,
///     cluster_name: "music".to_owned(),
///     ..Settings::default()
/// };
/// let database = Database::open_with(&settings)?;
/// let local = database.query_one("SELECT cluster_name FROM system.local", ())?;
/// assert_eq!(local.get::<String>("cluster_name")?, "music");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_settings::Settings;

/// ```
/// use ilion::CqlType;
///
/// let set = CqlType::Set { element: CqlType::Int.into(), frozen: false };
/// assert_eq!(set.to_string(), "set<int>");
/// ```
#[doc(inline)]
pub use ilion_types::CqlType;

/// ```
/// use ilion::Decimal;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.prices (song int PRIMARY KEY, price decimal)", ())?;
/// let price: Decimal = "0.99".parse()?;
/// database.execute("INSERT INTO k.prices (song, price) VALUES (7, ?)", (price,))?;
/// let price = database.query_one("SELECT price FROM k.prices", ())?.get::<Decimal>("price")?;
/// assert_eq!(price.to_string(), "0.99");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_types::Decimal;

/// ```
/// use ilion::Duration;
///
/// let pause: Duration = "1d12h".parse()?;
/// assert_eq!((pause.months(), pause.days(), pause.nanos()), (0, 1, 12 * 3600 * 1_000_000_000));
/// assert_eq!(Duration::new(1, -1, 0), None, "all three are of one sign");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_types::Duration;

/// ```
/// use ilion::{CqlType, UserType};
///
/// let place = UserType {
///     keyspace: "music".to_owned(),
///     name: "place".to_owned(),
///     fields: vec![("city".to_owned(), CqlType::Text), ("zip".to_owned(), CqlType::Int)],
/// };
/// assert_eq!(place.field("zip"), Some((1, &CqlType::Int)));
/// ```
#[doc(inline)]
pub use ilion_types::UserType;

/// ```
/// use ilion::Uuid;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let local = database.query_one("SELECT host_id FROM system.local", ())?;
/// let id: Uuid = local.get("host_id")?;
/// assert!(!id.is_nil());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_types::Uuid;

/// ```
/// use ilion::{CqlType, Value};
///
/// let list = CqlType::List { element: CqlType::Text.into(), frozen: true };
/// let value = Value::List(vec![Value::Text("Tush".to_owned())]);
/// let bytes = value.to_bytes(&list)?;
/// assert_eq!(Value::decode(&list, &bytes)?, value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ilion_types::Value;

/// ```
/// use ilion::BigInt;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.grains (field int PRIMARY KEY, count varint)", ())?;
/// let count = BigInt::from(2).pow(100);
/// database.execute("INSERT INTO k.grains (field, count) VALUES (1, ?)", (count.clone(),))?;
/// assert_eq!(database.query_one("SELECT count FROM k.grains", ())?.get::<BigInt>(0)?, count);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use num_bigint::BigInt;

/// ```
/// use ilion::{BigInt, Sign};
///
/// assert_eq!(BigInt::from(-7).sign(), Sign::Minus);
/// assert_eq!(BigInt::from_bytes_be(Sign::Minus, &[7]), BigInt::from(-7));
/// ```
pub use num_bigint::Sign;
