#!/usr/bin/env bash
# Random tables and data written into Ilion and flushed as nb, oa and da. Cassandra checks the files: nodetool import and SELECT, the
# same statements run by Cassandra itself, sstableverify, and sstabledump and sstablemetadata compared with Ilion's own.
#   scripts/check-random-sstables.sh [SEED [TABLES [INDEX]]]     200 tables; INDEX: only this one of them
# Needs a JDK 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" check_random_sstables.py "$@"
