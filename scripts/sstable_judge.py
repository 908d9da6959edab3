"""Checks of SSTables that Ilion flushed by Cassandra, shared by check_random_sstables.py and check_fixtures.py."""

import glob
import itertools
import os
import re
import struct
import subprocess

from check_sstables import PEER, Cassandra
from compare_answers import FIRST_TIMESTAMP, Server

FLOAT_DIGITS_MAX = 9
FORMATS = ("nb", "oa", "da")
# With this, Cassandra imports all formats.
YAML = "storage_compatibility_mode: NONE\n"


def equal(seen, expected, place=""):
    """Asserts that two answers are equal, and shows the first difference."""
    if isinstance(seen, list) and isinstance(expected, list):
        for number, (mine, other) in enumerate(zip(seen, expected)):
            equal(mine, other, f"{place}[{number}]")
        assert len(seen) == len(expected), f"{place} has {len(seen)} parts, not {len(expected)}"
    elif isinstance(seen, str) and isinstance(expected, str) and seen != expected:
        at = len(os.path.commonprefix([seen, expected]))
        shown = slice(max(at - 150, 0), at + 150)
        raise AssertionError(f"{place} from character {at}\nsaw      {seen[shown]}\nexpected {expected[shown]}")
    else:
        assert seen == expected, f"{place}\nsaw      {str(seen)[:1000]}\nexpected {str(expected)[:1000]}"


class Peer(Cassandra):
    """A real Cassandra that runs a tool many times at once."""

    def __init__(self, home, yaml=YAML):
        os.makedirs(home, exist_ok=True)
        settings = os.path.join(home, "more.yaml")
        with open(settings, "w") as file:
            file.write(yaml)
        os.environ["CASSANDRA_YAML"] = settings
        super().__init__(home)

    def tools(self, name, runs):
        """The output and exit code of each run."""
        names = itertools.count()
        outputs = [os.path.join(self.home, "tmp", f"{name}-{next(names)}") for _ in runs]
        lines = "".join("\t".join([output, *run]) + "\n" for output, run in zip(outputs, runs))
        done = subprocess.run([PEER, "tools", self.home, name], input=lines, capture_output=True, text=True)
        codes = done.stdout.split()
        assert len(codes) == len(runs), f"{name}: {len(codes)} of {len(runs)} runs ended\n{done.stderr}"
        said = []
        for output, code in zip(outputs, codes):
            with open(output, encoding="utf-8") as file:
                said.append((file.read(), int(code)))
            os.remove(output)
        return said


def address(node):
    return f"{node.host}:{node.port}"


def ask(server, text, timestamp=FIRST_TIMESTAMP):
    answer = server.all_pages(text, timestamp, 500)
    assert "error" not in answer, f"{answer}\n  {text[:2000]}"
    return answer


def rows(server, table, keyspace):
    """The answers to the table's queries, without names."""
    answers = (server.all_pages(question.replace("{ks}", keyspace), FIRST_TIMESTAMP, 500) for question in table.questions())
    return [answer.get("rows", answer) for answer in answers]


def ilion(*words):
    done = subprocess.run([os.environ["ILION"], *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"ilion {' '.join(words)}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
    return done.stdout


class Flushed:
    """A table that Ilion flushed: its name, the directory of its files, and Ilion's answers."""

    def __init__(self, name, keyspace, directory, answers):
        self.name, self.keyspace, self.directory, self.answers = name, keyspace, directory, answers
        self.files = sorted(glob.glob(os.path.join(directory, "*-Data.db")))


def flushed(root, name, keyspace, answers):
    [directory] = glob.glob(os.path.join(root, keyspace, name + "-*"))
    return Flushed(name, keyspace, directory, answers)


def import_all(cassandra, tables, verdicts):
    runs = [["import", "--copy-data", table.keyspace, table.name, table.directory] for table in tables if table.files]
    imported = [table for table in tables if table.files]
    for table, (said, code) in zip(imported, cassandra.tools("nodetool", runs)):
        verdicts.check(f"{table.keyspace}.{table.name}: nodetool import", lambda: equal([code, said.strip()], [0, ""]))


def same_rows(cassandra, tables, by_name, verdicts):
    server = Server(address(cassandra))
    for table in tables:
        name = f"{table.keyspace}.{table.name}: SELECT in Cassandra"
        verdicts.check(name, lambda: equal(rows(server, by_name[table.name], table.keyspace), table.answers))


def judge_files(cassandra, tables, verdicts):
    """The offline tools. Cassandra may be stopped."""
    files = [(table, file) for table in tables for file in table.files]
    # sstabledump comes last: it removes a Summary.db that was made with another min_index_interval than 128.
    for table, file in files:
        verdicts.check(f"{file}: ilion sstable verify", lambda: ilion("sstable", "verify", file))
    metadata = cassandra.tools("sstablemetadata", [[file] for _, file in files])
    for (table, file), (said, code) in zip(files, metadata):
        verdicts.check(f"{file}: sstablemetadata", lambda: same_metadata(file, said, code))
    dumps = cassandra.tools("sstabledump", [[file, "-l", "-t"] for _, file in files])
    for (table, file), (said, code) in zip(files, dumps):
        verdicts.check(f"{file}: sstabledump", lambda: same_dump(file, said, code))


def same_dump(file, said, code):
    assert code == 0, f"exit code {code}\n{said[-3000:]}"
    dumped = ilion("sstable", "dump", "-l", "-t", file)
    equal(same_floats(dumped).splitlines(), same_floats(said).splitlines())


def same_floats(text):
    """Java before 19 does not always print floats and doubles with the fewest digits that identify them, as later Java and Ilion do:
    this prints them as Python does."""
    return re.sub(r"(?<=:)-?[0-9]\.[0-9]+E-?[0-9]+(?=[,}])", lambda found: reprinted(found[0]), text)


def reprinted(number):
    digits = sum(map(str.isdigit, number.split("E")[0]))
    if digits > FLOAT_DIGITS_MAX:
        return repr(float(number))
    [single] = struct.unpack("f", struct.pack("f", float(number)))
    return f"{single:.{FLOAT_DIGITS_MAX - 1}e}"


def metadata_facts(text):
    """Without the path and the estimates for the current time, and with sorted columns: Cassandra's order is random."""
    lines = [line.rstrip() for line in text.splitlines()]
    lines = [line for line in lines if not re.match(r"SSTable: |Estimated droppable tombstones: ", line)]
    return [str(sorted(re.split(r", |: ", line))) if re.match("(Static|Regular)Columns: ", line) else line for line in lines]


def same_metadata(file, said, code):
    assert code == 0, f"exit code {code}\n{said[-3000:]}"
    equal(metadata_facts(ilion("sstable", "metadata", file)), metadata_facts(said))


def verify_all(cassandra, tables, verdicts):
    """Runs sstableverify on the imported tables; Cassandra is stopped."""
    said = cassandra.tools("sstableverify", [["-e", "-f", table.keyspace, table.name] for table in tables])
    for table, (text, code) in zip(tables, said):
        verdicts.check(f"{table.keyspace}.{table.name}: sstableverify", lambda: verified(text, code))


def verified(text, code):
    assert code == 0 and "Error verifying" not in text and "Corrupt" not in text, f"exit code {code}\n{text[-3000:]}"
