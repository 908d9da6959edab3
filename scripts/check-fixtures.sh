#!/usr/bin/env bash
# The statements of SSTable fixtures (files that a real Cassandra wrote, with their rows) written into Ilion and flushed as
# nb, oa and da: SELECT gives the rows that Cassandra gave, and its tools accept the files (see check-random-sstables.sh).
#   scripts/check-fixtures.sh DIRECTORY [CASE...]     DIRECTORY has make_fixtures.py, statements/ and CASE-FORMAT/select.json
# Needs a JDK 17, Maven (or CASSANDRA_JARS: see scripts/cassandra/peer) and Python. ILION names the binary.
set -euo pipefail
[[ $# -ge 1 ]] || { sed -n '4p' "${BASH_SOURCE[0]}" >&2; exit 2; }
exec "$(dirname -- "${BASH_SOURCE[0]}")/cassandra/checked" check_fixtures.py "$@"
