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
    counts, wrong = sweep.check(getattr(sweep, kind), ["f32", "f64"], sweep.MODES, 1, names)
    assert not wrong
    lacking = {"fake tensors"} if torch.__version__.startswith("1.") else set()  # those do not meet real parameters yet
    assert {mode for mode in sweep.MODES if not counts[mode]["equal"]} <= lacking
