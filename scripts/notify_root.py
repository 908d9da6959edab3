"""Runs a program in a root as a user, as systemd does with Type=notify. What it tells goes to LOG, with the time until READY=1.

    notify_root.py ROOT UID GID LOG PIDFILE PROGRAM ARGUMENTS...
"""

import os
import pathlib
import select
import socket
import sys
import time

root, uid, gid, log, pidfile, *command = sys.argv[1:]


def run(address):
    """Becomes the program."""
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    environment = {"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": address}
    os.execve(command[0], command, environment)


def main():
    # Inside the root, as systemd's own is a path.
    address = f"/tmp/notify-{os.getpid()}"
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(root + address)
    os.chmod(root + address, 0o666)
    began = time.monotonic()
    program = os.fork()
    if program == 0:
        run(address)
    pathlib.Path(pidfile).write_text(str(program))
    with open(log, "w", encoding="utf-8") as out:
        status = None
        while status is None:
            ready, _, _ = select.select([told], [], [], 0.1)
            if ready:
                text = told.recv(4096).decode()
                print(text, file=out, flush=True)
                if "READY=1" in text:
                    print(f"ready after {(time.monotonic() - began) * 1000:.0f} ms", file=out, flush=True)
                continue
            ended, code = os.waitpid(program, os.WNOHANG)
            if ended:
                status = os.waitstatus_to_exitcode(code)
                print(f"ended with {status}", file=out, flush=True)
    os.unlink(root + address)
    sys.exit(status)


main()
