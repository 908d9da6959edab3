"""CQL types as types of Arrow."""

from __future__ import annotations

import importlib
from typing import Any, Sequence


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is missing: pip install 'ilion[{extra}]', or {name}") from error


def pyarrow() -> Any:
    """The module pyarrow."""
    return _module("pyarrow", "arrow")


def pandas() -> Any:
    """The module pandas."""
    return _module("pandas", "pandas")


def _scalars(pa: Any) -> dict[str, Any]:
    return {
        "ascii": pa.string(),
        "text": pa.string(),
        "blob": pa.binary(),
        "custom": pa.binary(),
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "counter": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "time": pa.time64("ns"),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "duration": pa.month_day_nano_interval(),
        # Arrow has no numbers of any size and scale, and few programs know its type for UUIDs.
        "varint": pa.string(),
        "decimal": pa.string(),
        "uuid": pa.string(),
        "timeuuid": pa.string(),
        "inet": pa.string(),
        "empty": pa.null(),
    }


def _type(pa: Any, scalars: dict[str, Any], described: tuple[Any, ...]) -> Any:
    kind, parts = described[0], described[1:]
    if kind in ("list", "set"):
        return pa.list_(_type(pa, scalars, parts[0]))
    if kind == "vector":
        return pa.list_(_type(pa, scalars, parts[0]), parts[1])
    if kind == "map":
        return pa.map_(_type(pa, scalars, parts[0]), _type(pa, scalars, parts[1]))
    if kind == "struct":
        return pa.struct([pa.field(name, _type(pa, scalars, field)) for name, field in parts[0]])
    return scalars[kind]


def schema(columns: Sequence[tuple[str, str]], described: Sequence[tuple[Any, ...]]) -> Any:
    """The schema of a result."""
    pa = pyarrow()
    scalars = _scalars(pa)
    return pa.schema([pa.field(name, _type(pa, scalars, kind)) for (name, _), kind in zip(columns, described)])
