"""Servers of object stores on loopback: S3 (moto), Azure (Azurite) and Google Cloud (a fork of fake-gcs-server that has the XML API).

moto comes with the other packages of the tests. The other two take minutes to fetch, so they are fetched only with SMOKE_OBJECT_STORES=1:
Azurite with npm, fake-gcs-server with git and go. They stay in the cache of the tests, and later runs use them without that variable.
"""

import base64
import email.utils
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from node import free_port, wait_until

BUCKET = "backups"
FETCH_SECS = 900
# The account that Azurite has, as Microsoft documents it.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
AZURITE = "azurite@3.35.0"
FAKE_GCS = ["--branch", "support-xml-api", "https://github.com/tustvold/fake-gcs-server"]


class Destination:
    """DEST of `ilion backup`, with the variables that it needs."""

    def __init__(self, name, variables=None):
        self.name = name
        self.variables = variables or {}


class Server:
    """A server with an empty bucket. Subclasses say how it is started, how a bucket is made, and which variables a client needs."""

    def __init__(self, directory):
        self.directory = directory
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            self.command(), cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self.has_bucket, f"{type(self).__name__} answers")

    def has_bucket(self):
        assert self.process.poll() is None, f"{type(self).__name__} ended"
        try:
            urllib.request.urlopen(self.bucket_request(), timeout=5).close()
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, OSError):
            return False
        return True

    def destination(self, prefix):
        return Destination(f"{self.scheme}://{BUCKET}/{prefix}", self.variables())

    def stop(self):
        self.process.kill()
        self.process.wait()


class S3Server(Server):
    scheme = "s3"

    @staticmethod
    def fetch():
        pytest.importorskip("moto", reason="moto's S3 server is not installed")

    def command(self):
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def bucket_request(self):
        return urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT")

    def variables(self):
        return {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": self.url,
            "AWS_ALLOW_HTTP": "true",
        }


class AzureServer(Server):
    scheme = "az"

    @staticmethod
    def program():
        return cached("azurite/node_modules/.bin/azurite-blob")

    @staticmethod
    def fetch():
        into = cached("azurite")
        fetch(AzureServer.program(), ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", into, AZURITE])

    def command(self):
        return [self.program(), "--blobPort", str(self.port), "--inMemoryPersistence", "--disableTelemetry", "--silent"]

    def bucket_request(self):
        """Creates a container; signed, since nobody else may."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-12-02", "Content-Length": "0"}
        lines = ["PUT", *[""] * 11, f"x-ms-date:{headers['x-ms-date']}", f"x-ms-version:{headers['x-ms-version']}"]
        lines += [f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{BUCKET}", "restype:container"]
        key = base64.b64decode(AZURE_KEY)
        signature = base64.b64encode(hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()).decode()
        headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{signature}"
        url = f"{self.url}/{AZURE_ACCOUNT}/{BUCKET}?restype=container"
        return urllib.request.Request(url, method="PUT", headers=headers)

    def variables(self):
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"{self.url}/{AZURE_ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }


class GoogleServer(Server):
    scheme = "gs"

    @staticmethod
    def program():
        return cached("fake-gcs-server")

    @staticmethod
    def fetch():
        sources = cached("fake-gcs-source")
        shutil.rmtree(sources, ignore_errors=True)
        program = GoogleServer.program()
        fetch(program, ["git", "clone", "--quiet", *FAKE_GCS, sources], ["go", "build", "-C", sources, "-o", program, "."])

    def command(self):
        place = ["-host", "127.0.0.1", "-port", str(self.port), "-public-host", f"127.0.0.1:{self.port}"]
        return [self.program(), "-scheme", "http", "-backend", "memory", *place]

    def bucket_request(self):
        body = json.dumps({"name": BUCKET}).encode()
        headers = {"Content-Type": "application/json"}
        return urllib.request.Request(f"{self.url}/storage/v1/b", data=body, headers=headers, method="POST")

    def variables(self):
        return {"GOOGLE_BASE_URL": self.url, "GOOGLE_BEARER_TOKEN": "any"}


def cached(name):
    return str(pathlib.Path(os.environ["SMOKE_DIRECTORY"]).absolute() / name)


def fetch(program, *commands):
    """Runs the commands that bring the program, if it is missing and the caller of the tests wants it; skips the test otherwise."""
    if os.path.exists(program):
        return
    name = os.path.basename(program)
    if not os.environ.get("SMOKE_OBJECT_STORES"):
        pytest.skip(f"{name} is not there; SMOKE_OBJECT_STORES=1 fetches it, in minutes")
    for command in commands:
        if shutil.which(command[0]) is None:
            pytest.skip(f"{name} needs {command[0]}")
        done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=FETCH_SECS)
        if done.returncode != 0:
            pytest.skip(f"{name} cannot be fetched: {' '.join(command)}: {done.stderr[-500:]}")


SERVERS = {kind.scheme: kind for kind in (S3Server, AzureServer, GoogleServer)}
