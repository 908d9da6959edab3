//! Random messages that a version can encode, from a seed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use ilion_protocol::*;
use ilion_types::{CqlType, UserType};
use uuid::Uuid;

/// SplitMix64: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.u64() % limit as u64) as usize
    }

    pub fn coin(&mut self) -> bool {
        self.u64() & 1 == 1
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    pub fn i32(&mut self) -> i32 {
        self.u64() as i32
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(make(self)) } else { None }
    }

    pub fn list<T>(&mut self, max: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let len = self.below(max + 1);
        (0..len).map(|_| make(self)).collect()
    }

    pub fn bytes(&mut self, max: usize) -> Bytes {
        self.list(max, |random| random.u64() as u8).into()
    }

    pub fn string(&mut self) -> String {
        let len = self.below(12);
        (0..len)
            .map(|_| self.pick(&['a', 'Z', '_', '0', ' ', '\'', '\u{e9}', '\u{1f40e}']))
            .collect()
    }

    fn strings(&mut self) -> Vec<String> {
        self.list(3, Self::string)
    }

    fn arc(&mut self) -> Arc<str> {
        self.string().into()
    }

    pub fn version(&mut self) -> Version {
        self.pick(&Version::SUPPORTED)
    }

    fn consistency(&mut self) -> Consistency {
        self.pick(&Consistency::ALL)
    }

    fn payload(&mut self, version: Version) -> CustomPayload {
        if version == Version::V3 || self.below(4) > 0 {
            return Vec::new();
        }
        self.list(3, |random| {
            (random.string(), random.maybe(|random| random.bytes(9)))
        })
    }

    fn address(&mut self) -> IpAddr {
        if self.coin() {
            Ipv4Addr::from(self.u64() as u32).into()
        } else {
            Ipv6Addr::from(u128::from(self.u64()) << 64 | u128::from(self.u64())).into()
        }
    }
}

pub fn request(random: &mut Random, version: Version) -> RequestFrame {
    let request = match random.below(8) {
        0 => Request::Startup(Startup {
            options: random.list(4, |random| (random.string(), random.string())),
        }),
        1 => Request::Options,
        2 => Request::Register(Register {
            events: random.list(3, |random| random.pick(&EventKind::ALL)),
        }),
        3 => Request::Query(Query {
            text: random.string(),
            params: params(random, version),
        }),
        4 => Request::Prepare(Prepare {
            text: random.string(),
            keyspace: only_v5(random, version, Random::string),
        }),
        5 => Request::Execute(Execute {
            id: random.bytes(20),
            result_metadata_id: if version == Version::V5 {
                random.bytes(20)
            } else {
                Bytes::new()
            },
            params: params(random, version),
        }),
        6 => Request::Batch(batch(random, version)),
        _ => Request::AuthResponse(random.maybe(|random| random.bytes(30))),
    };
    RequestFrame {
        version,
        stream: random.u64() as i16,
        tracing: random.coin(),
        custom_payload: random.payload(version),
        request,
    }
}

fn only_v5<T>(random: &mut Random, version: Version, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
    if version == Version::V5 {
        random.maybe(make)
    } else {
        None
    }
}

fn params(random: &mut Random, version: Version) -> QueryParams {
    QueryParams {
        consistency: random.consistency(),
        values: values(random, version, true),
        skip_metadata: random.coin(),
        page_size: random.maybe(|random| random.u64() as u32 >> 1 | 1),
        paging_state: random.maybe(|random| random.bytes(40)),
        serial_consistency: random.maybe(Random::consistency),
        timestamp_micros: random.maybe(|random| random.u64() as i64),
        keyspace: only_v5(random, version, Random::string),
        now_secs: only_v5(random, version, Random::i32),
    }
}

fn values(random: &mut Random, version: Version, may_have_names: bool) -> Values {
    let with_names = may_have_names && random.coin();
    let mut builder = ValuesBuilder::new();
    for _ in 0..random.below(12) {
        let bytes = random.bytes(30);
        let value = match random.below(6) {
            0 => Value::Null,
            1 if version >= Version::V4 => Value::Unset,
            _ => Value::Bytes(&bytes),
        };
        if with_names {
            builder.push_named(&random.string(), value);
        } else {
            builder.push(value);
        }
    }
    builder.build()
}

fn batch(random: &mut Random, version: Version) -> Batch {
    Batch {
        kind: random.pick(&[BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter]),
        statements: random.list(4, |random| BatchStatement {
            source: if random.coin() {
                StatementSource::Text(random.string())
            } else {
                StatementSource::Prepared(random.bytes(16))
            },
            values: values(random, version, false),
        }),
        consistency: random.consistency(),
        serial_consistency: random.maybe(Random::consistency),
        timestamp_micros: random.maybe(|random| random.u64() as i64),
        keyspace: only_v5(random, version, Random::string),
        now_secs: only_v5(random, version, Random::i32),
    }
}

pub fn response(random: &mut Random, version: Version) -> ResponseFrame {
    let response = match random.below(12) {
        0 | 1 => Response::Error(ErrorResponse {
            message: random.string(),
            detail: error_detail(random, version),
        }),
        2 => Response::Ready,
        3 => Response::Authenticate(random.string()),
        4 => Response::AuthChallenge(random.maybe(|random| random.bytes(30))),
        5 => Response::AuthSuccess(random.maybe(|random| random.bytes(30))),
        6 => Response::Supported(Supported {
            options: random.list(4, |random| (random.string(), random.strings())),
        }),
        7 => Response::Event(event(random, version)),
        _ => Response::Result(result(random, version)),
    };
    ResponseFrame {
        version,
        stream: random.u64() as i16,
        tracing_id: random.maybe(|random| Uuid::from_u64_pair(random.u64(), random.u64())),
        warnings: if version >= Version::V4 {
            random.strings()
        } else {
            Vec::new()
        },
        custom_payload: random.payload(version),
        response,
    }
}

fn error_detail(random: &mut Random, version: Version) -> ErrorDetail {
    let consistency = random.consistency();
    let (received, block_for) = (random.i32(), random.i32());
    let write_type = random.pick(&WriteType::ALL);
    let data_present = random.coin();
    match random.below(if version == Version::V3 { 16 } else { 20 }) {
        0 => ErrorDetail::Server,
        1 => ErrorDetail::Protocol,
        2 => ErrorDetail::BadCredentials,
        3 => ErrorDetail::Unavailable {
            consistency,
            required: received,
            alive: block_for,
        },
        4 => ErrorDetail::Overloaded,
        5 => ErrorDetail::Bootstrapping,
        6 => ErrorDetail::Truncate,
        7 => ErrorDetail::WriteTimeout {
            consistency,
            received,
            block_for,
            write_type,
            contentions: (version == Version::V5 && write_type == WriteType::Cas)
                .then(|| random.u64() as u16),
        },
        8 => ErrorDetail::ReadTimeout {
            consistency,
            received,
            block_for,
            data_present,
        },
        9 => ErrorDetail::Syntax,
        10 => ErrorDetail::Unauthorized,
        11 => ErrorDetail::Invalid,
        12 => ErrorDetail::Config,
        13 => ErrorDetail::AlreadyExists {
            keyspace: random.string(),
            table: random.string(),
        },
        14 => ErrorDetail::Unprepared { id: random.bytes(16) },
        15 if version == Version::V5 => ErrorDetail::CasWriteUnknown {
            consistency,
            received,
            block_for,
        },
        15 => ErrorDetail::Invalid,
        16 => ErrorDetail::ReadFailure {
            consistency,
            received,
            block_for,
            failures: failures(random, version),
            data_present,
        },
        17 => ErrorDetail::WriteFailure {
            consistency,
            received,
            block_for,
            failures: failures(random, version),
            write_type,
        },
        18 => ErrorDetail::CdcWriteFailure,
        _ => ErrorDetail::FunctionFailure {
            keyspace: random.string(),
            function: random.string(),
            arguments: random.strings(),
        },
    }
}

fn failures(random: &mut Random, version: Version) -> Failures {
    if version == Version::V4 {
        return Failures::Count(random.below(100) as i32);
    }
    Failures::Reasons(random.list(3, |random| (random.address(), FailureReason(random.u64() as u16))))
}

fn event(random: &mut Random, version: Version) -> Event {
    let node = SocketAddr::new(random.address(), random.u64() as u16);
    match random.below(3) {
        0 => Event::Topology {
            change: random.pick(&[
                TopologyChange::NewNode,
                TopologyChange::RemovedNode,
                TopologyChange::MovedNode,
            ]),
            node,
        },
        1 => Event::Status {
            status: random.pick(&[NodeStatus::Up, NodeStatus::Down]),
            node,
        },
        _ => Event::Schema(schema_change(random, version)),
    }
}

fn schema_change(random: &mut Random, version: Version) -> SchemaChange {
    SchemaChange {
        change: random.pick(&[ChangeKind::Created, ChangeKind::Updated, ChangeKind::Dropped]),
        keyspace: random.string(),
        target: match random.below(if version == Version::V3 { 3 } else { 5 }) {
            0 => SchemaTarget::Keyspace,
            1 => SchemaTarget::Table(random.string()),
            2 => SchemaTarget::Type(random.string()),
            3 => SchemaTarget::Function {
                name: random.string(),
                arguments: random.strings(),
            },
            _ => SchemaTarget::Aggregate {
                name: random.string(),
                arguments: random.strings(),
            },
        },
    }
}

fn result(random: &mut Random, version: Version) -> ResultBody {
    match random.below(7) {
        0 => ResultBody::Void,
        1 => ResultBody::SetKeyspace(random.string()),
        2 => ResultBody::SchemaChange(schema_change(random, version)),
        3 | 4 => ResultBody::Prepared(Prepared {
            id: random.bytes(16),
            result_metadata_id: if version == Version::V5 {
                random.bytes(16)
            } else {
                Bytes::new()
            },
            bind: BindMetadata {
                columns: columns(random),
                partition_key_indexes: if version == Version::V3 {
                    Vec::new()
                } else {
                    random.list(4, |random| random.u64() as u16)
                },
            },
            result: metadata(random, version),
        }),
        _ => {
            let metadata = metadata(random, version);
            let width = metadata.column_count;
            let cells: Vec<Vec<Option<Bytes>>> = if width == 0 {
                Vec::new()
            } else {
                random.list(5, |random| {
                    (0..width)
                        .map(|_| random.maybe(|random| random.bytes(20)))
                        .collect()
                })
            };
            let rows = cells.iter().map(|row| row.iter().map(|cell| cell.as_deref()));
            ResultBody::Rows(Rows::new(metadata, rows))
        }
    }
}

fn metadata(random: &mut Random, version: Version) -> RowsMetadata {
    let paging_state = random.maybe(|random| random.bytes(30));
    if random.below(4) == 0 {
        return RowsMetadata {
            column_count: random.below(6),
            columns: None,
            paging_state,
            new_metadata_id: None,
        };
    }
    RowsMetadata {
        paging_state,
        new_metadata_id: only_v5(random, version, |random| random.bytes(16)),
        ..RowsMetadata::new(columns(random))
    }
}

pub fn columns(random: &mut Random) -> Vec<ColumnSpec> {
    let (keyspace, table) = (random.arc(), random.arc());
    let is_one_table = random.coin();
    random.list(6, |random| ColumnSpec {
        keyspace: if is_one_table {
            keyspace.clone()
        } else {
            random.arc()
        },
        table: if is_one_table { table.clone() } else { random.arc() },
        name: random.arc(),
        cql_type: cql_type(random, false, 3),
    })
}

pub const SCALARS: [CqlType; 21] = [
    CqlType::Ascii,
    CqlType::BigInt,
    CqlType::Blob,
    CqlType::Boolean,
    CqlType::Counter,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Duration,
    CqlType::Empty,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::SmallInt,
    CqlType::Text,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::TimeUuid,
    CqlType::TinyInt,
    CqlType::Uuid,
    CqlType::Varint,
];

/// A type as it is decoded: only the outermost one is not frozen.
pub fn cql_type(random: &mut Random, frozen: bool, depth: usize) -> CqlType {
    let choice = if depth == 0 { 0 } else { random.below(10) };
    let inner = |random: &mut Random| Arc::new(cql_type(random, true, depth - 1));
    match choice {
        4 => CqlType::List {
            element: inner(random),
            frozen,
        },
        5 => CqlType::Set {
            element: inner(random),
            frozen,
        },
        6 => CqlType::Map {
            key: inner(random),
            value: inner(random),
            frozen,
        },
        7 => {
            let mut types = random.list(2, |random| cql_type(random, true, depth - 1));
            types.push(cql_type(random, true, depth - 1));
            CqlType::Tuple(types.into())
        }
        8 => CqlType::Udt {
            definition: Arc::new(UserType {
                // The only name that class strings have unencoded.
                keyspace: "ks_1".to_owned(),
                name: random.string(),
                fields: random.list(3, |random| (random.string(), cql_type(random, true, depth - 1))),
            }),
            frozen,
        },
        9 => CqlType::Vector {
            element: inner(random),
            dimension: 1 + random.below(2000) as u32,
        },
        _ => random.pick(&SCALARS),
    }
}
