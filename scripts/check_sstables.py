"""Run by check-sstables.sh: gives the same statements to Ilion and to Cassandra and compares their files."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import check_sstables_data as data
from conftest import connect
from node import Node, OwnNode

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cassandra", "peer")
# These differ between two runs of the same statements: positions in the file, and values from the server's clock.
UNSTABLE = {"position", "local_delete_time", "expires_at", "expired"}
TIME_UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$")


class Cassandra(Node):
    """A real Cassandra and its tools."""

    def __init__(self, home):
        self.home = home
        said = subprocess.run([PEER, "start", home], check=True, stdout=subprocess.PIPE, text=True).stdout
        super().__init__("127.0.0.1", int(said.split()[-1]))

    def tool(self, *words):
        done = subprocess.run([PEER, "tool", self.home, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, f"{words[0]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def stop(self):
        subprocess.run([PEER, "stop", self.home], check=True)


class Verdicts:
    """Counts passed and failed checks."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, name, work):
        try:
            work()
            self.passed += 1
        except AssertionError as reason:
            self.failed += 1
            print(f"FAILED {name}\n{reason}\n")

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def fill(node):
    """Runs all statements; returns the rows of each table."""
    cluster = connect(node)
    session = cluster.connect()
    for statement in data.schema():
        session.execute(statement)
    write(session)
    rows = read(session)
    cluster.shutdown()
    return rows


def write(session):
    for table in data.TABLES:
        for statement in table.statements():
            session.execute(statement)


def read(session):
    return {table.name: [tuple(map(str, row)) for row in session.execute(table.select())] for table in data.TABLES}


def directory_of(root, table):
    [directory] = glob.glob(os.path.join(root, data.KEYSPACE, table.name + "-*"))
    return directory


def dump(cassandra, directory):
    """The partitions of the SSTable in a directory, without the parts that may differ."""
    files = glob.glob(os.path.join(directory, "*-Data.db"))
    assert len(files) == 1, f"one SSTable in {directory}, but there are {files}"
    printed = cassandra.tool("sstabledump", files[0], "-l", "-t")
    partitions = [stable(json.loads(line)) for line in printed.splitlines() if line.startswith("{")]
    assert partitions, f"sstabledump printed no partition:\n{printed[:1000]}"
    return partitions


def stable(value):
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    # Elements of lists are in the order of ids that the server made.
    return "(time)" if isinstance(value, str) and TIME_UUID.match(value) else value


def same_dump(cassandra, table, ours, theirs):
    ours, theirs = dump(cassandra, ours), dump(cassandra, theirs)
    if table.is_counter:
        ours, theirs = ([partition["partition"] for partition in side] for side in (ours, theirs))
    assert len(ours) == len(theirs), f"{len(ours)} partitions, Cassandra has {len(theirs)}"
    for mine, other in zip(ours, theirs):
        assert mine == other, f"ours:   {json.dumps(mine)[:3000]}\ntheirs: {json.dumps(other)[:3000]}"


def has_component(directory, name):
    assert glob.glob(os.path.join(directory, f"*-{name}")), f"no {name} in {directory}"


def equal(seen, expected):
    assert seen == expected, f"saw      {str(seen)[:1000]}\nexpected {str(expected)[:1000]}"


def import_all(cassandra, ours):
    """Imports Ilion's files into a new keyspace and returns its rows."""
    cluster = connect(cassandra)
    session = cluster.connect()
    session.execute(f"DROP KEYSPACE {data.KEYSPACE}")
    for statement in data.schema():
        session.execute(statement)
    for table in data.TABLES:
        cassandra.tool("nodetool", "import", "--copy-data", data.KEYSPACE, table.name, directory_of(ours, table))
    rows = read(session)
    cluster.shutdown()
    return rows


def main():
    work = tempfile.mkdtemp()
    verdicts = Verdicts()
    only = set(sys.argv[1:])
    if only:
        data.TABLES = [table for table in data.TABLES if table.name in only]
    ilion = OwnNode(os.environ["ILION"], os.path.join(work, "ilion"))
    ilion.start()
    ours = fill(ilion)
    ilion.flush(data.KEYSPACE)
    assert ilion.stop() == 0, ilion.last_words()
    our_files = os.path.join(work, "ilion", "data")

    cassandra = Cassandra(os.path.join(work, "cassandra"))
    try:
        theirs = fill(cassandra)
        cassandra.tool("nodetool", "flush", data.KEYSPACE)
        their_files = os.path.join(work, "cassandra", "data")
        for table in data.TABLES:
            verdicts.check(f"{table.name}: same rows", lambda: equal(ours[table.name], theirs[table.name]))
            directories = directory_of(our_files, table), directory_of(their_files, table)
            verdicts.check(f"{table.name}: same dump", lambda: same_dump(cassandra, table, *directories))
            component = {data.large: "Cells.db", data.queue: "Deleted.db"}.get(table.fill)
            if component is not None:
                verdicts.check(f"{table.name}: {component}", lambda: has_component(directories[0], component))
        imported = import_all(cassandra, our_files)
        for table in data.TABLES:
            verdicts.check(f"{table.name}: imported", lambda: equal(imported[table.name], ours[table.name]))
    finally:
        cassandra.stop()
    for table in data.TABLES:
        verdicts.check(
            f"{table.name}: verified", lambda: cassandra.tool("sstableverify", "-e", "-f", data.KEYSPACE, table.name)
        )
    shutil.rmtree(work)
    return verdicts.close()


if __name__ == "__main__":
    sys.exit(main())
