#!/usr/bin/env bash
# Measures Ilion and a real Cassandra on one machine, one after the other, each with an empty data directory, with the commit
# log in `periodic` and in `batch` sync; prints a table with the ratios. Needs Java 17 and Maven (or CASSANDRA_JARS).
#   scripts/compare-cassandra.sh [OPERATIONS]     500,000 by default; the same number before that warms up each server
# Environment: ILION (the binary; by default the release build), KEEP (a directory for the results), SYNCS, CASSANDRA_HEAP.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/.." && pwd)
operations=${1:-500000}
# shellcheck source=scripts/cassandra/beside.sh
. "$here/cassandra/beside.sh"

memory_mib() { awk '/^VmRSS/ {printf "%.0f", $2 / 1024}' "/proc/$1/status"; }

# bench NAME PID PORT WORKLOAD [MORE]: the result goes to NAME.json.
bench() {
  local name=$1 pid=$2 port=$3
  shift 3
  "$ilion_binary" bench "$@" --port "$port" --pid "$pid" --keys "$operations" --json >"$results/$name.json"
}

# load NAME PID PORT FLUSH...: the workloads, the last ones when FLUSH has brought the data to disk.
load() {
  local name=$1 pid=$2 port=$3 warm_up=$operations
  shift 3
  sleep 3
  memory_mib "$pid" >"$results/$name-idle.txt"
  bench "$name-write" "$pid" "$port" write --warm-up "$warm_up"
  bench "$name-read" "$pid" "$port" read --warm-up "$warm_up"
  "$@"
  bench "$name-read-disk" "$pid" "$port" read --warm-up "$warm_up"
  bench "$name-scan-disk" "$pid" "$port" scan --warm-up 1
}

cassandra() {
  local sync=$1 pid port
  rm -rf "$work/cassandra"
  read -r pid port < <(CASSANDRA_SYNC=$sync "$peer" start "$work/cassandra")
  load "cassandra-$sync" "$pid" "$port" "$peer" tool "$work/cassandra" nodetool flush ilion_bench
  "$peer" stop "$work/cassandra"
}

ilion() {
  local sync=$1
  start_ilion "$sync" "$results/ilion-$sync.log"
  load "ilion-$sync" "$ilion_pid" "$ilion_port" "$ilion_binary" flush --admin-port "$ilion_admin_port" ilion_bench
  stop_ilion
}

for sync in ${SYNCS:-periodic batch}; do
  echo "$sync: Cassandra" >&2
  cassandra "$sync"
  echo "$sync: Ilion" >&2
  ilion "$sync"
done

python3 "$here/compare_table.py" "$results" ${SYNCS:-periodic batch}
