"""Where no gradients are recorded, chains of layers are one kernel, and nothing else changes."""

import copy
import functools
import gc
import weakref

import pytest
from networks import NETWORKS, network

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402

optimize = functools.partial(kiln.torch.optimize, fold=True)  # by default from PyTorch 2.3 on

# As in test_optimize.py: f32 sums in another order, and normalisations before they are rounded.
TOLERANCE = 2e-5

# Kernels of the evaluation of each network.
KERNELS = {
    "residual": ["conv_forward"] * 4,
    "depthwise": ["conv_forward"] * 3,
    "up_and_down": ["conv_forward", "pool_forward", "conv_forward", "conv_backward_data", "conv_forward"],
    "mixer": ["norm_forward", "gemm", "gemm", "gemm", "softmax_forward"],
}


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)


def operations(requests):
    return [line.split()[0] for line, count in requests.counts.items() for _ in range(count)]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_chain_is_one_kernel(name):
    net, x = network(name)
    expected = copy.deepcopy(net).eval()(x).detach()
    optimize(net.eval(), strict=True)
    with torch.no_grad(), kiln.torch.record() as requests:
        y = net(x)
    close(y, expected)
    assert type(y) is torch.Tensor
    assert sorted(operations(requests)) == sorted(KERNELS[name])
    with torch.no_grad():
        folded = y
        kiln.torch.optimize(net, fold=False)
        with kiln.torch.record() as requests:
            close(net(x), folded)
    assert len(operations(requests)) > len(KERNELS[name])


def test_chains_are_joined_by_default_where_results_become_plain():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()
    x = torch.randn(1, 2, 6, 6)
    expected = net(x).detach()
    kernels = {}
    for fold in (None, True, False):
        kiln.torch.optimize(net, fold=fold)
        with torch.no_grad(), kiln.torch.record() as requests:
            close(net(x), expected)
        kernels[fold] = len(operations(requests))
    by_default = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 3)
    assert kernels[True] == 1 < kernels[False] and kernels[None] == kernels[by_default]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_a_chain_in_inference_mode_with_and_without_parameters(bias, affine):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(3, 4, 3, bias=bias), nn.BatchNorm1d(4, eps=0.1, affine=affine), nn.Softplus(2, 3)).eval()
    net[1].running_mean.normal_()
    x = torch.randn(2, 3, 9)
    expected = net(x).detach()
    optimize(net, strict=True)
    with torch.inference_mode(), kiln.torch.record() as requests:
        y = net(x)
    torch.testing.assert_close(y.clone(), expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert operations(requests) == ["conv_forward"]
    assert "expression" in requests.text()


def test_the_parameters_of_each_call_count():
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).eval()
    x = torch.randn(1, 2, 4, 4)
    optimize(net, strict=True)
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: net[1].weight.data.fill_(3),
            lambda: net[1].running_var.fill_(4),
            lambda: net[0].weight.data.mul_(2),
            lambda: setattr(net[1], "bias", nn.Parameter(torch.ones(3))),
        ):
            change()
            expected = F.batch_norm(
                F.conv2d(x, net[0].weight, net[0].bias), net[1].running_mean, net[1].running_var, net[1].weight, net[1].bias
            )
            close(net(x), expected)


def test_training_and_gradients_are_not_folded():
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU())
    x = torch.randn(2, 2, 4, 4)
    optimize(net, strict=True)
    for training, gradients in ((True, True), (False, True), (True, False)):
        with torch.set_grad_enabled(gradients), kiln.torch.record() as requests:
            y = net.train(training)(x)
        assert y.requires_grad == gradients
        assert len(operations(requests)) == 3
    with torch.no_grad(), kiln.torch.record() as requests:
        net.eval()(x)
    assert operations(requests) == ["conv_forward"]


class Uses(nn.Module):
    """Uses of a convolution's result decide whether it may be folded."""

    def __init__(self, use):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.use = use

    def forward(self, x):
        return self.use(self, x)


def twice(net, x):
    y = net.conv(x)
    return F.relu(y) + y


def changed_meanwhile(net, x):
    x = x.clone()
    y = net.conv(x)
    x.add_(1)
    return F.relu(y)


def input_in_place(net, x):
    x = x.clone()
    y = net.conv(x)
    F.relu(x, inplace=True)
    return y + x


def with_itself(net, x):
    y = net.conv(x)
    return F.relu(y + y)


def result_in_place(net, x):
    y = net.conv(x)
    same = y
    y += x
    y.relu_()
    return same * 2


def a_view_in_place(net, x):
    y = net.conv(x)
    first = y[0]
    y += net.conv(x)
    return first + 0, y


def used_by_another_chain(net, x):
    y = net.conv(x)
    z = F.relu(y)
    w = net.conv(y)
    del y
    return z + w, w


def two_chains(net, x):
    y, z = net.bn(net.conv(x)), net.conv(x + 1)
    return F.relu(y + z), z


def kept(net, x):
    net.last = net.conv(x)
    return F.relu(net.last)


def after_activation(net, x):
    return x + F.silu(net.bn(net.conv(x)))


def two_activations(net, x):
    return torch.tanh(F.relu(net.conv(x)))


def broadcast(net, x):
    return net.conv(x) + x[:, :, :1, :1]


def a_number(net, x):
    return F.relu(net.conv(x) + 1)


def scaled(net, x):
    return torch.add(net.conv(x), x, alpha=2)


def as_numbers(net, x):
    y = net.conv(x)
    return torch.tensor(y.tolist()) + float(y.sum()) + y.storage()[0]  # numpy(): this PyTorch may not know this NumPy


def of_shape(net, x):
    y = net.conv(x)
    assert isinstance(y, torch.Tensor) and y.shape == x.shape and y.dtype == x.dtype and y.dim() == 4
    return y.view(y.size(0), -1).relu()


def nested(net, x):
    y = net.conv(x)
    return {"a": [y, (F.relu(y), None)], "b": 3}


def unbatched(net, x):
    return F.relu(net.conv(x[0]) + x[0])


def empty(net, x):
    return F.relu(net.conv(x[:0]))


def other_dtype(net, x):
    return net.conv(x) + x.double()


def shape_in_place(net, x):
    y = net.conv(x)
    y.unsqueeze_(1).transpose_(0, 2)
    return torch.tensor(y.shape), torch.tensor(y.stride()), y + 0


def other_data(net, x):
    y = net.conv(x)
    y.data = x[0].double()
    assert y.dtype == torch.float64
    return torch.tensor(y.shape), y + 0


def gradient_asked_for(net, x):
    y = net.conv(x)
    assert y.requires_grad_().requires_grad
    with torch.enable_grad():
        return torch.autograd.grad(F.relu(y).square().sum(), y)[0]


def the_same_object(net, x):
    y = net.conv(x)
    z = y.view(-1)
    same = y
    y += x
    assert y is same and F.relu(y, inplace=True) is y and y.add_(1) is y
    return y, z


USES = [
    twice, changed_meanwhile, input_in_place, with_itself, result_in_place, a_view_in_place, used_by_another_chain,
    two_chains, kept, after_activation, two_activations, broadcast, a_number, scaled, as_numbers, of_shape, nested,
    unbatched, empty, other_dtype, shape_in_place, other_data, gradient_asked_for, the_same_object,
]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_any_use_of_a_result_gives_what_pytorch_gives(use):
    torch.manual_seed(0)
    net = Uses(use).eval()
    x = torch.randn(2, 2, 5, 5)
    with torch.no_grad():
        expected = net(x)
        last = getattr(net, "last", None)
        y = optimize(net)(x)
    close(y, expected)
    if last is not None:
        close(net.last + 0, last)
        assert torch.equal(copy.deepcopy(net.last), net.last + 0)


def test_layouts_and_types_are_pytorch_s():
    net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last)
    with torch.no_grad():
        expected = net(x)
        optimize(net, strict=True)
        y = net(x)
        assert y.stride() == expected.stride()
        close(y, expected)
        half = net.half()(x.half())
        assert half.dtype == torch.float16
        torch.testing.assert_close(half.float(), expected, rtol=1e-2, atol=1e-2)  # of weights and inputs in f16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert net.float()(x).dtype == torch.bfloat16


def test_gradients_begin_where_no_grad_ends():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)

        def forward(self, x):
            with torch.no_grad():
                x = self.conv(x)
            return self.bn(x)

    net = optimize(Frozen().eval(), strict=True)
    net(torch.randn(1, 2, 3, 3)).sum().backward()
    assert net.conv.weight.grad is None and net.bn.weight.grad is not None


def test_a_chain_ends_where_a_model_does():
    inner = optimize(nn.Conv2d(2, 2, 1))
    outer = optimize(nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU()))
    x = torch.randn(1, 2, 3, 3)
    with torch.no_grad():
        y = inner(x)
        assert type(y) is torch.Tensor
        close(F.relu(y), F.relu(F.conv2d(x, inner.weight, inner.bias)))
        close(outer(y), F.relu(F.conv2d(y, outer[0].weight, outer[0].bias)))


def test_who_keeps_a_result_keeps_nothing_else():
    kept, gone = [], []
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)).eval()
    net[1].register_forward_hook(lambda module, given, result: kept.append(result))
    optimize(net, strict=True)
    with torch.no_grad():
        x = torch.randn(1, 3, 8, 8)
        gone.append(weakref.ref(x))
        net(x + 1)
        net(x)
    del x
    gc.collect()
    assert gone[0]() is None
    assert all(isinstance(each, torch.Tensor) and (each >= 0).all() for each in kept)


@pytest.mark.parametrize("strict", [False, True])
def test_what_pytorch_refuses_raises_its_own_error_in_no_grad_too(strict):
    net = optimize(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), fold=True, strict=strict)
    for part in (net, net[0]):
        with torch.no_grad(), pytest.raises(kiln.InvalidArgument if strict else RuntimeError, match="channels") as raised:
            part(torch.randn(2, 4, 8, 8))
        assert strict or not isinstance(raised.value, kiln.Error)
