"""Three Kafka brokers on loopback, each also a controller, with the time limits that docs/cluster.md recommends."""

import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode

from broker import jars
from links import Links
from node import free_port

START_SECS = 180
STOP_SECS = 60


class KafkaBroker:
    """One of them. It listens at `places`, and is told to others as at `shown`: its own address and that of its controller."""

    def __init__(self, number, directory, voters, places, shown, cluster_id, jar_directory):
        self.directory = os.path.join(directory, f"broker{number}")
        os.makedirs(self.directory)
        self.number = number
        self.cluster_id = cluster_id
        self.jars = jar_directory
        self.port = places[0]
        self.address = local(shown[0])
        # The proxies, if there are some.
        self.links = None
        self.compiler = ()
        self.log = os.path.join(self.directory, "broker.log")
        self.properties = os.path.join(self.directory, "server.properties")
        self.process = None
        lines = [
            "process.roles=broker,controller",
            f"node.id={number}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://{local(places[0])},CONTROLLER://{local(places[1])}",
            f"advertised.listeners=PLAINTEXT://{self.address},CONTROLLER://{local(shown[1])}",
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=PLAINTEXT",
            f"broker.rack=rack{number}",
            f"log.dirs={os.path.join(self.directory, 'data')}",
            "num.network.threads=2",
            "num.io.threads=4",
            "auto.create.topics.enable=false",
            "default.replication.factor=3",
            "min.insync.replicas=2",
            "unclean.leader.election.enable=false",
            "broker.session.timeout.ms=1200",
            "broker.heartbeat.interval.ms=300",
            "replica.lag.time.max.ms=4000",
            "replica.fetch.backoff.ms=100",
            "controller.quorum.fetch.timeout.ms=600",
            "controller.quorum.election.timeout.ms=300",
            "controller.quorum.election.backoff.max.ms=200",
            "message.max.bytes=33554432",
            "replica.fetch.max.bytes=33554432",
        ]
        with open(self.properties, "w") as file:
            file.write("\n".join(lines) + "\n")

    def java(self, *arguments):
        options = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", *self.compiler]
        return ["java", *options, "-cp", f"{self.jars}/*", *arguments]

    def format(self):
        tool = self.java("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", self.properties)
        subprocess.run(tool, check=True, capture_output=True, timeout=START_SECS)

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.java("kafka.Kafka", self.properties), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        if self.links is not None:
            self.links.tell("process", self.number, self.process.pid)

    def wait(self):
        deadline = time.monotonic() + START_SECS
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"broker {self.number} does not start:\n{self.last_words()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)

    def start(self):
        self.spawn()
        self.wait()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_SECS)

    def wipe(self):
        shutil.rmtree(os.path.join(self.directory, "data"))
        self.format()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-20:])


def local(port):
    return f"127.0.0.1:{port}"


def start_brokers(directory, count=3, has_links=False):
    """Formats and starts them, all at once. With links, others reach them through proxies. Returns the proxies, too, or None."""
    jar_directory = os.environ.get("KAFKA_JARS") or jars()
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    places = [(free_port(), free_port()) for _ in range(count)]
    shown = [(free_port(), free_port()) for _ in range(count)] if has_links else places
    voters = ",".join(f"{number}@{local(controller)}" for number, (_, controller) in enumerate(shown, 1))
    brokers = [
        KafkaBroker(number, directory, voters, places[number - 1], shown[number - 1], cluster_id, jar_directory)
        for number in range(1, count + 1)
    ]
    if count == 1:
        # A short check: it starts sooner, and is slower later.
        brokers[0].compiler = ("-XX:TieredStopAtLevel=1",)
    for broker in brokers:
        broker.format()
    links = None
    try:
        if has_links:
            ways = [
                (proxy, place, number)
                for number, pair in enumerate(zip(shown, places), 1)
                for proxy, place in zip(*pair)
            ]
            links = Links(ways)
        for broker in brokers:
            broker.links = links
            broker.spawn()
        for broker in brokers:
            broker.wait()
    except BaseException:
        for process in [*brokers, links]:
            if process is not None and process.is_running():
                process.kill()
        raise
    return brokers, links
