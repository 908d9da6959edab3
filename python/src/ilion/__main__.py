"""`python -m ilion`: the program, with the same arguments."""

import os
import sys

from ilion.program import program

if __name__ == "__main__":
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(str(error))
    os.execv(path, [path, *sys.argv[1:]])
