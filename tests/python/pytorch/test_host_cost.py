"""Work of the host for each call: counts of calls within Python, which no other load of the machine changes; and calls
past PyTorch's dispatcher, which are direct only where nobody would see the difference."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
import kiln.torch.functional as K  # noqa: E402


def calls_of(function):
    """Calls of functions, of Python and C, that a call of `function` makes when it has run before."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    for _ in range(3):
        function()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def linear_layers():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).eval(), torch.randn(2, 8)


def convolutions():
    layers = [nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU()]
    return nn.Sequential(*layers, *layers).eval(), torch.randn(1, 2, 4, 4)


@pytest.mark.parametrize(
    ("name", "limit"), [("activation_forward", 85), ("out", 70), ("relu", 85), ("mm", 98), ("conv2d", 170)]
)
def test_calls_of_a_function(name, limit):
    x, y, w = torch.randn(8, 8), torch.empty(8, 8), torch.randn(2, 2, 3, 3)
    images = torch.randn(1, 2, 4, 4)
    function = {
        "activation_forward": lambda: kiln.activation_forward(x, mode="relu"),
        "out": lambda: kiln.activation_forward(x, mode="relu", out=y),
        "relu": lambda: K.relu(x),
        "mm": lambda: K.mm(x, x),
        "conv2d": lambda: K.conv2d(images, w, padding=1),
    }[name]
    assert calls_of(function) <= limit


@pytest.mark.parametrize(
    ("made", "fold", "limit"),
    [
        (linear_layers, False, 610),
        (linear_layers, True, 640),
        (convolutions, False, 1650),
        (convolutions, True, 1390),
    ],
)
def test_calls_of_an_optimized_network(made, fold, limit):
    """Beside those that PyTorch's own run makes. Chains need PyTorch 2.3 to be plain tensors, but not to be counted."""
    net, x = made()
    own = calls_of(lambda: net(x))
    kiln.torch.optimize(net, fold=fold)
    with torch.no_grad():
        assert calls_of(lambda: net(x)) - own <= limit


def test_a_profiler_sees_operators():
    x = torch.randn(4, 4)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        K.relu(x)
        K.mm(x.requires_grad_(), x).sum().backward()
    names = {event.key for event in profiler.key_averages()}
    assert {"kiln::activation", "kiln::gemm"} <= names


def test_modes_see_operators():
    seen = []

    class OfTheDispatcher(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class OfFunctions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.randn(4, 4)
    for mode in (OfTheDispatcher(), OfFunctions()):
        seen.clear()
        with mode:
            y = K.relu(x)
        assert any("kiln.activation" in each for each in seen)
        assert torch.equal(y, torch.relu(x))


class Tagged(torch.Tensor):
    """A tensor that computes by another one, as wrappers do."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, of):
        made = torch.Tensor._make_wrapper_subclass(cls, of.shape, dtype=of.dtype, device=of.device)
        made.of = of
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return function(*(each.of if isinstance(each, Tagged) else each for each in args), **(kwargs or {}))


def test_tensors_that_are_not_plain_go_through_the_dispatcher():
    x = torch.randn(4, 4)
    assert torch.equal(K.relu(Tagged(x)), torch.relu(x))
    lazily_negated = torch.complex(x, x).conj().imag
    assert lazily_negated.is_neg()
    assert torch.equal(K.relu(lazily_negated), torch.relu(-x))
    assert K.relu(x.to("meta")).is_meta


def test_functions_of_autograd_call_the_kernel_for_gradients_of_gradients_too():
    x = torch.randn(3, 3, requires_grad=True)
    (first,) = torch.autograd.grad(K.mm(x, x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    (first,) = torch.autograd.grad((x @ x).square().sum(), x, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(first.sum(), x)[0], rtol=1e-4, atol=1e-4)
