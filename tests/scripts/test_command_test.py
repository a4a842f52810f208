"""scripts/test in a tree where set-up, build, checks and CTest are stand-ins that pass or fail as told: tests/deep.txt and
tests/tidy.txt are written by a deep run in which everything passed, and by no other.

usage: test_command_test.py ROOT
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case " $FAILING " in *" $(basename "$0") "*) exit 1 ;; esac
"""

# CTest, as it reports a program with a report of its own, which left sweeps out, skipped a test and has a disabled one,
# and a program without a report.
CTEST = """#!/bin/sh
echo "ctest TEST_DEEP_RECORDS=${TEST_DEEP_RECORDS-}" >>"$CALLS"
folder=${GTEST_OUTPUT#xml:}
while [ $# -gt 0 ]; do
  if [ "$1" = --output-junit ]; then junit=$2; fi
  shift
done
case " $FAILING " in *" ctest "*) exit 1 ;; esac  # it was cut off, and wrote nothing
status=run failures=0
case " $FAILING " in *" program "*) status=fail ;; esac
case " $FAILING " in *" case "*) status=fail failures=1 ;; esac
failure=
if [ $failures = 1 ]; then failure='<failure message="a_test.cpp:5&#x0A;1 &lt; &quot;2&quot;" type=""></failure>'; fi
cat >"$junit" <<END
<testsuite name="all"><testcase name="sweeps_test" classname="a" time="1" status="$status"/>
<testcase name="script" classname="a" time="1" status="run"/></testsuite>
END
cat >"${folder}sweeps_test.xml" <<END
<testsuites tests="5" failures="$failures" disabled="1" errors="0" time="1" timestamp="t" left_out="7" name="AllTests">
<testsuite name="A" tests="5" failures="$failures" disabled="1" skipped="1" errors="0" time="1">
<testcase name="B" status="run" result="completed" time="1" classname="A">
$failure</testcase>
<testcase name="C" status="run" result="skipped" time="1" classname="A">
<skipped message="needs a GPU&#x0A;"><![CDATA[needs a GPU]]></skipped></testcase>
</testsuite></testsuites>
END
"""


class Tree:
    """A copy of scripts/test among stand-ins, and what it called."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.calls_file = self.folder / "calls"
        (self.folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/test", self.folder / "scripts/test")
        for name in ("scripts/setup", "scripts/format", "scripts/build", "scripts/tidy",
                     "build/release/tests/deep_list"):
            self.write(name, STAND_IN)
        self.write("bin/ctest", CTEST)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *arguments, failing="", **variables):
        self.calls_file.write_text("")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        environment |= {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "CALLS": str(self.calls_file),
                        "FAILING": failing, **variables}
        return subprocess.run([self.folder / "scripts/test", *arguments], env=environment, capture_output=True,
                              text=True, check=False)

    def calls(self):
        return self.calls_file.read_text().splitlines()

    def wrote_list(self):
        """Whether it wrote tests/deep.txt, and tests/tidy.txt with it."""
        written = {"deep_list write", "tidy --record"} & set(self.calls())
        assert len(written) in (0, 2), written
        return bool(written)


class TestCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Tree(folder.name)

    def test_a_plain_run_writes_no_list_and_says_what_it_left_out(self):
        result = self.tree.run(TEST_DEEP_RECORDS="/elsewhere")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("7 sweeps left out: unchanged since the deep run", result.stdout)
        self.assertIn("\nskipped: A.C: needs a GPU", result.stdout)
        self.assertIn("\n1 skipped, for the reasons above\n", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "6 passed, 0 failed")
        self.assertIn("ctest TEST_DEEP_RECORDS=", self.tree.calls())
        self.assertFalse([call for call in self.tree.calls() if call.startswith("deep_list")])

    def test_what_failed_comes_again_at_the_end(self):
        rest = ["7 sweeps left out: unchanged since the deep run that tests/deep.txt records",
                "1 skipped, for the reasons above"]
        for failing, lines in (("case", ['failed: A.B: a_test.cpp:5 1 < "2"', *rest, "5 passed, 1 failed"]),
                               ("program", ["failed: sweeps_test, in none of its test cases", *rest,
                                            "6 passed, 1 failed"]),
                               ("tidy", ["failed: tidy", *rest, "5 passed, 1 failed"]),
                               ("build", ["failed: scripts/test: a step ended it early", "1 passed, 1 failed"])):
            with self.subTest(failing):
                result = self.tree.run(failing=failing)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stdout.splitlines()[-len(lines):], lines)

    def test_a_deep_run_that_passes_writes_the_list_last(self):
        result = self.tree.run("--deep")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "8 passed, 0 failed")
        records = self.tree.folder / "build/release/test-results/deep"
        self.assertTrue(records.is_dir())
        calls = self.tree.calls()
        self.assertEqual(calls[calls.index("deep_list start") + 1], f"ctest TEST_DEEP_RECORDS={records}")
        self.assertEqual(calls[-3:], ["tidy ", "tidy --record", "deep_list write"])

    def test_a_deep_run_in_which_anything_fails_writes_nothing(self):
        for failing in ("program", "case", "ctest", "format", "tidy", "build"):
            with self.subTest(failing):
                result = self.tree.run("--deep", failing=failing)
                self.assertEqual(result.returncode, 1)
                self.assertFalse(self.tree.wrote_list())

    def test_a_deep_run_whose_list_cannot_be_written_fails(self):
        result = self.tree.run("--deep", failing="deep_list")
        self.assertEqual(result.returncode, 1)

    def test_a_deep_run_that_is_cut_off_writes_nothing(self):
        self.tree.write("scripts/tidy", "#!/bin/sh\nkill -TERM $PPID\nsleep 1\n")
        self.assertNotEqual(self.tree.run("--deep").returncode, 0)
        self.assertFalse(self.tree.wrote_list())

    def test_a_deep_run_is_of_the_device_as_tests_have_it(self):
        for variable in ("KILN_DRIVER", "KILN_EMULATOR_CARD", "KILN_EMULATOR_CHECK", "KILN_EMULATOR_CLOCK",
                         "KILN_EMULATOR_DEVICE", "KILN_EMULATOR_TENSOR"):
            with self.subTest(variable):
                result = self.tree.run("--deep", **{variable: "x"})
                self.assertEqual(result.returncode, 2)
                self.assertIn(variable, result.stderr)
                self.assertEqual(self.tree.calls(), [])

    def test_other_arguments_are_refused(self):
        self.assertEqual(self.tree.run("--depe").returncode, 2)
        self.assertEqual(self.tree.calls(), [])


if __name__ == "__main__":
    unittest.main()
