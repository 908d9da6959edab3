"""The Cassandra modules of Testcontainers, for Java and Go, with an image of the target `tests` (docs/packages.md).

SMOKE_TESTCONTAINERS names the image; without it, the tests are skipped. They need an engine that DOCKER_HOST or its default socket reaches, and publish
ports as Testcontainers does: on all addresses of the machine. Java needs mvn, Go needs go; both download their libraries.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "testcontainers"
COMMANDS = {"java": ["mvn", "-q", "-B", "test"], "go": ["go", "test", "-count=1", "-v", "./..."]}


@pytest.mark.parametrize("language", COMMANDS)
def test_the_module_takes_the_image_for_cassandra(language, tmp_path):
    if "SMOKE_TESTCONTAINERS" not in os.environ:
        pytest.skip("SMOKE_TESTCONTAINERS does not name an image")
    command = COMMANDS[language]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is missing")
    work = tmp_path / "testcontainers"
    shutil.copytree(PROGRAMS, work)
    done = subprocess.run(command, cwd=work / language, capture_output=True, text=True, timeout=900, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
