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
from node import free_port

START_SECS = 180
STOP_SECS = 60


class KafkaBroker:
    """One of them."""

    def __init__(self, number, directory, voters, controller, cluster_id, jar_directory):
        self.directory = os.path.join(directory, f"broker{number}")
        os.makedirs(self.directory)
        self.number = number
        self.cluster_id = cluster_id
        self.jars = jar_directory
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = os.path.join(self.directory, "broker.log")
        self.properties = os.path.join(self.directory, "server.properties")
        self.process = None
        lines = [
            "process.roles=broker,controller",
            f"node.id={number}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://{self.address},CONTROLLER://{controller}",
            f"advertised.listeners=PLAINTEXT://{self.address}",
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
            "broker.session.timeout.ms=2000",
            "broker.heartbeat.interval.ms=400",
            "replica.lag.time.max.ms=4000",
            "controller.quorum.fetch.timeout.ms=1200",
            "controller.quorum.election.timeout.ms=600",
            "message.max.bytes=33554432",
            "replica.fetch.max.bytes=33554432",
        ]
        with open(self.properties, "w") as file:
            file.write("\n".join(lines) + "\n")

    def java(self, *arguments):
        heap = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC"]
        return ["java", *heap, "-cp", f"{self.jars}/*", *arguments]

    def format(self):
        tool = self.java("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", self.properties)
        subprocess.run(tool, check=True, capture_output=True, timeout=START_SECS)

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.java("kafka.Kafka", self.properties), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

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


def start_brokers(directory, count=3):
    """Formats and starts them, all at once."""
    jar_directory = os.environ.get("KAFKA_JARS") or jars()
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    controllers = [f"127.0.0.1:{free_port()}" for _ in range(count)]
    voters = ",".join(f"{number}@{address}" for number, address in enumerate(controllers, 1))
    brokers = [
        KafkaBroker(number, directory, voters, controller, cluster_id, jar_directory)
        for number, controller in enumerate(controllers, 1)
    ]
    for broker in brokers:
        broker.format()
    try:
        for broker in brokers:
            broker.spawn()
        for broker in brokers:
            broker.wait()
    except BaseException:
        for broker in brokers:
            if broker.is_running():
                broker.kill()
        raise
    return brokers
