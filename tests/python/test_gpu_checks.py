"""Checks of the package on a GPU (gpu/run.py): their outcomes are right, and they pass on the emulated device."""

import pathlib
import subprocess
import sys

GPU = pathlib.Path(__file__).parent / "gpu"
OUTCOMES = """
import os, time
from checks import Skip, check, refusal
@check("passes")
def _():
    return "with a note"
@check("is wrong")
def _():
    assert 1 == 2, "one is not two"
@check("crashes")
def _():
    os.abort()
@check("is skipped")
def _():
    raise Skip("for a reason")
@check("hangs")
def _():
    time.sleep(60)
@check("needs a GPU", cuda=True)
def _():
    raise AssertionError("was run")
@check("is not refused")
def _():
    refusal(lambda: None, ValueError)
@check("passes behind all of them")
def _():
    return refusal(lambda: int("x"), ValueError)
"""


def run(folder, *arguments):
    """The exit status of gpu/run.py and its lines, stripped."""
    command = [sys.executable, GPU / "run.py", "--device", "emulator", "--out", folder / "out", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (folder / "out/results.txt").read_text() == done.stdout, done.stderr
    return done.returncode, [line.strip() for line in done.stdout.splitlines()]


def group(folder, text, name="group.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_every_outcome_is_told_and_checks_behind_a_crash_are_made(tmp_path):
    status, lines = run(tmp_path, group(tmp_path, OUTCOMES), "--limit", 2)
    assert status == 1

    def starting(*beginnings):
        return [sum(line.startswith(beginning) for line in lines) for beginning in beginnings]

    assert starting("PASS passes: with a note (", "PASS passes behind all of them: invalid literal") == [1, 1]
    assert starting("FAIL is wrong: AssertionError: one is not two [group.py:9") == [1]
    assert starting("FAIL crashes: the process ended with -6", "FAIL hangs: the process ended with 4") == [1, 1]
    assert starting("FAIL is not refused: AssertionError: was served, expected ValueError") == [1]
    assert starting("SKIP is skipped: for a reason", "SKIP needs a GPU: needs a GPU") == [1, 1]
    assert starting("group: FAIL is wrong", "group: FAIL crashes", "group: FAIL hangs") == [1, 1, 1]
    assert lines[-1].startswith("2 passed, 4 failed, 2 skipped, in ")


LOST = """
import sys, types
import checks
lost = []
def synchronize():
    assert not lost, "a sticky error"
checks.ON_GPU = True
zeros = lambda *extents, device: types.SimpleNamespace(item=lambda: 0)
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=synchronize), zeros=zeros)
@checks.check("loses the device")
def _():
    lost.append(True)
@checks.check("has a process of its own")
def _():
    assert not lost
"""


def test_a_check_that_loses_the_device_fails_alone(tmp_path):
    status, lines = run(tmp_path, group(tmp_path, LOST))
    assert status == 1
    assert any(line.startswith("FAIL loses the device") and "lost to this process: a sticky" in line for line in lines)
    assert any(line.startswith("PASS has a process of its own") for line in lines)
    assert lines[-1].startswith("1 passed, 1 failed, 0 skipped")


def test_a_group_that_cannot_be_read_fails_and_one_without_checks_does_not_pass(tmp_path):
    status, lines = run(tmp_path, group(tmp_path, "import no_such_module\n"))
    assert status == 1
    assert lines[-1].startswith("0 passed, 1 failed")
    assert any("No module named 'no_such_module'" in line for line in lines)
    (tmp_path / "second").mkdir()
    assert run(tmp_path / "second", group(tmp_path, ""))[0] == 1


def test_checks_that_are_out_of_time_are_named(tmp_path):
    slow = group(tmp_path, "import time\nfrom checks import check\ncheck('slow')(lambda: time.sleep(60))\n", "slow.py")
    status, lines = run(tmp_path, slow, "--seconds", 3)
    assert status == 1
    assert "out of time: slow.0 (--seconds gives more)" in lines


def test_results_of_another_run_are_kept(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/results.txt").write_text("")
    assert run(tmp_path, "errors") == (1, [])


def test_wrong_results_are_no_pass(tmp_path, torch):
    """Each comparison of tensors.py fails: the group holds a right result and ten wrong ones."""
    checks = """
import torch
from checks import each
from tensors import Arranged, compare
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
nan, inf = float("nan"), float("inf")
CASES = {
    "right": x, "off": x + 1e-3, "NaN": x * torch.tensor([1, nan]), "infinite": x * torch.tensor([1, inf]),
    "transposed": x.t(), "smaller": x[:1],
}
@each("result", [(name,) for name in CASES])
def _(name):
    compare(("y", CASES[name], x.double()))
@each("expected", [(nan,), (inf,)])
def _(number):
    compare(("y", x, x.double() * number))
@each("written outside", [(kind,) for kind in ("region", "every_second", "offset")])
def _(arranged):
    output = Arranged((2, 3), torch.float32, arranged)
    output.view.fill_(1)
    output.check_guards()
    output.buffer.view(-1)[0] = 1
    output.check_guards()
"""
    status, lines = run(tmp_path, group(tmp_path, checks))
    assert status == 1
    assert [line.split(":")[0] for line in lines if line.startswith("PASS")] == ["PASS result right"]
    assert lines[-1].startswith("1 passed, 10 failed, 0 skipped")


GROUPS = (
    "convolutions", "layers", "elements", "normalisations", "functional", "modules", "errors", "threads", "program",
    "tuning",
)  # fmt: skip


def test_groups_pass_on_the_emulated_device(tmp_path, torch, monkeypatch):
    monkeypatch.setenv("KILN_EMULATOR_CHECK", "off")
    status, lines = run(tmp_path, *GROUPS, "--jobs", 2, "--limit", 300, "--seconds", 500)
    assert status == 0, "\n".join(lines)
    assert int(lines[-1].split()[0]) > 250, lines[-1]
