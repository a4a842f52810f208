"""The package and its use pass mypy in strict mode."""

import pathlib
import re
import subprocess
import sys

import pytest

import kiln

USE = """
import kiln
import kiln.onnx

context = kiln.Context(driver="emulator", tuning=kiln.Tuning("never"))
y = kiln.conv_forward(1, 2, pad=(1, 1), epilogue="relu", context=context)
plan: kiln.Plan = kiln.plan("softmax_forward x=f32:4x16", context=context)
size: int = plan.workspace_bytes
best = kiln.explain(plan.request).chosen
name: str = best.algorithm if best else ""
model: kiln.onnx.Model = kiln.onnx.load("model.onnx", batch=2, dtype="f16")
arena: int = model.memory.arena
model.run({"x": 1}, {"y": 2}, stream=0)
result = kiln.tune(model.requests())
shape: tuple[int, ...] = model.inputs[0].shape
result.figure().savefig("tuning.png")
name = result.layers[0].label
for card in kiln.tune(model.requests(), device="all"):
    numbers: list[int] = card.devices
best_of_two: float | None = kiln.tune("softmax_forward x=f32:4x16", device=[0, 1])[0].layers[0].seconds
"""
USE_OF_TORCH = """
import kiln.torch
import kiln.torch.functional as K

places: kiln.torch.Places = kiln.torch.report(kiln.torch.optimize(1))
y = K.conv2d(1, 2, padding="same", activation="relu")
z = K.divisive_norm(K.layer_norm(y, (4,)), 3)
"""
WRONG_OF_TORCH = "import kiln.torch.functional as K\nK.conv2d(1, 2, paddings=1)\nK.avg_pool2d(1)\n"
WRONG = "import kiln\nkiln.conv_forward(1, 2, padding=1)\nkiln.softmax_forward(1, mode='fast')\n"


RESULTS = """
import cupy, kiln, kiln.onnx, numpy, torch

t, p, n, c = torch.Tensor(), torch.nn.Parameter(), numpy.ndarray(), cupy.ndarray()
context = kiln.default_context()
model = kiln.onnx.load("model.onnx")
reveal_type(kiln.conv_forward(t, p))
reveal_type(kiln.softmax_forward(p, context=context))
reveal_type(kiln.conv_forward(n, n, n, epilogue="bias"))
reveal_type(kiln.gemm(c, c))
reveal_type(kiln.activation_forward(memoryview(b"")))
reveal_type(kiln.softmax_forward(n, out=t))
reveal_type(kiln.conv_backward_filter(t, t, out=t))
reveal_type(kiln.pool_forward(t, window=2, indices=True))
reveal_type(kiln.pool_forward(t, window=2, indices=t))
reveal_type(kiln.norm_forward(n, inv_deviation=True))
reveal_type(model(t))
reveal_type(model(x=p, y=t))
reveal_type(model(n))
reveal_type(model(c, stream=0))
y, z = model(t)
reveal_type(y)
"""
REVEALED = [
    "torch.Tensor", "torch.Tensor", "NDArray", "cupy.ndarray", "NDArray", "torch.Tensor", "torch.Tensor",
    "tuple[torch.Tensor, ...]", "torch.Tensor", "tuple[NDArray, ...]", "torch.Tensor", "torch.Tensor", "NDArray",
    "cupy.ndarray", "torch.Tensor",
]  # fmt: skip
# As much of the libraries as tells their arrays apart.
STUBS = {
    "cupy/__init__.pyi": "class ndarray:\n    @property\n    def __cuda_array_interface__(self) -> dict[str, object]: ...\n",
    "numpy/__init__.pyi": "class ndarray: ...\n",
    "numpy/typing/__init__.pyi": "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass NDArray(Generic[T]): ...\n",
    "torch/__init__.pyi": (
        "from collections.abc import Iterator\nfrom . import nn as nn\nclass Tensor:\n    is_cuda: bool\n"
        "    requires_grad: bool\n    def __iter__(self) -> Iterator[Tensor]: ...\n"
    ),
    "torch/nn/__init__.pyi": "import torch\nclass Parameter(torch.Tensor): ...\n",
}


# Libraries of which all is Any, so that results do not depend on which are installed.
LIBRARIES = ("cupy", "matplotlib", "matplotlib/axes", "matplotlib/figure", "ml_dtypes", "numpy", "numpy/typing", "torch", "torch/nn", "torch/overrides", "torch/utils", "torch/utils/_pytree")


@pytest.fixture
def mypy(tmp_path, monkeypatch):
    pytest.importorskip("mypy", reason="mypy is not installed (scripts/setup)")
    monkeypatch.setenv("MYPYPATH", str(pathlib.Path(kiln.__file__).parent.parent))
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for library in LIBRARIES:
        (tmp_path / library).mkdir()
        stub = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"
        (tmp_path / library / "__init__.pyi").write_text(stub)

    def check(program, *flags):
        (tmp_path / "program.py").write_text(program)
        command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", *flags, "program.py"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return check


def test_the_package_and_its_use_are_typed(mypy):
    checked = mypy(USE)
    assert checked.returncode == 0, checked.stdout
    refused = mypy(WRONG)
    assert 'Unexpected keyword argument "padding"' in refused.stdout and "mode" in refused.stdout, refused.stdout


def test_results_are_of_the_framework_of_the_inputs(mypy, tmp_path):
    for name, text in STUBS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    checked = mypy(RESULTS)
    revealed = re.findall(r'Revealed type is "(.*)"', checked.stdout.replace("builtins.", ""))
    assert [each.replace("numpy.typing.NDArray[Any]", "NDArray") for each in revealed] == REVEALED, checked.stdout
    assert "error" not in checked.stdout, checked.stdout  # as of overloads that no call meets


def test_each_operation_has_types():
    stub = (pathlib.Path(kiln.__file__).parent / "operations.pyi").read_text()
    assert set(re.findall(r"^def (\w+)", stub, re.M)) == set(kiln.operations.__all__)


def test_what_is_for_pytorch_is_typed(mypy):
    checked = mypy(USE_OF_TORCH, "--allow-subclassing-any")
    assert checked.returncode == 0, checked.stdout
    refused = mypy(WRONG_OF_TORCH, "--allow-subclassing-any")
    assert 'Unexpected keyword argument "paddings"' in refused.stdout, refused.stdout
    assert "Too few arguments" in refused.stdout, refused.stdout


def test_each_function_for_pytorch_has_a_signature(mypy):
    functional = pathlib.Path(kiln.__file__).parent / "torch/functional"
    names = [name for file in functional.glob("*.py") for name in re.findall(r'^    "(\w+)",$', file.read_text(), re.M)]
    assert "conv2d" in names and "max_pool1d" in names
    checked = mypy("import kiln.torch.functional as K\n" + "".join(f"reveal_type(K.{name})\n" for name in names))
    revealed = re.findall(r'Revealed type is "(.*)"', checked.stdout)
    assert len(revealed) == len(names) and all(each.startswith("def (") for each in revealed), checked.stdout
