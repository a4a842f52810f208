"""A few operations of opinfo.py, which is run for all by hand."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
pytest.importorskip("expecttest", reason="PyTorch's own samples need the module expecttest")

from opinfo import check  # noqa: E402


def test_samples_of_pytorch_pass_or_are_refused():
    counts, reasons = check(["softmax", "addmm", "nn.functional.relu", "nn.functional.linear"], [torch.float32])
    assert not [why for why in reasons if why[1] == "wrong"]
    assert all(each["passed"] for each in counts.values())
