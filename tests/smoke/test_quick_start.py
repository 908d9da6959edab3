"""The programs of docs/quick-start.md, as they stand there: the fenced blocks become files and commands.

A language without its tools is skipped. SMOKE_QUICK_START names the languages, by the headings of the page, or is `all`: the first run of Java, Go
and Rust downloads and compiles for minutes, so they run only if they are named.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from node import OwnNode

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "quick-start.md"
TOOLS = {"Python": "pip", "Java": "mvn", "Go": "go", "Node.js": "npm", "Rust": "cargo"}
CHOSEN = os.environ.get("SMOKE_QUICK_START", "Python,Node.js").split(",")


def sections(text):
    """Heading -> its text."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def program(section):
    """The files, by their names, and the commands. The name of a file stands before its block, with a colon."""
    files, commands = {}, []
    before = ""
    for part in re.split(r"^(```.*?^```$)", section, flags=re.MULTILINE | re.DOTALL):
        if not part.startswith("```"):
            before = part.strip()
            continue
        language, body = part[3:-3].split("\n", 1)
        if language == "sh":
            commands += body.splitlines()
        else:
            name = re.search(r"`([^`]+)`:$", before)
            assert name, f"a block without the name of its file, after: {before}"
            files[name[1]] = body
    return files, commands


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("quick") / "data"))
    node.start()
    yield node
    node.kill()


def test_every_language_has_a_program():
    assert set(TOOLS) <= set(sections(PAGE.read_text()))


@pytest.mark.parametrize("language", TOOLS)
def test_the_program_of_the_page_runs(language, served, tmp_path):
    if language not in CHOSEN and CHOSEN != ["all"]:
        pytest.skip(f"SMOKE_QUICK_START does not name {language}")
    # Python's tools are those of the tests.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    if not shutil.which(TOOLS[language], path=path):
        pytest.skip(f"{TOOLS[language]} is missing")
    files, commands = program(sections(PAGE.read_text())[language])
    for name, body in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # The node of the test is at another port.
        file.write_text(body.replace("9042", str(served.port)))
    environment = {**os.environ, "PATH": path}
    # A later run builds less.
    environment["CARGO_TARGET_DIR"] = os.path.join(os.environ["SMOKE_DIRECTORY"], "quick-start")
    done = None
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    assert "kitchen: 21.5" in done.stdout.splitlines()
