"""scripts/mutate: what it leaves running, what it takes for noticed, and which programs are nearest to a source."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))
ROOT = PROGRAM.parent.parent
LOADER = importlib.machinery.SourceFileLoader("mutate", str(PROGRAM))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
LOADER.exec_module(mutate)


def is_running(process):
    """Whether a process of that number is there and no zombie."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_ended(process):
    """Whether a process that was killed is gone: on a busy machine that takes a moment."""
    end = time.monotonic() + 20
    while is_running(process) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_running(process)


def number_in(path):
    """The number that a process writes into the file, once that is there."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


class EndedInTheMiddle(unittest.TestCase):
    """A campaign is a git worktree, a build and tests: here git and CMake are programs of the test's. What CMake's starts
    has a group of its own, as ninja's compilers have."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ended_by(self, number):
        tools, child = self.folder / "bin", self.folder / "child"
        tools.mkdir()
        for name, text in {"git": "exit 0", "cmake": f'set -m; sleep 100 & echo $! > {child}; wait'}.items():
            tool = tools / name
            tool.write_text(f"#!/usr/bin/env bash\n{text}\n")
            tool.chmod(0o755)
        (self.folder / "tree").mkdir()
        (self.folder / "tree" / ".git").touch()
        process = subprocess.Popen(
            [sys.executable, PROGRAM, "--room", "base", "--count", "1", "--tree", self.folder / "tree",
             "--result", self.folder / "result.jsonl"],
            env=dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}"), stderr=subprocess.DEVNULL)
        started = number_in(child)
        self.assertTrue(is_running(started))
        process.send_signal(number)
        self.assertNotEqual(process.wait(timeout=20), 0)
        return started

    def test_a_campaign_that_is_ended_leaves_nothing_running(self):
        self.assertTrue(has_ended(self.ended_by(signal.SIGTERM)))

    def test_nor_does_one_that_is_interrupted(self):
        self.assertTrue(has_ended(self.ended_by(signal.SIGINT)))


class Judged(unittest.TestCase):
    """The outcome of a fault in one file, by what builds and tests of that file say."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name) / "base" / "a.cpp"
        self.source.parent.mkdir()
        self.source.write_text("first;\nif (a < b) return;\n")
        self.campaign = mutate.Campaign(pathlib.Path(folder.name), 600, False)
        self.campaign.seconds = dict.fromkeys(["base_test", "store_test", "cache_test", "generator_test"], 1.0)
        self.built, self.ran = {}, []

    def outcome(self, fails):
        """The outcome where `fails(program, is_faulty)` gives what fails."""
        def build(programs):
            for program in programs:
                self.built[program] = self.source.read_text()
            return True, ""

        def test(program, failed=None):
            self.ran.append((program, failed))
            return fails(program, "<=" in self.built[program])

        self.campaign.build, self.campaign.test = build, test
        fault = mutate.Fault("id", "base", "base/a.cpp", 2, "comparison", "if (a < b) return;", "if (a <= b) return;")
        with contextlib.redirect_stdout(io.StringIO()):
            found = self.campaign.judge(fault)
        self.assertEqual(self.source.read_text(), "first;\nif (a < b) return;\n")
        return found

    def test_a_failure_of_the_nearest_program(self):
        self.assertEqual(self.outcome(lambda program, is_faulty: "Suite.Name" if is_faulty else None),
                         ("noticed", "base_test Suite.Name", True))
        self.assertEqual(self.ran, [("base_test", None), ("base_test", "Suite.Name")])

    def test_a_failure_further_away_is_told_from_it(self):
        self.assertEqual(self.outcome(lambda program, is_faulty: "hangs" if is_faulty and program == "cache_test" else None),
                         ("noticed", "cache_test hangs", False))

    def test_a_test_that_fails_without_the_fault_too_notices_nothing(self):
        self.assertEqual(self.outcome(lambda program, is_faulty: "Suite.Slow" if program == "base_test" else None),
                         ("survived", "", False))
        self.assertEqual([program for program, _ in self.ran],
                         ["base_test", "base_test", "store_test", "cache_test", "generator_test"])

    def test_a_failure_after_one_that_counts_for_nothing(self):
        fails = {("base_test", True), ("base_test", False), ("store_test", True)}
        self.assertEqual(self.outcome(lambda program, is_faulty: "S.T" if (program, is_faulty) in fails else None),
                         ("noticed", "store_test S.T", False))


class OneTestAgain(unittest.TestCase):
    def test_is_named_to_gtest_and_to_pytest(self):
        campaign = mutate.Campaign(pathlib.Path("tree"), 600, False)
        campaign.environment, given = {}, []
        self.addCleanup(setattr, mutate, "run", mutate.run)
        mutate.run = lambda command, limit, **options: given.append(options["env"]) or (0, "")
        campaign.test("cli_program_test:Infer*", "InferTest.Runs/0")
        campaign.test("python_test:test_calls", "tests/python/test_calls.py::test_one[x/y]")
        self.assertEqual(given[0]["GTEST_FILTER"], "InferTest.Runs/0")
        self.assertEqual(given[1]["PYTEST_ADDOPTS"], "-x -k test_one")
        self.assertEqual(campaign.seconds, {})  # the time of one test is none of its program's


class Nearest(unittest.TestCase):
    def programs(self, path):
        return {program.partition(":")[0] for program in mutate.tests_of(ROOT, path)[0]}

    def test_programs_of_a_kernel_have_the_pairwise_covers_of_it(self):
        sources = {path.stem: path for path in (ROOT / "templates").rglob("*.cu")}
        judged = 0
        for test in (ROOT / "tests" / "templates").glob("*_test.cpp"):
            for algorithm in set(re.findall(r'cover\(\s*"(\w+)"', test.read_text())):
                if algorithm in sources:
                    judged += 1
                    with self.subTest(algorithm):
                        self.assertIn(f"templates_{test.stem}",
                                      self.programs(str(sources[algorithm].relative_to(ROOT))))
        self.assertGreater(judged, 60)

    def test_every_program_that_tests_a_room_judges_it(self):
        judging = [program for nearest, further in mutate.TESTS.values() for program in nearest + further]
        judging += mutate.TEMPLATES + sum([*mutate.KERNEL_TESTS.values(), *mutate.PIECE_TESTS.values()], [])
        judging = {program.partition(":")[0] for program in judging}
        programs = set()
        for room in mutate.ROOMS:
            for file in (ROOT / "tests" / room).rglob("*"):
                if file.name == "CMakeLists.txt" or file.suffix == ".cmake":
                    programs.update(re.findall(r"kiln(?:_worker)?_test\(\s*(\w+_test)", file.read_text()))
        left_out = {"templates_coverage_test"}  # asks other programs what they run
        self.assertGreater(len(programs), 40)
        self.assertEqual(programs - left_out - judging, set())

    def test_programs_of_convolutions_have_their_filters_of_few_taps(self):
        for kernel in ["templates/conv/implicit_gemm/conv_implicit_gemm.cu", "templates/lib/im2col_pixels.cuh"]:
            self.assertTrue((ROOT / kernel).exists(), kernel)
            self.assertIn("templates_conv_taps_test", self.programs(kernel))


class Drawn(unittest.TestCase):
    def test_the_first_fault_is_of_another_operator_in_other_rooms_and_by_other_seeds(self):
        def faults(room):
            return [mutate.Fault(f"{room}{name}{i}", room, f"{room}/a.cpp", i, name, "a", "b")
                    for name in mutate.OPERATORS for i in range(3)]

        first = {next(mutate.in_turns(faults(room), "7")).operator for room in mutate.ROOMS}
        self.assertGreater(len(first), 5)
        self.assertGreater(len({next(mutate.in_turns(faults("base"), str(seed))).operator for seed in range(20)}), 5)
        order = [fault.operator for fault in mutate.in_turns(faults("base"), "7")]
        self.assertEqual(order, order[:len(mutate.OPERATORS)] * 3)
        self.assertEqual(set(order), set(mutate.OPERATORS))


class Report(unittest.TestCase):
    def test_counts_each_outcome_once(self):
        row = {"room": "base", "path": "base/a.cpp", "line": 2, "operator": "comparison", "before": "a", "after": "b"}
        outcomes = {"1": ("noticed", True), "2": ("noticed", False), "3": ("survived", False), "4": ("survived", False),
                    "5": ("does not compile", False)}
        self.addCleanup(setattr, mutate, "equivalents", mutate.equivalents)
        mutate.equivalents = lambda: {"4": "nothing sees it"}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            mutate.report({id: dict(row, id=id, outcome=outcome, nearest=nearest)
                           for id, (outcome, nearest) in outcomes.items()})
        self.assertIn("| base | 4 | 1 | 1 | 2 | 1 |\n| all | 4 | 1 | 1 | 2 | 1 |\n", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
