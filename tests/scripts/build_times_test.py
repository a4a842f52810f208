"""scripts/build-times on a log that is written here.

usage: build_times_test.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))

LOG = """# ninja log v5
0\t2000\t0\tcli/CMakeFiles/kiln_cli.dir/a.cpp.o\t1
0\t9000\t0\ttests/cli/CMakeFiles/cli_test.dir/a.cpp.o\t2
0\t3000\t0\ttests/cli/CMakeFiles/cli_test.dir/a.cpp.o\t3
0\t1000\t0\t/clone/build/release/CMakeFiles/cmake.verify_globs\t4
5\t4005\t0\t/clone/build/release/templates/embedded_bytes.cpp\t5
5\t4005\t0\ttemplates/embedded_bytes.cpp\t5
"""


class BuildTimes(unittest.TestCase):
    def run_on(self, log, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / ".ninja_log").write_text(log)
            return subprocess.run([PROGRAM, folder, *arguments], capture_output=True, text=True, check=False)

    def test_each_step_counts_once_in_the_room_of_its_output(self):
        done = self.run_on(LOG, "--slowest", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "|" in line]
        self.assertEqual(rows[0], ["room", "product", "tests", "other", "all"])
        self.assertIn(["cli", "2 (1)", "3 (1)", "", "5 (2)"], rows)
        self.assertIn(["templates", "", "", "4 (1)", "4 (1)"], rows)
        self.assertIn(["all", "2 (1)", "3 (1)", "5 (2)", "10 (4)"], rows)
        self.assertEqual(rows[-1], ["4.0", "templates/embedded_bytes.cpp"])

    def test_wrong_arguments_are_refused(self):
        done = self.run_on(LOG, "--slowest", "-1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--slowest is -1; expected 0 or more", done.stderr)
        self.assertIn("is no log of ninja", self.run_on("text\n").stderr)


if __name__ == "__main__":
    unittest.main()
