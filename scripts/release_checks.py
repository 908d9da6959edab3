"""The checks of scripts/release, which calls this:

    release_checks.py versions [--tag TAG] [DIRECTORY]   # of the sources in the working directory, and of the files in DIRECTORY
    release_checks.py sbom FILE CRATE [FEATURE..]        # FILE (CycloneDX) names each crate that CRATE is linked with
    release_checks.py listed DIRECTORY                   # SHA256SUMS lists each file, but itself and its signature

Prints what is wrong, a line each, and then fails.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

NOT_LISTED = {"SHA256SUMS", "SHA256SUMS.minisig", "SHA256SUMS.sig", "SHA256SUMS.asc"}
VERSION_LABEL = "org.opencontainers.image.version"


def output(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates():
    """The crates of the workspace, as Cargo reads their manifests."""
    return json.loads(output("cargo", "metadata", "--no-deps", "--format-version", "1"))["packages"]


def first_section(changelog):
    """The newest heading of the changelog, without a date behind the version."""
    headings = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    return headings[0] if headings else "nothing"


def wrong_sources(packages, lock, changelog, tag):
    """The version of the sources, and what does not have it."""
    [version] = [package["version"] for package in packages if package["name"] == "ilion"]
    wrong = []
    for package in packages:
        if package["version"] != version:
            wrong.append(f"Cargo.toml: {package['name']} has version {package['version']}, and ilion {version}")
        for dependency in package["dependencies"]:
            # `*` is for crates that are not published.
            if dependency.get("path") and dependency["req"] not in ("*", f"^{version}"):
                wrong.append(f"Cargo.toml: {package['name']} needs {dependency['name']} {dependency['req']}, not {version}")
    locked = dict(re.findall(r'^name = "(.+)"\nversion = "(.+)"\n(?!source)', lock, re.MULTILINE))
    for package in packages:
        found = locked.get(package["name"], "nothing")
        if found != version:
            wrong.append(f"Cargo.lock: {package['name']} has version {found}, not {version}")
    newest = first_section(changelog)
    # What is not released yet needs no version; a tagged release does.
    if newest != version and (tag or newest != "Unreleased"):
        wrong.append(f"CHANGELOG.md: the newest section is {newest}, not {version}")
    if tag and tag != f"v{version}":
        wrong.append(f"the tag is {tag}, not v{version}")
    return version, wrong


def version_of_wheel(path):
    with zipfile.ZipFile(path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return re.search(r"^Version: (.+)$", archive.read(name).decode(), re.MULTILINE)[1].strip()


def version_of_deb(path):
    # Behind the hyphen is the number of the package.
    return output("dpkg-deb", "--field", str(path), "Version").strip().split("-")[0]


def version_of_source(path):
    with tarfile.open(path) as archive:
        [name] = [name for name in archive.getnames() if re.fullmatch(r"[^/]+/Cargo\.toml", name)]
        text = archive.extractfile(name).read().decode()
    return re.search(r'^version = "(.+)"$', text, re.MULTILINE)[1]


def version_of_image(path):
    with tarfile.open(path) as archive:
        [manifest] = json.load(archive.extractfile("manifest.json"))
        labels = json.load(archive.extractfile(manifest["Config"]))["config"].get("Labels") or {}
    return labels.get(VERSION_LABEL, "nothing")


def version_of_sbom(path):
    return json.loads(path.read_text())["metadata"]["component"]["version"]


UNREADABLE = (OSError, ValueError, KeyError, TypeError, tarfile.TarError, zipfile.BadZipFile, subprocess.CalledProcessError)

READERS = {
    "*.whl": version_of_wheel,
    "*.deb": version_of_deb,
    "*.ddeb": version_of_deb,
    "*-source.tar.gz": version_of_source,
    "*-image-*.tar.gz": version_of_image,
    "*.cdx.json": version_of_sbom,
}


def wrong_files(directory, version):
    wrong = []
    for path in sorted(directory.iterdir()):
        if path.name in NOT_LISTED:
            continue
        if version not in path.name:
            wrong.append(f"{path.name}: the name is without the version {version}")
        for pattern, read in READERS.items():
            if path.match(pattern):
                try:
                    found = read(path)
                except UNREADABLE as error:
                    wrong.append(f"{path.name}: its version cannot be read: {error}")
                    continue
                if found != version:
                    wrong.append(f"{path.name}: has version {found}, not {version}")
    return wrong


def versions(directory, tag):
    root = pathlib.Path()
    lock, changelog = (root / "Cargo.lock").read_text(), (root / "CHANGELOG.md").read_text()
    version, wrong = wrong_sources(crates(), lock, changelog, tag)
    if directory:
        wrong += wrong_files(directory, version)
    return wrong, f"the version is {version} everywhere"


def linked_crates(crate, features):
    """The crates, with versions, that a crate is linked with on this platform, as `cargo tree` names them."""
    words = ["cargo", "tree", "--locked", "--package", crate, "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    lines = output(*words, "--features", ",".join(features)).splitlines()
    return {tuple(line.split()[:2]) for line in lines if line}


def sbom(path, crate, features):
    document = json.loads(path.read_text())
    components = [document["metadata"]["component"], *document["components"]]
    named = {(component["name"], f"v{component['version']}") for component in components}
    linked = linked_crates(crate, features)
    wrong = [f"{path.name}: does not name {name} {version}" for name, version in sorted(linked - named)]
    return wrong, f"{path.name} names all {len(linked)} crates"


def listed(directory):
    names = {line.split(maxsplit=1)[1].lstrip("*") for line in (directory / "SHA256SUMS").read_text().splitlines()}
    present = {path.name for path in directory.iterdir()} - NOT_LISTED
    return [f"{name}: is not in SHA256SUMS" for name in sorted(present - names)], f"SHA256SUMS lists all {len(present)} files"


def main():
    parser = argparse.ArgumentParser()
    checks = parser.add_subparsers(dest="check", required=True)
    check = checks.add_parser("versions")
    check.add_argument("--tag")
    check.add_argument("directory", type=pathlib.Path, nargs="?")
    check = checks.add_parser("sbom")
    check.add_argument("file", type=pathlib.Path)
    check.add_argument("crate")
    check.add_argument("features", nargs="*")
    check = checks.add_parser("listed")
    check.add_argument("directory", type=pathlib.Path)
    words = parser.parse_args()
    if words.check == "versions":
        wrong, good = versions(words.directory, words.tag)
    elif words.check == "sbom":
        wrong, good = sbom(words.file, words.crate, words.features)
    else:
        wrong, good = listed(words.directory)
    print("\n".join(wrong) if wrong else good)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
