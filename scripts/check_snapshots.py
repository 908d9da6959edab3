"""Run by check-snapshots.sh: takes the same snapshots with Ilion and with Cassandra, compares them, and restores each in the other."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from check_sstables import Cassandra, Verdicts, equal
from conftest import connect
from node import OwnNode

KEYSPACE = "snapped"
TABLE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
DROP_TIME = re.compile(r"USING TIMESTAMP \d+")
SIZES = re.compile(r"[0-9.]+ (bytes|KiB)")
COMPACTION = "compaction = {'class': 'SizeTieredCompactionStrategy'}"
SCHEMA = [
    f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
    f"CREATE TYPE {KEYSPACE}.address (street text, number int)",
    f"CREATE TABLE {KEYSPACE}.t (k int PRIMARY KEY, v text, w text, a frozen<address>, gone int) WITH {COMPACTION}",
    f"CREATE INDEX t_v ON {KEYSPACE}.t (v)",
    f"CREATE INDEX t_w ON {KEYSPACE}.t (w) USING 'sai'",
    f"CREATE TABLE {KEYSPACE}.empty (k int PRIMARY KEY) WITH {COMPACTION}",
]
READS = ["SELECT * FROM {}.t", "SELECT * FROM {}.t WHERE v = 'v1'", "SELECT * FROM {}.t WHERE w = 'w2'"]


def fill(node):
    cluster = connect(node)
    session = cluster.connect()
    for statement in SCHEMA:
        session.execute(statement)
    for k in range(50):
        insert = f"INSERT INTO {KEYSPACE}.t (k, v, w, a, gone) VALUES ({k}, 'v{k % 3}', 'w{k % 5}', {{street: 's', number: {k}}}, 1)"
        session.execute(insert)
    session.execute(f"ALTER TABLE {KEYSPACE}.t DROP gone")
    session.execute(f"DELETE FROM {KEYSPACE}.t WHERE k = 7")
    rows = read(session)
    cluster.shutdown()
    return rows


def read(session):
    return [sorted(map(str, session.execute(select.format(KEYSPACE)))) for select in READS]


def restore(node, directory, bring_in):
    """Makes the table anew from schema.cql, imports the files, and returns the rows."""
    cluster = connect(node)
    session = cluster.connect()
    session.execute(f"DROP KEYSPACE {KEYSPACE}")
    session.execute(SCHEMA[0])
    with open(os.path.join(directory, "schema.cql")) as file:
        for statement in file.read().split(";"):
            if statement.strip():
                session.execute(statement)
    bring_in(directory)
    rows = read(session)
    cluster.shutdown()
    return rows


def manifest(directory):
    with open(os.path.join(directory, "manifest.json")) as file:
        text = file.read()
    said = json.loads(text)
    # Cassandra has the files in any order.
    text = re.sub(r'"20[^"]*"', "TIME", re.sub(r"\[.*\]", "FILES", text))
    return list(said), sorted(said["files"]), said["expires_at"], said["ephemeral"], text


def statements(directory):
    with open(os.path.join(directory, "schema.cql")) as file:
        return DROP_TIME.sub("USING TIMESTAMP n", TABLE_ID.sub("ID", file.read()))


def others(directory):
    """Files that are not of SSTables, and directories."""
    return sorted(name for name in os.listdir(directory) if not name.startswith("nb-"))


def listed(text):
    """The list of snapshots without sizes and times, in any order of the lines."""
    lines = [re.sub(r"20\S+Z", "TIME", SIZES.sub("SIZE", line)) for line in text.splitlines()]
    return sorted(" ".join(line.split()) for line in lines)


def run(node, *words):
    command = [node.binary, *words, "--admin-port", str(node.admin_port)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def snapshot_of(root, table):
    [directory] = glob.glob(os.path.join(root, KEYSPACE, table + "-*", "snapshots", "s"))
    return directory


def main():
    work = tempfile.mkdtemp()
    verdicts = Verdicts()
    check = verdicts.check
    ilion = OwnNode(os.environ["ILION"], os.path.join(work, "ilion"))
    ilion.start()
    rows = fill(ilion)
    told = run(ilion, "snapshot", "-t", "s", KEYSPACE)
    our_list = run(ilion, "list-snapshots")
    cassandra = Cassandra(os.path.join(work, "cassandra"))
    try:
        check("same rows", lambda: equal(fill(cassandra), rows))
        check("same words", lambda: equal(told, cassandra.tool("nodetool", "snapshot", "-t", "s", KEYSPACE)))
        ours, theirs = os.path.join(work, "ilion", "data"), os.path.join(work, "cassandra", "data")
        check("same list", lambda: equal(listed(our_list), listed(cassandra.tool("nodetool", "listsnapshots"))))
        for table in ["t", "empty"]:
            pair = snapshot_of(ours, table), snapshot_of(theirs, table)
            for what in [manifest, statements, others]:
                check(f"{table}: same {what.__name__}", lambda: equal(*map(what, pair)))

        # nodetool import wants the names of keyspace and table in the path.
        kept = {name: os.path.join(work, name, KEYSPACE, "t") for name in ["of-ilion", "of-cassandra"]}
        shutil.copytree(snapshot_of(ours, "t"), kept["of-ilion"])
        shutil.copytree(snapshot_of(theirs, "t"), kept["of-cassandra"])

        def to_cassandra(directory):
            told = cassandra.tool("nodetool", "import", "--copy-data", KEYSPACE, "t", directory)
            assert not told.strip(), told

        def to_ilion(directory):
            run(ilion, "sstable", "import", "--copy-data", KEYSPACE, "t", directory)

        check("Ilion's in Cassandra", lambda: equal(restore(cassandra, kept["of-ilion"], to_cassandra), rows))
        check("Cassandra's in Ilion", lambda: equal(restore(ilion, kept["of-cassandra"], to_ilion), rows))

        # A snapshot that is moved as a directory is one there, too.
        for node_files, copied in [(ours, "of-cassandra"), (theirs, "of-ilion")]:
            [table] = [
                directory
                for directory in glob.glob(os.path.join(node_files, KEYSPACE, "t-*"))
                if not os.path.exists(os.path.join(directory, "snapshots", "s"))
            ]
            shutil.copytree(kept[copied], os.path.join(table, "snapshots", "moved"))
        check("moved to Ilion", lambda: equal("moved" in run(ilion, "list-snapshots"), True))
        check("moved to Cassandra", lambda: equal("moved" in cassandra.tool("nodetool", "listsnapshots"), True))
        run(ilion, "clear-snapshot", "-t", "moved")
        check("cleared in Ilion", lambda: equal("moved" in run(ilion, "list-snapshots"), False))
    finally:
        cassandra.stop()
        assert ilion.stop() == 0, ilion.last_words()
    shutil.rmtree(work)
    return verdicts.close()


if __name__ == "__main__":
    sys.exit(main())
