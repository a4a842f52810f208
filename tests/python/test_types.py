"""The package and its use pass mypy in strict mode."""

import pathlib
import subprocess
import sys

import pytest

import kiln

USE = """
import kiln

context = kiln.Context(driver="emulator", tuning=kiln.Tuning("never"))
y = kiln.conv_forward(1, 2, pad=(1, 1), epilogue="relu", context=context)
plan: kiln.Plan = kiln.plan("softmax_forward x=f32:4x16", context=context)
size: int = plan.workspace_bytes
best = kiln.explain(plan.request).chosen
name: str = best.algorithm if best else ""
"""
WRONG = "import kiln\nkiln.conv_forward(1, 2, padding=1)\nkiln.softmax_forward(1, mode='fast')\n"


def mypy(path):
    pytest.importorskip("mypy", reason="mypy is not installed (scripts/setup)")
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_and_its_use_are_typed(tmp_path, monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(pathlib.Path(kiln.__file__).parent.parent))
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path / "cache"))
    for module in ("cupy", "ml_dtypes", "numpy", "torch"):
        (tmp_path / f"{module}.pyi").write_text("from typing import Any\ndef __getattr__(name: str) -> Any: ...\n")
    monkeypatch.chdir(tmp_path)
    use, wrong = tmp_path / "use.py", tmp_path / "wrong.py"
    use.write_text(USE)
    wrong.write_text(WRONG)
    checked = mypy(use)
    assert checked.returncode == 0, checked.stdout
    refused = mypy(wrong)
    assert 'Unexpected keyword argument "padding"' in refused.stdout and "mode" in refused.stdout, refused.stdout
