"""Runs the tests of a framework's example, or says why they are skipped.

usage: run_framework_tests.py NAME PYTHON TESTS LIBRARY [MODULE...]
"""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from reports import run_pytest, skip  # noqa: E402


def missing(python, library, modules):
    """The part that is missing to run the tests; empty if none is."""
    for module in modules:
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
        if found.returncode != 0:
            return f"Python's module {module} is missing (scripts/setup, for JAX with --jax)"
    return "" if library.exists() else f"{library} was not built: its module was missing when CMake ran"


def main():
    name, python, tests, library, *modules = sys.argv[1:]
    if reason := missing(python, pathlib.Path(library), ["numpy", "pytest", *modules]):
        return skip(name, reason)
    tests = pathlib.Path(__file__).parent / tests
    return run_pytest(name, python, [tests], {**os.environ, "EXAMPLE_LIBRARY": library})


sys.exit(main())
