"""Runs the tests of the Python package of a build, or says why they are skipped.

usage: run_tests.py PYTHON FOLDER_OF_THE_PACKAGE
"""

import os
import pathlib
import subprocess
import sys

from reports import run_pytest, skip


def missing(python, package, environment):
    """The part that is missing to run the tests; empty if none is."""
    if not (package / "kiln/operations.py").exists():
        return "the package was not built: nanobind or Python's headers are missing (scripts/setup)"
    for module in ("numpy", "pytest"):
        found = subprocess.run([python, "-c", f"import {module}"], env=environment, capture_output=True, check=False)
        if found.returncode != 0:
            return f"Python's module {module} is missing (scripts/setup)"
    return ""


def main():
    python, package = sys.argv[1], pathlib.Path(sys.argv[2])
    environment = {**os.environ, "PYTHONPATH": str(package)}
    if reason := missing(python, package, environment):
        return skip("python_test", reason)
    return run_pytest("python_test", python, [pathlib.Path(__file__).parent], environment)


sys.exit(main())
