"""The engine in this process: `connect` opens a directory, a `Session` executes CQL."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from ilion.errors import InterfaceError
from ilion.markers import translate
from ilion.result import ResultSet

if TYPE_CHECKING:
    from ilion import _engine

Parameters = Union[Sequence[Any], Mapping[str, Any], None]
Statement = Union[str, "PreparedStatement", "BoundStatement", "Batch"]
Setting = Union[str, int, float, bool, "os.PathLike[str]"]

#: Rows in a page, unless a session or a call has another number.
FETCH_SIZE = 5000

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def connect(path: Union[str, os.PathLike[str]], keyspace: Optional[str] = None, **settings: Setting) -> Session:
    """Opens a directory, which is created if absent. It is open once at a time: threads share the session.

    `settings` are those of docs/settings.md that have a meaning without a server. A write is on disk when `execute` returns, unless
    `commitlog_sync="periodic"`.
    """
    try:
        from ilion import _engine
    except ImportError as error:
        raise ImportError(f"the engine is not in this package, or not for this machine: {error}") from error
    named = [(name, _setting(value)) for name, value in settings.items()]
    session = Session(_engine.Database(os.fspath(path), named))
    if keyspace is not None:
        try:
            session.set_keyspace(keyspace)
        except BaseException:
            session.close()
            raise
    _sessions.add(session)
    return session


def _setting(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


@atexit.register
def _close_all() -> None:
    for session in list(_sessions):
        session.close()


class Session:
    """An open database. Several threads may use it at the same time; the lock of the interpreter is free while the engine works."""

    def __init__(self, database: _engine.Database) -> None:
        self._database = database
        #: Rows in a page of a result.
        self.default_fetch_size: int = FETCH_SIZE

    @property
    def keyspace(self) -> Optional[str]:
        """The keyspace of names without one. Threads share it."""
        return self._database.keyspace

    def set_keyspace(self, keyspace: str) -> None:
        """As USE; the name is taken as it is, without quotes."""
        quoted = keyspace.replace('"', '""')
        self._database.execute(f'USE "{quoted}"')

    def execute(
        self,
        query: Statement,
        parameters: Parameters = None,
        timeout: Optional[float] = None,
        *,
        fetch_size: Optional[int] = None,
        paging_state: Optional[bytes] = None,
    ) -> ResultSet:
        """Executes a statement: text, a prepared statement, a bound one, or a batch.

        Parameters are a tuple or list by position, or a dict by name. Markers in a text are `%s` and `%(name)s` as in the stock driver,
        or `?` and `:name` as in CQL. `timeout` (in seconds) ends a SELECT of more than one row, each page for itself. A page has
        `fetch_size` rows; 0 reads all rows at once.
        """
        if isinstance(query, Batch):
            if parameters is not None:
                raise InterfaceError("a batch has its parameters already")
            return query.execute()
        if isinstance(query, BoundStatement):
            if parameters is not None:
                raise InterfaceError("a bound statement has its parameters already")
            parameters, query = query.parameters, query.prepared
        rows = self.default_fetch_size if fetch_size is None else fetch_size
        if rows < 0:
            raise InterfaceError(f"fetch_size is a number of rows, or 0 for all, not {rows}")
        if isinstance(query, str):
            if not parameters:
                return ResultSet(self._database.execute(query, rows, timeout, paging_state), timeout)
            query = self.prepare(translate(query))
        elif not isinstance(query, PreparedStatement):
            raise InterfaceError(f"execute takes text, a prepared or bound statement, or a batch, not {type(query).__name__}")
        if fetch_size is None and query.fetch_size is not None:
            rows = query.fetch_size
        cursor = self._database.execute_prepared(query._statement, parameters, rows, timeout, paging_state)
        return ResultSet(cursor, timeout)

    def prepare(self, query: str) -> PreparedStatement:
        """Prepares a statement that is executed often. Its markers are those of CQL: `?`, or `:name`."""
        return PreparedStatement(query, self._database.prepare(query))

    def batch(self, kind: str = "logged") -> Batch:
        """An empty batch: "logged" (all writes are made or none), "unlogged" or "counter"."""
        return Batch(self, kind)

    def flush(self) -> None:
        """Writes everything to SSTables, so that the next start has nothing to replay."""
        self._database.flush()

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return not self._database.is_open

    def close(self) -> None:
        """Waits for calls of other threads, ends long SELECTs, and closes the directory. Later calls fail, but for `close`."""
        self._database.close()

    shutdown = close

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PreparedStatement:
    """A statement that `Session.prepare` has made. It goes on when its table has changed."""

    def __init__(self, query: str, statement: _engine.Statement) -> None:
        self.query_string = query
        #: Rows in a page; None is the default of the session.
        self.fetch_size: Optional[int] = None
        self._statement = statement

    @property
    def markers(self) -> list[tuple[str, str]]:
        """The names and CQL types of the bind markers."""
        return self._statement.markers

    def bind(self, parameters: Parameters) -> BoundStatement:
        """The statement with parameters; they are looked at when it is executed."""
        return BoundStatement(self, parameters)


class BoundStatement:
    """A prepared statement with its parameters."""

    def __init__(self, prepared: PreparedStatement, parameters: Parameters) -> None:
        self.prepared = prepared
        self.parameters = parameters


class Batch:
    """Writes that are executed together, with the same timestamp. With `with`, they are executed at its end unless it raises.

    with session.batch() as batch:
        batch.add(insert, (1, "La Grange"))
        batch.add("DELETE FROM songs WHERE id = %s", (2,))
    """

    def __init__(self, session: Session, kind: str = "logged") -> None:
        from ilion import _engine

        self._session = session
        self._batch = _engine.Batch(session._database, kind)

    def add(self, statement: Union[str, PreparedStatement, BoundStatement], parameters: Parameters = None) -> Batch:
        """Adds a statement."""
        if isinstance(statement, BoundStatement):
            if parameters is not None:
                raise InterfaceError("a bound statement has its parameters already")
            parameters, statement = statement.parameters, statement.prepared
        if isinstance(statement, str):
            if not parameters:
                self._batch.add(statement)
                return self
            statement = self._session.prepare(translate(statement))
        self._batch.add_prepared(statement._statement, parameters)
        return self

    def clear(self) -> None:
        """Removes all statements."""
        self._batch.clear()

    def __len__(self) -> int:
        return len(self._batch)

    def execute(self) -> ResultSet:
        """Executes the batch. The result has rows if a statement has conditions."""
        return ResultSet(self._batch.execute(), None)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, raised: object, *_: object) -> None:
        if raised is None and len(self):
            self.execute()
