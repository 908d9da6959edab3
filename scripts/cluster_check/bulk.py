"""A table that gets many rows at once, beside the load of a case."""

from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import WhiteListRoundRobinPolicy

from clients import connect

TABLE = "bulk"
IN_FLIGHT = 48


class Bulk:
    """The table, and how many of its rows were acknowledged. It has one partition: all rows are in one log."""

    def __init__(self, world):
        self.world = world
        self.port = world.nodes[0].port
        self.tried = 0
        self.acknowledged = set()
        cluster = connect([world.nodes[0].host], self.port)
        cluster.connect().execute(f"CREATE TABLE {self.name()} (k int, c int, v blob, PRIMARY KEY (k, c))")
        cluster.shutdown()
        world.more_tables.append(TABLE)

    def name(self):
        return f"{self.world.keyspace}.{TABLE}"

    def write(self, nodes, rows, value_bytes):
        """Writes rows on these nodes. What fails is not written again."""
        hosts = [node.host for node in nodes]
        # Only these: the policy takes others in as soon as it hears of them.
        cluster = connect(hosts, self.port, policy=WhiteListRoundRobinPolicy(hosts))
        session = cluster.connect()
        insert = session.prepare(f"INSERT INTO {self.name()} (k, c, v) VALUES (0, ?, ?)")
        numbers = range(self.tried, self.tried + rows)
        self.tried += rows
        arguments = [(number, b"v" * value_bytes) for number in numbers]
        done = execute_concurrent_with_args(session, insert, arguments, concurrency=IN_FLIGHT, raise_on_first_error=False)
        self.acknowledged.update(number for number, result in zip(numbers, done) if result.success)
        cluster.shutdown()

    def missing(self, node, level=ConsistencyLevel.ONE):
        """How many acknowledged rows this node does not have."""
        cluster = connect([node.host], self.port, level, WhiteListRoundRobinPolicy([node.host]))
        found = {row.c for row in cluster.connect().execute(f"SELECT c FROM {self.name()} WHERE k = 0")}
        cluster.shutdown()
        return len(self.acknowledged - found)
