"""Functions of kiln.torch.functional differentiated twice, forward and in transforms, as PyTorch's own."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.autograd.forward_ad as forward_ad  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from test_functions import ACTIVATIONS, local_conv  # noqa: E402

import kiln.torch.functional as K  # noqa: E402

try:  # functorch until PyTorch 2.0
    from torch.func import grad, jvp, vmap
except ImportError:
    from functorch import grad, jvp, vmap

CALLS = {
    **{name: lambda L, x, name=name: getattr(L, name)(x, *ACTIVATIONS[name]) for name in ACTIVATIONS},
    "gelu_tanh": lambda L, x: L.gelu(x, approximate="tanh"),
    "conv": lambda L, x: L.conv2d(x, torch.ones(2, 3, 2, 2, dtype=x.dtype), stride=(1, 2), padding=1),
    "conv_same": lambda L, x: L.conv2d(x, torch.ones(2, 3, 2, 4, dtype=x.dtype), padding="same"),
    "conv_transpose": lambda L, x: L.conv_transpose2d(
        x, torch.ones(3, 2, 2, 2, dtype=x.dtype), stride=2, padding=1, output_padding=1
    ),
    "linear": lambda L, x: L.linear(x, torch.ones(2, 4, dtype=x.dtype), torch.ones(2, dtype=x.dtype)),
    "max_pool": lambda L, x: L.max_pool2d(x, 2, ceil_mode=True),
    "max_pool_indices": lambda L, x: L.max_pool2d(x, 2, return_indices=True)[0],
    "max_unpool": lambda L, x: L.max_unpool2d(x, (16 * torch.arange(5)[:, None] + 2 * torch.arange(4)).expand(2, 3, 5, 4), 2),
    "avg_pool": lambda L, x: L.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "batch_norm": lambda L, x: L.batch_norm(x, None, None, x[0, :, 0, 0], x[1, :, 0, 0], training=True),
    "batch_norm_in_evaluation": lambda L, x: L.batch_norm(
        x, torch.ones(3, dtype=x.dtype), torch.full((3,), 2.0, dtype=x.dtype), x[0, :, 0, 0], x[1, :, 0, 0]
    ),
    "layer_norm": lambda L, x: L.layer_norm(x, (4,), x[0, 0, 0], x[0, 0, 1]),
    "group_norm": lambda L, x: L.group_norm(x, 3, x[0, :, 0, 0]),
    "instance_norm": lambda L, x: L.instance_norm(x, weight=x[0, :, 0, 0]),
    "local_response_norm": lambda L, x: L.local_response_norm(x, 3, 0.5),
    "softmax": lambda L, x: L.softmax(x, 1),
    "log_softmax": lambda L, x: L.log_softmax(x, -1),
    "cross_entropy": lambda L, x: L.cross_entropy(
        x, torch.arange(40).view(2, 5, 4) % 3, torch.tensor([1.0, 2.0, 3.0], dtype=x.dtype), label_smoothing=0.1
    ),
    "grid_sample": lambda L, x: L.grid_sample(x, x.reshape(2, 3, 10, 2).sin(), align_corners=False),
    "affine_grid": lambda L, x: L.affine_grid(x.reshape(20, 2, 3), (20, 1, 2, 3), align_corners=True),
    "unfold": lambda L, x: L.unfold(x, (2, 3), 1, (0, 1), 2),
    "fold": lambda L, x: L.fold(x.reshape(2, 6, 10), (4, 7), (3, 2), (1, 2), 0, (1, 1)),
    "ctc_loss": lambda L, x: L.ctc_loss(
        x.view(15, 2, 4).log_softmax(-1), torch.tensor([[1, 2, 3], [2, 2, 1]]), *torch.tensor([[15, 9], [3, 2]])
    ),
    "cross_entropy_none": lambda L, x: L.cross_entropy(x, torch.arange(40).view(2, 5, 4) % 3, reduction="none"),
}


def close(actual, expected):
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(actual / scale, expected / scale, rtol=1e-4, atol=2e-5)


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(2, 3, 5, 4)


def of_orders(call, x, orders):
    """Values of a function, and gradients of sines of its gradients; as many as PyTorch has."""
    value = call(x.requires_grad_())
    results = [value.detach()]
    for _ in range(orders):
        loss = (value / max(1.0, float(results[-1].abs().max()))).sin().sum()  # which keeps higher derivatives alive
        if not loss.requires_grad:
            break
        try:
            (value,) = torch.autograd.grad(loss, x, create_graph=True)
        except RuntimeError as error:
            assert "not implemented" in str(error) or "does not support" in str(error)
            break
        results.append(value.detach())
    return results


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_gradients(name, x):
    orders = 2 if "norm" in name else 3  # PyTorch's third ones of normalisations differ from those of their formula
    expected = of_orders(lambda x: CALLS[name](F, x), x.double(), orders)
    actual = of_orders(lambda x: CALLS[name](K, x), x.clone(), orders)
    assert len(actual) >= len(expected) or "sigmoid" in name
    for mine, other in zip(actual, expected):
        close(mine, other.float())


def test_third_gradients_of_a_normalisation_are_those_of_its_formula(x):
    def formula(x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * x[0, 0, 0]

    actual = of_orders(lambda x: K.layer_norm(x, (4,), x[0, 0, 0]), x.clone(), 3)
    for mine, other in zip(actual, of_orders(formula, x.double(), 3)):
        close(mine, other.float())


def tangent(call, x):
    with torch.no_grad(), forward_ad.dual_level():
        return forward_ad.unpack_dual(call(forward_ad.make_dual(x, x.sin()))).tangent


@pytest.mark.parametrize("name", CALLS)
def test_transforms(name, x):
    call = CALLS[name]
    for transform in (
        lambda f: jvp(f, (x,), (x.cos(),))[1],
        lambda f: grad(lambda x: f(x).square().sum())(x),
        lambda f: vmap(lambda one: f(one * x))(x[:, :1, :1, :1]),
        lambda f: tangent(f, x),
    ):
        try:
            expected = transform(lambda x: call(F, x))
        except (RuntimeError, NotImplementedError) as error:
            with pytest.raises(type(error)):
                transform(lambda x: call(K, x))
            continue
        close(transform(lambda x: call(K, x)), expected)


def test_local_convolutions_in_transforms(x):
    w, b = torch.randn(9, 4, 3, 3, 2), torch.randn(4)
    call = K.local_conv2d
    close(jvp(lambda x: call(x, w, b), (x,), (x.cos(),))[1], jvp(lambda x: local_conv(x, w, b), (x,), (x.cos(),))[1])
    words = {"padding": 1, "stride": 2, "groups": 3, "grid": (2, 2)}
    w = torch.randn(4, 6, 1, 3, 3)
    mine = jvp(lambda x: call(x, w, **words), (x,), (x.cos(),))[0]
    close(mine, call(x, w, **words))


@pytest.mark.parametrize("name", ["conv", "linear", "max_pool", "layer_norm", "gelu_tanh", "softmax", "conv_transpose"])
def test_traced_functions_are_pytorch_s(name, x):
    call = CALLS[name]
    traced = torch.jit.trace(lambda x: call(K, x), x)
    assert "kiln::" not in str(traced.graph)
    close(traced(x + 1), call(F, x + 1))


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_derivatives_of_a_network(activation):
    """Where the second gradient of a layer is nothing, as a relu's is, the layers before it are given none. A batch of
    gradients (vectorize) goes through the layers' gradients at once."""
    torch.manual_seed(1)
    x, first, second, bias = torch.randn(5), torch.randn(4, 5), torch.randn(3, 4), torch.randn(4)

    def network(L, x):
        return L.linear(getattr(L, activation)(L.linear(x, first, bias)), second)

    def derivatives(L, vectorize):
        loss = lambda x: network(L, x).sum()  # noqa: E731
        return (
            torch.autograd.functional.jacobian(lambda x: network(L, x), x, vectorize=vectorize),
            torch.autograd.functional.hessian(loss, x, vectorize=vectorize),
        )

    for vectorize in (False, True):
        for actual, expected in zip(derivatives(K, vectorize), derivatives(F, vectorize), strict=True):
            close(actual, expected)


def test_a_batch_of_gradients_of_a_bias():
    torch.manual_seed(1)
    x, w = torch.randn(2, 5), torch.randn(4, 5)
    of_bias = [
        torch.autograd.functional.jacobian(lambda b, L=L: L.linear(x, w, b), torch.randn(4), vectorize=True) for L in (K, F)
    ]
    close(*of_bias)
