"""A stock cqlsh, run with statements on standard input or in a terminal."""

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
        # Without the history and settings of the user who runs the tests.
        return [CQLSH, "--no-color", "--cqlshrc=/dev/null", "-k", self.keyspace, self.node.host, str(self.node.port)]

    def run(self, script, fails=False):
        """Runs statements from standard input and returns the output."""
        done = subprocess.run(
            self.command(),
            input=script,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECS,
            # COPY writes files of failed rows to its working directory.
            cwd=self.directory,
            env=environment(),
        )
        said = without_note(done.stdout)
        assert (done.returncode != 0) == fails, said
        return said

    def terminal(self):
        """A cqlsh in a terminal, at its first prompt."""
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
    """Without the warning that cqlsh is made for another release."""
    return "".join(line for line in said.splitlines(True) if "cqlsh was built against" not in line)
