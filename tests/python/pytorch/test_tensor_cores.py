"""Training steps of a residual network in bf16, channels last, and under autocast: on Kiln's kernels for tensor cores."""

import copy

import pytest

import kiln

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kiln.torch  # noqa: E402


class Bottleneck(nn.Module):
    """ResNet-50's block: 1x1, 3x3 with the stride, 1x1, beside a projection."""

    def __init__(self, channels, inner, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner),
        )  # fmt: skip
        self.projection = nn.Sequential(nn.Conv2d(channels, 4 * inner, 1, stride, bias=False), nn.BatchNorm2d(4 * inner))

    def forward(self, x):
        return functional.relu(self.body(x) + self.projection(x))


def network_and_batch():
    torch.manual_seed(5)
    net = nn.Sequential(
        Bottleneck(64, 32, 1), Bottleneck(128, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 8)
    ).to(memory_format=torch.channels_last)  # fmt: skip
    x = torch.randn(16, 64, 14, 14).to(memory_format=torch.channels_last)
    return net, x, torch.arange(16) % 7


def gradients(net, x, labels):
    """Gradients of a step, by parameter."""
    net.zero_grad()
    functional.cross_entropy(net(x).double(), labels).backward()
    return {name: each.grad.double() for name, each in net.named_parameters()}


def expect_as_exact_as_pytorch(found, theirs, exact):
    """Errors against f64 are those of bf16's roundings, of which PyTorch has as many."""
    for name, gradient in found.items():
        error, other = ((each[name] - exact[name]).norm() / exact[name].norm() for each in (found, theirs))
        assert gradient.isfinite().all() and error < 1.5 * other, f"{name}: {error}, PyTorch's {other}"


def expect_tensor_cores(requests):
    for operation in ("conv_forward", "conv_backward_data", "conv_backward_filter"):
        chosen = [kiln.explain(line).chosen.algorithm for line in requests if line.startswith(operation)]
        # Layers of less than 2 us may be as fast without.
        assert sum("tensor" in each for each in chosen) >= len(chosen) - 2 >= 4, chosen


def expect_a_step_on_tensor_cores(net, x, labels):
    exact = gradients(copy.deepcopy(net).double(), x.double(), labels)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=x.dtype == torch.float32):
        theirs = gradients(copy.deepcopy(net), x, labels)
        kiln.torch.optimize(net, strict=True)
        with kiln.torch.record() as requests:
            found = gradients(net, x, labels)
    expect_as_exact_as_pytorch(found, theirs, exact)
    expect_tensor_cores(requests)
    assert net[0].body[0].weight.grad.dtype == x.dtype


def test_a_step_in_bf16_runs_on_tensor_cores():
    net, x, labels = network_and_batch()
    expect_a_step_on_tensor_cores(net.bfloat16(), x.bfloat16(), labels)


def test_a_step_under_autocast_runs_on_tensor_cores():
    expect_a_step_on_tensor_cores(*network_and_batch())
