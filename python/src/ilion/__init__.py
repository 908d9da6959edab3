"""Ilion, a Cassandra-compatible column-family store: the engine in this process, and a node as a child process.

    import ilion

    with ilion.connect("data") as session:
        for row in session.execute("SELECT cluster_name FROM system.local"):
            print(row.cluster_name)
"""

from ilion.errors import (
    AlreadyExists,
    BindError,
    CDCWriteFailure,
    ConfigurationException,
    CoordinationFailure,
    DatabaseError,
    DataError,
    DirectoryInUse,
    EngineError,
    Error,
    FunctionFailure,
    InterfaceError,
    InternalError,
    InvalidRequest,
    OpenError,
    OperationalError,
    Overloaded,
    ProgrammingError,
    ProtocolException,
    ReadFailure,
    ReadTimeout,
    SyntaxException,
    Timeout,
    TruncateError,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
)
from ilion.node import Node, StartError
from ilion.program import program
from ilion.result import ResultSet
from ilion.session import Batch, BoundStatement, PreparedStatement, Session, connect
from ilion.types import UNSET_VALUE, Date, Duration, FrozenMap, Time

__all__ = [
    "UNSET_VALUE",
    "AlreadyExists",
    "Batch",
    "BindError",
    "BoundStatement",
    "CDCWriteFailure",
    "ConfigurationException",
    "CoordinationFailure",
    "DataError",
    "DatabaseError",
    "Date",
    "DirectoryInUse",
    "Duration",
    "EngineError",
    "Error",
    "FrozenMap",
    "FunctionFailure",
    "InterfaceError",
    "InternalError",
    "InvalidRequest",
    "Node",
    "OpenError",
    "OperationalError",
    "Overloaded",
    "PreparedStatement",
    "ProgrammingError",
    "ProtocolException",
    "ReadFailure",
    "ReadTimeout",
    "ResultSet",
    "Session",
    "StartError",
    "SyntaxException",
    "Time",
    "Timeout",
    "TruncateError",
    "Unauthorized",
    "Unavailable",
    "WriteFailure",
    "WriteTimeout",
    "connect",
    "program",
]
