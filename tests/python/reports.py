"""Runs pytest, and reports as GoogleTest's programs do: scripts/test counts the tests and shows why some are skipped."""

import os
import pathlib
import subprocess
import xml.etree.ElementTree as tree
import xml.sax.saxutils

SKIPPED = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="{name}" tests="1" failures="0" disabled="0" skipped="1" errors="0">
    <testcase name="all" status="run" result="skipped" classname="{name}"> <skipped message={message}/></testcase>
  </testsuite>
</testsuites>
"""


def report_of(name):
    """The path that GTEST_OUTPUT=xml:FOLDER/ has for the report of this program, or None."""
    folder = os.environ.get("GTEST_OUTPUT", "").removeprefix("xml:")
    return pathlib.Path(folder) / f"{name}.xml" if folder else None


def skip(name, reason):
    """Reports the whole program as one test that was skipped; returns its exit status."""
    print(f"skipped: {reason}")
    if report := report_of(name):
        report.write_text(SKIPPED.format(name=name, message=xml.sax.saxutils.quoteattr(reason)))
    return 0


def run_pytest(name, python, tests, environment):
    """Runs `tests`, files or folders, and returns pytest's exit status."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)]
    report = report_of(name)
    if report:
        command += ["--junitxml", str(report)]
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    if store := environment.get("TEST_KERNEL_STORE"):
        environment["KILN_KERNEL_STORE"] = store
    status = subprocess.run(command, env=environment, check=False).returncode
    if report and report.exists():
        name_skipped(report)
    return status


def name_skipped(report):
    parsed = tree.parse(report)
    for case in parsed.iter("testcase"):
        if (skipped := case.find("skipped")) is not None:
            case.attrib = {"name": case.get("name"), "result": "skipped", "classname": case.get("classname")}
            skipped.attrib = {"message": skipped.get("message")}
    parsed.write(report)
