#!/usr/bin/env bash
# A data directory that a real Cassandra filled is opened by Ilion where it is, read, written to, and opened by Cassandra
# again, which finds what Ilion wrote.
#   scripts/open-in-place.sh
# Needs Java 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" open_in_place.py "$@"
