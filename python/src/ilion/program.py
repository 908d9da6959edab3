"""Where the program is."""

import os
import sysconfig

NAME = "ilion"


def program() -> str:
    """The path of the program that was installed with this package."""
    # `pip install --target DIR` has the scripts in DIR/bin.
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    directories = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme="posix_user"), beside]
    for directory in directories:
        path = os.path.join(directory, NAME)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise FileNotFoundError(f"the program {NAME} is in none of {', '.join(directories)}: install the package ilion again")
