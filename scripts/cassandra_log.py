"""The errors and warnings in the log of a Cassandra."""

import os
import re

# Warnings about the machine, and about a restart with files of another node.
EXPECTED = [
    r"WARN .*jemalloc shared library could not be preloaded",
    r"WARN .*JMX is not enabled to receive remote connections",
    r"WARN .*The JVM is not configured to stop on OutOfMemoryError",
    r"WARN .*Maximum number of memory map areas per process",
    r"WARN .*Detected high '.*read_ahead_kb' setting",
    r"WARN .*No host ID found, created",
    # The files name positions in the commit log of Ilion, which mean nothing in the one of Cassandra.
    r"WARN .*Origin of \d+ sstables is unknown or doesn't match the local node; commitLogIntervals for them were ignored",
]
COMPLAINT = re.compile(r"^(WARN|ERROR) ")
RECORD = re.compile(r"^(TRACE|DEBUG|INFO|WARN|ERROR) ")


def records(lines):
    """The lines of a log, those of a stack trace with the line that they belong to."""
    record = []
    for line in lines:
        if RECORD.match(line) and record:
            yield "".join(record)
            record = []
        record.append(line)
    if record:
        yield "".join(record)


def text_of(home):
    """The whole log since the last start."""
    with open(os.path.join(home, "logs", "node.log"), encoding="utf-8", errors="replace") as log:
        return log.read()


def complaints(home, expected=()):
    """Errors and warnings that are not expected."""
    found = [record for record in records(text_of(home).splitlines(keepends=True)) if COMPLAINT.match(record)]
    known = [re.compile(pattern) for pattern in [*EXPECTED, *expected]]
    return [record for record in found if not any(pattern.search(record) for pattern in known)]
