#!/usr/bin/env bash
# Three Kafka brokers and three nodes on loopback, and one node alone: requests a second, waits, and CPU of nodes and brokers for each request.
#   scripts/cluster-bench.sh [--keys 100000] [--warm-secs 60] [--kinds counters] [--set tablets=64] [--cassandra HOST:PORT]
# Beside them, Cassandra: its nodes must run already. Needs what cluster-check.sh needs. ILION names the binary: a release build, on idle cores.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
CLUSTER_CHECK_MAIN=bench.py exec "$here/cluster-check.sh" "$@"
