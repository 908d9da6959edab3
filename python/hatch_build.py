"""Puts what was built before into the wheel: the program, and the engine as a module. Nothing is compiled here: `scripts/package --wheel` does
all.

ILION_PROGRAM is the program, ILION_MODULE the library of the crate ilion-python, or "none" for a wheel without the engine. ILION_WHEEL_PLATFORM is
the platform in the name of the wheel (that of this machine unless it is given).
"""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The oldest Python that the module is for: the feature abi3-py.. of pyo3 in Cargo.toml.
PYTHON = "cp39"


def built(variable):
    path = os.environ.get(variable)
    if not path or not os.path.isfile(path):
        raise SystemExit(f"{variable} names no file: build first (scripts/package --wheel does all)")
    return os.path.abspath(path)


class BuiltHook(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = os.environ.get("ILION_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["shared_scripts"][built("ILION_PROGRAM")] = "ilion"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        if os.environ.get("ILION_MODULE") != "none":
            build_data["force_include"][built("ILION_MODULE")] = "ilion/_engine.abi3.so"
            build_data["tag"] = f"{PYTHON}-abi3-{platform}"
