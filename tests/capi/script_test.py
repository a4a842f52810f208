#!/usr/bin/env python3
"""scripts/c-api in a copy of the files that it reads and writes: it writes those that are not what the definitions say.

usage: script_test.py KILN
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KILN = sys.argv.pop(1)
READ = [".clang-format", "CMakeLists.txt", "capi", "include", "models/include", "packaging/c_api", "scripts/c-api", "tests/capi"]
HEADER, SOURCE, ABI = "include/kiln/c/pool.h", "capi/generated/norm.cpp", "tests/capi/abi.txt"
LISTED = "packaging/c_api/kiln-0.1.txt"  # functions of the first version


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        for name in READ:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / name, self.tree / name)

    def run_script(self, *arguments):
        command = [sys.executable, self.tree / "scripts/c-api", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def replace(self, name, before, after):
        path = self.tree / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after, 1))

    def test_writes_what_is_missing_or_wrong_and_nothing_else(self):
        self.replace(HEADER, "kiln_status kiln_pool_forward(", "kiln_status kiln_pool_forwards(")
        self.replace("include/kiln/kiln.h", '#include "kiln/c/gemm.h"\n', "")
        self.replace(LISTED, "kiln_pool_forward\n", "")
        self.replace("CMakeLists.txt", "project(kiln VERSION ", "project(kiln VERSION 9.")
        self.replace(ABI, "constant KILN_POOL_MAX: 0\n", "")
        (self.tree / SOURCE).unlink()
        done = self.run_script(KILN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines.pop(), r"the C API of \d+ families is what the definitions say")
        (new_list,) = (self.tree / "packaging/c_api").glob("kiln-9.*.txt")
        self.assertEqual(new_list.read_text(), "kiln_pool_forward\n")
        wrong = [HEADER, SOURCE, ABI, "include/kiln/kiln.h"]
        written = [*wrong, str(new_list.relative_to(self.tree))]
        self.assertEqual(sorted(lines), sorted(f"wrote {name}" for name in written))
        for name in wrong:
            self.assertEqual((self.tree / name).read_text(), (ROOT / name).read_text(), name)

    def test_a_check_names_what_is_wrong_and_writes_nothing(self):
        self.replace(HEADER, "kiln_status kiln_pool_forward(", "kiln_status kiln_pool_forwards(")
        (self.tree / "capi/generated/stray.cpp").touch()
        (self.tree / SOURCE).unlink()
        changed = (self.tree / HEADER).read_text()
        done = self.run_script("--check", KILN)
        self.assertEqual(done.returncode, 1)
        for text in ("-KILN_API kiln_status kiln_pool_forwards(", "+KILN_API kiln_status kiln_pool_forward(",
                     "stray.cpp is made from nothing", "run scripts/c-api and commit what it wrote"):
            self.assertIn(text, done.stdout)
        self.assertEqual((self.tree / HEADER).read_text(), changed)
        self.assertFalse((self.tree / SOURCE).exists())

    def test_a_break_of_the_abi_is_told_and_stays(self):
        self.replace(ABI, "constant KILN_POOL_MAX: 0\n", "constant KILN_POOL_MAX: 7\n")
        done = self.run_script(KILN)
        self.assertEqual(done.returncode, 1)
        self.assertIn("constant KILN_POOL_MAX has changed", done.stdout)
        self.assertNotIn("wrote", done.stdout)

    def test_other_arguments_are_refused(self):
        for arguments in (("--chekc",), (KILN, KILN)):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: scripts/c-api", done.stderr)


if __name__ == "__main__":
    unittest.main()
