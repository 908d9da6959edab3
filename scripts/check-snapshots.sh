#!/usr/bin/env bash
# Snapshots of Ilion and of Cassandra: the same layout, manifest and schema.cql; each lists, reads and restores those of the other.
#   scripts/check-snapshots.sh
# Needs Java 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" check_snapshots.py "$@"
