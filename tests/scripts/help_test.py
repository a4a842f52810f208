"""`--help` of each program in scripts/: it says how the program is called, and does nothing else.

usage: help_test.py ROOT
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = sorted(path.name for path in (ROOT / "scripts").iterdir() if os.access(path, os.X_OK))


class Help(unittest.TestCase):
    def test_is_all_that_each_program_does(self):
        self.assertIn("demo", PROGRAMS)
        for name in PROGRAMS:
            # A tree without git and the other scripts: a program that goes on fails, or leaves something.
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                tree = pathlib.Path(folder)
                (tree / "scripts").mkdir()
                program = shutil.copy(ROOT / "scripts" / name, tree / "scripts")
                shutil.copytree(ROOT / "capi/generate", tree / "capi/generate")  # scripts/c-api is made of these
                before = sorted(tree.rglob("*"))
                done = subprocess.run([program, "--help"], cwd=tree, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, rf"(scripts/|usage: ){name}\b")
                self.assertEqual(sorted(tree.rglob("*")), before)


if __name__ == "__main__":
    unittest.main()
