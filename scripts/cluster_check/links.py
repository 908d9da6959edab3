"""Proxies in front of brokers that can cut one off: nothing arrives, and no connection is closed. Also a program: the proxies' process.

A connection is of a broker or of a node: of the process that has opened it. What was sent while a link was cut arrives when it is healed,
as with TCP over a network that loses packets. The program has its links as arguments (PORT:TARGET-PORT:BROKER), and reads commands from its
input, a line each: "process BROKER PID" names the process of a broker, "isolate BROKER" cuts it off from nodes and other brokers, "hide
BROKER" from nodes only, "part BROKER" from other brokers only, "heal" ends that. It answers each with a line.
"""

import asyncio
import os
import subprocess
import sys

PART_BYTES = 1 << 16
CUTS = ("isolate", "hide", "part")
ESTABLISHED = "01"
# Columns of /proc/net/tcp.
LOCAL, REMOTE, STATE, INODE = 1, 2, 3, 9


class Links:
    """The proxies, as a check uses them."""

    def __init__(self, ways):
        """`ways`: the proxy's port, the port behind it, the number of the broker."""
        command = [sys.executable, __file__, *(":".join(map(str, way)) for way in ways)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError(f"the proxies do not know what to do: {words}")

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()


def is_cut(cut, source, target):
    """Whether nothing arrives at broker `target` from `source`: a broker, or None for a node. `cut`: what is cut, and of which broker. Pure."""
    if cut is None or source == target:
        return False
    kind, broker = cut
    if kind == "hide":
        return source is None and target == broker
    if kind == "part" and source is None:
        return False
    return broker in (source, target)


def inode_of(client_port, server_port, lines):
    """The inode of the client's socket of a connection on this machine, from lines of /proc/net/tcp. Pure."""
    for line in lines:
        fields = line.split()
        ports = tuple(int(fields[column].rsplit(":", 1)[1], 16) for column in (LOCAL, REMOTE))
        if ports == (client_port, server_port) and fields[STATE] == ESTABLISHED:
            return fields[INODE]
    return None


def connections():
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            yield from file.readlines()[1:]


def has_socket(pid, inode):
    directory = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{directory}/{name}") == f"socket:[{inode}]" for name in os.listdir(directory))
    except OSError:
        # The process has ended, or has closed a file meanwhile.
        return False


class Proxies:
    """What the program does."""

    def __init__(self):
        self.processes = {}
        self.cut = None
        self.healed = asyncio.Condition()

    async def listen(self, port, target_port, broker):
        async def serve(reader, writer):
            client_port = writer.get_extra_info("peername")[1]
            inode = inode_of(client_port, port, connections())
            source = next((number for number, pid in self.processes.items() if has_socket(pid, inode)), None)
            await self.forward(reader, writer, target_port, (source, broker))

        await asyncio.start_server(serve, "127.0.0.1", port)

    async def pass_cut(self, link):
        async with self.healed:
            await self.healed.wait_for(lambda: not is_cut(self.cut, *link))

    async def forward(self, reader, writer, target_port, link):
        try:
            await self.pass_cut(link)
            behind, into = await asyncio.open_connection("127.0.0.1", target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.pump(reader, into, link), self.pump(behind, writer, link))

    async def pump(self, reader, writer, link):
        try:
            while part := await reader.read(PART_BYTES):
                await self.pass_cut(link)
                writer.write(part)
                await writer.drain()
        except OSError:
            pass
        await self.pass_cut(link)
        writer.close()

    async def obey(self, command):
        verb, *numbers = command.split()
        if verb == "process":
            broker, pid = map(int, numbers)
            self.processes[broker] = pid
        elif verb == "heal":
            async with self.healed:
                self.cut = None
                self.healed.notify_all()
        elif verb in CUTS:
            self.cut = (verb, int(numbers[0]))
        else:
            return "unknown"
        return "done"


async def run(ways):
    proxies = Proxies()
    for way in ways:
        await proxies.listen(*map(int, way.split(":")))
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ready", flush=True)
    # The check has ended when there are no more.
    while command := await commands.readline():
        print(await proxies.obey(command.decode()), flush=True)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1:]))
