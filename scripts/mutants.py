#!/usr/bin/env python3
"""Builds defects into the code of replicas and members, one at a time, and has the simulation find each.

usage: scripts/mutants.py [NAME...]

It works on a copy of the tree (git worktree) with a target directory of its own, and takes some minutes. It prints for each defect the law
that found it, and fails if one is not found. The defects that are built into the toys of the simulation are tested by `cargo test`.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ENGINE = "crates/engine/src/tablets.rs"
MEMTABLES = "crates/engine/src/table_store/memtables.rs"
REPLICA = "crates/replica/src/replica.rs"
PLACE = "crates/replica/src/place.rs"
MEMBER = "crates/member/src/member.rs"
FOLLOWER = "crates/member/src/follower.rs"
SCHEMA = "crates/member/src/follower/schema.rs"
BATCHES = "crates/member/src/follower/batches.rs"
SENDER = "crates/member/src/sender.rs"
BARRIERS = "crates/member/src/barriers.rs"
META = "crates/member/src/meta.rs"
PROGRESS = "crates/member/src/progress.rs"
SOURCE = "crates/member/src/copying/source.rs"
COPIED = "crates/replica/src/copied.rs"

# Name, file, what is there, what takes its place.
MUTANTS = [
    ("tables do not know what they have on disk", ENGINE, "is_some_and(|end| position.offset < *end)", "is_some_and(|_| false)"),
    ("records are needed from the end of the log only", ENGINE, "firsts.fold(end, u64::min)", "firsts.fold(end, |end, _| end)"),
    ("SSTables do not say what they have", MEMTABLES, "tablets_upto: self.tablets.ends(),", "tablets_upto: Arc::new([]),"),
    ("windows are not saved", REPLICA, "windows: tablet.windows.clone(),", "windows: Windows::default(),"),
    ("repeated records are applied", REPLICA, "let admission = tablet.windows.judge(record.origin);", "let admission = Admission::New;"),
    ("the first record of a process is not remembered", REPLICA, "tablet.windows.admit(record.origin);",
     "if record.origin.seq > 2 {\n                    tablet.windows.admit(record.origin);\n                }"),
    ("it is saved before tables have it on disk", REPLICA, "if taken.tablets.iter().any(is_needed) {",
     "if taken.tablets.iter().any(is_needed) && taken.tablets.is_empty() {"),
    ("the saved end is one too high", REPLICA, "end: self.engine().tablet_end(*number),", "end: self.engine().tablet_end(*number) + 1,"),
    ("the epoch of a tablet is not saved", REPLICA, "schema_epoch: saved.schema_epoch,\n            windows", "schema_epoch: 0,\n            windows"),
    ("the epoch of the schema is not saved", REPLICA, "schema_epoch: saved.schema_epoch,\n            is_adopting",
     "schema_epoch: 0,\n            is_adopting"),
    ("a begun change of the schema is forgotten", REPLICA, "is_adopting: saved.is_adopting,", "is_adopting: false,"),
    ("commands of an older schema are executed", REPLICA, "Kind::Cas | Kind::Counter if is_old => {", "Kind::Cas | Kind::Counter if is_old && position.offset == 0 => {"),
    ("commands take the clock of the node", PLACE, "self.with(CommandContext::micros)", "None"),
    ("each node counts for itself", PLACE, "self.cluster.into_bytes()", "self.engine().id().into_bytes()"),
    ("columns are dropped at the time of the node", PLACE, "timestamp_micros.get_or_insert(time_micros);", "();"),
    ("a schema is adopted before everything is saved", SCHEMA, "            replica.take();\n        }\n        let epoch", "        }\n        let epoch"),
    ("a schema is adopted before the fences", SCHEMA, "if !self.followed.iter().all(is_blocked) {", "if !self.followed.iter().all(is_blocked) && next.epoch == 0 {"),
    ("copies that wait for a saving are not answered when the schema changes", SCHEMA, "        self.answer_copies();\n", ""),
    ("a record that is sent again gets a new number", SENDER, "                    return sender.append(again, origin, retries - 1, done);",
     "                    let origin = sender.number(again.log, again.ends_nanos).unwrap_or(origin);\n"
     "                    return sender.append(again, origin, retries - 1, done);"),
    ("a write is acknowledged when its outcome is unknown", SENDER, "                done(sent);\n", "                done(sent.or(Ok(0)));\n"),
    ("reads do not wait for their barrier", BARRIERS, "        for _ in reached {\n", "        for _ in reached.iter().skip(reached.len()) {\n"),
    ("reads take the barrier that is on its way", BARRIERS, "flight.next.push(sender);", "flight.waiting.push(sender);"),
    ("the first record of the meta log is checked and not applied", FOLLOWER, "            self.check_meta(delivered)?;\n",
     "            self.check_meta(delivered)?;\n            return Ok(());\n"),
    ("a process does not find itself in a snapshot of the meta log", META, "if let Some((node, member)) = own {",
     "if let Some((node, member)) = own.filter(|(_, member)| member.incarnation == 0) {"),
    ("nobody finishes the batches of a lost coordinator", BATCHES, "if !is_overdue ||", "if true || !is_overdue ||"),
    ("a node answers before it has caught up", PROGRESS, "tablet.is_some_and(|tablet| tablet.is_ready && tablet.halted.is_none())",
     "tablet.is_some_and(|tablet| tablet.halted.is_none())"),
    ("a source of a copy need not have what the copy lacks", SOURCE, "Some(end) => is_ready &= end >= needed,", "Some(end) => is_ready &= end >= needed || *needed > 0,"),
    ("copies come without the windows of their tablets", COPIED, "saved::decode(bytes).map(Self)",
     "saved::decode(bytes).map(|mut saved| {\n            saved.tablets.values_mut().for_each(|tablet| tablet.windows = Default::default());\n"
     "            Self(saved)\n        })"),
    ("replicas do not wait for a ring that the coordinator knows", MEMBER, "let soon = self.shared.now_nanos().saturating_add(nanos(CATCH_UP_MAX));",
     "let soon = self.shared.now_nanos().min(nanos(CATCH_UP_MAX));"),
]


def run(tree, target):
    command = ["cargo", "test", "--quiet", "-p", "ilion-simulation", "--test", "runs", "real_nodes"]
    try:
        done = subprocess.run(command, cwd=tree, env={**os.environ, "CARGO_TARGET_DIR": str(target), "SEEDS": "60"},
                              capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return False, "it does not end"
    text = done.stdout + done.stderr
    if "error: could not compile" in text or "error[" in text:
        sys.exit("the defect does not compile:\n" + text[-3000:])
    found = re.search(r"panicked at [^\n]*\n([^\n]*)", text)
    return done.returncode == 0, found.group(1) if found else ""


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    wanted = sys.argv[1:]
    missed = []
    with tempfile.TemporaryDirectory() as directory:
        tree, target = pathlib.Path(directory, "tree"), pathlib.Path(directory, "target")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree], cwd=root, check=True)
        try:
            for name, file, before, after in MUTANTS:
                if wanted and name not in wanted:
                    continue
                path = tree / file
                source = path.read_text()
                if source.count(before) != 1:
                    sys.exit(f"{name}: {file} has its place {source.count(before)} times; mend the list of mutants")
                path.write_text(source.replace(before, after))
                is_missed, law = run(tree, target)
                path.write_text(source)
                print(f"{name}: {'NOT FOUND' if is_missed else law[:100]}", flush=True)
                if is_missed:
                    missed.append(name)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=root, check=True)
    if missed:
        sys.exit(f"{len(missed)} defects were not found")


if __name__ == "__main__":
    main()
