"""Grid sampling and affine grids, against PyTorch on the CPU."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F

import kiln
import kiln.torch as kt
from kiln.torch import functional as K

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def images(*extents, positions, seed=0):
    """Images, and positions in and around them."""
    torch.manual_seed(seed)
    axes = len(extents) - 2
    return torch.randn(extents), torch.rand(extents[0], *positions, axes) * 2.6 - 1.3


def expect_pytorch_s(x, grid, **words):
    given = [each.clone().requires_grad_() for each in (x, grid)]
    exact = [each.double().requires_grad_() for each in (x, grid)]
    y, expected = K.grid_sample(*given, **words), F.grid_sample(*exact, **words)
    torch.testing.assert_close(y, expected.float(), rtol=1e-4, atol=1e-5)
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, given, dy)
    for own, right in zip(gradients, torch.autograd.grad(expected, exact, dy.double()), strict=True):
        torch.testing.assert_close(own, right.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode, padding, aligned", itertools.product(MODES, PADDINGS, (False, True)))
def test_images_are_sampled_as_pytorch_samples_them(mode, padding, aligned):
    x, grid = images(2, 3, 5, 7, positions=(4, 3))
    expect_pytorch_s(x, grid, mode=mode, padding_mode=padding, align_corners=aligned)


@pytest.mark.parametrize("mode, padding", itertools.product(MODES[:2], PADDINGS))
def test_volumes_are_sampled_as_pytorch_samples_them(mode, padding):
    x, grid = images(2, 3, 3, 4, 5, positions=(2, 3, 2))
    expect_pytorch_s(x, grid, mode=mode, padding_mode=padding, align_corners=False)


def test_any_strides(monkeypatch):
    x, grid = images(2, 8, 5, 7, positions=(4, 3))
    x = x.to(memory_format=torch.channels_last)
    expect_pytorch_s(x[:, 1:6], grid.transpose(1, 2), align_corners=False)
    y = K.grid_sample(x, grid, align_corners=False)
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_gradients_of_a_bright_image_are_those_of_its_differences():
    x, grid = images(2, 3, 5, 7, positions=(4, 3))
    expect_pytorch_s(x + 1e4, grid, padding_mode="border", align_corners=False)
    grid.requires_grad_()
    y = K.grid_sample(torch.full((2, 3, 5, 7), 1e4), grid, padding_mode="border", align_corners=False)
    assert torch.autograd.grad(y.sum(), grid)[0].abs().max() == 0
    steep = torch.tensor([10.0, 11.0]).expand(1, 1, 2, 2)
    (dgrid,) = torch.autograd.grad(
        K.grid_sample(steep, grid[:1, :1, :1] * 0, align_corners=False), grid, torch.full((1, 1, 1, 1), 1e38)
    )
    assert torch.isfinite(dgrid).all()


def test_gradients_repeat_bit_for_bit():
    x, grid = images(1, 2, 3, 3, positions=(40, 50))
    x.requires_grad_()
    gradients = [torch.autograd.grad(K.grid_sample(x, grid, align_corners=False).sum(), x)[0] for _ in range(3)]
    assert all(torch.equal(each, gradients[0]) for each in gradients)


def test_half_precision():
    x, grid = (each.half() for each in images(1, 3, 5, 7, positions=(4, 3)))
    y = K.grid_sample(x, grid, align_corners=True)
    assert y.dtype == torch.float16
    expected = F.grid_sample(x.float(), grid.float(), align_corners=True)
    torch.testing.assert_close(y.float(), expected, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("size, aligned", itertools.product([(2, 3, 5, 7), (3, 1, 1, 4), (2, 1, 3, 1, 5)], (False, True)))
def test_affine_grids_are_pytorch_s(size, aligned):
    torch.manual_seed(0)
    axes = len(size) - 2
    theta = torch.randn(size[0], axes, axes + 1)
    given, exact = theta.clone().requires_grad_(), theta.double().requires_grad_()
    grid, expected = K.affine_grid(given, size, aligned), F.affine_grid(exact, size, aligned)
    torch.testing.assert_close(grid, expected.float(), rtol=1e-5, atol=1e-5)
    dgrid = torch.randn(grid.shape)
    grid.backward(dgrid)
    expected.backward(dgrid.double())
    torch.testing.assert_close(given.grad, exact.grad.float(), rtol=1e-4, atol=1e-4)


def test_autocast_has_the_types_that_pytorch_has():
    x, grid = images(1, 3, 5, 7, positions=(4, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for one, other in itertools.product((x, x.bfloat16()), (grid, grid.bfloat16())):
            y, expected = K.grid_sample(one, other, align_corners=False), F.grid_sample(one, other, align_corners=False)
            assert y.dtype == expected.dtype == torch.float32
            torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
        theta = torch.randn(2, 2, 3)
        mine, own = (L.affine_grid(theta, (2, 1, 3, 5), False) for L in (K, F))
    assert mine.dtype == own.dtype == torch.bfloat16
    torch.testing.assert_close(mine.float(), own.float(), rtol=2e-2, atol=2e-2)


def test_positions_that_are_no_numbers():
    x = torch.arange(1.0, 5.0).view(1, 1, 2, 2)
    strange = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30])
    grid = torch.stack((strange, torch.zeros(4)), -1).view(1, 1, 4, 2)
    assert K.grid_sample(x, grid, align_corners=False).flatten().tolist() == [0, 0, 0, 0]
    at_border = K.grid_sample(x, grid, padding_mode="border", align_corners=False).flatten().tolist()
    assert at_border == [2, 3, 2, 3]  # NaN counts as position 0


def test_a_model_is_served():
    class Transformer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.where = torch.nn.Linear(12, 6)

        def forward(self, x):
            theta = self.where(x.mean((1,)).flatten(1)).view(-1, 2, 3)
            return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)

    model, x = Transformer(), torch.randn(2, 3, 3, 4)
    expected = model(x)
    expected.square().sum().backward()
    right = model.where.weight.grad.clone()
    model.zero_grad()
    with kt.enabled():
        y = model(x)
        y.square().sum().backward()
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.where.weight.grad, right, rtol=1e-3, atol=1e-4)


X, GRID = torch.zeros(2, 3, 4, 5), torch.zeros(2, 2, 2, 2)
REFUSED = {
    "mode is 'area'": (X, GRID, "area"),
    "padding_mode is 'wrap'": (X, GRID, "nearest", "wrap"),
    "input has 3 dimensions": (X[0], GRID),
    r"grid is of \(2, 2, 2, 3\)": (X, torch.zeros(2, 2, 2, 3)),
    "give it the batch of the input": (X, GRID[:1]),
    "input is of": (X[:, :, :0], GRID),
    "bicubic": (torch.zeros(2, 3, 4, 5, 6), torch.zeros(2, 2, 2, 2, 3), "bicubic"),
    "torch.float32 at torch.float64": (X, GRID.double()),
}


THETA = torch.zeros(2, 2, 3)
REFUSED_GRIDS = {
    "size has 3 numbers": (THETA, (2, 3, 4)),
    r"size is \(2, 3, 0, 4\)": (THETA, (2, 3, 0, 4)),
    r"give \(2, 3, 4\) for size": (THETA, (2, 3, 4, 5, 6)),
    r"theta is of \(2, 2, 3\)": (THETA, (1, 3, 4, 5)),
    "theta is of": (THETA[0], (1, 3, 4, 5)),
    "more than 2.24 positions": (THETA, (2, 1, 1, 2**24 + 1)),
    "align_corners is 1": (THETA, (2, 1, 3, 3), 1),
    "torch.float64": (THETA.double(), (2, 1, 3, 3)),
}


@pytest.mark.parametrize("message", REFUSED_GRIDS)
def test_what_affine_grid_refuses(message):
    with pytest.raises((kiln.InvalidArgument, kiln.Unsupported), match=message):
        K.affine_grid(*REFUSED_GRIDS[message])


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises((kiln.InvalidArgument, kiln.Unsupported), match=message):
        K.grid_sample(*REFUSED[message], align_corners=False)
