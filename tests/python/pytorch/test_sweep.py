"""A small part of sweep.py, which is run for all by hand."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
pytest.importorskip("expecttest", reason="PyTorch's own samples need the module expecttest")

import sweep  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind, names",
    [
        ("functions", ("conv2d", "linear", "gelu", "layer_norm", "cross_entropy", "avg_pool2d")),
        ("modules", ("Conv2d", "Linear", "GELU", "BatchNorm2d", "LSTM")),
    ],
)
def test_samples_in_every_mode_are_pytorch_s(kind, names):
    modes = [mode for mode in sweep.MODES if mode != "compile"]  # which takes seconds a sample
    counts, wrong = sweep.check(getattr(sweep, kind), ["f32", "f64"], modes, 1, names)
    assert not wrong
    lacking = {"fake tensors"} if torch.__version__.startswith("1.") else set()  # those do not meet real parameters yet
    assert {mode for mode in modes if not counts[mode]["equal"]} <= lacking


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind, names", [("functions", ("linear", "softmax")), ("modules", ("Conv2d", "LayerNorm"))])
def test_samples_of_halves_are_pytorch_s(kind, names):
    counts, wrong = sweep.check(getattr(sweep, kind), ["f16", "bf16"], ["gradients", "autocast"], 2, names)
    assert not wrong
    if not torch.__version__.startswith("1."):  # which had few halves on the CPU
        assert all(each["equal"] for each in counts.values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("compile" not in sweep.MODES, reason="this PyTorch has no torch.compile")
def test_compiled_samples_are_pytorch_s():
    counts, wrong = sweep.check(sweep.functions, ["f32"], ["compile"], 1, ("linear", "softmax"))
    assert not wrong and counts["compile"]["equal"] >= 2
