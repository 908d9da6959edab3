"""What a case showed: judged from what the clients noted and what the nodes have in the end."""

import collections

from cassandra import ConsistencyLevel
from cassandra.policies import WhiteListRoundRobinPolicy

from clients import CONDITIONS, COUNTERS, connect

TABLES = ("rows", "registers", "counts", "conditions")


class Verdict:
    """One line of the table."""

    columns = (
        "case",
        "writes",
        "lost",
        "reads",
        "stale",
        "counters",
        "conditions",
        "replicas",
        "SSTables",
        "gap in writes",
        "gap in reads",
        "failed requests",
    )

    def __init__(self, name):
        self.name = name
        self.problems = []
        self.failures = {}
        self.cells = {}

    def is_good(self):
        return not self.problems

    def row(self):
        return [self.name, *(str(self.cells.get(column, "?")) for column in self.columns[1:])]


def contents(nodes, keyspace):
    """The rows of each table, as each node reads them at ONE."""
    found = {}
    for node in nodes:
        cluster = connect([node.host], node.port, ConsistencyLevel.ONE, WhiteListRoundRobinPolicy([node.host]))
        session = cluster.connect()
        for table in TABLES:
            rows = session.execute(f"SELECT * FROM {keyspace}.{table}")
            found[node.number, table] = sorted(tuple(row) for row in rows)
        cluster.shutdown()
    return found


def forks(applied):
    """Values that two conditional updates have replaced: only one may. Pure."""
    counted = collections.Counter((key, before) for key, before, _ in applied)
    return [place for place, count in counted.items() if count > 1]


def judge(name, load, found, nodes):
    """The verdict about a load that has ended. Pure."""
    verdict = Verdict(name)
    cells, problems = verdict.cells, verdict.problems
    numbers = [node.number for node in nodes]
    acknowledged = {row for writer in load.writers for row in writer.acknowledged}
    lost = 0
    for number in numbers:
        there = {(row[0], row[1]) for row in found[number, "rows"]}
        registers = dict(found[number, "registers"])
        late = [key for key, value in enumerate(load.written) if registers.get(key, 0) < value]
        missing = len(acknowledged - there) + len(late)
        if missing:
            problems.append(f"node {number} lacks {missing} acknowledged writes")
        lost = max(lost, missing)
    cells["writes"] = len(acknowledged) + sum(setter.succeeded for setter in load.setters)
    cells["lost"] = lost
    cells["reads"] = sum(reader.succeeded for reader in load.readers)
    stale = [seen for reader in load.readers for seen in reader.stale]
    cells["stale"] = len(stale)
    if stale:
        problems.append(f"{len(stale)} stale reads, such as (register, at least, found) {stale[0]}")
    judge_counters(verdict, load, found, numbers)
    judge_conditions(verdict, load, found, numbers)
    differing = [table for table in TABLES if any(found[number, table] != found[numbers[0], table] for number in numbers)]
    cells["replicas"] = "differ" if differing else "equal"
    if differing:
        problems.append(f"nodes have different rows in {', '.join(differing)}")
    for column, clients in (("gap in writes", [*load.writers, *load.setters]), ("gap in reads", load.readers)):
        cells[column] = f"{max(client.gap for client in clients):.1f} s"
    failed = sum(client.failed for client in load.clients)
    tried = failed + sum(client.succeeded for client in load.clients)
    cells["failed requests"] = f"{failed} of {tried}"
    verdict.failures = dict(load.failures)
    problems.extend(f"a client of kind {client.kind} ended: {client.problem}" for client in load.clients if client.problem)
    if any(client.succeeded == 0 for client in load.clients):
        problems.append("a client has not succeeded once")
    return verdict


def judge_counters(verdict, load, found, numbers):
    counted = unknown = 0
    is_exact = True
    for key in range(COUNTERS):
        least = sum(counter.added[key] for counter in load.counters)
        most = least + sum(counter.unknown[key] for counter in load.counters)
        counted, unknown = counted + least, unknown + most - least
        for number in numbers:
            value = dict(found[number, "counts"]).get(key, 0)
            if not least <= value <= most:
                is_exact = False
                verdict.problems.append(f"counter {key} is {value} on node {number}, and should be {least} to {most}")
    verdict.cells["counters"] = f"{'exact' if is_exact else 'WRONG'}: {counted}" + (f" to {counted + unknown}" if unknown else "")


def judge_conditions(verdict, load, found, numbers):
    applied = [done for client in load.conditionals for done in client.applied]
    forked = forks(applied)
    # What is there in the end comes after all that was applied: no applied update has replaced it.
    replaced = {(key, before) for key, before, _ in applied}
    for number in numbers:
        for key, value in found[number, "conditions"]:
            if (key, value) in replaced:
                forked.append((key, value))
    missing = CONDITIONS - len(found[numbers[0], "conditions"])
    verdict.cells["conditions"] = f"{len(applied)}, {len(forked)} forked"
    if forked:
        verdict.problems.append(f"{len(forked)} values were replaced twice, such as (key, value) {forked[0]}")
    if missing:
        verdict.problems.append(f"{missing} rows of conditional updates are missing")


def table(verdicts):
    """The verdicts as a table of Markdown."""
    rows = [list(Verdict.columns), *(verdict.row() for verdict in verdicts)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(Verdict.columns))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
