"""A small file system in memory as the directory of a node, which something else fills."""

import os
import shutil
import subprocess

# Beside what the node has already: the node would not begin a flush with less.
ROOM_BYTES = 48 << 20
BALLAST = "ballast"


def why_not():
    """Why no file system can be mounted here, or None."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    if shutil.which("mount") is None:
        return "mount is missing"
    return None


def size_bytes(directory):
    return sum(
        os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(directory) for name in names
    )


class SmallDisk:
    """Takes the place of a node's directory, with what is in it. The node is down meanwhile."""

    def __init__(self, directory):
        self.directory = directory
        before = f"{directory}.before"
        os.rename(directory, before)
        os.mkdir(directory)
        size = size_bytes(before) + ROOM_BYTES
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except BaseException:
            os.rmdir(directory)
            os.rename(before, directory)
            raise
        shutil.copytree(before, directory, dirs_exist_ok=True)
        shutil.rmtree(before)

    def fill(self):
        """Takes all room that is left."""
        with open(os.path.join(self.directory, BALLAST), "wb", buffering=0) as ballast:
            try:
                while ballast.write(b"\0" * 4096):
                    pass
            except OSError:
                pass

    def empty(self):
        os.remove(os.path.join(self.directory, BALLAST))

    def end(self):
        """What is there is lost if the process still runs."""
        after = f"{self.directory}.after"
        shutil.copytree(self.directory, after)
        subprocess.run(["umount", self.directory], check=True, capture_output=True)
        os.rmdir(self.directory)
        os.rename(after, self.directory)
