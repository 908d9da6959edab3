"""Asks a real Cassandra the schema statements that the law of DDL has asked Ilion, and tells where they disagree.

    DDL_RECORD=/tmp/ddl.jsonl DDL_STATEMENTS=3000 cargo test -p ilion-query --test query ddl_law
    python3 scripts/compare_ddl.py /tmp/ddl.jsonl HOST:PORT

Needs the Python driver. Statements that are known to end a Cassandra (names of indexes longer than file names, types some
hundred levels deep, names of 64 KiB) are passed over. After a disagreement the object exists on one side only, so statements that
mention it are passed over as well. What is left is counted, and shown by what the two said.
"""

import collections
import json
import re
import sys

from cassandra.cluster import Cluster, NoHostAvailable

CREATED = re.compile(
    r"CREATE (?:CUSTOM )?(?:KEYSPACE|TABLE|TYPE|INDEX|FUNCTION|MATERIALIZED VIEW) (\S+)", re.IGNORECASE
)
SHOWN_MAX = 3


def is_deadly(cql):
    """Whether a Cassandra 5.0 does not survive it."""
    name = CREATED.match(cql)
    long_index = " INDEX " in cql and name and len(name.group(1)) > 250
    depth = max(cql.count(word) for word in ("list<", "tuple<", "frozen<", "FrozenType("))
    return bool(long_index) or depth > 50 or any(len(word) > 60_000 for word in re.split(r"[ ,()']", cql))


def names_of(cql):
    """The objects that a statement may make or change, and what it stands in."""
    return {word.strip("\"'(),;<>") for word in re.split(r"[\s(),<>]", cql) if "." in word or word.startswith("n")}


def kind(message):
    """A message without its names and numbers."""
    message = re.sub(r"<Error from server: code=\S+ \[[^]]*\] message=", "", message or "")
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "..", message)
    return re.sub(r"[a-zA-Z_]*n?\d+\w*|x{5,}\w*", "..", message)[:90]


def main():
    recorded, address = sys.argv[1:3]
    host, port = address.rsplit(":", 1)
    session = Cluster([host], port=int(port), connect_timeout=60).connect()
    session.default_timeout = 120
    for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces"):
        if not row.keyspace_name.startswith("system"):
            session.execute(f'DROP KEYSPACE "{row.keyspace_name}"')
    counts, differences, apart = collections.Counter(), collections.defaultdict(list), set()
    with open(recorded, encoding="utf-8") as lines:
        for line in lines:
            asked = json.loads(line)
            cql, ours = asked["cql"], asked["refused"]
            names = names_of(cql)
            if is_deadly(cql) or names & apart:
                counts["passed over"] += 1
                if ours is None:
                    apart |= names - {""}
                continue
            try:
                session.execute(cql)
                theirs = None
            except Exception as error:  # noqa: BLE001: whatever it says is an answer
                theirs = str(error)
                if isinstance(error, NoHostAvailable) and "Error from server" not in theirs:
                    print(f"the Cassandra has ended at: {cql[:300]}")
                    break
            if (ours is None) == (theirs is None):
                counts["agreed: accepted" if ours is None else "agreed: refused"] += 1
                continue
            side = "only Ilion accepts" if ours is None else "only Cassandra accepts"
            counts[side] += 1
            differences[(side, kind(ours or theirs))].append(cql)
            apart |= names
    for what, count in sorted(counts.items()):
        print(f"{count:7} {what}")
    for (side, message), statements in sorted(differences.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(statements):5} {side}: {message}")
        for cql in statements[:SHOWN_MAX]:
            print(f"        {cql[:220]}")


if __name__ == "__main__":
    main()
