#!/usr/bin/env bash
# Files that Ilion flushed, in the hands of Cassandra: sstabledump prints them as it prints Cassandra's own of the same
# statements, nodetool import takes them and SELECT finds the same rows, sstableverify finds no fault.
#   scripts/check-sstables.sh [TABLE...]
# Needs Java 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
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
venv=${SMOKE_CACHE:-$target/smoke}/venv
"$root/tests/smoke/venv" "$venv"
export ILION PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/smoke
exec "$venv/bin/python" "$here/check_sstables.py" "$@"
