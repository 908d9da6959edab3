"""A Kafka broker of the tests: one process, from the jars that Maven fetches."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from node import free_port

VERSION = "4.1.0"
START_SECS = 120
STOP_SECS = 60
FETCH_SECS = 300
RUN_SECS = 120
HERE = os.path.dirname(os.path.abspath(__file__))
CERTIFICATES = os.path.join(HERE, "..", "..", "crates", "tls", "testdata")


def jars():
    """The directory with the jars of the broker; fetched once. Skips the test where that cannot work."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"the Kafka broker needs {program}, which is not installed")
    directory = os.path.join(os.environ["SMOKE_DIRECTORY"], f"kafka-{VERSION}")
    # One worker fetches, the others wait.
    with open(f"{directory}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(directory, "complete")):
            fetch = ["mvn", "-q", "-B", "-f", os.path.join(HERE, "kafka.xml"), "dependency:copy-dependencies"]
            fetch += [f"-Dkafka.version={VERSION}", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
            # A registry that cannot be reached is no failure of ours; CI says with SMOKE_KAFKA=1 that it must be there.
            fetched = subprocess.run(fetch, capture_output=True, text=True, timeout=FETCH_SECS, check=False)
            if fetched.returncode != 0 and os.environ.get("SMOKE_KAFKA") != "1":
                pytest.skip(f"Maven cannot fetch the Kafka broker: {fetched.stdout[-300:]}")
            assert fetched.returncode == 0, fetched.stdout
            with open(os.path.join(directory, "complete"), "w"):
                pass
    return directory


class Broker:
    """One broker, which is its own controller. `address` has no login; `secured` has TLS, and the user ann with the password secret."""

    def __init__(self, directory):
        self.directory = directory
        self.jars = jars()
        self.address = f"127.0.0.1:{free_port()}"
        self.secured = f"127.0.0.1:{free_port()}"
        controller = f"127.0.0.1:{free_port()}"
        self.log = os.path.join(directory, "broker.log")
        self.properties = os.path.join(directory, "server.properties")
        self.process = None
        login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        store = os.path.abspath(os.path.join(CERTIFICATES, "node.pem"))
        lines = [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@{controller}",
            f"listeners=PLAINTEXT://{self.address},SASL_SSL://{self.secured},CONTROLLER://{controller}",
            f"advertised.listeners=PLAINTEXT://{self.address},SASL_SSL://{self.secured}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=PLAINTEXT",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
            f"listener.name.sasl_ssl.plain.sasl.jaas.config={login}",
            f"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram}",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={store}",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS;User:bob",
            f"log.dirs={os.path.join(directory, 'data')}",
            "num.network.threads=2",
            "num.io.threads=4",
            "auto.create.topics.enable=false",
            "default.replication.factor=1",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=1",
            "group.initial.rebalance.delay.ms=0",
        ]
        with open(self.properties, "w") as file:
            file.write("\n".join(lines) + "\n")

    def java(self, *arguments):
        heap = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *heap, "-cp", f"{self.jars}/*", *arguments]

    def format(self):
        tool = self.java("kafka.tools.StorageTool", "format", "-t", "ilionSmokeTestsXXXXXXw", "-c", self.properties)
        tool += ["--add-scram", "SCRAM-SHA-512=[name=bob,password=secret]"]
        subprocess.run(tool, check=True, capture_output=True, timeout=START_SECS)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.java("kafka.Kafka", self.properties), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        host, port = self.address.split(":")
        deadline = time.monotonic() + START_SECS
        while True:
            assert self.process.poll() is None, f"the broker ended:\n{self.last_words()}"
            assert time.monotonic() < deadline, f"no broker on {self.address}:\n{self.last_words()}"
            try:
                with socket.create_connection((host, int(port)), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_SECS)

    def pause(self, secs):
        """Stops the process for a time; connections stay open."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(secs)
        self.process.send_signal(signal.SIGCONT)

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-30:])


def open_topic(address, topic):
    consumer = Consumer({"bootstrap.servers": address, "group.id": "smoke", "enable.partition.eof": True})
    partitions = list(consumer.list_topics(topic, timeout=RUN_SECS).topics[topic].partitions)
    return consumer, [TopicPartition(topic, partition, 0) for partition in partitions]


def wait_for_records(address, topic, count):
    """Waits until the topic has so many records."""
    deadline = time.monotonic() + RUN_SECS
    while time.monotonic() < deadline:
        try:
            consumer, partitions = open_topic(address, topic)
            ends = [consumer.get_watermark_offsets(partition, timeout=RUN_SECS)[1] for partition in partitions]
            consumer.close()
        except KafkaException:
            # A broker that has just started has no leaders yet.
            ends = []
        if sum(ends) >= count:
            return sum(ends)
        time.sleep(0.05)
    raise AssertionError(f"{topic} has no {count} records")
