"""Runs the tests of the Python package, or says why they are skipped, and reports as GoogleTest's programs do.

usage: run_tests.py PYTHON FOLDER_OF_THE_PACKAGE
"""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree
import xml.sax.saxutils

SKIPPED = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="python" tests="1" failures="0" disabled="0" skipped="1" errors="0">
    <testcase name="all" status="run" result="skipped" classname="python"> <skipped message={message}/></testcase>
  </testsuite>
</testsuites>
"""


def missing(python, package, environment):
    """What is missing to run the tests; empty if nothing is."""
    if not (package / "kiln/operations.py").exists():
        return "the package was not built: nanobind or Python's headers are missing (scripts/setup)"
    for module in ("numpy", "pytest"):
        found = subprocess.run([python, "-c", f"import {module}"], env=environment, capture_output=True, check=False)
        if found.returncode != 0:
            return f"Python's module {module} is missing (scripts/setup)"
    return ""


def as_googletest(report):
    """Has pytest's report name tests that were skipped as GoogleTest's do, whose reasons scripts/test shows."""
    tree = xml.etree.ElementTree.parse(report)
    for case in tree.iter("testcase"):
        if (skipped := case.find("skipped")) is not None:
            case.attrib = {"name": case.get("name"), "result": "skipped", "classname": case.get("classname")}
            skipped.attrib = {"message": skipped.get("message")}
    tree.write(report)


def main():
    python, package = sys.argv[1], pathlib.Path(sys.argv[2])
    tests = pathlib.Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    if "TEST_KERNEL_STORE" in environment:
        environment["KILN_KERNEL_STORE"] = environment["TEST_KERNEL_STORE"]
    folder = environment.pop("GTEST_OUTPUT", "").removeprefix("xml:")
    report = pathlib.Path(folder) / "python_test.xml" if folder else None
    if reason := missing(python, package, environment):
        print(f"skipped: {reason}")
        if report:
            report.write_text(SKIPPED.format(message=xml.sax.saxutils.quoteattr(reason)))
        return 0
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    if report:
        command += ["--junitxml", str(report)]
    status = subprocess.run(command, env=environment, check=False).returncode
    if report and report.exists():
        as_googletest(report)
    return status


sys.exit(main())
