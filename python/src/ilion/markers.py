"""Bind markers of the stock driver, `%s` and `%(name)s`, as those of CQL. Values are bound, never written into the text."""

from __future__ import annotations

import functools
import re

from ilion.errors import BindError

# What is not a marker: text, names in quotes, comments. Then markers of the driver, its %%, and markers of CQL.
_PARTS = re.compile(
    r"""(?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" | \$\$.*?\$\$ | --[^\n]* | //[^\n]* | /\*.*?\*/ )
      | (?P<position> %s ) | %\((?P<name> [^)]* )\)s | (?P<percent> %% ) | (?P<cql> \? | :["a-zA-Z] )""",
    re.DOTALL | re.VERBOSE,
)
_MARKER = re.compile(r"(?<!%)(?:%%)*%(?:s|\([^)]*\)s)")


@functools.lru_cache(maxsize=1024)
def translate(query: str) -> str:
    """The query with the markers of CQL. One without markers of the driver is returned as it is."""
    if "%" not in query:
        return query
    found = list(_PARTS.finditer(query))
    if not any(part["position"] or part["name"] is not None for part in found):
        return query
    if any(part["cql"] for part in found):
        raise BindError("the statement mixes markers of the driver (%s) with those of CQL (?): use one kind")
    return _PARTS.sub(_replace, query)


def _replace(part: re.Match[str]) -> str:
    if part["quoted"]:
        is_text = not part["quoted"].startswith(("--", "//", "/*"))
        if is_text and _MARKER.search(part["quoted"]):
            raise BindError(f"{part['quoted']}: a marker has no quotes around it; write %%s for this text")
        return part["quoted"].replace("%%", "%")
    if part["position"]:
        return "?"
    if part["percent"]:
        return "%"
    name = part["name"].replace('"', '""')
    return f':"{name}"'
