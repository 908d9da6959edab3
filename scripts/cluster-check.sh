#!/usr/bin/env bash
# Three Kafka brokers and three nodes on loopback, clients that note what was acknowledged, and faults: what is lost, stale or held up?
#   scripts/cluster-check.sh [--seconds 20] [--cases node-killed,broker-killed] [--set NAME=VALUE] [--list] [--keep] [--stop-at-failure]
# Needs Java 17, Maven (or KAFKA_JARS: a directory with the jars of Kafka 4.1) and Python. ILION names the binary. Exit code 1 if a promise
# was broken.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
for program in java python3; do
  command -v "$program" >/dev/null || { echo "$program is missing: nothing was checked" >&2; exit 1; }
done
if [[ -z ${ILION:-} ]]; then
  (cd "$root" && cargo build --quiet)
  ILION=$target/debug/ilion
fi
cache=${SMOKE_CACHE:-$target/smoke}
"$root/tests/smoke/venv" "$cache/venv"
export ILION SMOKE_DIRECTORY=$cache PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/smoke:$here/cluster_check
exec "$cache/venv/bin/python" "$here/cluster_check/${CLUSTER_CHECK_MAIN:-main.py}" "$@"
