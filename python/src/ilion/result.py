"""Results, read page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from ilion import arrow
from ilion.errors import ProgrammingError
from ilion.rows import named_tuple

if TYPE_CHECKING:
    from ilion._engine import Cursor


class ResultSet:
    """The rows of a result, as an iterator over named tuples. Later pages are read during the iteration.

    One thread reads a result; several may read results of one session.
    """

    def __init__(self, cursor: Cursor, timeout: Optional[float]) -> None:
        self._timeout = timeout
        self._set(cursor)

    def _set(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._rows: Optional[list[Any]] = None
        self._position = 0

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, as CQL has them."""
        return [name for name, _ in self._cursor.columns]

    @property
    def column_types(self) -> list[str]:
        """The CQL types of the columns."""
        return [kind for _, kind in self._cursor.columns]

    @property
    def current_rows(self) -> list[Any]:
        """The rows of the page in memory."""
        if self._rows is None:
            make = named_tuple("Row", tuple(self.column_names))._make
            self._rows = list(map(make, self._cursor.rows()))
        return self._rows

    @property
    def has_more_pages(self) -> bool:
        """Whether a page follows; it may be empty."""
        return self._cursor.has_more_pages

    @property
    def paging_state(self) -> Optional[bytes]:
        """What `Session.execute` needs to go on after this page; None after the last one."""
        return self._cursor.paging_state

    def fetch_next_page(self) -> None:
        """Reads the next page. After the last one there are no rows."""
        page = self._cursor.next_page(self._timeout)
        if page is None:
            self._rows, self._position = [], 0
        else:
            self._set(page)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        rows = self.current_rows
        while self._position >= len(rows):
            if not self.has_more_pages:
                raise StopIteration
            self.fetch_next_page()
            rows = self.current_rows
        self._position += 1
        return rows[self._position - 1]

    def all(self) -> list[Any]:
        """All rows that are not read yet."""
        return list(self)

    def one(self) -> Any:
        """The first row of the page in memory, or None without rows."""
        while not self.current_rows and self.has_more_pages:
            self.fetch_next_page()
        return self.current_rows[0] if self.current_rows else None

    def __bool__(self) -> bool:
        return bool(self.current_rows)

    @property
    def was_applied(self) -> bool:
        """Whether the conditions of a write (IF) held."""
        if "[applied]" not in self.column_names:
            raise ProgrammingError("the statement has no conditions: it needs IF")
        return bool(self.one()[self.column_names.index("[applied]")])

    def _batches(self) -> Iterator[Any]:
        """Record batches with the rows that are not read yet, one for each page."""
        pyarrow, schema = arrow.pyarrow(), self._arrow_schema()
        while True:
            columns = self._cursor.arrow_columns()
            columns = [column[self._position :] for column in columns]
            arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema)]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
            page = self._cursor.next_page(self._timeout)
            if page is None:
                self._rows, self._position = [], 0
                return
            self._set(page)

    def _arrow_schema(self) -> Any:
        return arrow.schema(self._cursor.columns, self._cursor.types)

    def to_arrow(self) -> Any:
        """The rows that are not read yet as a pyarrow.Table. It needs pyarrow."""
        return arrow.pyarrow().Table.from_batches(self._batches(), self._arrow_schema())

    def to_arrow_reader(self) -> Any:
        """The same as a pyarrow.RecordBatchReader, which reads page by page."""
        return arrow.pyarrow().RecordBatchReader.from_batches(self._arrow_schema(), self._batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For libraries that take streams of Arrow, as polars and DuckDB do. It needs pyarrow."""
        return self.to_arrow_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self, **options: Any) -> Any:
        """The rows that are not read yet as a pandas.DataFrame. It needs pandas and pyarrow.

        Columns have types of Arrow, which keep null and 64-bit integers apart; `options` are those of `pyarrow.Table.to_pandas`.
        """
        options.setdefault("types_mapper", arrow.pandas().ArrowDtype)
        return self.to_arrow().to_pandas(**options)
