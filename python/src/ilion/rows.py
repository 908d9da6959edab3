"""Named tuples for rows and user types."""

from __future__ import annotations

import collections
import functools
import keyword
import re
from typing import Any


def _plain(name: str) -> str:
    """The name as an attribute: `system.count(*)` is `system_count`, as the stock driver has it."""
    begin = re.sub(r"^[^a-zA-Z0-9]+", "", name)
    return re.sub(r"[^a-zA-Z0-9]", "_", re.sub(r"[^a-zA-Z0-9_]+$", "", begin))


def _usable(names: tuple[str, ...]) -> list[str]:
    """The names, with those replaced that Python does not take, and numbers where several are the same."""
    usable: list[str] = []
    for index, name in enumerate(names):
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            name = f"field_{index}_"
        while name in usable:
            name += "_"
        usable.append(name)
    return usable


@functools.lru_cache(maxsize=1024)
def named_tuple(name: str, columns: tuple[str, ...]) -> Any:
    """A class for rows with these columns."""
    [usable] = _usable((name,))
    return collections.namedtuple(usable, _usable(tuple(map(_plain, columns))))
