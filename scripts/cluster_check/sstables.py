"""Whether the SSTables of all replicas hold the same rows, with the same write times."""

import glob
import json
import os
import shutil
import subprocess

REPLICAS = 3
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cassandra", "peer")
# Cassandra's tools start with no less.
SETTINGS = """\
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
data_file_directories: [HOME/data]
commitlog_directory: HOME/commitlog
hints_directory: HOME/hints
saved_caches_directory: HOME/saved_caches
cdc_raw_directory: HOME/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 10000ms
"""


def without_positions(value):
    """The JSON of a partition without what depends on the file. Pure."""
    if isinstance(value, dict):
        return {name: without_positions(part) for name, part in value.items() if name != "position"}
    if isinstance(value, list):
        return [without_positions(part) for part in value]
    return value


def partitions(dump):
    """The partitions of a dump with a line for each, by key. Pure."""
    found = {}
    for line in dump.splitlines():
        partition = without_positions(json.loads(line))
        found[":".join(partition["partition"]["key"])] = partition
    return found


def differences(of_nodes, replicas):
    """What is wrong with the partitions of a table, by node: each is on so many nodes, and alike. Pure."""
    problems = []
    for key in sorted(set().union(*of_nodes.values())):
        holders = [node for node, found in of_nodes.items() if key in found]
        if len(holders) != replicas:
            problems.append(f"partition {key} is in the SSTables of nodes {holders}, and should be on {replicas}")
        different = [node for node in holders if of_nodes[node][key] != of_nodes[holders[0]][key]]
        if different:
            problems.append(f"partition {key} differs in the SSTables of nodes {holders[0]} and {different[0]}")
    return problems


def data_file(node, keyspace, table):
    """The only Data.db of a table, or None if the table is empty."""
    found = glob.glob(os.path.join(node.data, "data", keyspace, f"{table}-*", "*-Data.db"))
    assert len(found) <= 1, f"after a major compaction, node {node.number} has {found}"
    return found[0] if found else None


def dump_by_ilion(node, file):
    command = [node.binary, "sstable", "dump", "--lines", "--raw-times", file]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dumped_by_cassandra(directory, files):
    """What Cassandra's sstabledump prints of each file, from one JVM."""
    home = os.path.join(directory, "cassandra")
    os.makedirs(os.path.join(home, "tmp"), exist_ok=True)
    with open(os.path.join(home, "cassandra.yaml"), "w") as yaml:
        yaml.write(SETTINGS.replace("HOME", home))
    outputs = [os.path.join(home, f"dump{number}") for number in range(len(files))]
    lines = "".join("\t".join([output, file, "-l", "-t"]) + "\n" for output, file in zip(outputs, files))
    done = subprocess.run([PEER, "tools", home, "sstabledump"], input=lines, capture_output=True, text=True)
    codes = done.stdout.split()
    assert codes == ["0"] * len(files), f"sstabledump ended with {codes}: {done.stderr[-500:]}"
    dumps = []
    for output in outputs:
        with open(output) as file:
            dumps.append(file.read())
    return dumps


def why_no_cassandra():
    """Why Cassandra's tools cannot be used here, or None."""
    needed = ["java", "javac"] if os.environ.get("CASSANDRA_JARS") else ["java", "javac", "mvn"]
    missing = [program for program in needed if shutil.which(program) is None]
    return f"{missing[0]} is missing" if missing else None


def tidy(node, keyspace):
    """Each of its tables is one SSTable of what the node holds."""
    for words in (("flush", keyspace), ("cleanup", keyspace), ("compact", keyspace)):
        node.nodetool(*words)


def check(world, tables, by_cassandra):
    """Compares all replicas. Returns the number of partitions, and what is wrong. `by_cassandra`: also as Cassandra's own tool reads the files."""
    for node in world.nodes:
        tidy(node, world.keyspace)
    count, problems, files = 0, [], []
    for table in tables:
        of_nodes = {}
        for node in world.nodes:
            file = data_file(node, world.keyspace, table)
            dump = dump_by_ilion(node, file) if file else ""
            of_nodes[node.number] = partitions(dump)
            if file:
                files.append((node.number, table, file, of_nodes[node.number]))
        found = differences(of_nodes, min(REPLICAS, len(world.nodes)))
        count += len(set().union(*of_nodes.values()))
        problems += [f"{table}: {problem}" for problem in found[:3]]
    if by_cassandra:
        dumps = dumped_by_cassandra(world.directory, [file for _, _, file, _ in files])
        for (number, table, _, expected), dump in zip(files, dumps):
            if partitions(dump) != expected:
                problems.append(f"{table}: Cassandra reads other rows in the SSTables of node {number} than Ilion")
        world.notes.append(f"Cassandra's sstabledump has read {len(files)} SSTables of all nodes")
    return count, problems
