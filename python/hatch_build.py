"""Puts the program that was built before into the wheel. Nothing is compiled here: `scripts/package --wheel` does both.

ILION_PROGRAM is the program, ILION_WHEEL_PLATFORM the platform in the name of the wheel (that of this machine unless it is given).
"""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program = os.environ.get("ILION_PROGRAM")
        if not program or not os.path.isfile(program):
            raise SystemExit("ILION_PROGRAM names no file: build the program first (scripts/package --wheel does all)")
        platform = os.environ.get("ILION_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["shared_scripts"][os.path.abspath(program)] = "ilion"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
