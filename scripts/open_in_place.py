"""The work of open-in-place.sh: a data directory goes from Cassandra to Ilion and back."""

import os
import sys
import tempfile

import check_sstables_data as data
from check_sstables import Cassandra, Verdicts, equal, fill, read
from conftest import connect
from node import OwnNode


def write_again(node):
    """Every statement once more, so that counters grow and lists are written anew; returns the rows of each table."""
    cluster = connect(node)
    session = cluster.connect()
    before = read(session)
    for table in data.TABLES:
        for statement in table.statements():
            session.execute(statement)
    after = read(session)
    cluster.shutdown()
    return before, after


def rows_of(node):
    cluster = connect(node)
    rows = read(cluster.connect())
    cluster.shutdown()
    return rows


def check(verdicts, what, seen, expected):
    for table in data.TABLES:
        verdicts.check(f"{table.name}: {what}", lambda: equal(seen[table.name], expected[table.name]))


def main():
    home = os.path.join(tempfile.mkdtemp(), "cassandra")
    verdicts = Verdicts()
    cassandra = Cassandra(home)
    try:
        theirs = fill(cassandra)
        cassandra.tool("nodetool", "drain")
    finally:
        cassandra.stop()

    ilion = OwnNode(os.environ["ILION"], home)
    ilion.start()
    before, after = write_again(ilion)
    assert ilion.stop() == 0, ilion.last_words()
    check(verdicts, "Ilion reads what Cassandra wrote", before, theirs)

    cassandra = Cassandra(home)
    try:
        check(verdicts, "Cassandra reads what Ilion wrote", rows_of(cassandra), after)
    finally:
        cassandra.stop()
    return verdicts.close()


if __name__ == "__main__":
    sys.exit(main())
