"""Functions that move elements, against PyTorch's own in awkward cases: each is equal, or left to PyTorch."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from comparison import compare  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

normal = torch.randn
is_old = torch.__version__.startswith("1.")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def both(call, *tensors, **options):
    compare(lambda *given: call(K, *given), lambda *given: call(F, *given), *tensors, **options)


def exact(call, *tensors):
    """Bits that are only moved."""
    y, expected = call(K, *tensors), call(F, *tensors)
    assert y.dtype == expected.dtype and y.shape == expected.shape
    assert torch.equal(y, expected)
    assert y.is_contiguous() == expected.is_contiguous()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    "words",
    [
        {"size": (10, 14)},
        {"size": (1, 1)},
        {"size": 4},
        {"size": (5, 7)},
        {"size": (123, 164)},
        {"scale_factor": 2},
        {"scale_factor": (1.7, 0.6)},
        {"scale_factor": (1.3, 1.0)},
        {"scale_factor": 0.3},
        {"scale_factor": (1.7, 2.3), "recompute_scale_factor": True},
        {"scale_factor": (2.5, 3.0), "recompute_scale_factor": False},
    ],
    ids=str,
)
def test_images_at_another_size(mode, words):
    both(lambda L, x: L.interpolate(x, mode=mode, **words), normal(2, 3, 5, 7))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("words", [{"size": (11, 4)}, {"size": (1, 9)}, {"scale_factor": (1.7, 0.6)}], ids=str)
def test_corners_are_aligned(mode, words):
    x = normal(1, 2, 5, 7).contiguous(memory_format=torch.channels_last)
    both(lambda L, x: L.interpolate(x, mode=mode, align_corners=True, **words).contiguous(), x)
    assert K.interpolate(x, (3, 3), mode=mode).is_contiguous(memory_format=torch.channels_last)


def test_signals_and_volumes_at_another_size():
    for mode in ("nearest", "nearest-exact", "linear"):
        both(lambda L, x: L.interpolate(x, 14, mode=mode), normal(2, 3, 9))
        both(lambda L, x: L.interpolate(x, scale_factor=1.3, mode=mode), normal(2, 3, 9))
    for mode in ("nearest", "nearest-exact", "trilinear"):
        both(lambda L, x: L.interpolate(x, (5, 3, 9), mode=mode), normal(1, 2, 3, 4, 5))
    both(lambda L, x: L.interpolate(x, (4, 2), mode="area"), normal(1, 3, 8, 6))
    both(lambda L, x: L.interpolate(x, scale_factor=(1.1, 1.3), mode="bilinear"), normal(1, 3, 5, 6))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_the_gradient_of_an_image_at_another_size_is_kilns(mode):
    x = normal(1, 2, 5, 7, requires_grad=True)
    with kiln.torch.record() as requests:
        first = torch.autograd.grad(K.interpolate(x, (10, 14), mode=mode).square().sum(), x, create_graph=True)[0]
        torch.autograd.grad(first.square().sum(), x)
    assert [line.split()[0] for line in requests].count("resize_backward") == 1
    assert requests.counts[next(line for line in requests if line.startswith("resize_backward"))] == 2


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_element_is_the_one_that_pytorch_takes(mode):
    """It rounds positions to float32, so that 1 of 2 elements is taken at place 41 of 82."""
    for extent, outputs in ((2, 82), (3, 123), (7, 86), (11, 253), (129, 255)):
        x = torch.arange(float(extent)).view(1, 1, extent)
        exact(lambda L, x: L.interpolate(x, outputs, mode=mode), x)
    for scale in (0.1, 1 / 3, 0.7, 1.1, 1.9, 41.0, 7.7, 2.0):
        x = torch.arange(30.0).view(1, 1, 30)
        exact(lambda L, x: L.interpolate(x, scale_factor=scale, mode=mode), x)
    exact(lambda L, x: L.interpolate(x, (3, 82), mode=mode), normal(2, 3, 5, 2))


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), (1.5, float("nan"))], ids=str)
def test_a_scale_that_is_no_number_is_an_error(scale):
    with pytest.raises(kiln.InvalidArgument, match="scale_factor has (nan|inf)"):
        K.interpolate(normal(1, 2, 5, 7), scale_factor=scale)


def test_halves_and_bytes_at_another_size():
    both(lambda L, x: L.interpolate(x, (7, 5), mode="bilinear"), normal(1, 2, 4, 6).bfloat16(), in_f32=True)
    x = normal(1, 2, 4, 6).half()
    expected = F.interpolate(x.float(), (7, 5), mode="bicubic")
    torch.testing.assert_close(K.interpolate(x, (7, 5), mode="bicubic").float(), expected, rtol=1e-2, atol=1e-2)
    image = torch.randint(0, 255, (1, 3, 4, 6), dtype=torch.uint8)
    exact(lambda L, x: L.interpolate(x, scale_factor=2), image)
    assert K.interpolate(normal(0, 3, 4, 4), 8).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("words", [{}, {"padding_idx": 2}, {"padding_idx": -1}, {"scale_grad_by_freq": True}], ids=str)
def test_rows_of_a_table(words):
    for indices in (torch.tensor([[1, 2, 2], [6, 0, 1]]), torch.tensor(3), torch.tensor([5, 5], dtype=torch.int32)):
        both(lambda L, table: L.embedding(indices, table, **words), normal(7, 5))
    # Many at one row, and rows without any.
    both(lambda L, table: L.embedding(torch.tensor([2] * 300 + [0, 5]), table, padding_idx=0), normal(7, 5))
    both(lambda L, table: L.embedding(torch.tensor([4, 4]), table, **words), normal(7, 4).bfloat16())
    assert K.embedding(torch.zeros(2, 0, dtype=torch.long), normal(3, 4)).shape == (2, 0, 4)


def test_an_index_that_is_no_row_is_an_error():
    for index in (7, -1):
        with pytest.raises(kiln.InvalidArgument, match=f"the index {index} is no row of 7"):
            K.embedding(torch.tensor([0, index]), normal(7, 3))
    net = kiln.torch.optimize(torch.nn.Embedding(7, 3))
    with pytest.raises(IndexError):
        net(torch.tensor([7]))


@pytest.mark.parametrize(
    "shape, pad, words",
    [
        ((2, 3, 5, 7), (1, 2), {}),
        ((2, 3, 5, 7), (1, 2, 0, 3), {"value": -1.5}),
        ((2, 3, 5, 7), (-1, 2, 3, -2), {"value": float("inf")}),
        ((2, 3, 5, 7), (-1, -2, 0, 1), {}),
        ((2, 3, 5, 7), (0, 0, 0, 0), {"mode": "replicate"}),
        ((4,), (2, 0), {}),
        ((2, 1, 3, 1, 2, 3, 2), (1, 0, 0, 1), {"value": 7}),
        ((2, 3, 4, 5, 6), (1, 0, 0, 1, 2, 0, 0, 1, 1, 1), {}),
        ((2, 3, 5), (4, 3), {"mode": "reflect"}),
        ((3, 5), (4, -2), {"mode": "reflect"}),
        ((2, 3, 5, 7), (3, 6, 4, 0), {"mode": "reflect"}),
        ((2, 3, 5, 7), (9, 2, 0, 8), {"mode": "replicate"}),
        ((3, 5, 7), (-2, 3, 1, -1), {"mode": "replicate"}),
        ((1, 2, 3, 4, 5), (1, 2, 3, 0, 0, 1), {"mode": "replicate"}),
        ((1, 2, 3, 4, 5), (1, 2, 3, 0, 0, 1), {"mode": "reflect"} if not is_old else {"mode": "circular"}),
        ((2, 3, 5, 7), (7, 2, 0, 5), {"mode": "circular"}),
        ((2, 3, 5, 7), (2, -3, -1, 2), {"mode": "circular"}),
    ],
    ids=str,
)
def test_borders(shape, pad, words):
    x = normal(shape)
    exact(lambda L, x: L.pad(x, pad, **words), x)
    both(lambda L, x: L.pad(x, pad, **words), x)
    assert torch.equal(K.pad(x.half(), pad, **words), F.pad(x.half().float(), pad, **words).half())
    if x.dim() == 4:
        last = x.contiguous(memory_format=torch.channels_last)
        both(lambda L, x: L.pad(x, pad, **words).contiguous(), last)
        assert K.pad(last, pad, **words).is_contiguous(memory_format=torch.channels_last)
        both(lambda L, x: L.pad(x[:, 1:, ::2].transpose(2, 3), pad, **words).contiguous(), normal(2, 4, 14, 7))


def test_borders_of_nothing():
    exact(lambda L, x: L.pad(x, (1, 2), value=3), normal(0, 4))
    both(lambda L, x: L.pad(x, (1, 2, 2, 0), value=3), normal(2, 0, 4))
    exact(lambda L, x: L.pad(x, (1, 1), mode="reflect"), normal(0, 3, 4))


def test_borders_of_integers():
    for dtype, value in ((torch.int32, -7), (torch.uint8, 200), (torch.int8, -128)):
        exact(lambda L, x: L.pad(x, (1, 2), value=value), torch.arange(6).view(2, 3).to(dtype))


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pixels_of_channels(factor):
    x = normal(2, 18 * factor, 2, 3) if factor != 2 else normal(2, 8, 2, 3)
    x = x[:, : x.shape[1] // factor**2 * factor**2]
    for given in (x, x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3), x[0], x.bfloat16()):
        both(lambda L, x: L.pixel_shuffle(x, factor), given)
    y = normal(2, 3, 2 * factor, 3 * factor)
    for given in (y, y.contiguous(memory_format=torch.channels_last), y[1], y.view(2, 1, 3, *y.shape[2:])):
        both(lambda L, x: L.pixel_unshuffle(x, factor), given)
    both(lambda L, x: L.pixel_shuffle(x, 2), normal(3, 4, 2, 2).contiguous(memory_format=torch.channels_last))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss(reduction):
    targets, weights = torch.tensor([1, 3, 0, 2, -100]), torch.tensor([1.0, 2.0, 0.5, 4.0])
    logs = normal(5, 4).log_softmax(1)
    both(lambda L, x: L.nll_loss(x, targets, reduction=reduction), logs)
    both(lambda L, x: L.nll_loss(x, targets[:4], weights, None, 2, None, reduction), logs[:4])
    places = torch.tensor([[[1, 3]], [[0, 2]]])
    words = {"weight": weights, "ignore_index": 2, "reduction": reduction}
    both(lambda L, x: L.nll_loss(x, places, **words), normal(2, 4, 1, 2))
    both(lambda L, x: L.nll_loss(x, places.view(2, 2), **words), normal(2, 4, 2))
    both(lambda L, x: L.nll_loss(x, places.reshape(2, 1, 2, 1, 1), **words), normal(2, 4, 1, 2, 1, 1))
    both(lambda L, x: L.nll_loss(x, torch.tensor(2), reduction=reduction), normal(4))
    both(lambda L, x: L.nll_loss(x, targets, weights.to(x.dtype), reduction=reduction), logs.bfloat16(), in_f32=True)


def test_nll_loss_of_nothing_and_of_no_class():
    x, targets = normal(2, 3), torch.tensor([-100, -100])
    torch.testing.assert_close(K.nll_loss(x, targets), F.nll_loss(x, targets), equal_nan=True)
    with pytest.raises(kiln.InvalidArgument, match="the target 7 is no class of 3"):
        K.nll_loss(x, torch.tensor([0, 7]))


REFUSED = {
    "antialias": lambda L: L.interpolate(normal(1, 2, 8, 8), 4, mode="bilinear", antialias=True),
    "bytes": lambda L: L.interpolate(torch.ones(1, 1, 2, 2, dtype=torch.uint8), 3, mode="bilinear"),
    "double image": lambda L: L.interpolate(normal(1, 2, 4, 4).double(), 6),
    "area": lambda L: L.interpolate(normal(1, 2, 5, 5), 3, mode="area"),
    "near scale": lambda L: L.interpolate(normal(1, 3, 5, 7), scale_factor=(1.1, 1.0)),
    "far scale": lambda L: L.interpolate(normal(1, 1, 2), scale_factor=200.0),
    "double table": lambda L: L.embedding(torch.tensor([1]), normal(3, 2).double()),
    "max_norm": lambda L: L.embedding(torch.tensor([1]), normal(3, 2), max_norm=0.5),
    "sparse": lambda L: L.embedding(torch.tensor([1]), normal(3, 2).requires_grad_(), sparse=True),
    "long pad": lambda L: L.pad(torch.arange(4), (1, 1)),
    "flags": lambda L: L.pad(torch.ones(4, dtype=torch.bool), (1, 1), value=1),
    "no pads": lambda L: L.pad(normal(2), ()),
    "only taken away": lambda L: L.pad(normal(2, 4), (-1, -2)),
    "no pixels": lambda L: L.pixel_unshuffle(normal(0, 8, 4, 6), 2),
    "complex pixels": lambda L: L.pixel_shuffle(normal(1, 4, 2, 2).to(torch.cfloat), 2),
    "no rows": lambda L: L.nll_loss(normal(0, 3), torch.zeros(0, dtype=torch.long), reduction="sum"),
    "size_average": lambda L: L.nll_loss(normal(2, 3), torch.tensor([1, 0]), size_average=False),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_pytorch_computes(name):
    call = REFUSED[name]
    torch.manual_seed(2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call(F)
    except RuntimeError:  # PyTorch 1.13 has no bytes there
        pytest.skip("this PyTorch does not have it either")
    with pytest.raises((kiln.Unsupported, kiln.InvalidArgument)):
        call(K)
    torch.manual_seed(2)
    with kiln.torch.enabled() as places, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(call(F), expected)
    moves_labels = name in ("long pad", "flags")  # which is no layer
    assert bool(places.on_pytorch) != moves_labels


WRONG = {
    "both": lambda: F.interpolate(normal(1, 2, 4), 3, 2.0),
    "none": lambda: F.interpolate(normal(1, 2, 4)),
    "rank": lambda: F.interpolate(normal(1, 2, 4), 3, mode="bilinear"),
    "corners": lambda: F.interpolate(normal(1, 2, 4), 3, align_corners=True),
    "sizes": lambda: F.interpolate(normal(1, 2, 4, 4), (3, 3, 3)),
    "nothing": lambda: F.interpolate(normal(1, 2, 4, 4), scale_factor=0.1),
    "channels": lambda: F.interpolate(normal(1, 0, 4, 4), 3),
    "padding_idx": lambda: F.embedding(torch.tensor([0]), normal(3, 2), padding_idx=3),
    "table": lambda: F.embedding(torch.tensor([0]), normal(3, 2, 1), max_norm=1.0),
    "floats": lambda: F.embedding(normal(2), normal(3, 2)),
    "odd": lambda: F.pad(normal(3, 4), (1, 2, 3)),
    "long": lambda: F.pad(normal(4), (1, 2, 3, 4)),
    "mirror": lambda: F.pad(normal(1, 2, 4), (4, 0), "reflect"),
    "mirror of four axes": lambda: F.pad(normal(2, 3, 3, 3, 3), (1,) * 8, "reflect"),
    "wrap": lambda: F.pad(normal(1, 2, 4), (5, 0), "circular"),
    "away": lambda: F.pad(normal(1, 2, 4), (-3, -2)),
    "mode": lambda: F.pad(normal(1, 2, 4), (1, 1), "mirror"),
    "no channels": lambda: F.pad(normal(2, 0, 3, 3), (1, 1, 1, 1), "reflect"),
    "nan of integers": lambda: F.pad(torch.ones(4, dtype=torch.int32), (1, 1), value=float("nan")),
    "inf of integers": lambda: F.pad(torch.ones(4, dtype=torch.int32), (1, 1), value=float("inf")),
    "factor": lambda: F.pixel_shuffle(normal(1, 6, 2, 2), 2),
    "blocks": lambda: F.pixel_unshuffle(normal(1, 1, 3, 2), 2),
    "class": lambda: F.nll_loss(normal(2, 3), torch.tensor([0, 3])),
    "rows": lambda: F.nll_loss(normal(2, 3), torch.tensor([0, 1, 2])),
    "weights": lambda: F.nll_loss(normal(2, 3), torch.tensor([0, 1]), torch.ones(4)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_pytorch_s_error(name):
    with pytest.raises(Exception) as raised:  # of the type that this PyTorch has
        WRONG[name]()
    with kiln.torch.enabled(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(raised.type):
            WRONG[name]()


def test_modules_run_on_kiln():
    net = torch.nn.Sequential(
        torch.nn.ReflectionPad2d(2),
        torch.nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"),
        torch.nn.PixelShuffle(2),
        torch.nn.Upsample(scale_factor=1.5, mode="bilinear"),
        torch.nn.ConstantPad2d((0, 1, -1, 0), 0.5),
        torch.nn.LogSoftmax(1),
    )
    x, targets = normal(2, 3, 6, 5), torch.randint(0, 2, (2, 29, 28))
    expected = F.nll_loss(net(x), targets)
    kiln.torch.optimize(net, strict=True)
    with kiln.torch.enabled(strict=True) as places:
        loss = torch.nn.NLLLoss()(net(x), targets)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    loss.backward()
    ran = [row.function for row in kiln.torch.report(net)] + [row.function for row in places]
    assert set(ran) >= {"pad", "conv2d", "pixel_shuffle", "interpolate", "log_softmax", "nll_loss"}
    tokens = kiln.torch.optimize(torch.nn.Embedding(9, 4, padding_idx=0), strict=True)
    tokens(torch.tensor([[0, 8]])).sum().backward()
    assert (tokens.weight.grad[0] == 0).all() and (tokens.weight.grad[8] == 1).all()
