"""Exceptions. The first level has the names of PEP 249, the second one those of the stock driver.

    Error
      InterfaceError            a call that is not possible: the session is closed, or belongs to another process
      DatabaseError
        DataError               a value that does not fit
          BindError             of a parameter; also a TypeError
        OperationalError        nothing is wrong with the statement
          OpenError             the directory does not open
            DirectoryInUse      it is open already
          EngineError           the disk or the commit log fails
          Unavailable, Overloaded, TruncateError, CDCWriteFailure, FunctionFailure
          Timeout: ReadTimeout, WriteTimeout
          CoordinationFailure: ReadFailure, WriteFailure
        ProgrammingError        the statement must change
          InvalidRequest, SyntaxException, ProtocolException, Unauthorized
          ConfigurationException
            AlreadyExists
        InternalError           a bug: report it
"""

from __future__ import annotations

from typing import Any, Optional


class Error(Exception):
    """All exceptions of the engine."""

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            setattr(self, name, value)


class InterfaceError(Error):
    """A call that is not possible."""


class DatabaseError(Error):
    """All errors that the database tells."""


class DataError(DatabaseError):
    """A value does not fit."""


class BindError(DataError, TypeError):
    """A parameter does not fit its bind marker."""


class OperationalError(DatabaseError):
    """Nothing is wrong with the statement; the database or the machine cannot execute it now."""


class OpenError(OperationalError):
    """The directory does not open."""


class DirectoryInUse(OpenError):
    """Another process, or another session of this one, has the directory open."""


class EngineError(OperationalError):
    """The disk or the commit log fails: the write may be lost."""


class Unavailable(OperationalError):
    """Too few replicas are alive."""

    consistency: Optional[str] = None
    required_replicas: Optional[int] = None
    alive_replicas: Optional[int] = None


class Overloaded(OperationalError):
    """Too much work at once: try again later."""


class TruncateError(OperationalError):
    """TRUNCATE did not succeed."""


class CDCWriteFailure(OperationalError):
    """Change data capture has no space left."""


class FunctionFailure(OperationalError):
    """A user-defined function failed."""

    keyspace: Optional[str] = None
    function: Optional[str] = None
    arg_types: Optional[list[str]] = None


class Timeout(OperationalError):
    """The statement took too long."""

    consistency: Optional[str] = None
    required_responses: Optional[int] = None
    received_responses: Optional[int] = None


class ReadTimeout(Timeout):
    """A SELECT took longer than its timeout."""


class WriteTimeout(Timeout):
    """A write was not acknowledged in time; it may be done."""

    write_type: Optional[str] = None


class CoordinationFailure(OperationalError):
    """A replica failed."""


class ReadFailure(CoordinationFailure):
    """A read failed, for example by too many tombstones."""


class WriteFailure(CoordinationFailure):
    """A write failed."""

    write_type: Optional[str] = None


class ProgrammingError(DatabaseError):
    """The statement must change."""


class InvalidRequest(ProgrammingError):
    """CQL that is not possible with this schema or these values."""


class SyntaxException(ProgrammingError):
    """The text is not CQL."""


class ProtocolException(ProgrammingError):
    """A paging state is none of this statement."""


class Unauthorized(ProgrammingError):
    """The statement is not allowed."""


class ConfigurationException(ProgrammingError):
    """An option is not possible."""


class AlreadyExists(ConfigurationException):
    """The keyspace or table exists."""

    keyspace: Optional[str] = None
    table: Optional[str] = None


class InternalError(DatabaseError):
    """A bug: report it."""
