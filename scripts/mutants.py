#!/usr/bin/env python3
"""Builds defects ("mutants") into the code of a cluster, one at a time, and has the simulation find each.

usage: scripts/mutants.py [--here] [--runs N] [--from SEED] [NAME...]

For each defect it builds the simulation, optimised, and runs seeds until one breaks a law, at most N (300). It ends with a table of the
defects, the laws that found them, and the number of the run, and fails if a defect is not found.

It works on a copy of HEAD (git worktree) with a target directory of its own, or that of CARGO_TARGET_DIR. The first build takes some minutes.
With --here it works on this checkout, which must have no changes, and restores each file: there only the crates from the defect upwards are
built: about a minute for a defect in `member` on two cores, two in `engine`. A defect that is not found takes half a minute more.

The defects that are built into the toys of the simulation are tested by `cargo test`.
"""

import argparse
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
WORKER = "crates/member/src/copying/worker.rs"
COPIED = "crates/replica/src/copied.rs"
COMMANDS = "crates/member/src/commands.rs"
LOGGED = "crates/member/src/logged.rs"
SAVING = "crates/member/src/follower/saving.rs"
CURSOR = "crates/coordinator/src/cursor.rs"
STREAM = "crates/coordinator/src/stream.rs"
APPLY = "crates/cluster/src/apply.rs"
TOPOLOGY = "crates/cluster/src/topology.rs"

# Name, file, what is there, what takes its place; more files, if one rule is kept in several places.
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
    ("commands take the clock of the node", PLACE, "self.with(CommandContext::micros)", "None"),
    ("each node counts for itself", PLACE, "self.cluster.into_bytes()", "self.engine().id().into_bytes()"),
    ("now and then a node loses what a record writes", REPLICA, "self.engine().apply_at(position, mutations).map_err(refusal)",
     "let is_lost = position.offset % 16 == u64::from(self.engine().id().as_bytes()[0] % 16);\n"
     "        self.engine().apply_at(position, if is_lost { &[] } else { mutations }).map_err(refusal)"),
    ("columns are dropped at the time of the node", PLACE, "timestamp_micros.get_or_insert(time_micros);", "();"),
    ("a schema is adopted before everything is saved", SCHEMA, "            replica.take();\n        }\n        let epoch", "        }\n        let epoch"),
    ("a schema is adopted before the fences", SCHEMA, "if !self.followed.iter().all(is_blocked) {", "if !self.followed.iter().all(is_blocked) && next.epoch == 0 {"),
    ("copies that wait for a saving are not answered when the schema changes", SCHEMA, "        self.answer_copies();\n", ""),
    ("a record that is sent again gets a new number", SENDER, "                    return sender.append(again, origin, retries - 1, done);",
     "                    let origin = sender.number(again.log, again.ends_nanos).unwrap_or(origin);\n"
     "                    return sender.append(again, origin, retries - 1, done);"),
    ("a write is acknowledged when its outcome is unknown", SENDER, "                done(sent);\n", "                done(sent.or(Ok(0)));\n"),
    ("reads do not wait for their barrier", BARRIERS, "        for _ in reached {\n", "        for _ in reached.iter().skip(reached.len()) {\n"),
    ("a barrier is below the last record", BARRIERS, "end.checked_sub(1)", "end.checked_sub(2)"),
    ("reads take the barrier that is on its way", BARRIERS, "flight.next.push(raised);", "flight.waiting.push(raised);"),
    ("the first record of the meta log is checked and not applied", FOLLOWER, "            self.check_meta(record)?;\n",
     "            self.check_meta(record)?;\n            return Ok(());\n"),
    ("a process does not find itself in a snapshot of the meta log", META, "if let Some((node, member)) = own {",
     "if let Some((node, member)) = own.filter(|(_, member)| member.incarnation == 0) {"),
    ("nobody finishes the batches of a lost coordinator", BATCHES, "if !is_overdue ||", "if true || !is_overdue ||"),
    ("a node answers before it has caught up", PROGRESS, "tablet.is_some_and(|tablet| tablet.is_ready && tablet.halted.is_none())",
     "tablet.is_some_and(|tablet| tablet.halted.is_none())",
     PROGRESS, "is_ready: tablet.is_ready && tablet.halted.is_none(),", "is_ready: tablet.halted.is_none(),"),
    ("copies come without the windows of their tablets", COPIED, "saved::decode(bytes).map(Self)",
     "saved::decode(bytes).map(|mut saved| {\n            saved.tablets.values_mut().for_each(|tablet| tablet.windows = Default::default());\n"
     "            Self(saved)\n        })"),
    ("replicas do not wait for a ring that the coordinator knows", MEMBER, "let soon = self.shared.now_nanos().saturating_add(nanos(CATCH_UP_MAX));",
     "let soon = self.shared.now_nanos().min(nanos(CATCH_UP_MAX));"),
    ("a command whose outcome is unknown is handed to another node", COMMANDS, "Ok(Answered::Unknown) => return Err(unknown()),",
     "Ok(Answered::Unknown) => \"no outcome in time\".to_owned(),"),
    ("a batch is acknowledged before its parts are in their logs", LOGGED, "                send_part(&underway, &write, other, origin);\n",
     "                send_part(&underway, &write, other, origin);\n                write.settle(Ok(()));\n"),
    ("a node that others wait for does not save", FOLLOWER, "self.must_save = true;", "self.must_save = false;"),
    ("nodes tell what they have applied, not what they have on disk", SAVING, ".map(|(tablet, end)| (tablet, position_of(end)))",
     ".map(|(tablet, end)| (tablet, position_of(end.max(replica.end(tablet)))))"),
    ("a range waits for the barrier of its first tablet only", CURSOR, "reads.wait_here(&target.table, self.part.tablets.clone())?",
     "reads.wait_here(&target.table, self.part.tablets.start..self.part.tablets.start + 1)?"),
    ("a range of another node ends with its first page", STREAM, "Some(Resume::Within(..)) => false,",
     "Some(Resume::Within(..)) => !matches!(self.span, Span::Partition(_)),"),
    ("two changes of the schema at once are both made", APPLY, "if record.checked_at != current {", "if record.checked_at > current {"),
    ("roles are not synced before they count as adopted", PLACE, "Ok(self.engine().sync_log()?)", "Ok(())"),
    ("roles that were being adopted at a crash count as adopted", REPLICA, "let event = match self.make(change, time_micros) {",
     "let event = match if was_adopting && matches!(change, FencedChange::Roles(_)) { Ok(None) } else { self.make(change, time_micros) } {"),
    ("a change of the ring ends with the first node that is ready", TOPOLOGY, "if !waiting.is_subset(&transition.ready) {",
     "if !waiting.is_empty() && transition.ready.is_empty() {"),
    ("a node that leaves drops its tablets at once", FOLLOWER, "let all = now.iter().chain(&afterwards);", "let all = afterwards.iter();"),
]


# What looks like a defect and breaks no law. These run only if they are named.
HARMLESS = [
    # A copy may end before the log begins. The node learns this when it reads the log, and copies again, so joining only takes longer. Source and
    # destination both check the end: the defect removes both checks.
    ("a source of a copy need not have what the copy lacks", SOURCE, "ends.get(tablet).is_some_and(|end| end >= needed);",
     "ends.get(tablet).is_some_and(|_| *needed < u64::MAX);", WORKER, "needed.get(&tablet).is_some_and(|needed| end >= *needed);",
     "needed.get(&tablet).is_some_and(|_| end < u64::MAX);"),
    # All replicas execute the command under the same schema, so they agree. The check matters for statements that mean something else under the
    # newer schema, and the simulation sends none.
    ("commands of an older schema are executed", REPLICA, "Kind::Cas | Kind::Counter if is_old => {", "Kind::Cas | Kind::Counter if is_old && position.offset == 0 => {"),
]


def run(tree, target, options):
    """Builds the simulation and runs it. Returns the law that was broken and the number of the run, or None."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "1", "CARGO_PROFILE_RELEASE_LTO": "off", "RUST_BACKTRACE": "0"}
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "ilion-simulation"]
    built = subprocess.run(build, cwd=tree, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit("the defect does not compile:\n" + built.stderr[-3000:])
    command = [pathlib.Path(target, "release", "ilion-simulation"), "simulate", "--whole", "--runs", options.runs, "--from", options.first]
    try:
        done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        return "it does not end", "-"
    if done.returncode == 0:
        return None
    found = re.search(r"^run (\d+): [^:]*: (.*)", done.stderr, re.MULTILINE)
    if not found:
        sys.exit("the simulation failed:\n" + done.stderr[-3000:])
    panic = re.search(r"panicked at [^\n]*\n([^\n]*)", done.stderr)
    law = f"panic: {panic.group(1)}" if found.group(2).startswith("panic") and panic else found.group(2)
    return law, found.group(1)


def edits(mutant):
    """The edits of a defect: file, what is there, what takes its place."""
    name, *rest = mutant
    return [rest[index:index + 3] for index in range(0, len(rest), 3)]


def check(tree):
    """Each place must be there once."""
    for mutant in MUTANTS + HARMLESS:
        for file, before, _ in edits(mutant):
            count = pathlib.Path(tree, file).read_text().count(before)
            if count != 1:
                sys.exit(f"{mutant[0]}: {file} has its place {count} times; mend the list of mutants")


def find_all(tree, target, options):
    """Runs each wanted defect. Returns name, law and run of each."""
    check(tree)
    found = []
    wanted = [mutant for mutant in MUTANTS + HARMLESS if mutant[0] in options.names] if options.names else MUTANTS
    for mutant in wanted:
        name = mutant[0]
        sources = {}
        try:
            for file, before, after in edits(mutant):
                path = pathlib.Path(tree, file)
                source = sources.setdefault(path, path.read_text())
                path.write_text(path.read_text().replace(before, after))
            outcome = run(tree, target, options)
        finally:
            for path, source in sources.items():
                path.write_text(source)
        found.append((name, *(outcome or ("NOT FOUND", "-"))))
        print(" | ".join(found[-1])[:200], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    unknown = set(options.names) - {mutant[0] for mutant in MUTANTS + HARMLESS}
    if unknown:
        sys.exit(f"no such defects: {', '.join(sorted(unknown))}")
    root = pathlib.Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as directory:
        target = os.environ.get("CARGO_TARGET_DIR") or (root / "target" if options.here else pathlib.Path(directory, "target"))
        if options.here:
            if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=root).returncode != 0:
                sys.exit("the checkout has changes: commit them, or run this without --here")
            found = find_all(root, target, options)
        else:
            tree = pathlib.Path(directory, "tree")
            subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree], cwd=root, check=True)
            try:
                found = find_all(tree, target, options)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=root, check=True)
    print("\n| defect | law that found it | run |\n| --- | --- | --- |")
    for name, law, number in found:
        print(f"| {name} | {law[:120]} | {number} |")
    missed = sum(law == "NOT FOUND" for _, law, _ in found)
    if missed:
        sys.exit(f"{missed} defects were not found")


if __name__ == "__main__":
    main()
