"""What the container, the manifests of Kubernetes, the image and the Debian package promise."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import kubernetes_validate
import pytest
import yaml
from cassandra.auth import PlainTextAuthProvider

from conftest import connect
from node import PATIENCE_SECS, OwnNode, free_port, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
SCRIPTS = ROOT / "scripts"
PASSWORD = "of the first superuser"
RUN_SECS = 300
CARGO_DEB = "cargo-deb@3.8.0"


@pytest.fixture(autouse=True)
def own(request):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own nodes")


def instruction(name):
    """The words of an instruction of the Dockerfile in JSON form."""
    text = (PACKAGING / "Dockerfile").read_text()
    [words] = re.findall(rf"^{name}\b.*?(\[.*\])$", text, re.MULTILINE)
    return json.loads(words)


def packaged(data, settings_file, init, variables):
    """A node with the settings of a package, but on this machine only."""
    settings = ["rpc_address=127.0.0.1", f"init_directory={init}"]
    return OwnNode(os.environ["SMOKE_ILION"], str(data), settings, {"ILION_CONFIG": str(settings_file), **variables})


def command(node, words):
    """Exit code and output of a command of a package: the program is that under test, and so is the port."""
    assert words[0] == "/usr/bin/ilion", words
    environment = {**os.environ, "ILION_ADMIN_PORT": str(node.admin_port)}
    done = subprocess.run(
        [node.binary, *words[1:]], env=environment, text=True, capture_output=True, check=False, timeout=RUN_SECS
    )
    return done.returncode, done.stdout + done.stderr


def rows(node, query):
    cluster = connect(node, auth_provider=PlainTextAuthProvider("cassandra", PASSWORD))
    found = [tuple(row) for row in cluster.connect().execute(query)]
    cluster.shutdown()
    return found


def test_the_container_starts_as_the_cassandra_image_does_and_drains(tmp_path):
    init = tmp_path / "init.d"
    init.mkdir()
    (init / "2-rows.cql").write_text("INSERT INTO shop.t (a) VALUES (42);")
    (init / "1-schema.cql").write_text(
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n"
        "CREATE TABLE shop.t (a int PRIMARY KEY);\n"
    )
    variables = {
        "CASSANDRA_CLUSTER_NAME": "Shop",
        "CASSANDRA_DC": "dc7",
        "CASSANDRA_SEEDS": "127.0.0.1",
        "ILION_SUPERUSER_PASSWORD": PASSWORD,
    }
    node = packaged(tmp_path / "data", PACKAGING / "container.yaml", init, variables)
    health = instruction("HEALTHCHECK")
    code, output = command(node, health)
    assert code == 1 and "cannot reach" in output
    node.start()
    assert command(node, health) == (0, "ready\n")
    assert rows(node, "SELECT a FROM shop.t") == [(42,)]
    assert rows(node, "SELECT cluster_name, data_center FROM system.local") == [("Shop", "dc7")]
    assert node.stop() == 0
    lines = [json.loads(line) for line in pathlib.Path(node.log).read_text().splitlines() if line.startswith("{")]
    assert lines[-1]["message"] == "stopped"
    assert any("CASSANDRA_SEEDS" in line["message"] for line in lines)
    (init / "1-schema.cql").write_text("this is no CQL")
    node.start()
    assert rows(node, "SELECT a FROM shop.t") == [(42,)]
    assert node.stop() == 0


def test_statements_of_the_first_start_that_fail_are_named(tmp_path):
    (tmp_path / "1.cql").write_text("-- Fails.\n\nCREATE TABLE nowhere.t (a int PRIMARY KEY);")
    node = packaged(tmp_path / "data", PACKAGING / "container.yaml", tmp_path, {})
    with pytest.raises(AssertionError, match=r"the node ended with 1:(.|\n)*1\.cql, line 3: .*nowhere"):
        node.start()


def test_the_first_process_of_a_container_can_be_stopped_while_it_starts(tmp_path):
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root and unshare")
    # The start waits for somebody who writes into this.
    os.mkfifo(tmp_path / "1.cql")
    admin_port = free_port()
    settings = [f"init_directory={tmp_path}", f"native_transport_port={free_port()}", f"admin_port={admin_port}"]
    node = [os.environ["SMOKE_ILION"], "serve", "--data", str(tmp_path / "data")]
    node += [word for setting in settings for word in ("--set", setting)]
    outside = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *node], stderr=subprocess.PIPE, text=True)

    def is_starting():
        assert outside.poll() is None, outside.stderr.read()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/readyz", timeout=2)
        except urllib.error.HTTPError as error:
            return error.code == 503 and b"the node is starting" in error.read()
        except OSError:
            return False
        return False

    try:
        wait_until(is_starting, "the node starts")
        [first] = pathlib.Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        assert outside.wait(PATIENCE_SECS) == 128 + signal.SIGTERM
    finally:
        outside.kill()
        outside.communicate()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nodes_of_the_composed_cluster_take_their_settings_and_look_for_the_brokers(tmp_path, number):
    parts = yaml.safe_load((PACKAGING / "compose-cluster.yaml").read_text())
    service = parts["services"][f"ilion{number}"]
    [address] = [network["ipv4_address"] for network in service["networks"].values()]
    assert service["environment"]["ILION_RPC_ADDRESS"] == address
    brokers = {f"{name}:9092" for name in parts["services"] if name.startswith("kafka")}
    [log] = [word for word in service["command"] if word.startswith("kafka://")]
    assert set(log[len("kafka://") : log.rindex("/")].split(",")) == brokers
    # The same on this machine, where nobody listens at the brokers' port.
    changed = {log: "kafka://127.0.0.1:1/ilion", "/etc/ilion/ilion.yaml": str(PACKAGING / "container.yaml")}
    words = [changed.get(word, word) for word in service["command"]]
    environment = {**os.environ, **service["environment"], "ILION_RPC_ADDRESS": f"127.0.0.{number}"}
    ports = ["--port", str(free_port()), "--admin-port", "0"]
    command = [os.environ["SMOKE_ILION"], *words, "--data", str(tmp_path / "data"), *ports]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=RUN_SECS)
    assert done.returncode != 0 and "no broker of 127.0.0.1:1 answers" in done.stderr, done.stderr


def test_manifests_of_kubernetes_are_valid_and_their_settings_and_probes_work(tmp_path):
    manifest = PACKAGING / "kubernetes" / "ilion.yaml"
    documents = list(yaml.safe_load_all(manifest.read_text()))
    for document in documents:
        kubernetes_validate.validate(document, "1.31", strict=True)
    parts = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    settings, init = tmp_path / "ilion.yaml", tmp_path / "init.d"
    settings.write_text(parts["ConfigMap", "ilion-settings"]["data"]["ilion.yaml"])
    init.mkdir()
    for name, text in parts["ConfigMap", "ilion-init"]["data"].items():
        (init / name).write_text(text)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    [container] = parts["StatefulSet", "ilion"]["spec"]["template"]["spec"]["containers"]
    # What Kubernetes would fill in.
    values = {"/run/secrets/ilion/password": str(password), "status.podIP": "127.0.0.1"}
    variables = {}
    for variable in container["env"]:
        value = variable.get("value") or variable["valueFrom"]["fieldRef"]["fieldPath"]
        variables[variable["name"]] = values[value]
    node = packaged(tmp_path / "data", settings, init, variables)
    node.start()
    for probe, good in [("startupProbe", "alive"), ("livenessProbe", "alive"), ("readinessProbe", "ready")]:
        assert command(node, container[probe]["exec"]["command"]) == (0, f"{good}\n"), probe
    closed = ["nodetool", "-p", str(node.admin_port), "-u", "cassandra", "-pw", PASSWORD, "disablebinary"]
    subprocess.run([node.binary, *closed], check=True, timeout=RUN_SECS)
    # A node that takes no clients needs no restart.
    assert command(node, container["livenessProbe"]["exec"]["command"])[0] == 0
    code, output = command(node, container["readinessProbe"]["exec"]["command"])
    assert code == 1 and "clients may not connect" in output
    assert node.stop() == 0


def ends_well(words, **variables):
    """Runs a script; returns what it prints."""
    environment = {**os.environ, **variables}
    done = subprocess.run(words, env=environment, text=True, capture_output=True, check=False, timeout=RUN_SECS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program under test without debug symbols, as a release build would be packed."""
    stripped = tmp_path_factory.mktemp("target") / "release" / "ilion"
    stripped.parent.mkdir()
    subprocess.run(["strip", "-o", stripped, os.environ["SMOKE_ILION"]], check=True)
    return stripped


@pytest.fixture(scope="module")
def image(program):
    """The name of an image of the program."""
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("needs root and buildah (apt-get install)")
    name = f"localhost/ilion-smoke-{os.getpid()}"
    try:
        ends_well([SCRIPTS / "package", "--image", name], PROGRAM=str(program), BUILDER="buildah")
        yield name
    finally:
        subprocess.run(["buildah", "rmi", "--force", name], check=False, capture_output=True)


SANDBOX = ([], ["umoci", "bwrap"])
PODMAN = (["--podman"], ["podman"])


@pytest.mark.parametrize(("options", "tools"), [SANDBOX, PODMAN], ids=["sandbox", "podman"])
def test_the_image_runs_and_drains(image, options, tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs umoci and bubblewrap, or podman (apt-get install); missing: {missing}")
    told = ends_well([SCRIPTS / "check-image", *options, image])
    if "SKIPPED" in told:
        pytest.skip(told)
    assert "the data is there after the second start" in told


def clean_root(place):
    """Makes a Debian without the package, of the release of this machine. A copy is kept beside the other files of the tests."""
    [codename] = re.findall(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    kept = pathlib.Path(os.environ["SMOKE_DIRECTORY"]).absolute() / f"debian-{codename}-root.tar"
    if kept.exists():
        place.mkdir()
        subprocess.run(["tar", "-xpf", kept, "-C", place], check=True, timeout=RUN_SECS)
        return
    words = ["debootstrap", "--variant=minbase", "--include=adduser", codename, place]
    made = subprocess.run(words, text=True, capture_output=True, check=False, timeout=1200)
    if made.returncode != 0:
        pytest.skip(f"debootstrap cannot make {codename}: {made.stdout[-500:]}{made.stderr[-500:]}")
    part = kept.with_suffix(".part")
    without = ["--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*"]
    subprocess.run(["tar", "-cpf", part, *without, "-C", place, "."], check=True, timeout=RUN_SECS)
    part.rename(kept)


def cargo_deb_directory():
    """Where cargo-deb is. If there is none and SMOKE_DEB is set, it is installed beside the other files of the tests: a minute of CPU time."""
    found = shutil.which("cargo-deb")
    if found:
        return os.path.dirname(found)
    kept = pathlib.Path(os.environ["SMOKE_DIRECTORY"]).absolute() / "cargo-deb"
    if not (kept / "bin" / "cargo-deb").exists():
        if "SMOKE_DEB" not in os.environ:
            pytest.skip("needs cargo-deb; SMOKE_DEB=1 has the test install it")
        words = ["cargo", "install", "--quiet", "--locked", "--debug", "--root", kept, CARGO_DEB]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(kept / "target")}
        made = subprocess.run(words, env=environment, text=True, capture_output=True, check=False, timeout=1200)
        shutil.rmtree(kept / "target", ignore_errors=True)
        if made.returncode != 0:
            pytest.skip(f"cargo-deb cannot be installed: {made.stderr[-500:]}")
    return str(kept / "bin")


def test_the_debian_package_is_installed_upgraded_and_removed_in_a_clean_root(program, tmp_path):
    tools = ["debootstrap", "dpkg-deb", "cargo"]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, cargo and debootstrap (apt-get install); missing: {missing}")
    path = f"{cargo_deb_directory()}:{os.environ['PATH']}"
    root = tmp_path / "root"
    clean_root(root)
    target = program.parents[1]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "PATH": path}
    packed = ["cargo", "deb", "--no-build", "--no-strip", "--fast", "--offline", "-p", "ilion"]
    made = subprocess.run(packed, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    [package] = (target / "debian").glob("ilion_*.deb")
    checked = ends_well([SCRIPTS / "check-package", root, package])
    assert "removed and purged; data was kept" in checked
