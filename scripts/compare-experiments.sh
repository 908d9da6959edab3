#!/usr/bin/env bash
# Experiments 2 to 5 (docs/benchmarks.md) on a real Cassandra and on Ilion on one machine, one after the other, each with an empty
# data directory and the commit log in `periodic` sync. Prints their tables. Needs Java 17 and Maven (or CASSANDRA_JARS).
#   scripts/compare-experiments.sh [ROWS]     1,000,000 by default
# Environment: ILION (the binary; by default the release build), KEEP (a directory for the results), CASSANDRA_HEAP,
# SSTABLES (how many experiment 4 leaves; by default not controlled), EXPERIMENTS (e4 e3 e5; e2 only if named), BLOBS (arguments of
# experiment 5, which has rows of its own; by default none).
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/.." && pwd)
rows=${1:-1000000}
# shellcheck source=scripts/cassandra/beside.sh
. "$here/cassandra/beside.sh"

# experiments NAME STORE-ARGUMENTS...
experiments() {
  local name=$1 experiment more
  shift
  for experiment in ${EXPERIMENTS:-e4 e3 e5}; do
    more=(--rows "$rows")
    # shellcheck disable=SC2206
    [[ $experiment != e5 ]] || more=(${BLOBS:-})
    [[ $experiment != e4 || -z ${SSTABLES:-} ]] || more+=(--sstables "$SSTABLES")
    echo "$name: $experiment"
    "$ilion_binary" bench "$experiment" --json "$results/$name-$experiment.json" "$@" "${more[@]}"
  done
}

cassandra() {
  local pid port nodetool
  read -r pid port < <("$peer" start "$work/cassandra")
  nodetool="$peer tool $work/cassandra nodetool"
  experiments cassandra --port "$port" --pid "$pid" --data "$work/cassandra" \
    --flush-command "$nodetool flush ilion_bench" --compact-command "$nodetool compact ilion_bench"
  "$peer" stop "$work/cassandra"
  rm -rf "$work/cassandra"
}

ilion() {
  start_ilion periodic "$results/ilion.log"
  experiments ilion --port "$ilion_port" --pid "$ilion_pid" --admin-port "$ilion_admin_port" --data "$work/ilion"
  stop_ilion
}

cassandra
ilion
