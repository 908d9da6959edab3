"""Sends a real Cassandra the schema statements that the test `ddl_law` sent to Ilion, and shows where the two disagree.

    DDL_RECORD=/tmp/ddl.jsonl DDL_STATEMENTS=3000 cargo test -p ilion-query --test query ddl_law
    python3 scripts/compare_ddl.py /tmp/ddl.jsonl HOST:PORT [--peer COMMAND]

Needs the Python driver. Statements that are known to crash a Cassandra (names of indexes longer than file names, types some
hundred levels deep, names of 64 KiB) are skipped. If it still crashes, the statement is shown; if there is a COMMAND, it is called
with `stop`, `wipe` and `start`, and the comparison continues where the recording begins a new directory. After a disagreement
the object exists on one side only, so statements that name it are skipped, too. Other disagreements are counted and shown by
the two answers.
"""

import argparse
import collections
import json
import re
import subprocess

from cassandra.cluster import Cluster, NoHostAvailable

CREATED = re.compile(
    r"CREATE (?:CUSTOM )?(?:KEYSPACE|TABLE|TYPE|INDEX|FUNCTION|MATERIALIZED VIEW) (\S+)", re.IGNORECASE
)
NESTING = ("list<", "set<", "tuple<", "frozen<", "FrozenType(")
LEVELS_MAX = 150
SHOWN_MAX = 3


def is_deadly(cql):
    """Whether the statement crashes a Cassandra 5.0."""
    name = CREATED.match(cql)
    long_index = " INDEX " in cql and name and len(name.group(1)) > 250
    depth = max(cql.count(word) for word in NESTING)
    return bool(long_index) or depth > LEVELS_MAX or any(len(word) > 60_000 for word in re.split(r"[ ,()']", cql))


def is_ours_alone(cql):
    """Whether the statement is for Ilion only: functions in Lua."""
    return " LANGUAGE lua " in cql


def names_of(cql):
    """The objects that a statement may make or change, and those that contain them."""
    words = (word.strip("\"'(),;<>") for word in re.split(r"[\s(),<>]", cql))
    named = {word for word in words if "." in word or word.startswith("n")}
    return named | {word.rsplit(".", 1)[-1].strip('"') for word in named if word.rsplit(".", 1)[-1].startswith("n")}


def kind(message):
    """A message without its names and numbers."""
    message = re.sub(r"<Error from server: code=\S+ \[[^]]*\] message=", "", message or "")
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "..", message)
    return re.sub(r"[a-zA-Z_]*n?\d+\w*|x{5,}\w*", "..", message)[:90]


class Peer:
    """The Cassandra, and the command that restarts it."""

    def __init__(self, address, command):
        self.host, self.port = address.rsplit(":", 1)
        self.command = command
        self.deaths = []
        self.connect()

    def connect(self):
        self.cluster = Cluster([self.host], port=int(self.port), connect_timeout=60, schema_metadata_enabled=False)
        self.session = self.cluster.connect()
        self.session.default_timeout = 120

    def ask(self, cql, is_again=False):
        """Returns the error of a statement, or `None` if it was accepted. `ConnectionError`: the Cassandra has crashed."""
        try:
            self.session.execute(cql)
            return None
        except UnicodeDecodeError:
            # Accepted; Cassandra writes the name in Latin-1 in its answer.
            return None
        except Exception as error:  # noqa: BLE001: whatever it says is an answer
            said = str(error)
            if not isinstance(error, NoHostAvailable) or "Error from server" in said:
                return said or type(error).__name__
            if is_again:
                raise ConnectionError(said) from error
            self.reconnect()
            return self.ask(cql, is_again=True)

    def reconnect(self):
        """Connects again: after an internal error of the server, the driver may regard it as down."""
        self.cluster.shutdown()
        try:
            self.connect()
        except NoHostAvailable as error:
            raise ConnectionError(str(error)) from error

    def begin(self, cql):
        """Records that the Cassandra crashed at this statement. True if a new one is running."""
        self.deaths.append(cql)
        print(f"the Cassandra crashed at: {cql[:300]}", flush=True)
        if self.command is None:
            return False
        self.cluster.shutdown()
        for verb in ("stop", "wipe", "start"):
            subprocess.run([*self.command.split(), verb], check=verb == "start", stdout=subprocess.DEVNULL)
        self.connect()
        return True

    def drop_all(self):
        for row in self.session.execute("SELECT keyspace_name FROM system_schema.keyspaces"):
            if not row.keyspace_name.startswith("system"):
                name = row.keyspace_name.replace('"', '""')
                self.session.execute(f'DROP KEYSPACE "{name}"')


class Comparison:
    """The counts and differences so far."""

    def __init__(self, peer):
        self.peer = peer
        self.counts, self.differences = collections.Counter(), collections.defaultdict(list)
        self.apart, self.is_lost = set(), False

    def ask(self, cql, ours):
        names = names_of(cql)
        if self.is_lost or is_deadly(cql) or is_ours_alone(cql) or names & self.apart:
            self.counts["skipped"] += 1
            if ours is None:
                self.apart |= names - {""}
            return
        theirs = self.peer.ask(cql)
        if (ours is None) == (theirs is None):
            self.counts["agreed: accepted" if ours is None else "agreed: refused"] += 1
            return
        side = "only Ilion accepts" if ours is None else "only Cassandra accepts"
        self.counts[side] += 1
        said = kind(ours or theirs)
        self.differences[(side, said)].append(f"{cql[:220]}\n          {(ours or theirs)[-300:]}")
        self.apart |= names

    def begin(self):
        """Begins with an empty Cassandra, where the recording begins a new directory."""
        self.peer.drop_all()
        self.apart, self.is_lost = set(), False

    def show(self):
        for what, count in sorted(self.counts.items()):
            print(f"{count:7} {what}")
        print(f"{len(self.peer.deaths):7} times the Cassandra ended")
        for (side, message), statements in sorted(self.differences.items(), key=lambda item: -len(item[1])):
            print(f"\n{len(statements):5} {side}: {message}")
            for cql in statements[:SHOWN_MAX]:
                print(f"        {cql}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded")
    parser.add_argument("address")
    parser.add_argument("--peer", metavar="COMMAND", help="takes `stop`, `wipe` and `start`")
    given = parser.parse_args()
    comparison = Comparison(Peer(given.address, given.peer))
    comparison.begin()
    with open(given.recorded, encoding="utf-8") as lines:
        for line in lines:
            asked = json.loads(line)
            try:
                if "cql" in asked:
                    comparison.ask(asked["cql"], asked["refused"])
                else:
                    comparison.begin()
            except ConnectionError:
                if not comparison.peer.begin(asked.get("cql", "a new directory")):
                    break
                comparison.is_lost = "cql" in asked
    comparison.show()


if __name__ == "__main__":
    main()
