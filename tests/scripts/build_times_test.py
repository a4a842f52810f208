"""scripts/build-times: the steps of ninja's log, their rooms and kinds, and the table that it prints."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))
LOADER = importlib.machinery.SourceFileLoader("build_times", str(PROGRAM))
build_times = importlib.util.module_from_spec(importlib.util.spec_from_loader("build_times", LOADER))
LOADER.exec_module(build_times)

# Start and end in ms, the time of the file, the output, and the digest of the command.
LOG = """# ninja log v5
0\t9000\t1\tcache/old.cpp.o\ta1
100\t2100\t1\tcache/CMakeFiles/kiln_cache.dir/diff.cpp.o\tb1
100\t1700\t1\ttests/cache/CMakeFiles/cache_test.dir/diff_test.cpp.o\tb2
2000\t3000\t1\tlib/libkiln.so.0.1.0\tb3
2000\t3000\t1\tlib/libkiln.so\tb3
2000\t3000\t1\tbin/kiln\tb4
50\t50\t1\ttemplates/embedded_texts.cpp\tb5
0\t4000\t1\tcache/old.cpp.o\ta1
"""


class BuildTimes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def printed(self, *arguments):
        command = [sys.executable, PROGRAM, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def test_a_step_counts_once_with_its_last_time(self):
        self.write(".ninja_log", LOG)
        steps = {step.output: step.seconds for step in build_times.steps_in(self.folder)}
        self.assertEqual(steps, {
            "bin/kiln": 1.0,
            "cache/CMakeFiles/kiln_cache.dir/diff.cpp.o": 2.0,
            "cache/old.cpp.o": 4.0,
            "lib/libkiln.so": 1.0,  # the first name of two that one step wrote
            "templates/embedded_texts.cpp": 0.0,
            "tests/cache/CMakeFiles/cache_test.dir/diff_test.cpp.o": 1.6,
        })

    def test_other_files_are_refused(self):
        for path, message in ((self.folder / "nowhere", "cannot read"), (self.write("empty", ""), "no log of ninja"),
                              (self.write("other", "text\n"), "no log of ninja")):
            with self.assertRaisesRegex(SystemExit, message):
                build_times.steps_in(path)

    def test_generated_sources_have_their_room_and_ninja_s_own_steps_none(self):
        self.write(".ninja_log", "# ninja log v5\n"
                   "0\t1000\t0\t/clone/build/release/CMakeFiles/cmake.verify_globs\t4\n"
                   "5\t4005\t0\t/clone/build/release/templates/embedded_bytes.cpp\t5\n"
                   "5\t4005\t0\ttemplates/embedded_bytes.cpp\t5\n")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in self.printed(self.folder)[2:]]
        self.assertIn(["templates", "4 (1)", "4 (1)"], rows)
        self.assertEqual(rows[-1][0], "all")

    def test_a_negative_number_of_steps_is_refused(self):
        command = [sys.executable, PROGRAM, self.write("log", LOG), "--slowest", "-1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--slowest is -1; expected 0 or more", done.stderr)

    def test_a_kind_is_that_of_the_output(self):
        for output, kind in (("cache/diff.cpp.o", "product"), ("base/cmake_pch.hxx.gch", "precompiled"),
                             ("tests/cache/diff_test.cpp.o", "tests"), ("tests/headers/kiln.h.cpp.o", "header checks"),
                             ("bench/noise/main.cpp.o", "benches"), ("examples/engine/main.cpp.o", "examples"),
                             ("lib/libkiln.so", "links"), ("lib/libkiln.so.0.1.0", "links"), ("lib/libbase.a", "links"),
                             ("tests/cache_test", "links"), ("bin/gemm.tool", "links"), ("bench/noise/noise", "links"),
                             ("templates/embedded_texts.cpp", "other")):
            self.assertEqual(build_times.kind_of(output), kind, output)

    def test_a_room_is_the_folder_of_the_sources(self):
        for output, room in (("cache/diff.cpp.o", "cache"), ("tests/cache/diff_test.cpp.o", "cache"),
                             ("tests/cache_test", "tests"), ("bench/noise/main.cpp.o", "bench"), ("bin/kiln", "programs and libraries"),
                             ("lib/libkiln.so", "programs and libraries"), ("version.h", "top")):
            self.assertEqual(build_times.room_of(output), room, output)

    def test_prints_rooms_by_their_time_and_the_sums_last(self):
        self.assertEqual(self.printed(self.write("log", LOG)), [
            "Seconds of steps (number of steps), by room and kind:", "",
            "| room | product | tests | links | other | all |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            "| cache | 6 (2) | 2 (1) |  |  | 8 (3) |",
            "| programs and libraries |  |  | 2 (2) |  | 2 (2) |",
            "| templates |  |  |  | 0 (1) | 0 (1) |",
            "| all | 6 (2) | 2 (1) | 2 (2) | 0 (1) | 10 (6) |",
        ])

    def test_prints_the_slowest_steps_and_the_difference_from_another_log(self):
        before = self.write("before", "# ninja log v5\n0\t3000\t1\tcache/old.cpp.o\ta1\n")
        printed = self.printed(self.write("log", LOG), "--slowest", 2, "--against", before)
        self.assertEqual([line.split(" | ")[-2:] for line in printed[2:3] + printed[4:8]], [
            ["before", "difference |"], ["3", "+5 |"], ["0", "+2 |"], ["0", "+0 |"], ["3", "+7 |"],
        ])
        self.assertEqual(printed[8:], [
            "", "| seconds | the 2 longest steps |", "| ---: | --- |",
            "| 4.0 | cache/old.cpp.o |", "| 2.0 | cache/CMakeFiles/kiln_cache.dir/diff.cpp.o |",
        ])


if __name__ == "__main__":
    unittest.main()
