"""Functions of kiln.torch.functional and their gradients, on shapes that are awkward."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from comparison import compare  # noqa: E402

import kiln  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

normal = torch.randn


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def both(call, *tensors, **options):
    compare(lambda *given: call(K, *given), lambda *given: call(F, *given), *tensors, **options)


@pytest.mark.parametrize(
    "x, w, words",
    [
        ((2, 3, 9, 7), (4, 3, 3, 3), {"stride": (2,), "padding": 1}),
        ((1, 3, 11, 5), (5, 3, 3, 2), {"padding": "same", "dilation": (2, 1)}),
        ((2, 4, 7, 7), (6, 2, 3, 3), {"groups": 2, "stride": (3, 1), "padding": (0, 2)}),
        ((3, 8, 8), (4, 3, 1, 1), {}),
        ((2, 3, 13), (4, 3, 5), {"stride": 3}),
        ((1, 2, 5, 6, 4), (3, 2, 2, 3, 1), {"padding": (1, 0, 0)}),
        ((0, 3, 5, 5), (2, 3, 3, 3), {}),
    ],
    ids=str,
)
def test_convolutions(x, w, words):
    axes = len(w) - 2
    both(lambda L, *given: getattr(L, f"conv{axes}d")(*given, **words), normal(x), normal(w), normal(w[0]))


@pytest.mark.parametrize(
    "x, w, words",
    [
        ((2, 4, 5, 4), (4, 3, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
        ((1, 4, 3, 5), (4, 2, 2, 3), {"groups": 2, "dilation": (1, 2)}),
        ((3, 7), (3, 2, 4), {"stride": 3}),
        ((1, 2, 3, 2, 3), (2, 3, 2, 2, 2), {"stride": (2, 1, 2)}),
    ],
    ids=str,
)
def test_transposed_convolutions(x, w, words):
    axes, channels = len(w) - 2, w[1] * words.get("groups", 1)
    call = f"conv_transpose{axes}d"
    both(lambda L, *given: getattr(L, call)(*given, **words), normal(x), normal(w), normal(channels))


def test_output_padding_beyond_the_stride_is_pytorch_s():
    def call(L):
        return L.conv_transpose1d(normal(1, 2, 5), normal(2, 3, 2), stride=2, dilation=3, output_padding=2)

    assert call(F).shape == (1, 3, 14)
    with pytest.raises(kiln.Unsupported, match="output_padding has to be less than the stride"):
        call(K)
    with pytest.raises(kiln.InvalidArgument, match="output_padding is 3"):
        K.conv_transpose1d(normal(1, 2, 5), normal(2, 3, 2), stride=2, dilation=3, output_padding=3)


def local_conv(x, w, b, grid=None, stride=1, padding=0, dilation=1, groups=1):
    """A convolution by the filters of each region, of which the outputs of that region are taken."""
    images = x if x.dim() == w.dim() - 1 else x.unsqueeze(0)
    conv = getattr(F, f"conv{w.dim() - 3}d")
    every = torch.stack([conv(images, filters, b, stride, padding, dilation, groups) for filters in w])
    outputs = every.shape[3:]
    grid = outputs if grid is None else grid
    region = torch.zeros(outputs, dtype=torch.long)
    for axis, (regions, extent) in enumerate(zip(grid, outputs)):
        shape = [-1 if i == axis else 1 for i in range(len(outputs))]
        region = region * regions + (torch.arange(extent) * regions // extent).view(shape)
    y = every.gather(0, region.expand(1, *every.shape[1:])).squeeze(0)
    return y if x is images else y.squeeze(0)


@pytest.mark.parametrize(
    "x, w, words",
    [
        ((2, 3, 5, 4), (9, 4, 3, 3, 2), {"padding": (1, 0), "stride": (2, 1)}),
        ((3, 4, 7, 7), (6, 4, 2, 3, 3), {"grid": (2, 3), "groups": 2, "padding": 1}),
        ((4, 6), (5, 2, 4, 2), {}),
        ((1, 2, 4, 5, 3), (4, 3, 2, 2, 2, 2), {"grid": (1, 2, 2), "dilation": (1, 2, 1)}),
        ((2, 1, 4, 4), (1, 2, 1, 2, 2), {"grid": (1, 1)}),
    ],
    ids=str,
)
def test_local_convolutions(x, w, words):
    call = getattr(K, f"local_conv{len(w) - 3}d")
    compare(
        lambda *given: call(*given, **words),
        lambda *given: local_conv(*given, **words),
        *(normal(x), normal(w), normal(w[1])),
    )


def test_local_convolutions_without_bias_in_half_precision_and_with_channels_last():
    x, w = normal(2, 4, 6, 5), normal(20, 3, 4, 2, 2)
    compare(lambda x, w: K.local_conv2d(x, w), lambda x, w: local_conv(x, w, None), x, w)
    compare(lambda x, w: K.local_conv2d(x, w), lambda x, w: local_conv(x, w, None), x.half(), w.half(), in_f32=True)
    last = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    y = K.local_conv2d(last, w)
    y.sum().backward()
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert last.grad.is_contiguous(memory_format=torch.channels_last)


def test_local_convolutions_have_second_gradients():
    x, w = normal(1, 2, 4, 4, requires_grad=True), normal(9, 2, 2, 2, 2, requires_grad=True)

    def penalty(call):
        first = torch.autograd.grad(call(x, w).square().sum(), (x, w), create_graph=True)
        return torch.autograd.grad(sum(each.square().sum() for each in first), (x, w))

    for mine, other in zip(penalty(K.local_conv2d), penalty(lambda x, w: local_conv(x, w, None))):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    "w, words, message",
    [
        ((8, 4, 3, 3, 3), {}, "weight has filters for 8 regions.*3x3"),
        ((6, 4, 3, 3, 3), {"grid": (2, 2)}, "weight has filters for 6 regions.*2x2"),
        ((4, 3, 3, 3), {}, "takes a weight of 5 dimensions"),
        ((9, 4, 3, 7, 3), {}, "larger than the padded input"),
        ((9, 4, 3, 3, 6), {}, "larger than the padded input"),
        ((9, 4, 3, 3, 3), {"grid": 0}, "grid is 0"),
    ],
    ids=str,
)
def test_local_convolutions_refuse_what_does_not_fit(w, words, message):
    with pytest.raises(kiln.InvalidArgument, match=message):
        K.local_conv2d(normal(2, 3, 5, 5), normal(w), **words)


def divisive_norm(x, size, means=None, alpha=1e-4, beta=0.75, k=2.0, dim=(-2, -1)):
    squares = x.square() if means is None else (x - means).square()
    for axis in dim:
        rows = squares.movedim(axis, -1)
        rows = F.pad(rows, ((size - 1) // 2, size // 2)).unfold(-1, size, 1).sum(-1)
        squares = rows.movedim(-1, axis)
    return x / (k + alpha / size ** len(dim) * squares) ** beta


@pytest.mark.parametrize("dim", [(-2, -1), (1,), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("size", [3, 4])
def test_divisive_normalisation(size, dim):
    words = {"size": size, "alpha": 0.5, "beta": 0.6, "k": 1.5, "dim": dim}
    x, means = normal(2, 3, 5, 4), normal(2, 3, 5, 4)
    compare(lambda x: K.divisive_norm(x, **words), lambda x: divisive_norm(x, **words), x)
    compare(
        lambda x, m: K.divisive_norm(x, means=m, **words), lambda x, m: divisive_norm(x, means=m, **words), x, means
    )


def test_divisive_normalisation_refuses_what_does_not_fit():
    x = normal(2, 3, 4)
    for words in ({"means": normal(3, 4)}, {"dim": (3,)}, {"dim": (1, 1)}, {"dim": ()}, {"size": 0}):
        with pytest.raises(kiln.InvalidArgument):
            K.divisive_norm(x, **{"size": 3, **words})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(dtype):
    x, w, b = normal(2, 3, 9, 7).to(dtype), normal(4, 3, 3, 3).to(dtype), normal(4).to(dtype)
    both(lambda L, *given: L.conv2d(*given, padding=1), x, w, b, in_f32=True)
    both(lambda L, x: L.softmax(x, -1), x, in_f32=True)
    both(lambda L, x: L.gelu(x), x, in_f32=True)


def test_channels_last_stay_last():
    x = normal(2, 3, 9, 7).contiguous(memory_format=torch.channels_last)
    both(lambda L, *given: L.relu(L.conv2d(*given, stride=2)), x, normal(4, 3, 3, 3))
    both(lambda L, x: L.max_pool2d(x, 2), x)
    both(lambda L, x: L.avg_pool2d(x, 2), x)
    both(lambda L, x, w, b: L.batch_norm(x, None, None, w, b, True), x, normal(3), normal(3))
    w = normal(4, 3, 3, 3).contiguous(memory_format=torch.channels_last)
    y = K.conv2d(normal(2, 3, 9, 7), w.requires_grad_())
    y.sum().backward()
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert w.grad.is_contiguous(memory_format=torch.channels_last)


def test_tensors_with_gaps():
    x, w = normal(2, 6, 9, 14)[:, ::2, :, ::2], normal(3, 3, 3, 8)[..., ::3]
    both(lambda L, *given: L.conv2d(*given), x, w)
    both(lambda L, x: L.softmax(x, 1), x)
    both(lambda L, x: L.max_pool2d(x, 3, 2, 1), x)


def test_an_epilogue_in_the_kernel():
    x, w, b, r = normal(2, 3, 9, 7), normal(4, 3, 3, 3), normal(4), normal(2, 4, 9, 7)
    compare(
        lambda x, w, b, r: K.conv2d(x, w, b, padding=1, residual=r, activation="relu"),
        lambda x, w, b, r: F.relu(F.conv2d(x, w, b, padding=1) + r),
        *(x, w, b, r),
    )
    compare(
        lambda x, w, b: K.conv2d(x, w, b, padding=1, activation=("leaky_relu", 0.3)),
        lambda x, w, b: F.leaky_relu(F.conv2d(x, w, b, padding=1), 0.3),
        *(x, w, b),
    )
    s = torch.rand(4)
    with torch.no_grad():
        y = K.conv2d(x, w, b, padding=1, scale=s, residual=r, activation="silu")
        expected = F.silu(F.conv2d(x, w, padding=1) * s[:, None, None] + b[:, None, None] + r)
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
        y = K.linear(x, normal(5, 7), scale=torch.rand(5), activation="gelu")
        assert y.shape == (2, 3, 9, 5)
    with pytest.raises(kiln.Unsupported, match="no gradient through a scale"):
        K.conv2d(x, w.requires_grad_(), scale=s)


def test_an_epilogue_of_a_transposed_convolution():
    x, w, b, r = normal(2, 4, 5, 4), normal(4, 3, 3, 3), normal(3), normal(2, 3, 7, 6)
    compare(
        lambda x, w, b, r: K.conv_transpose2d(x, w, b, residual=r, activation="relu"),
        lambda x, w, b, r: F.relu(F.conv_transpose2d(x, w, b) + r),
        *(x, w, b, r),
    )


def test_an_epilogue_of_a_linear_layer():
    x, w, b, s, r = normal(2, 3, 7), normal(5, 7), normal(5), torch.rand(5), normal(2, 3, 5)
    with torch.no_grad():
        y = K.linear(x, w, b, scale=s, residual=r, activation="silu")
    torch.testing.assert_close(y, F.silu(F.linear(x, w) * s + b + r), rtol=1e-4, atol=1e-4)
    compare(
        lambda x, w, r: K.linear(x, w, residual=r, activation="relu"),
        lambda x, w, r: F.relu(F.linear(x, w) + r),
        *(x, w, r),
    )


def test_a_residual_without_a_batch_that_alone_requires_a_gradient():
    x, w = normal(3, 5, 5), normal(2, 3, 3, 3)
    compare(
        lambda r: K.conv2d(x, w, residual=r, activation="silu"), lambda r: F.silu(F.conv2d(x, w) + r), normal(2, 3, 3)
    )


@pytest.mark.parametrize(
    "a, b",
    [
        ((5, 7), (7, 3)), ((4, 1, 2, 7), (5, 7, 3)), ((7,), (2, 7, 3)), ((2, 3, 7), (7,)), ((2, 2, 7), (7, 1)),
        ((2, 1, 1, 3, 2, 4), (1, 2, 1, 1, 4, 3)),
    ],
    ids=str,
)  # fmt: skip
def test_products(a, b):
    compare(K.matmul, torch.matmul, normal(a), normal(b))


def test_fully_connected_layers_and_scaled_products():
    both(lambda L, *given: L.linear(*given), normal(5, 2, 7), normal(3, 7), normal(3))
    both(lambda L, *given: L.linear(*given), normal(7), normal(1, 7))
    compare(lambda x, w, b: K.linear(x, w, b), lambda x, w, b: x @ w + b, normal(3, 7), normal(7), normal(()))
    for name, shapes in (("addmm", ((3,), (2, 7), (7, 3))), ("baddbmm", ((2, 1, 3), (2, 4, 5), (2, 5, 3)))):
        compare(
            lambda *given, name=name: getattr(K, name)(*given, beta=0.5, alpha=2.0),
            lambda *given, name=name: getattr(torch, name)(*given, beta=0.5, alpha=2.0),
            *map(normal, shapes),
        )
        nothing, *factors = torch.full(shapes[0], float("nan")), *map(normal, shapes[1:])
        torch.testing.assert_close(
            getattr(K, name)(nothing, *factors, beta=0), torch.matmul(*factors), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("shape", [(3,), (1,), (), (2, 3), (2, 1), (1, 3)], ids=str)
def test_what_addmm_adds_repeats(shape):
    compare(K.addmm, torch.addmm, normal(shape), normal(2, 7), normal(7, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda L, x: L.max_pool2d(x, 3, 2, 1),
        lambda L, x: L.max_pool2d(x, (2, 3), 2, 0, (2, 1), ceil_mode=True),
        lambda L, x: L.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)[0],
        lambda L, x: L.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda L, x: L.avg_pool2d(x, 2, []),
        lambda L, x: L.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda L, x: L.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5),
        lambda L, x: L.adaptive_avg_pool2d(x, (5, None)),
        lambda L, x: L.adaptive_max_pool2d(x, 1),
        lambda L, x: L.max_pool1d(x[0], 4),
        lambda L, x: L.avg_pool3d(x, (1, 2, 2)),
    ],
)
def test_pooling(call):
    both(call, normal(2, 3, 10, 7))


def test_indices_of_maxima_and_unpooling():
    x = normal(2, 3, 8, 7)
    x[0, 0, 0, 0] = float("nan")
    y, indices = K.max_pool2d(x, 2, return_indices=True)
    expected, places = F.max_pool2d(x, 2, return_indices=True)
    assert indices.dtype == torch.int64 and (indices == places).all()
    torch.testing.assert_close(y, expected, equal_nan=True)
    both(lambda L, y: L.max_unpool2d(y, indices, 2, output_size=(8, 7)), normal(y.shape))
    with pytest.raises(kiln.Unsupported, match="overlap"):
        K.max_unpool2d(y, indices, 2, 1)
    with pytest.raises(kiln.Unsupported, match="outside of their windows"):
        K.max_unpool2d(y, indices.flip(-1), 2, output_size=(8, 7))
    _, places = F.max_pool1d(x[0, :, 1], 3, padding=1, return_indices=True)
    both(lambda L, y: L.max_unpool1d(y, places, 3, padding=1), normal(places.shape))


@pytest.mark.parametrize("call", [lambda L, x: L.max_pool2d(x, 3, 2, 1, return_indices=True),
                                  lambda L, x: L.adaptive_max_pool2d(x, (4, 1), return_indices=True)])  # fmt: skip
def test_indices_without_a_batch(call):
    x = normal(3, 8, 7)
    for mine, expected in zip(call(K, x), call(F, x)):
        torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda L, x: L.conv2d(x, torch.ones(4, 3, 3, 3), stride=0), "stride is 0 .give 1 or more"),
        (lambda L, x: L.conv2d(x, torch.ones(4, 3, 3, 3), padding=-1), "padding is -1 .give 0 or more"),
        (lambda L, x: L.conv2d(x, torch.ones(4, 3, 3, 3), dilation=(1, 0)), "dilation is .1, 0. .give 1 or more"),
        (lambda L, x: L.avg_pool2d(x, 0), "kernel_size is 0 .give 1 or more"),
        (lambda L, x: L.max_pool2d(x, 2, stride=0), "stride is 0 .give 1 or more"),
        (lambda L, x: L.batch_norm(x, torch.zeros(2), torch.ones(2)), "running_mean has the shape .2,. .give a number"),
        (lambda L, x: L.batch_norm(x, None, None, torch.ones(4), training=True), "weight has the shape .4,."),
    ],
)
def test_numbers_that_make_no_sense_are_refused_here_and_by_pytorch_in_a_model(call, said):
    x = normal(2, 3, 8, 8)
    with pytest.raises(kiln.InvalidArgument, match=said):
        call(K, x)
    with pytest.raises(RuntimeError) as expected:
        call(F, x)
    with pytest.raises(RuntimeError) as raised, kiln.torch.enabled():
        call(F, x)
    assert not isinstance(raised.value, kiln.Error) and str(raised.value) == str(expected.value)


def test_a_padding_of_more_than_half_of_the_window_is_refused():
    with pytest.raises(kiln.InvalidArgument, match="padding is .*half of the kernel's size"):
        K.avg_pool2d(normal(1, 2, 5, 5), 2, padding=2)


def test_softmax_of_any_rank_and_rows_without_a_result():
    both(lambda L, x: L.softmax(x, -2), normal(2, 3, 5))
    both(lambda L, x: L.log_softmax(x, 3), normal(1, 2, 1, 3, 2, 2))
    both(lambda L, x: L.softmax(x, 0), normal(()))
    both(lambda L, x: L.softmax(x, 1, dtype=torch.float32), normal(2, 3).bfloat16())
    x = normal(3, 4)
    x[0, 1], x[1, 2], x[2] = float("inf"), float("nan"), -float("inf")
    torch.testing.assert_close(K.softmax(x, 1), F.softmax(x, 1), equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(reduction):
    targets, weights = torch.tensor([1, 3, 0, 2, -100]), torch.tensor([1.0, 2.0, 0.5, 4.0])
    both(lambda L, x: L.cross_entropy(x, targets, reduction=reduction), normal(5, 4))
    words = {"weight": weights, "ignore_index": 2, "label_smoothing": 0.1, "reduction": reduction}
    places = torch.tensor([[[1, 3]], [[0, 2]]])
    both(lambda L, x: L.cross_entropy(x, places, **words), normal(2, 4, 1, 2))
    both(lambda L, x: L.cross_entropy(x, torch.tensor(2), reduction=reduction), normal(4))
    places = places.reshape(2, 1, 2, 1, 1)
    both(lambda L, x: L.cross_entropy(x, places, weights.to(x.dtype)), normal(2, 4, 1, 2, 1, 1).bfloat16(), in_f32=True)


def test_cross_entropy_of_nothing():
    x, targets = normal(2, 3), torch.tensor([-100, -100])
    torch.testing.assert_close(K.cross_entropy(x, targets), F.cross_entropy(x, targets), equal_nan=True)
    with pytest.raises(kiln.InvalidArgument, match="the target 7 is no class of 3"):
        K.cross_entropy(x, torch.tensor([0, 7]))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (4, 3), (1, 1, 2, 3, 2)], ids=str)
def test_batch_norm(shape, training):
    running = {}

    def call(L, *given):
        running[L] = torch.full((shape[1],), 0.5), torch.full((shape[1],), 2.0)
        return L.batch_norm(given[0], *running[L], *given[1:], training=training, momentum=0.3, eps=0.1)

    both(call, normal(shape), normal(shape[1]), normal(shape[1]))
    for mine, theirs in zip(running[K], running[F]):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["relu", "silu"])
def test_batch_norm_with_an_epilogue(name, training):
    given = normal(2, 3, 5, 7), normal(3), normal(3), normal(2, 3, 5, 7)
    compare(
        lambda x, w, b, r: K.batch_norm(x, torch.zeros(3), torch.ones(3), w, b, training, residual=r, activation=name),
        lambda x, w, b, r: getattr(F, name)(F.batch_norm(x, torch.zeros(3), torch.ones(3), w, b, training) + r),
        *given,
    )


def test_running_statistics_of_half_precision():
    mean, variance = torch.zeros(3).bfloat16(), torch.ones(3).bfloat16()
    x = normal(4, 3, 5)
    K.batch_norm(x, mean, variance, training=True)
    torch.testing.assert_close(mean, (0.1 * x.mean((0, 2))).bfloat16(), rtol=1e-2, atol=1e-2)
    with pytest.raises(kiln.InvalidArgument, match="one value per channel"):
        K.batch_norm(normal(1, 3), None, None, training=True)


@pytest.mark.parametrize(
    "call, shapes",
    [
        (lambda L, x, w, b: L.layer_norm(x, (5, 7), w, b, 0.1), ((2, 3, 5, 7), (5, 7), (5, 7))),
        (lambda L, x, b: L.layer_norm(x, (7,), None, b), ((3, 7), (7,))),
        (lambda L, x, w: L.layer_norm(x, (2, 3, 1, 2), w), ((2, 2, 3, 1, 2), (2, 3, 1, 2))),
        (lambda L, x: L.layer_norm(x, (3,)), ((2, 1, 2, 1, 1, 2, 3),)),
        (lambda L, x: L.layer_norm(x, (7,)), ((1, 3, 7),)),
        (lambda L, x, w, b: L.group_norm(x, 2, w, b, 0.1), ((2, 4, 5, 3), (4,), (4,))),
        (lambda L, x: L.group_norm(x, 3), ((2, 3, 7),)),
        (lambda L, x, w, b: L.instance_norm(x, None, None, w, b, eps=0.1), ((2, 4, 5, 3), (4,), (4,))),
        (lambda L, x: L.local_response_norm(x, 3, 0.01, 0.6, 2.0), ((2, 5, 3, 2),)),
    ],
    ids=lambda given: str(given) if isinstance(given, tuple) else "",
)
def test_normalisations(call, shapes):
    both(call, *map(normal, shapes))


def test_rms_norm():
    compare(
        lambda x, w: K.rms_norm(x, (7,), w, 1e-6),
        lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
        *(normal(2, 3, 7), normal(7)),
    )
    x = 3e-4 * normal(3, 7)  # as small as the default epsilon is
    expected = x * (x.square().mean(-1, keepdim=True) + torch.finfo(torch.float32).eps).rsqrt()
    torch.testing.assert_close(K.rms_norm(x, (7,)), expected, rtol=1e-4, atol=1e-4)


def test_statistics_of_instances():
    x, running = normal(2, 3, 5), {L: (torch.zeros(3), torch.ones(3)) for L in (K, F)}
    for L in (K, F):
        L.instance_norm(x, *running[L])
    torch.testing.assert_close(running[K], running[F])
    both(lambda L, x: L.instance_norm(x, *running[L], use_input_stats=False, eps=0.1), x)


ACTIVATIONS = {
    "relu": (), "relu6": (), "leaky_relu": (0.2,), "elu": (0.7,), "selu": (), "celu": (0.6,), "gelu": (), "silu": (),
    "hardtanh": (-0.5, 0.7), "hardswish": (), "hardsigmoid": (), "softplus": (2.0, 0.3), "mish": (), "softsign": (),
    "logsigmoid": (), "tanhshrink": (), "softshrink": (0.3,), "hardshrink": (0.3,), "threshold": (0.1, 0.4),
    "sigmoid": (), "tanh": (),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    both(lambda L, x: getattr(L, name)(x, *ACTIVATIONS[name]), 3 * normal(3, 5, 7))
    x = torch.tensor([float("inf"), -float("inf"), 0.0, -1.0, 1.0])
    if name in ("gelu", "silu", "mish", "hardswish"):  # Kiln gives the limits; PyTorch multiplies infinity by 0
        assert getattr(K, name)(x)[:2].tolist() == [float("inf"), 0]
        x = x[2:]
    assert getattr(K, name)(torch.tensor([float("nan")]), *ACTIVATIONS[name]).isnan()
    torch.testing.assert_close(
        getattr(K, name)(x, *ACTIVATIONS[name]), getattr(F, name)(x, *ACTIVATIONS[name]), equal_nan=True
    )


@pytest.mark.parametrize(
    "name, numbers",
    [("hardtanh", (-0.5, 0.5)), ("softshrink", (0.5,)), ("hardshrink", (0.5,)), ("threshold", (0.5, 0.4))],
)
def test_gradients_where_an_activation_has_a_corner(name, numbers):
    both(lambda L, x: getattr(L, name)(x, *numbers), torch.tensor([-0.5, 0.0, 0.5]))


def test_every_activation_of_the_table_is_an_epilogue():
    from kiln.torch.functional._arguments import named_activation
    from kiln.torch.functional.activation import activated
    from kiln.torch.operators._activations import ACTIVATIONS as table

    x, w = normal(1, 2, 4, 4), normal(3, 2, 3, 3)
    for name in table:
        with torch.no_grad():
            fused = K.conv2d(x, w, activation=name)
        torch.testing.assert_close(fused, activated(K.conv2d(x, w), *named_activation(name)), rtol=1e-4, atol=1e-5)


def test_dropout_repeats_by_the_seed_of_pytorch():
    x = normal(4, 50).requires_grad_()
    torch.manual_seed(3)
    first = K.dropout(x, 0.3)
    torch.manual_seed(3)
    assert (K.dropout(x, 0.3) == first).all() and (K.dropout(x, 0.3) != first).any()
    first.backward(torch.ones_like(first))
    torch.testing.assert_close(x.grad * x, first)
    assert K.dropout(x, training=False) is x and (K.dropout(x, 1.0) == 0).all()


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_of_nothing_or_all_draws_nothing(p, inplace):
    x = normal(4, 5)
    x[0, 0] = float("nan")
    state = torch.get_rng_state()
    y = K.dropout(x.clone(), p, True, inplace)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(y, F.dropout(x.clone(), p, True, inplace), equal_nan=True)
    assert K.dropout(normal(0, 3), 0.5).shape == (0, 3)
    both(lambda L, x: L.dropout(x, p), normal(4, 5))


def test_in_place():
    for leaf in (normal(5), normal(5).requires_grad_()):
        x = leaf * 1
        expected = F.silu(x.detach())
        y = K.silu(x, inplace=True)
        assert y is x
        torch.testing.assert_close(x.detach(), expected)
        if leaf.requires_grad:
            y.sum().backward()
            assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (2, 0, 3), (2, 5, 3)])
@pytest.mark.parametrize("outputs", [0, 4])
def test_layers_of_no_rows_or_no_outputs_have_gradients(shape, outputs):
    both(lambda L, x, w, b: L.linear(x, w, b), normal(*shape), normal(outputs, 3), normal(outputs))
