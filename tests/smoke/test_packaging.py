"""What the container, the manifests of Kubernetes, the image and the Debian package promise."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from cassandra.auth import PlainTextAuthProvider

from conftest import connect
from node import OwnNode, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PASSWORD = "of the first superuser"
RUN_SECS = 300


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
    [name] = [variable["name"] for variable in container["env"]]
    node = packaged(tmp_path / "data", settings, init, {name: str(password)})
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


def test_the_image_runs_and_drains(tmp_path):
    tools = ["buildah", "umoci", "bwrap"]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and buildah, umoci and bubblewrap (apt-get install); missing: {missing}")
    image = f"ilion-smoke-{os.getpid()}"
    environment = {**os.environ, "PROGRAM": os.environ["SMOKE_ILION"], "BUILDER": "buildah"}
    scripts = ROOT / "scripts"
    try:
        for words in ([scripts / "package", "--image", image], [scripts / "check-image", image]):
            done = subprocess.run(
                words, env=environment, text=True, capture_output=True, check=False, timeout=RUN_SECS
            )
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        subprocess.run(["buildah", "rmi", "--force", image], check=False, capture_output=True)
    assert "the data is there after the second start" in done.stdout


def clean_root(place):
    """Makes a Debian without the package, of the release of this machine. The download is kept beside the other files of the tests."""
    [codename] = re.findall(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
    kept = pathlib.Path(os.environ["SMOKE_DIRECTORY"]) / f"debian-{codename}.tar"
    words = ["--variant=minbase", "--include=adduser", codename, place]
    if not kept.exists():
        packed = kept.with_suffix(".part")
        made = subprocess.run(
            ["debootstrap", "--make-tarball", packed, *words], text=True, capture_output=True, check=False, timeout=1200
        )
        if made.returncode != 0:
            pytest.skip(f"debootstrap cannot get the packages of {codename}: {made.stdout[-500:]}{made.stderr[-500:]}")
        packed.rename(kept)
        shutil.rmtree(place, ignore_errors=True)
    subprocess.run(["debootstrap", "--unpack-tarball", kept, *words], check=True, capture_output=True, timeout=1200)


def test_the_debian_package_is_installed_upgraded_and_removed_in_a_clean_root(tmp_path):
    tools = ["debootstrap", "dpkg-deb", "cargo-deb"]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, debootstrap (apt-get install) and cargo-deb (cargo install); missing: {missing}")
    root = tmp_path / "root"
    clean_root(root)
    # The program under test, as a release build would be packed.
    target = tmp_path / "target"
    (target / "release").mkdir(parents=True)
    subprocess.run(["strip", "-o", target / "release" / "ilion", os.environ["SMOKE_ILION"]], check=True)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    packed = ["cargo", "deb", "--no-build", "--no-strip", "--offline", "-p", "ilion"]
    made = subprocess.run(packed, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    [package] = (target / "debian").glob("ilion_*.deb")
    checked = subprocess.run(
        [ROOT / "scripts" / "check-package", root, package],
        text=True,
        capture_output=True,
        check=False,
        timeout=RUN_SECS,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "removed and purged; data was kept" in checked.stdout, checked.stdout
