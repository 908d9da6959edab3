#!/usr/bin/env bash
# Files that Ilion flushed, in the hands of Cassandra: sstabledump prints them as it prints Cassandra's own of the same
# statements, nodetool import takes them and SELECT finds the same rows, sstableverify finds no fault.
#   scripts/check-sstables.sh [TABLE...]
# Needs Java 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" check_sstables.py "$@"
