"""What scripts/release checks and signs, on small stand-ins: nothing is compiled."""

import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN_SECS = 300


@pytest.fixture(autouse=True)
def own(request):
    if request.config.getoption("--against"):
        pytest.skip("it needs no node")


def release(root, *words):
    """Exit code and output of scripts/release of a checkout."""
    command = [str(root / "scripts" / "release"), *map(str, words)]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=RUN_SECS)
    return done.returncode, done.stdout + done.stderr


def good(root, *words):
    code, output = release(root, *words)
    assert code == 0, output
    return output


def fails(root, *words):
    code, output = release(root, *words)
    assert code != 0, output
    return output


@pytest.fixture
def sources(tmp_path):
    """A project of two crates, version 1.2.3, with the scripts of this one."""
    root = tmp_path / "sources"
    for crate, dependencies in [("ilion", '[dependencies]\nilion-part = { version = "1.2.3", path = "../part" }\n'), ("part", "")]:
        name = crate if crate == "ilion" else f"ilion-{crate}"
        directory = root / "crates" / crate
        (directory / "src").mkdir(parents=True)
        (directory / "src" / "lib.rs").write_text("")
        manifest = f'[package]\nname = "{name}"\nversion.workspace = true\n\n[features]\ncolumnar = []\n\n{dependencies}'
        (directory / "Cargo.toml").write_text(manifest)
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\nresolver = "3"\n\n[workspace.package]\nversion = "1.2.3"\n')
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 - 2026-12-01\n\n## 1.2.2\n")
    (root / "scripts").mkdir()
    for script in ["release", "release_checks.py"]:
        shutil.copy(ROOT / "scripts" / script, root / "scripts")
    subprocess.run(["cargo", "generate-lockfile", "--quiet", "--offline"], cwd=root, check=True, timeout=RUN_SECS)
    return root


def add(archive, name, text):
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))


def make_files(directory, version):
    """Files with the names of those of version 1.2.3, whose contents say another version."""
    directory.mkdir()
    with zipfile.ZipFile(directory / "ilion-1.2.3-cp39-abi3-manylinux_2_17_x86_64.whl", "w") as wheel:
        wheel.writestr(f"ilion-{version}.dist-info/METADATA", f"Metadata-Version: 2.4\nName: ilion\nVersion: {version}\n")
    with tarfile.open(directory / "ilion-1.2.3-source.tar.gz", "w:gz") as source:
        add(source, f"ilion-{version}/Cargo.toml", f'[workspace.package]\nversion = "{version}"\n')
    with tarfile.open(directory / "ilion-1.2.3-image-x86_64.tar.gz", "w:gz") as image:
        add(image, "manifest.json", json.dumps([{"Config": "c.json"}]))
        add(image, "c.json", json.dumps({"config": {"Labels": {"org.opencontainers.image.version": version}}}))
    sbom = {"metadata": {"component": {"name": "ilion", "version": version}}, "components": []}
    (directory / "ilion-1.2.3.cdx.json").write_text(json.dumps(sbom))
    if shutil.which("dpkg-deb"):
        tree = directory.parent / f"deb-{version}"
        (tree / "DEBIAN").mkdir(parents=True)
        control = f"Package: ilion\nVersion: {version}-1\nArchitecture: amd64\nMaintainer: nobody <nobody@example>\nDescription: none\n"
        (tree / "DEBIAN" / "control").write_text(control)
        subprocess.run(["dpkg-deb", "--build", tree, directory / "ilion_1.2.3-1_amd64.deb"], check=True, capture_output=True)


def test_the_versions_of_this_project_agree():
    assert "everywhere" in good(ROOT, "--check")


def test_versions_that_differ_are_named(sources):
    assert "the version is 1.2.3 everywhere" in good(sources, "--check", "--tag", "v1.2.3")
    assert "the tag is v1.2.4, not v1.2.3" in fails(sources, "--check", "--tag", "v1.2.4")
    changelog = sources / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## Unreleased\n\n## 1.2.2\n")
    good(sources, "--check")
    assert "the newest section is Unreleased, not 1.2.3" in fails(sources, "--check", "--tag", "v1.2.3")
    changelog.write_text("# Changelog\n\n## 1.2.2\n")
    assert "the newest section is 1.2.2, not 1.2.3" in fails(sources, "--check")
    changelog.write_text("# Changelog\n\n## 1.2.3\n")
    manifest = sources / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("1.2.3", "1.2.4"))
    output = fails(sources, "--check")
    assert "ilion needs ilion-part ^1.2.3, not 1.2.4" in output
    assert "Cargo.lock: ilion-part has version 1.2.3, not 1.2.4" in output


def test_files_of_another_version_are_named(sources, tmp_path):
    make_files(tmp_path / "same", "1.2.3")
    good(sources, "--check", tmp_path / "same")
    make_files(tmp_path / "other", "1.2.2")
    output = fails(sources, "--check", tmp_path / "other")
    names = sorted(path.name for path in (tmp_path / "other").iterdir())
    assert len(names) >= 4
    assert [f"{name}: has version 1.2.2, not 1.2.3" in output for name in names] == [True] * len(names), output
    stale = tmp_path / "same" / "ilion-1.2.2-py3-none-any.whl"
    stale.write_text("no archive")
    output = fails(sources, "--check", tmp_path / "same")
    assert f"{stale.name}: the name is without the version 1.2.3" in output
    assert f"{stale.name}: its version cannot be read" in output


def ssh_key(directory, name):
    key = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True, timeout=RUN_SECS)
    return str(key), str(key.with_suffix(".pub"))


def gpg_key(directory, name):
    words = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", f"{name}@example", "ed25519", "sign"]
    subprocess.run(words, check=True, capture_output=True, timeout=RUN_SECS)
    public = directory / f"{name}.asc"
    words = ["gpg", "--batch", "--armor", "--export", "--output", public, f"{name}@example"]
    subprocess.run(words, check=True, timeout=RUN_SECS)
    return f"{name}@example", public


def minisign_key(directory, name):
    secret, public = directory / f"{name}.key", directory / f"{name}.pub"
    subprocess.run(["minisign", "-G", "-W", "-p", public, "-s", secret], check=True, capture_output=True, timeout=RUN_SECS)
    return secret, public


@pytest.mark.parametrize(
    ("tool", "make_key"), [("ssh-keygen", ssh_key), ("gpg", gpg_key), ("minisign", minisign_key)], ids=["ssh", "gpg", "minisign"]
)
def test_a_download_is_verified_and_a_flipped_byte_is_found(tool, make_key, tmp_path, monkeypatch):
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    key_ring = tmp_path / "gpg"
    key_ring.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(key_ring))
    secret, public = make_key(tmp_path, "maintainer")
    _, other = make_key(tmp_path, "other")
    files = tmp_path / "files"
    make_files(files, "1.2.3")
    good(ROOT, "--sums", files)
    assert "the signature was not checked" in good(ROOT, "--verify", files)
    fails(ROOT, "--verify", files, public)
    good(ROOT, "--sign", files, secret)
    assert "lists all" in good(ROOT, "--verify", files, public)
    assert "the signature of SHA256SUMS is wrong" in fails(ROOT, "--verify", files, other)
    if make_key is gpg_key:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False, timeout=RUN_SECS)

    wheel = next(files.glob("*.whl"))
    whole = wheel.read_bytes()
    flipped = bytearray(whole)
    flipped[len(flipped) // 2] ^= 1
    wheel.write_bytes(flipped)
    output = fails(ROOT, "--verify", files, public)
    assert f"{wheel.name}: FAILED" in output and "files are damaged or missing" in output
    wheel.write_bytes(whole)
    good(ROOT, "--verify", files, public)

    (files / "smuggled-1.2.3.whl").write_bytes(whole)
    assert "smuggled-1.2.3.whl: is not in SHA256SUMS" in fails(ROOT, "--verify", files, public)
    (files / "smuggled-1.2.3.whl").unlink()

    sums = files / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("0", "1", 1))
    assert "the signature of SHA256SUMS is wrong" in fails(ROOT, "--verify", files, public)


def test_a_key_of_no_known_tool_is_refused(tmp_path):
    make_files(tmp_path / "files", "1.2.3")
    good(ROOT, "--sums", tmp_path / "files")
    (tmp_path / "key").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    assert "is no key of minisign, ssh or gpg" in fails(ROOT, "--sign", tmp_path / "files", tmp_path / "key")


def test_a_release_is_refused_before_the_build(sources, tmp_path):
    git = ["git", "-C", sources, "-c", "user.name=nobody", "-c", "user.email=nobody@example"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    assert "has changes that are not committed" in fails(sources)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "all"], check=True)
    assert "HEAD does not have the tag v1.2.3" in fails(sources, "--tag", "v1.2.3")
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert "ssh-keygen cannot sign with the key" in fails(sources, "--key", tmp_path / "key")
    assert "there is no kind rpm" in fails(sources, "--only", "rpm")


def sbom_of(crates):
    components = [{"name": name, "version": version} for name, version in crates]
    return json.dumps({"metadata": {"component": components[0]}, "components": components[1:]})


def test_an_sbom_that_leaves_a_linked_crate_out_is_refused(tmp_path):
    lock = (ROOT / "Cargo.lock").read_text().split("[[package]]")[1:]
    values = [dict(line.split(" = ", 1) for line in entry.splitlines() if " = " in line) for entry in lock]
    crates = [(value["name"].strip('"'), value["version"].strip('"')) for value in values]
    file = tmp_path / "ilion-1.2.3.cdx.json"
    file.write_text(sbom_of(crates))
    assert "names all" in good(ROOT, "--check-sbom", file)
    for left_out in ["parquet", "ilion-engine", "tokio"]:
        file.write_text(sbom_of([crate for crate in crates if crate[0] != left_out]))
        assert f"does not name {left_out} v" in fails(ROOT, "--check-sbom", file)


def test_the_sbom_names_every_crate_that_the_program_is_linked_with(tmp_path):
    if shutil.which("cargo-cyclonedx") is None:
        pytest.skip("needs cargo-cyclonedx (cargo install cargo-cyclonedx)")
    # It writes beside the manifests.
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True, timeout=RUN_SECS)
    for script in ["release", "release_checks.py"]:
        shutil.copy(ROOT / "scripts" / script, clone / "scripts")
    out = tmp_path / "out"
    output = good(clone, "--sbom", out)
    assert "names all" in output
    document = json.loads(next(out.glob("ilion-[0-9]*.cdx.json")).read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert str(tmp_path) not in json.dumps(document)
