# Shared by the comparisons that run Ilion and a real Cassandra in turn; source it after setting `root`. Sets `ilion_binary`, `work`
# (removed at the end), `results`, `peer`, and defines start_ilion and stop_ilion.
# Environment: ILION (the binary; by default the release build), KEEP (a directory for the results).
peer=$root/scripts/cassandra/peer
ilion_binary=${ILION:-${CARGO_TARGET_DIR:-$root/target}/release/ilion}
[[ -x $ilion_binary ]] || (cd "$root" && cargo build --release --quiet)
work=$(mktemp -d)
results=${KEEP:-$work/results}
mkdir -p "$results"
ilion_pid=

finish() {
  [[ -z $ilion_pid ]] || kill "$ilion_pid" 2>/dev/null || true
  "$peer" stop "$work/cassandra" || true
  rm -rf "$work"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_ilion SYNC LOG: on an empty $work/ilion; sets ilion_pid, ilion_port and ilion_admin_port when it answers.
start_ilion() {
  rm -rf "$work/ilion"
  ilion_port=$(free_port) ilion_admin_port=$(free_port)
  "$ilion_binary" serve --data "$work/ilion" --port "$ilion_port" --admin-port "$ilion_admin_port" --set commitlog_sync="$1" \
    >"$2" 2>&1 </dev/null &
  ilion_pid=$!
  until (exec 3<>"/dev/tcp/127.0.0.1/$ilion_port") 2>/dev/null; do
    kill -0 "$ilion_pid" || { cat "$2" >&2; exit 1; }
    sleep 0.05
  done
}

stop_ilion() {
  kill "$ilion_pid"
  wait "$ilion_pid" || true
  ilion_pid=
}
