"""resize against PyTorch's own interpolation."""

import numpy as np
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


@pytest.mark.parametrize("size", [(10, 14), (3, 4), (5, 16), (1, 1)])
@pytest.mark.parametrize("mode", INTERPOLATIONS)
def test_resize_backward_is_the_gradient_of_interpolate(context, torch, mode, size):
    x = torch.randn(2, 3, 5, 7, requires_grad=True)
    dy = torch.randn(2, 3, *size)
    torch.nn.functional.interpolate(x, size, mode=mode).backward(dy)
    dx = kiln.resize_backward(dy, out=torch.empty(2, 3, 5, 7), context=context, **INTERPOLATIONS[mode])
    _expect_same(dx, x.grad)


# 0.6 and 0.8 in f32.
SIX_TENTHS, EIGHT_TENTHS = (10066330, 16777216), (13421773, 16777216)


@pytest.mark.parametrize(
    ("rows", "scale", "words", "expected"),
    [
        (2, SIX_TENTHS, {"mode": "linear", "coordinates": "align_corners"}, [1, 3.142857]),
        (1, ((1, 10066330), (1, 16777216)), {"mode": "linear", "coordinates": "half_pixel_symmetric"}, [1.6666667, 3.3333333]),
        (4, (2, 1), {"mode": "cubic", "cubic": -0.5, "outside": "excluded"}, [0.55882353, 0.81494204, 1.35698249]),
        (4, EIGHT_TENTHS, {"mode": "cubic"}, [1.47119141, 2.78125, 4.08251953]),
    ],
    ids=["align_corners", "symmetric", "excluded", "cubic"],
)
def test_resize_is_that_of_onnx(context, rows, scale, words, expected):
    """The first row of examples in ONNX's own tests."""
    x = np.arange(1, 4 * rows + 1, dtype=np.float32).reshape(1, 1, rows, 4)
    y = kiln.resize(x, up=scale[0], down=scale[1], context=context, **words)
    np.testing.assert_allclose(y[0, 0, 0, : len(expected)], expected, rtol=1e-6)
