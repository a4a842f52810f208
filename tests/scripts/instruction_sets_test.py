"""KILN_EMULATOR_INSTRUCTION_SETS: its values, and a build folder with fewer sets than an installation needs.

usage: instruction_sets_test.py ROOT COMPILER FOLDER   (FOLDER is configured anew)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, COMPILER, FOLDER = map(pathlib.Path, sys.argv[1:4])
del sys.argv[1:]

VARIABLE = "KILN_EMULATOR_INSTRUCTION_SETS"
SCRIPT = """cmake_minimum_required(VERSION 3.24)
include(%s)
kiln_instruction_sets(sets ${WANTED})
message(STATUS "${sets}")
"""


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


class Values(unittest.TestCase):
    """The list that CMake makes of a value."""

    def sets(self, wanted, compiler=COMPILER):
        with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
            script.write(SCRIPT % (ROOT / "cmake/KilnInstructionSets.cmake"))
            script.flush()
            return run("cmake", f"-DWANTED={wanted}", f"-DCMAKE_CXX_COMPILER={compiler}", "-P", script.name)

    def with_cpu(self, *features):
        """The sets of `native`, by a compiler whose CPU has these features."""
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder) / "compiler"
            compiler.write_text("#!/bin/sh\n" + "".join(f"echo '#define __{name}__ 1'\n" for name in features))
            compiler.chmod(0o755)
            return self.sets("native", compiler)

    def test_nothing_is_all(self):
        self.assertEqual(self.sets(""), (0, "-- avx512;avx2;baseline"))

    def test_names_are_those_sets_best_first(self):
        self.assertEqual(self.sets("baseline"), (0, "-- baseline"))
        self.assertEqual(self.sets("avx2"), (0, "-- avx2"))
        self.assertEqual(self.sets("baseline;avx512"), (0, "-- avx512;baseline"))
        self.assertEqual(self.sets("baseline;avx2;avx512;avx2"), (0, "-- avx512;avx2;baseline"))

    def test_native_is_the_best_of_the_machine(self):
        avx2 = ["AVX2", "FMA", "BMI2"]
        avx512 = ["AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"]
        self.assertEqual(self.with_cpu(*avx2, *avx512), (0, "-- avx512"))
        self.assertEqual(self.with_cpu(*avx2, *avx512[:4]), (0, "-- avx2"))
        self.assertEqual(self.with_cpu("SSE2", *avx2[1:]), (0, "-- baseline"))
        status, said = self.sets("native")
        self.assertEqual(status, 0)
        self.assertIn(said, ["-- avx512", "-- avx2", "-- baseline"])

    def test_other_names_are_refused(self):
        for wanted, unknown in (("avx9", "avx9"), ("avx2;AVX512;sse", "AVX512, sse"), ("avx512,avx2", "avx512,avx2")):
            status, said = self.sets(wanted)
            self.assertNotEqual(status, 0, wanted)
            self.assertIn(f"{VARIABLE}: unknown instruction set {unknown}; expected names among avx512, avx2, ", said)


class BuildFolders(unittest.TestCase):
    def configure(self, *settings):
        status, said = run("cmake", "--preset", "release", "-B", FOLDER, "-DKILN_BUILD_TESTS=OFF", *settings)
        self.assertEqual(status, 0, said)
        return said

    def test_fewer_sets_are_not_installed_and_the_preset_brings_them_back(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        few = "emulated device is compiled for baseline only"
        self.assertIn(few, self.configure(f"-D{VARIABLE}=baseline"))
        for component in ("runtime", "python"):
            status, said = run("cmake", "--install", FOLDER, "--prefix", FOLDER / "prefix", "--component", component)
            self.assertNotEqual(status, 0, component)
            self.assertIn("compiled for baseline only, and an installation needs all instruction sets", said)
        self.assertFalse((FOLDER / "prefix").exists())
        self.assertNotIn(few, self.configure())
        self.assertIn("kiln_emulator_units_avx2.dir/memory.cpp.o", (FOLDER / "build.ninja").read_text())


class Demo(unittest.TestCase):
    """scripts/demo among stand-ins for what it calls."""

    def wanted(self, cache):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for path in ("scripts/setup", "scripts/build", "build/release/bin/kiln"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text('#!/bin/sh\necho "$(basename "$0") $*" >>calls\n')
                (folder / path).chmod(0o755)
            shutil.copy(ROOT / "scripts/demo", folder / "scripts/demo")
            if cache is not None:
                (folder / "build/release/CMakeCache.txt").write_text(cache)
            subprocess.run([folder / "scripts/demo"], check=True, capture_output=True)
            called = (folder / "calls").read_text().splitlines()
            self.assertEqual(called[0], "setup --no-modules")
            return called[1]

    def test_a_new_folder_is_for_this_machine_and_another_keeps_its_sets(self):
        for cache, sets in ((None, "native"), ("", ""), (f"{VARIABLE}:STRING=\n", ""),
                            (f"A:STRING=b\n{VARIABLE}:STRING=native\n", "native"),
                            (f"{VARIABLE}:STRING=avx2;baseline\n", "avx2;baseline")):
            self.assertEqual(self.wanted(cache), f"build release -D{VARIABLE}={sets} kiln_program kiln_emulator")


if __name__ == "__main__":
    unittest.main()
