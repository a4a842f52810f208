"""resize against PyTorch's own interpolation."""

import pytest

import kiln

# PyTorch's words, and Kiln's.
INTERPOLATIONS = {
    "nearest": {"coordinates": "asymmetric", "rounding": "floor"},
    "nearest-exact": {"rounding": "prefer_ceil"},
    "bilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic"},
}


def _expect_same(y, expected):
    assert y.shape == expected.shape and y.dtype == expected.dtype
    assert (y - expected).abs().max().item() <= 1e-5


@pytest.mark.parametrize("size", [(10, 14), (3, 4), (5, 16), (1, 1)])
@pytest.mark.parametrize("mode", INTERPOLATIONS)
def test_resize_is_interpolate(context, torch, mode, size):
    x = torch.randn(2, 3, 5, 7)
    y = kiln.resize(x, size=size, context=context, **INTERPOLATIONS[mode])
    _expect_same(y, torch.nn.functional.interpolate(x, size, mode=mode))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resize_aligns_corners(context, torch, mode):
    x = torch.randn(1, 2, 6, 7).to(memory_format=torch.channels_last)
    words = {**INTERPOLATIONS[mode], "coordinates": "align_corners"}
    y = kiln.resize(x, size=(11, 4), context=context, **words)
    _expect_same(y, torch.nn.functional.interpolate(x, (11, 4), mode=mode, align_corners=True))


def test_resize_takes_a_scale(context, torch):
    x = torch.randn(1, 2, 5, 7)
    y = kiln.resize(x, mode="linear", up=(5, 5), down=(4, 2), context=context)
    scale = {"scale_factor": (1.25, 2.5), "recompute_scale_factor": False}
    _expect_same(y, torch.nn.functional.interpolate(x, mode="bilinear", **scale))


@pytest.mark.parametrize(("shape", "size", "mode"), [((2, 3, 9), 14, "linear"), ((1, 2, 3, 4, 5), (5, 3, 9), "trilinear")])
def test_resize_of_one_and_three_dimensions(context, torch, shape, size, mode):
    x = torch.randn(*shape)
    y = kiln.resize(x, size=size, mode="linear", context=context)
    _expect_same(y, torch.nn.functional.interpolate(x, size, mode=mode))
