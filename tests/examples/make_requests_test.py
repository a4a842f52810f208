"""examples/requests/make_requests.py makes the requests that are shipped.

usage: make_requests_test.py EXAMPLES
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REQUESTS = pathlib.Path(sys.argv.pop()) / "requests"


def made(program, suite=REQUESTS / "h200_sample.csv"):
    """Output of the script with `program`, a text of the shell, in the place of kiln."""
    with tempfile.TemporaryDirectory() as folder:
        kiln = pathlib.Path(folder) / "kiln"
        kiln.write_text(f"#!/bin/sh\n{program}\n")
        kiln.chmod(0o755)
        command = [sys.executable, REQUESTS / "make_requests.py", suite, kiln]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class MakeRequests(unittest.TestCase):
    def test_of_the_sample_are_those_beside_it(self):
        self.assertEqual(made('[ "$1" = emit ] || exit 1'), (REQUESTS / "h200_sample.txt").read_text())

    def test_of_a_refused_row_are_a_comment_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = pathlib.Path(folder) / "two.csv"
            suite.write_text("\n".join((REQUESTS / "h200_sample.csv").read_text().split("\n")[:3]) + "\n")
            lines = made("echo 'kiln: it is too large' >&2; echo 'a hint' >&2; exit 1", suite).split("\n")
            self.assertTrue(lines[3].startswith("# not covered: conv_"), lines)
            self.assertEqual(lines[4], "#   it is too large")
            self.assertEqual(made("exit 1", suite).split("\n")[4], "#   refused")
            self.assertEqual(len(lines), 2 + 2 * 3 + 1)


unittest.main()
