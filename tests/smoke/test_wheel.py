"""The wheel: the program, the engine and the fixtures for pytest, in a virtual environment of its own."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
REQUIREMENTS = [
    line
    for line in (ROOT / "tests/smoke/requirements.txt").read_text().splitlines()
    if line.startswith(("cassandra-driver==", "pytest=="))
]
RUN_SECS = 300

# Twenty tests that use the same names, and one that sees what they left.
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_each_has_a_keyspace_of_its_own(ilion_session, number):
    ilion_session.execute("CREATE TABLE songs (id int PRIMARY KEY, title text)")
    ilion_session.execute("INSERT INTO songs (id, title) VALUES (%s, %s)", (number, "Tush"))
    [row] = ilion_session.execute("SELECT id, title FROM songs")
    assert (row.id, row.title) == (number, "Tush")

def test_no_keyspace_is_left(ilion_cluster, ilion_session):
    names = {row.keyspace_name for row in ilion_session.execute("SELECT keyspace_name FROM system_schema.keyspaces")}
    assert {name for name in names if not name.startswith("system")} == {ilion_session.keyspace}

def test_settings_of_the_project_hold(ilion_session):
    [row] = ilion_session.execute("SELECT value FROM system_views.settings WHERE name = 'cluster_name'")
    assert row.value == "of the tests"
"""


pytestmark = pytest.mark.skipif(
    not os.path.isfile(os.environ.get("SMOKE_MODULE", "")), reason="the library of ilion-python is not built"
)


@pytest.fixture(autouse=True)
def own(request):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own nodes")


def run(*words, **options):
    done = subprocess.run(words, text=True, capture_output=True, check=False, timeout=RUN_SECS, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the program and the module under test."""
    directory = tmp_path_factory.mktemp("wheel")
    environment = dict(os.environ)
    for variable, built in (("ILION_PROGRAM", "SMOKE_ILION"), ("ILION_MODULE", "SMOKE_MODULE")):
        environment[variable] = str(directory / variable.lower())
        # Symbols are most of a debug build.
        if shutil.which("strip"):
            run("strip", "-o", environment[variable], os.environ[built])
        else:
            shutil.copy(os.environ[built], environment[variable])
    run(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(directory), str(ROOT / "python"), env=environment)
    [built] = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment in which the wheel is installed."""
    directory = tmp_path_factory.mktemp("venv")
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    run(python, *PIP, "install", str(wheel), *REQUIREMENTS)
    return python


def test_the_wheel_is_for_this_machine_and_python_from_3_9(wheel):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-cp39-abi3-{platform}.whl")


def test_the_program_is_on_the_path_and_a_module(python):
    version = run(python.parent / "ilion", "--version")
    assert version.startswith("ilion ")
    assert run(python, "-m", "ilion", "--version") == version


def test_the_program_of_the_page_runs_with_the_wheel_alone(python, tmp_path):
    page = (ROOT / "docs/python.md").read_text()
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for _ in range(2):
        assert run(python, "-c", program, cwd=tmp_path) == "Tush\n1 La Grange\n2 Tush\n"


def test_the_module_serves_and_stops_as_the_program_does(python, tmp_path):
    words = [python, "-m", "ilion", "serve", "--data", tmp_path / "data", "--port", "0", "--admin-port", "0"]
    process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    greeting = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=RUN_SECS)
    assert greeting[1].startswith("CQL clients connect to 127.0.0.1:")
    assert process.returncode == 0


def test_twenty_tests_have_a_keyspace_each(python, tmp_path):
    (tmp_path / "test_songs.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nilion_settings =\n    cluster_name=of the tests\n")
    # Settings of the caller do not reach the node.
    environment = {**os.environ, "ILION_CLUSTER_NAME": "of the caller"}
    begin = time.monotonic()
    told = run(python, "-m", "pytest", "-p", "no:cacheprovider", "-q", cwd=tmp_path, env=environment)
    print(f"22 tests with 22 keyspaces in {time.monotonic() - begin:.1f} s")
    assert "22 passed" in told, told


def test_a_node_that_does_not_start_says_why(python, tmp_path):
    script = f"import ilion\nwith ilion.Node({str(tmp_path / 'data')!r}, ['no_such_setting=1']): pass"
    done = subprocess.run([python, "-c", script], text=True, capture_output=True, check=False, timeout=RUN_SECS)
    assert done.returncode != 0
    assert "StartError" in done.stderr and "no_such_setting" in done.stderr
