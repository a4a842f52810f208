"""Runs the tests of the files that users copy for their cluster, or says why they are skipped.

usage: run_file_tests.py NAME PYTHON KILN
"""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from reports import run_pytest, skip  # noqa: E402


def main():
    name, python, kiln = sys.argv[1:]
    if subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False).returncode != 0:
        return skip(name, "Python's module pytest is missing (scripts/setup)")
    return run_pytest(name, python, [pathlib.Path(__file__).parent / "test_files.py"], {**os.environ, "TESTED_KILN": kiln})


sys.exit(main())
