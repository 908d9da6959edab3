#!/usr/bin/env bash
# A data directory that a real Cassandra filled is opened by Ilion where it is, read, written to, and opened by Cassandra
# again, which finds what Ilion wrote.
#   scripts/open-in-place.sh
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
exec "$venv/bin/python" "$here/open_in_place.py"
