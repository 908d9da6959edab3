#!/usr/bin/env bash
# Cassandra checks files that Ilion flushed: sstabledump prints the same as for Cassandra's own files of the same statements,
# nodetool import accepts them and SELECT finds the same rows, and sstableverify finds no errors.
#   scripts/check-sstables.sh [TABLE...]
# Needs Java 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" check_sstables.py "$@"
