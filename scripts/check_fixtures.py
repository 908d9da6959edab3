"""Run by check-fixtures.sh: gives the statements of the fixtures to Ilion, and its files to Cassandra."""

import glob
import gzip
import json
import os
import re
import shutil
import sys
import tempfile
import time

from check_sstables import Verdicts
from compare_answers import Server
from node import OwnNode
from sstable_judge import FORMATS, Peer, address, ask, equal, flushed, import_all, judge_files, verify_all

EXPIRED_SECS = 2.5
# One needs a node with another partitioner; new tables with compact storage are refused.
LEFT_OUT = {"bop_kv", "compact_storage"}


def read(path):
    """Reads a file or its gzipped form."""
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    with gzip.open(path + ".gz", "rt", encoding="utf-8", newline="") as file:
        return file.read()


class Case:
    """A fixture in a format: its statements, and the rows that Cassandra answered."""

    def __init__(self, fixtures, name, format_):
        self.name, self.keyspace = name, f"fx_{format_}"
        self.expected = json.loads(read(os.path.join(fixtures, f"{name}-{format_}", "select.json")))
        text = read(os.path.join(fixtures, "statements", f"{name}.cql"))
        self.steps = [step for step in re.split(r";\n|(-- flush)\n", text) if step]

    def statement(self, text):
        return re.sub(r"\bfx\.", self.keyspace + ".", text)

    def run(self, server, flush):
        for step in self.steps:
            if step == "-- flush":
                flush()
            elif not step.startswith("CREATE KEYSPACE"):
                ask(server, self.statement(step), int(time.time() * 1_000_000))

    def schema(self):
        return [self.statement(step) for step in self.steps if re.match(r"(CREATE|ALTER) (TYPE|TABLE)", step)]


def cases_of(fixtures, format_, only):
    for directory in sorted(glob.glob(os.path.join(fixtures, f"*-{format_}"))):
        name = os.path.basename(directory).rsplit("-", 1)[0]
        if name not in LEFT_OUT and (not only or name in only):
            yield Case(fixtures, name, format_)


def answers(node, cases, maker):
    """The rows of SELECT * for each case, in the form of select.json."""
    maker.KEYSPACE = cases[0].keyspace
    cluster, session, raw = maker.connect(node.port)
    rows = {case.name: maker.select_all(session, raw, case.name)[1] for case in cases}
    cluster.shutdown()
    return rows


def create_keyspace(server, cases):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    ask(server, f"CREATE KEYSPACE {cases[0].keyspace} WITH replication = {replication}")


def fill(work, format_, cases, maker):
    """Ilion's files of the cases, with its answers."""
    keyspace = cases[0].keyspace
    settings = (f"sstable_format={format_}", "commitlog_sync=periodic")
    node = OwnNode(os.environ["ILION"], os.path.join(work, keyspace), settings)
    node.start()
    try:
        server = Server(address(node))
        create_keyspace(server, cases)
        for case in cases:
            case.run(server, lambda: node.flush(keyspace, case.name))
        time.sleep(EXPIRED_SECS)
        rows = answers(node, cases, maker)
        assert node.stop() == 0, node.last_words()
    finally:
        if node.is_running():
            node.kill()
    return [flushed(os.path.join(work, keyspace, "data"), case.name, keyspace, rows[case.name]) for case in cases]


def main(fixtures, only):
    sys.path.insert(0, fixtures)
    import make_fixtures as maker

    groups = {format_: list(cases_of(fixtures, format_, only)) for format_ in FORMATS}
    groups = {format_: cases for format_, cases in groups.items() if cases}
    work, verdicts = tempfile.mkdtemp(prefix="ilion-fixtures-"), Verdicts()
    ours = {format_: fill(work, format_, cases, maker) for format_, cases in groups.items()}
    everything = [table for tables in ours.values() for table in tables]
    for format_, cases in groups.items():
        for case, table in zip(cases, ours[format_]):
            name = f"{case.name}-{format_}: the rows of select.json"
            verdicts.check(name, lambda: equal(table.answers, case.expected["rows"]))
    cassandra = Peer(os.path.join(work, "cassandra"))
    try:
        server = Server(address(cassandra))
        for cases in groups.values():
            create_keyspace(server, cases)
            for statement in (statement for case in cases for statement in case.schema()):
                ask(server, statement, int(time.time() * 1_000_000))
        import_all(cassandra, everything, verdicts)
        for format_, cases in groups.items():
            theirs = answers(cassandra, cases, maker)
            for table in ours[format_]:
                name = f"{table.name}-{format_}: SELECT in Cassandra"
                verdicts.check(name, lambda: equal(theirs[table.name], table.answers))
    finally:
        cassandra.stop()
    verify_all(cassandra, everything, verdicts)
    judge_files(cassandra, everything, verdicts)
    print(f"{len(everything)} tables, {sum(len(table.files) for table in everything)} SSTables")
    if verdicts.failed:
        print(f"the files are in {work}")
    else:
        shutil.rmtree(work)
    return verdicts.close()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), set(sys.argv[2:])))
