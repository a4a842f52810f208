"""Work of the host for each call: counts of calls within Python, which no other load of the machine changes; and calls
past PyTorch's dispatcher, which are direct only where nobody would see the difference."""

import copy
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
import kiln.torch.functional as K  # noqa: E402
from kiln import _kiln  # noqa: E402
from kiln.torch import _active  # noqa: E402


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
        (linear_layers, False, 350),
        (linear_layers, True, 360),
        (convolutions, False, 1050),
        (convolutions, True, 740),
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


def likeness(*args, waiting=-1, **kwargs):
    return _kiln.likeness(args, kwargs, _active.known_tensors, waiting)


def test_arguments_are_alike_but_for_the_elements_of_tensors():
    x = torch.randn(2, 3)
    assert likeness(x, 1, a=(1, None)) == likeness(torch.zeros(2, 3), 1, a=(1, None)) is not None
    assert likeness(x) == likeness(nn.Parameter(x)) == likeness(torch.cat((x, x))[2:])
    different = [
        likeness(x), likeness(x.t()), likeness(x.t().contiguous()), likeness(x.half()), likeness(x.bfloat16()), likeness(x, x),
        likeness(x[:, :2]), likeness(x[0, :1]), likeness(x[0, 0]), likeness(x, 1), likeness(x, 1.0), likeness(x, True),
        likeness(x, "1"), likeness(x, None), likeness(x, -0.0), likeness(x, 0.0), likeness(x, (1,)), likeness(x, [1]),
        likeness(x, (1, ())), likeness(x, ((1,),)), likeness(x, a=1), likeness(x, b=1), likeness(x, 1, a=1),
        likeness(x, 1, waiting=0), likeness(x, 1, waiting=1),
    ]  # fmt: skip
    assert None not in different and len(set(different)) == len(different)


def test_what_likeness_does_not_say_has_none():
    x, itself = torch.randn(2, 3), []
    itself.append(itself)
    for each in (
        x.double(), x.long(), x.bool(), x.to("meta"), x.to_sparse(), torch.complex(x, x), torch.complex(x, x).conj().imag,
        torch._efficientzerotensor((2, 3)), torch._to_functional_tensor(x), Tagged(x), x[:0], object(), {}, {1}, 1 << 70,
        [x], (1, x), torch.Size((1,)), slice(1), x.dtype, itself, "\ud800",
    ):  # fmt: skip
        assert likeness(x, each) is None and likeness(x, a=each) is None


def changed_meanwhile():
    """Networks and inputs, each as the one before but for one thing, so that nothing of that may count."""
    net, x = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2), nn.LeakyReLU(0.1)).eval(), torch.randn(2, 2, 4, 4)
    yield net, x
    yield net, x + 1
    yield net, x[:1]
    yield net, x.to(memory_format=torch.channels_last)
    yield net, x.half().float().transpose(2, 3)
    for change in (
        lambda: setattr(net[0], "weight", nn.Parameter(net[0].weight + 1)),
        lambda: net[0].weight.data.mul_(2),
        lambda: setattr(net[0], "bias", None),
        lambda: setattr(net[0], "padding", (0, 0)),
        lambda: setattr(net[0], "stride", (2, 2)),
        lambda: setattr(net[1], "eps", 0.5),
        lambda: net[1].running_mean.add_(1),
        lambda: setattr(net[1], "weight", None),
        lambda: setattr(net[2], "negative_slope", 0.7),
        lambda: setattr(net[2], "negative_slope", 1),
        lambda: setattr(net[2], "negative_slope", torch.tensor(0.3)),
        lambda: setattr(net[2], "negative_slope", torch.tensor(0.6)),
        lambda: setattr(net[2], "inplace", True),
        lambda: net.train(),
    ):
        with torch.no_grad():
            change()
        yield net, x
    yield net.eval().half(), x.half()


@pytest.mark.parametrize("fold", [False, True])
def test_what_is_known_of_a_layer_is_of_the_same_arguments_and_settings(fold):
    """Each is called again, when it is known."""
    for net, x in changed_meanwhile():
        own = copy.deepcopy(net)
        optimized = kiln.torch.optimize(copy.deepcopy(net), fold=fold)
        for _ in range(3):
            with torch.no_grad():
                try:
                    expected = own(x)
                except RuntimeError as error:  # of PyTorch 1.13, which has no convolution in f16 on the CPU
                    assert "Half" in str(error)
                    optimized(x)
                    continue
                y = optimized(x)
            assert (type(y), y.dtype, y.stride(), y.requires_grad) == (torch.Tensor, x.dtype, expected.stride(), False)
            error = 2e-5 if x.dtype == torch.float32 else 1e-2
            torch.testing.assert_close(y, expected, rtol=error, atol=error)
        if own.training:
            torch.testing.assert_close(optimized[1].running_mean, own[1].running_mean)


@pytest.mark.parametrize("fold", [False, True])
def test_settings_of_pytorch_count_for_a_layer_that_is_known(fold):
    net, x = linear_layers()
    kiln.torch.optimize(net, fold=fold)
    with torch.no_grad():
        expected = net(x)
        with kiln.torch.record() as requests:
            assert torch.equal(net(x), expected)
        assert not any("deterministic" in line for line in requests)
        torch.use_deterministic_algorithms(True)
        try:
            with kiln.torch.record() as requests:
                net(x)
        finally:
            torch.use_deterministic_algorithms(False)
        assert all("deterministic" in line for line in requests if line.startswith("gemm"))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert net(x).dtype == torch.bfloat16
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            net(x)
        assert any(event.key == "kiln::gemm" for event in profiler.key_averages())
    assert net(x).requires_grad
    assert torch.func.vmap(net)(x).shape == x.shape if hasattr(torch, "func") else True
    calls = [row.calls_by_kiln for row in kiln.torch.report(net)]
    assert calls == [6, 6, 6] if not hasattr(torch, "func") else min(calls) == 6


def test_a_layer_that_is_known_is_refused_by_the_context_of_the_call():
    net, x = linear_layers()
    expected = net(x).detach()
    kiln.torch.optimize(net, strict=True)
    with torch.no_grad():
        for _ in range(2):
            net(x)
        kiln.torch.set_default_context(kiln.Context(cache="off", locked=True))
        try:
            with pytest.raises(kiln.Error):
                net(x)
        finally:
            kiln.torch.set_default_context(None)
        torch.testing.assert_close(net(x), expected, rtol=2e-5, atol=2e-5)
