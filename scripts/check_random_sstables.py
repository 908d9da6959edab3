"""Run by check-random-sstables.sh: gives random tables to Ilion, and its files to Cassandra."""

import os
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from check_sstables import Verdicts
from compare_answers import Server
from node import OwnNode
from random_tables import FLUSH, Table
from sstable_judge import FORMATS, Peer, address, ask, equal, flushed, import_all, judge_files, rows, same_rows, verify_all

# Time for cells with a time to live of one second to expire.
EXPIRED_SECS = 2.5
CONNECTIONS = 4


def keyspace_of(prefix, format_):
    return f"{prefix}_{format_}"


def create_keyspace(node, keyspace):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    ask(Server(address(node)), f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")


def create(node, keyspace, tables):
    create_keyspace(node, keyspace)
    server = Server(address(node))
    for table in tables:
        for statement in table.schema:
            ask(server, statement.replace("{ks}", keyspace))


def phases(table):
    """The steps between flushes."""
    parts = [[]]
    for step in table.steps:
        if step == FLUSH:
            parts.append([])
        else:
            parts[-1].append(step)
    return parts


def run_steps(server, keyspace, steps):
    for timestamp, text in steps:
        text = text.replace("{ks}", keyspace)
        # A change of the schema happens after all writes before it.
        ask(server, text, timestamp if timestamp is not None else int(time.time() * 1_000_000))


def fill(node, keyspace, tables, flush):
    parts = [phases(table) for table in tables]

    def work(lane):
        server = Server(address(node))
        for table_parts in parts[lane::CONNECTIONS]:
            if number < len(table_parts):
                run_steps(server, keyspace, table_parts[number])

    for number in range(max(map(len, parts))):
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(work, range(CONNECTIONS)))
        flush()


def alter(node, keyspace, tables):
    """The changes of the schema alone."""
    server = Server(address(node))
    for table in tables:
        run_steps(server, keyspace, [step for step in table.steps if step != FLUSH and step[0] is None])


def fill_ilion(work, format_, tables):
    """Ilion's files of the tables in a format, with its answers."""
    keyspace = keyspace_of("r", format_)
    settings = (f"sstable_format={format_}", "commitlog_sync=periodic")
    node = OwnNode(os.environ["ILION"], os.path.join(work, keyspace), settings)
    node.start()
    try:
        create(node, keyspace, tables)
        fill(node, keyspace, tables, lambda: node.flush(keyspace))
        time.sleep(EXPIRED_SECS)
        server = Server(address(node))
        answers = {table.name: rows(server, table, keyspace) for table in tables}
        assert node.stop() == 0, node.last_words()
    finally:
        if node.is_running():
            node.kill()
    data = os.path.join(work, keyspace, "data")
    return [flushed(data, table.name, keyspace, answers[table.name]) for table in tables]


def fill_cassandra(cassandra, format_, tables):
    """The same statements to Cassandra itself, and empty tables for the import."""
    written, imported = keyspace_of("w", format_), keyspace_of("r", format_)
    create(cassandra, written, tables)
    # Cassandra fails if a column is dropped while a memtable contains it.
    fill(cassandra, written, tables, lambda: cassandra.tool("nodetool", "flush", written))
    create(cassandra, imported, tables)
    alter(cassandra, imported, tables)
    time.sleep(EXPIRED_SECS)
    server = Server(address(cassandra))
    return {table.name: rows(server, table, written) for table in tables}


def report_time(what, since):
    print(f"{what}: {time.monotonic() - since:.0f} s", flush=True)


def main(seed, count, only):
    print(f"seed {seed}", flush=True)
    indexes = range(count) if only is None else [only]
    tables = {table.name: table for table in (Table(seed, index, FORMATS[index % len(FORMATS)]) for index in indexes)}
    groups = {
        format_: group
        for number, format_ in enumerate(FORMATS)
        if (group := [table for table in tables.values() if table.index % len(FORMATS) == number])
    }
    work, verdicts, start = tempfile.mkdtemp(prefix="ilion-random-"), Verdicts(), time.monotonic()
    ours = {format_: fill_ilion(work, format_, group) for format_, group in groups.items()}
    everything = [table for group in ours.values() for table in group]
    report_time("Ilion filled", start)
    cassandra = Peer(os.path.join(work, "cassandra"))
    try:
        for format_, group in groups.items():
            theirs = fill_cassandra(cassandra, format_, group)
            for table in ours[format_]:
                name = f"{table.keyspace}.{table.name}: the same rows as in Cassandra that wrote them"
                verdicts.check(name, lambda: equal(table.answers, theirs[table.name]))
        report_time("Cassandra filled", start)
        import_all(cassandra, everything, verdicts)
        same_rows(cassandra, everything, tables, verdicts)
        report_time("imported", start)
    finally:
        cassandra.stop()
    verify_all(cassandra, everything, verdicts)
    report_time("verified", start)
    judge_files(cassandra, everything, verdicts)
    report_time("dumped", start)
    print(f"{len(tables)} tables, {sum(len(table.files) for table in everything)} SSTables")
    if verdicts.failed:
        print(f"the files are in {work}; again: scripts/check-random-sstables.sh {seed} {count} INDEX")
    else:
        shutil.rmtree(work)
    return verdicts.close()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    given_seed = numbers[0] if numbers else random.randrange(2**32)
    sys.exit(main(given_seed, numbers[1] if len(numbers) > 1 else 200, numbers[2] if len(numbers) > 2 else None))
