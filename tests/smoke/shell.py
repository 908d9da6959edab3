"""A stock cqlsh, as a program and in a terminal."""

import os
import subprocess
import sys
import tempfile

import pexpect

RUN_SECS = 300
CQLSH = os.path.join(os.path.dirname(sys.executable), "cqlsh")


class Cqlsh:
    """cqlsh against a node, in a keyspace."""

    def __init__(self, node, keyspace):
        self.node = node
        self.keyspace = keyspace
        self.directory = tempfile.mkdtemp()

    def command(self):
        # No history, no settings of whoever runs the tests.
        return [CQLSH, "--no-color", "--cqlshrc=/dev/null", "-k", self.keyspace, self.node.host, str(self.node.port)]

    def run(self, script, fails=False):
        """Runs statements from standard input; returns what it says."""
        done = subprocess.run(
            self.command(),
            input=script,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECS,
            # COPY leaves files of failed rows where it runs.
            cwd=self.directory,
            env=environment(),
        )
        said = without_note(done.stdout)
        assert (done.returncode != 0) == fails, said
        return said

    def terminal(self):
        """A cqlsh that believes that a person types, at its first prompt."""
        [program, *arguments] = self.command()
        child = pexpect.spawn(
            program, arguments, timeout=60, encoding="utf-8", dimensions=(50, 200), env=environment(TERM="xterm")
        )
        child.expect_exact(self.prompt())
        return child

    def prompt(self):
        return f"cqlsh:{self.keyspace}> "


def environment(**more):
    return dict(os.environ, HOME="/nonexistent", PYTHONWARNINGS="ignore", **more)


def without_note(said):
    """Without the note that cqlsh was made for another release."""
    return "".join(line for line in said.splitlines(True) if "cqlsh was built against" not in line)
