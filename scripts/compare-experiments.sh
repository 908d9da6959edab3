#!/usr/bin/env bash
# Experiments 3 and 4 (docs/benchmarks.md) on a real Cassandra and on Ilion in one run, on one machine, each alone and with an
# empty data directory, the commit log in `periodic` sync. Prints their tables. Needs Java 17 and Maven (or CASSANDRA_JARS).
#   scripts/compare-experiments.sh [ROWS]     1,000,000 by default
# Environment: ILION (the binary; by default the release build), KEEP (a directory for the results), CASSANDRA_HEAP,
# SSTABLES (so many are left by experiment 4; by default as it comes), EXPERIMENTS (e4 e3).
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/.." && pwd)
rows=${1:-1000000}
ilion=${ILION:-${CARGO_TARGET_DIR:-$root/target}/release/ilion}
[[ -x $ilion ]] || (cd "$root" && cargo build --release --quiet)
work=$(mktemp -d)
results=${KEEP:-$work/results}
mkdir -p "$results"
ilion_pid=

finish() {
  [[ -z $ilion_pid ]] || kill "$ilion_pid" 2>/dev/null || true
  "$here/cassandra/peer" stop "$work/cassandra" || true
  rm -rf "$work"
}
trap finish EXIT

# experiments NAME STORE-ARGUMENTS...
experiments() {
  local name=$1 experiment more
  shift
  for experiment in ${EXPERIMENTS:-e4 e3}; do
    more=()
    [[ $experiment != e4 || -z ${SSTABLES:-} ]] || more=(--sstables "$SSTABLES")
    echo "$name: $experiment"
    "$ilion" bench "$experiment" --rows "$rows" --json "$results/$name-$experiment.json" "$@" "${more[@]}"
  done
}

cassandra() {
  local pid port nodetool
  read -r pid port < <("$here/cassandra/peer" start "$work/cassandra")
  nodetool="$here/cassandra/peer tool $work/cassandra nodetool"
  experiments cassandra --port "$port" --pid "$pid" --data "$work/cassandra" \
    --flush-command "$nodetool flush ilion_bench" --compact-command "$nodetool compact ilion_bench"
  "$here/cassandra/peer" stop "$work/cassandra"
  rm -rf "$work/cassandra"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

ilion() {
  local port admin
  port=$(free_port) admin=$(free_port)
  "$ilion" serve --data "$work/ilion" --port "$port" --admin-port "$admin" --set commitlog_sync=periodic \
    >"$results/ilion.log" 2>&1 </dev/null &
  ilion_pid=$!
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "$ilion_pid" || { cat "$results/ilion.log" >&2; exit 1; }
    sleep 0.05
  done
  experiments ilion --port "$port" --pid "$ilion_pid" --admin-port "$admin" --data "$work/ilion"
  kill "$ilion_pid"
  wait "$ilion_pid" || true
  ilion_pid=
}

cassandra
ilion
