"""Images as columns of windows, and back, against PyTorch on the CPU."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F
from torch import nn

import kiln
import kiln.torch as kt
from kiln.torch import functional as K

WINDOWS = {
    "plain": {"kernel_size": 3},
    "padded": {"kernel_size": 3, "padding": 1},
    "apart": {"kernel_size": (2, 3), "stride": (2, 3)},
    "dilated": {"kernel_size": (2, 3), "dilation": (3, 2), "padding": (1, 2), "stride": (1, 2)},
    "one": {"kernel_size": 1},
    "far outside": {"kernel_size": 2, "padding": 5, "stride": 3},
}


def with_gradient(call, x, dtype):
    """`dtype`: that of dy's values."""
    y = call(x.requires_grad_())
    torch.manual_seed(2)
    dy = torch.randn(y.shape).to(dtype).to(y.dtype)
    return y.detach(), torch.autograd.grad(y, x, dy)[0]


def expect_pytorch_s(name, x, *given, **words):
    y, dx = with_gradient(lambda x: getattr(K, name)(x, *given, **words), x.clone(), x.dtype)
    right_y, right_dx = with_gradient(lambda x: getattr(F, name)(x, *given, **words), x.double(), x.dtype)
    assert y.dtype == dx.dtype == x.dtype and y.is_contiguous()
    rtol = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}[x.dtype]
    for own, right in ((y, right_y), (dx, right_dx)):
        torch.testing.assert_close(own, right.to(x.dtype), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", WINDOWS)
def test_images_and_columns_are_pytorch_s(name):
    torch.manual_seed(0)
    words = WINDOWS[name]
    expect_pytorch_s("unfold", torch.randn(2, 3, 7, 8), **words)
    columns = F.unfold(torch.randn(2, 3, 7, 8), **words)
    expect_pytorch_s("fold", columns, (7, 8), **words)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(dtype):
    torch.manual_seed(0)
    expect_pytorch_s("unfold", torch.randn(2, 3, 7, 8).to(dtype), 3, padding=1)
    expect_pytorch_s("fold", torch.randn(2, 12, 42).to(dtype), (7, 8), 2)


def test_images_without_a_batch_and_empty_batches():
    torch.manual_seed(0)
    expect_pytorch_s("unfold", torch.randn(3, 7, 8), 3)
    expect_pytorch_s("fold", torch.randn(12, 42), (7, 8), 2)
    assert K.unfold(torch.zeros(0, 3, 7, 8), 3).shape == (0, 27, 30)
    assert K.fold(torch.zeros(0, 12, 42), (7, 8), 2).shape == (0, 3, 7, 8)


def test_any_strides():
    torch.manual_seed(0)
    x = torch.randn(2, 8, 5, 7).to(memory_format=torch.channels_last)
    expect_pytorch_s("unfold", x[:, 1:6], 3, padding=1)
    expect_pytorch_s("unfold", x.transpose(2, 3), 2)
    expect_pytorch_s("fold", torch.randn(2, 42, 12).transpose(1, 2), (7, 8), 2)


def test_gradients_of_gradients():
    x = torch.randn(1, 2, 4, 5, requires_grad=True)
    for L, dtype in ((K, torch.float32), (F, torch.float64)):
        given = x.detach().to(dtype).requires_grad_()
        y = L.fold(L.unfold(given, 2, padding=1).sin(), (4, 5), 2, padding=1)
        (first,) = torch.autograd.grad(y.square().mean(), given, create_graph=True)
        (second,) = torch.autograd.grad(first.square().mean(), given, create_graph=True)
        (third,) = torch.autograd.grad(second.sin().sum(), given)
        results = [each.detach().float() for each in (y, first, second, third)]
        if L is K:
            own = results
    for one, other in zip(own, results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_layers_are_replaced():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Unfold(3, padding=1), nn.Fold((6, 6), 3, padding=1))
    x = torch.randn(2, 3, 6, 6)
    expected = model(x)
    kt.optimize(model, strict=True)
    torch.testing.assert_close(model(x), expected, rtol=1e-5, atol=1e-5)
    assert [(row.function, row.by_kiln) for row in kt.report(model)] == [("unfold", True), ("fold", True)]


X, COLUMNS = torch.zeros(2, 3, 5, 7), torch.zeros(2, 12, 24)
REFUSED = {
    "unfold takes an input of 3 or 4 dimensions": ("unfold", X[0, 0], 2),
    "kernel_size is 0": ("unfold", X, 0),
    r"kernel_size is \(2,\)": ("unfold", X, (2,)),
    "stride is 0": ("unfold", X, 2, 1, 0, 0),
    "padding is -1": ("unfold", X, 2, 1, -1),
    r"an image of \(5, 7\) has no window of \(6, 6\)": ("unfold", X, 6),
    r"input is of \(2, 0, 5, 7\)": ("unfold", X[:, :0], 2),
    "unfold of torch.int64": ("unfold", X.long(), 2),
    "torch.float64": ("unfold", X.double(), 2),
    "fold takes an input of 2 or 3 dimensions": ("fold", X, (5, 7), 2),
    "output_size is 0": ("fold", COLUMNS, 0, 2),
    "give a multiple of 9 channels": ("fold", COLUMNS, (5, 7), 3),
    "give 15 columns": ("fold", COLUMNS[:, :9], (5, 7), 3),
    r"an image of \(1, 7\) has no window": ("fold", COLUMNS, (1, 7), 2),
    "fold of torch.complex64": ("fold", COLUMNS.cfloat(), (5, 7), 2),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    name, *given = REFUSED[message]
    with pytest.raises((kiln.InvalidArgument, kiln.Unsupported), match=message):
        getattr(K, name)(*given)
    if "float64" not in message and "complex64" not in message:
        with pytest.raises((IndexError, RuntimeError, TypeError, ValueError)):
            getattr(F, name)(*given)
