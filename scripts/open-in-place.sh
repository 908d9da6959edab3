#!/usr/bin/env bash
# A data directory that a real Cassandra filled is opened in place by Ilion, read and written, and then opened by Cassandra
# again, which must find the data that Ilion wrote.
#   scripts/open-in-place.sh [VERSION]     of Cassandra: 5.0.9, or a 4.0.x or 4.1.x
# Needs Java 17 (for 4.x: Java 11, which scripts/cassandra/peer gets), Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and
# Python. ILION names the binary.
set -euo pipefail
export CASSANDRA_VERSION=${1:-5.0.9}
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" open_in_place.py
