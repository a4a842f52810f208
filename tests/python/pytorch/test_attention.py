"""Attention of PyTorch: as functions of kiln.torch, and in nn.MultiheadAttention and the layers of transformers."""

import copy
import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from comparison import copies  # noqa: E402
from torch import nn  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402
from kiln.torch.operators import attention as operators  # noqa: E402

try:  # functorch until PyTorch 2.0
    from torch.func import grad, jvp, vmap
except ImportError:
    from functorch import grad, jvp, vmap

HEADS, M, L, D = 4, 3, 5, 8
SEEN = torch.arange(2 * HEADS * M * L).view(2, HEADS, M, L) % 3 != 1
SEEN[1, :, 2] = False  # rows that see no key
FLOATS = torch.linspace(-2, 2, 2 * HEADS * M * L).view(2, HEADS, M, L)
has_function = hasattr(F, "scaled_dot_product_attention")
of_pytorch = pytest.mark.skipif(not has_function, reason="this PyTorch has no scaled_dot_product_attention")


def shared(x, heads):
    """Keys or values with a head for each of the queries."""
    repeated = x.unsqueeze(-3).expand(*x.shape[:-2], heads // x.shape[-3], *x.shape[-2:])
    return repeated.reshape(*x.shape[:-3], heads, *x.shape[-2:])


def reference(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """The function's definition, where queries without keys give 0."""
    if enable_gqa:
        k, v = (shared(each, q.shape[-3]) for each in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    seen = torch.ones_like(scores, dtype=torch.bool)
    if is_causal:
        seen = seen.tril()
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        hides = attn_mask == -torch.inf
        scores = scores + attn_mask.masked_fill(hides, 0.0).to(scores.dtype)
        seen = seen & ~hides
    sees = seen.any(-1, keepdim=True)
    scores = scores.masked_fill(~(seen | ~sees), -torch.inf)
    return torch.where(sees, scores.softmax(-1) @ v, torch.zeros((), dtype=v.dtype))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def inputs(q=(2, HEADS, M, D), k=(2, HEADS, L, D), v=None, mask=None):
    return [torch.randn(each) for each in (q, k, v or k, mask) if each is not None]


CALLS = {
    "images": (inputs(), lambda A, q, k, v: A(q, k, v)),
    "a matrix": (inputs((M, D), (L, D)), lambda A, q, k, v: A(q, k, v)),
    "heads": (inputs((2, M, D), (2, L, D), (2, L, 4)), lambda A, q, k, v: A(q, k, v)),
    "five dimensions": (inputs((2, 1, 2, M, D), (2, 3, 2, L, D)), lambda A, q, k, v: A(q, k, v)),
    "five dimensions and a mask": (
        inputs((2, 3, 2, M, 4), (2, 3, 2, L, 4), None, (3, 1, M, L)),
        lambda A, q, k, v, mask: A(q, k, v, mask),
    ),
    "values of another width": (inputs(v=(2, HEADS, L, 4)), lambda A, q, k, v: A(q, k, v)),
    "more queries than keys": (inputs(k=(2, HEADS, 2, D)), lambda A, q, k, v: A(q, k, v, is_causal=True)),
    "causal": (inputs(), lambda A, q, k, v: A(q, k, v, is_causal=True)),
    "many elements": (inputs((1, 2, M, 300), (1, 2, L, 300), (1, 2, L, 132)), lambda A, q, k, v: A(q, k, v)),
    "a scale": (inputs(), lambda A, q, k, v: A(q, k, v, scale=-0.75)),
    "heads that are inside": (
        inputs((2, M, HEADS, D), (2, L, HEADS, D)),
        lambda A, q, k, v: A(*(each.transpose(1, 2) for each in (q, k, v))),
    ),
    "parts of one tensor": (
        inputs((2, M, 3, HEADS, D), (1,))[:1],
        lambda A, x: A(*x.permute(2, 0, 3, 1, 4)),
    ),
    "images that repeat": (inputs((1, HEADS, M, D)), lambda A, q, k, v: A(q, k, v[:1])),
    "expanded queries": (inputs((HEADS, M, D)), lambda A, q, k, v: A(q.expand(2, HEADS, M, D), k, v)),
    "a head of keys": (inputs(k=(2, 1, L, D)), lambda A, q, k, v: A(q, k, v)),
    "a head of keys alone": (inputs(k=(2, 1, L, D), v=(2, HEADS, L, D)), lambda A, q, k, v: A(q, k, v)),
    "a head of queries": (inputs((2, 1, M, D)), lambda A, q, k, v: A(q, k, v)),
    "groups": (inputs(k=(2, 2, L, D)), lambda A, q, k, v: A(q, k, v, enable_gqa=True)),
    "groups of no images": (inputs((4, M, D), (2, L, D)), lambda A, q, k, v: A(q, k, v, enable_gqa=True)),
    "groups and a head of values": (
        inputs(k=(2, 2, L, D), v=(2, 1, L, D)),
        lambda A, q, k, v: A(q, k, v, enable_gqa=True, is_causal=True),
    ),
    "groups and a head of keys": (
        inputs(k=(2, 1, L, D), v=(2, 2, L, D)),
        lambda A, q, k, v: A(q, k, v, enable_gqa=True),
    ),
    "bools": (inputs(), lambda A, q, k, v: A(q, k, v, SEEN)),
    "bools of queries and keys": (inputs(), lambda A, q, k, v: A(q, k, v, SEEN[0, 0])),
    "bools of keys": (inputs(), lambda A, q, k, v: A(q, k, v, SEEN[:, :1, :1])),
    "bools that are expanded": (inputs(), lambda A, q, k, v: A(q, k, v, SEEN[:, :1].expand(2, HEADS, M, L))),
    "bools with gaps": (inputs(), lambda A, q, k, v: A(q, k, v, SEEN.mT.contiguous().mT)),
    "floats": (inputs(mask=(2, HEADS, M, L)), lambda A, q, k, v, mask: A(q, k, v, mask)),
    "floats of queries and keys": (inputs(mask=(M, L)), lambda A, q, k, v, mask: A(q, k, v, mask)),
    "floats of images": (inputs(mask=(2, 1, 1, L)), lambda A, q, k, v, mask: A(q, k, v, mask)),
    "floats of heads": (inputs(mask=(HEADS, M, L)), lambda A, q, k, v, mask: A(q, k, v, mask)),
    "floats that are expanded": (
        inputs(mask=(HEADS, 1, L)),
        lambda A, q, k, v, mask: A(q, k, v, mask.expand(2, HEADS, M, L)),
    ),
    "infinities": (inputs(), lambda A, q, k, v: A(q, k, v, FLOATS.masked_fill(~SEEN, -torch.inf)[:, :1])),
}


def with_gradients(function, tensors):
    result = function(*tensors)
    torch.manual_seed(2)
    result.backward(torch.randn(result.shape).to(result.dtype))
    return [result.detach(), *(each.grad for each in tensors)]


def close(mine, theirs, tolerance=1e-5):
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs):
        torch.testing.assert_close(one, other.to(one.dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_masks_of_the_lowest_number_hide_keys_and_leave_a_mean_where_they_hide_all(dtype):
    wide = 16  # elements that tensor cores take
    q, k, v = (each.to(dtype).requires_grad_() for each in inputs((2, 2, 20, wide), (2, 2, 40, wide)))
    lowest = torch.finfo(torch.float32).min
    mask = torch.zeros(2, 1, 20, 40)
    mask[0, :, :, 31:] = lowest
    mask[1, :, 3] = lowest
    dy = torch.randn(2, 2, 20, wide)
    dy[1, :, 3] = 0  # as the loss of padding is
    y = K.scaled_dot_product_attention(q, k, v, mask)
    y.backward(dy.to(dtype))
    doubles = [each.detach().double().requires_grad_() for each in (q, k, v)]
    expected = reference(*doubles, mask)
    torch.testing.assert_close(expected[1, :, 3], doubles[2][1].mean(-2))
    expected.backward(dy.to(dtype).double())
    bounds = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.02, "atol": 0.03}
    for got, wanted in [(y, expected), *((a.grad, b.grad) for a, b in zip((q, k, v), doubles, strict=True))]:
        torch.testing.assert_close(got.double(), wanted, **bounds)


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_are_pytorch_s(name):
    tensors, call = CALLS[name]
    mine = with_gradients(lambda *given: call(K.scaled_dot_product_attention, *given), copies(tensors))
    doubles = [each.double() for each in tensors]
    close(mine, with_gradients(lambda *given: call(reference, *given), copies(doubles)))
    if has_function and "another width" not in name:
        expected = call(F.scaled_dot_product_attention, *tensors)
        close(mine[:1], [expected])


def test_a_mask_that_repeats_in_memory_has_a_gradient_of_each_element():
    q, k, v = inputs()

    def gradients(function, dtype):
        mask = FLOATS[0, 0].to(dtype).expand(2, HEADS, M, L).requires_grad_()
        return with_gradients(lambda mask: function(*(each.to(dtype) for each in (q, k, v)), mask), [mask])

    close(gradients(K.scaled_dot_product_attention, torch.float32), gradients(reference, torch.float64))


def test_results_lie_in_memory_as_queries_do():
    def attended(*shape, order):
        q = torch.randn(*shape).permute(order)
        return K.scaled_dot_product_attention(q, q, q[..., :4])

    assert attended(2, M, HEADS, D, order=(0, 2, 1, 3)).transpose(1, 2).is_contiguous()
    assert attended(M, 2, HEADS, D, order=(1, 2, 0, 3)).permute(2, 0, 1, 3).is_contiguous()
    assert attended(2, HEADS, M, D, order=(0, 1, 2, 3)).is_contiguous()
    q = torch.randn(2, M, HEADS, D).transpose(1, 2).requires_grad_()
    K.scaled_dot_product_attention(q, q, q).sum().backward()
    assert q.grad.transpose(1, 2).is_contiguous()


def test_arguments_are_given_to_kiln_as_they_are():
    packed, seen = torch.randn(2, M, 3, HEADS, D), SEEN[:1, :1, :1, :M].expand(2, HEADS, M, M)
    with kt.record() as requests:
        K.scaled_dot_product_attention(*packed.permute(2, 0, 3, 1, 4), seen)
    (line,) = requests
    strides = f"{3 * M * HEADS * D},{D},{3 * HEADS * D},1"
    assert all(f"{name}=f32:2x{HEADS}x{M}x{D}:{strides}" in line for name in "qkv"), line
    assert f"mask=u8:1x1x1x{M}" in line and "lse" not in line


def test_nothing_gives_what_it_gives_pytorch():
    for images, heads, queries, keys in ((2, 2, 0, L), (2, 2, M, 0), (0, 2, M, L), (2, 0, M, L)):
        tensors = inputs((images, heads, queries, D), (images, heads, keys, D))
        mine = with_gradients(K.scaled_dot_product_attention, copies(tensors))
        close(mine, with_gradients(reference, copies(tensors)))


def of_orders(call, tensors):
    """Gradients of sines, and of their gradients."""
    result = call(*tensors)
    first = torch.autograd.grad(result.sin().sum(), tensors, create_graph=True)
    second = torch.autograd.grad(sum(each.sin().sum() for each in first), tensors, create_graph=True)
    third = torch.autograd.grad(sum(each.sin().sum() for each in second), tensors)
    return [each.detach() for each in (*first, *second, *third)]


TWICE = ("images", "groups and a head of values", "bools", "floats of heads", "infinities", "heads that are inside")


@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients(name):
    tensors, call = CALLS[name]
    mine = of_orders(lambda *given: call(K.scaled_dot_product_attention, *given), copies(tensors))
    doubles = copies([each.double() for each in tensors])
    close(mine, of_orders(lambda *given: call(reference, *given), doubles), 1e-4)


@pytest.mark.parametrize("name", ("groups", "bools of keys", "floats of queries and keys", "causal"))
def test_transforms(name):
    tensors, call = CALLS[name]
    others = [each.cos() for each in tensors]

    def of(A, *given):
        return call(A, *given).sum()

    pairs = [torch.stack(each) for each in zip(tensors, others)]
    results = []
    for A in (K.scaled_dot_product_attention, reference):
        places = tuple(range(len(tensors)))
        results.append(
            [
                *vmap(lambda *given: call(A, *given))(*pairs),
                *jvp(lambda *given: call(A, *given), tuple(tensors), tuple(others)),
                *grad(lambda *given: of(A, *given), argnums=places)(*tensors),
            ]
        )
    close(*results)


# Words of the operator that no function of PyTorch gives it.
@pytest.mark.parametrize("left, right, align", [(1, 0, "start"), (1, 1, "end"), (-1, 0, "end"), (-1, -1, "start")])
def test_windows_and_lengths_of_the_operator(left, right, align):
    lengths = torch.tensor([L, 2], dtype=torch.int32)
    q, k, v = copies(inputs(k=(2, 2, L, D)))

    def run(*given):
        y, lse = operators.attention(*given, None, None, lengths, left, right, align, 0.0, 0.0, None, True)
        loss = y.sin().sum() + lse.masked_fill(lse == -torch.inf, 0).cos().sum()
        first = torch.autograd.grad(loss, given, create_graph=True)
        return [y, lse, *first, *torch.autograd.grad(sum(each.sin().sum() for each in first), given)]

    def by_definition(q, k, v):
        place, keys = torch.arange(M).view(1, M, 1), torch.arange(L)
        of_image = lengths.view(2, 1, 1)
        place = place + (of_image - M if align == "end" else 0)
        seen = (keys < of_image).expand(2, M, L)
        seen = seen & (keys >= place - left) if left >= 0 else seen
        seen = (seen & (keys <= place + right) if right >= 0 else seen).unsqueeze(1)
        y = reference(q, k, v, seen, enable_gqa=True)
        sees = seen.any(-1)
        scores = (q @ shared(k, HEADS).mT * D**-0.5).masked_fill(~(seen | ~sees.unsqueeze(-1)), -torch.inf)
        lse = scores.logsumexp(-1)
        return y, torch.where(sees, lse, torch.zeros_like(lse)), sees.expand_as(lse)

    def expected(*given):
        y, lse, sees = by_definition(*given)
        first = torch.autograd.grad(y.sin().sum() + lse.cos().sum(), given, create_graph=True)
        second = torch.autograd.grad(sum(each.sin().sum() for each in first), given)
        return [y, lse.masked_fill(~sees, -torch.inf), *first, *second]

    doubles = copies([each.detach().double() for each in (q, k, v)])
    close(run(q, k, v), expected(*doubles), 1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    tensors, call = CALLS["floats of heads"]
    halves = [each.to(dtype) for each in tensors]
    tolerance = 0.01 if dtype == torch.float16 else 0.06
    mine = with_gradients(lambda *given: call(K.scaled_dot_product_attention, *given), copies(halves))
    assert {each.dtype for each in mine} == {dtype}
    doubles = copies([each.double() for each in halves])
    close(mine, with_gradients(lambda *given: call(reference, *given), doubles), tolerance)
    y = K.scaled_dot_product_attention(*halves[:3], tensors[3])  # a mask in float32
    close([y], [reference(*tensors)], tolerance)


def test_autocast_computes_products_in_its_type():
    tensors, call = CALLS["floats of heads"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine = with_gradients(lambda *given: call(K.scaled_dot_product_attention, *given), copies(tensors))
        causal = K.scaled_dot_product_attention(tensors[0].bfloat16(), *tensors[1:3], is_causal=True)
    assert [each.dtype for each in mine] == [torch.bfloat16] + [torch.float32] * 4 and causal.dtype == torch.bfloat16
    close(mine, with_gradients(lambda *given: call(reference, *given), copies(tensors)), 0.06)


Q, KEYS = torch.randn(2, HEADS, M, D), torch.randn(2, HEADS, L, D)
WRONG = [
    ("key is torch.float16 and query is torch.float32", (Q, KEYS.half(), KEYS), {}),
    ("torch.int32, which is no floating-point type", (Q.int(), KEYS.int(), KEYS.int()), {}),
    ("a tensor has 1 dimensions", (Q[0, 0, 0], KEYS, KEYS), {}),
    ("a tensor has 2 dimensions", (Q[0, 0], KEYS[0, 0], KEYS[0, 0]), {"enable_gqa": True}),
    ("query, key and value are of", (Q, KEYS[..., :4], KEYS), {}),
    ("query, key and value are of", (Q, KEYS, KEYS[:, :, :2]), {}),
    ("heads of query, key and value are", (Q, KEYS[:, :2], KEYS[:, :2]), {}),
    ("batches of query, key and value are", (Q, KEYS[[0, 1, 1]], KEYS[[0, 1, 1]]), {}),
    ("4 heads share 3 of the key", (Q, KEYS[:, :3], KEYS[:, :3]), {"enable_gqa": True}),
    ("is causal and has a mask", (Q, KEYS, KEYS, SEEN), {"is_causal": True}),
    ("attn_mask is torch.uint8", (Q, KEYS, KEYS, SEEN.byte()), {}),
    ("attn_mask is torch.float64", (Q, KEYS, KEYS, SEEN.double()), {}),
    (r"attn_mask is of \(2, 4, 3, 3\)", (Q, KEYS, KEYS, SEEN[..., :3]), {}),
    (r"attn_mask is of \(5,\)", (Q, KEYS, KEYS, SEEN[0, 0, 0]), {}),
    (r"attn_mask is of \(2, 4, 3, 5\)", (Q[:1], KEYS[:1], KEYS[:1], SEEN), {}),
    ("dropout_p is 1.5", (Q, KEYS, KEYS), {"dropout_p": 1.5}),
    ("dropout_p is 'half'", (Q, KEYS, KEYS), {"dropout_p": "half"}),
    ("is_causal is 1", (Q, KEYS, KEYS), {"is_causal": 1}),
    ("scale is 'large'", (Q, KEYS, KEYS), {"scale": "large"}),
]
NOT_SERVED = [
    ("queries of 1025 elements", (Q[..., :1].repeat(1, 1, 1, 1025), KEYS[..., :1].repeat(1, 1, 1, 1025), KEYS), {}),
    ("torch.float64", (Q.double(), KEYS.double(), KEYS.double()), {}),
    ("a scale of 0.0", (Q, KEYS, KEYS), {"scale": 0.0}),
    ("a scale of 1e-45", (Q, KEYS, KEYS), {"scale": 1e-45}),
    ("without elements", (Q[..., :0], KEYS[..., :0], KEYS), {}),
    ("4 heads of the key and 2 of the value", (Q, KEYS, KEYS[:, :2]), {"enable_gqa": True}),
]


@pytest.mark.parametrize("message, given, words", WRONG)
def test_a_wrong_argument_is_named(message, given, words):
    with pytest.raises(kiln.InvalidArgument, match=message):
        K.scaled_dot_product_attention(*given, **words)


@pytest.mark.parametrize("message, given, words", NOT_SERVED)
def test_what_is_not_served_is_named(message, given, words):
    with pytest.raises(kiln.InvalidArgument if "float64" in message else kiln.Unsupported, match=message):
        K.scaled_dot_product_attention(*given, **words)


@of_pytorch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("message, given, words", [*WRONG, *NOT_SERVED])
def test_an_enabled_program_is_pytorch_s_where_kiln_refuses(message, given, words):
    def outcome(function):
        torch.manual_seed(3)
        try:
            return function(*given, **words)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            return error

    expected = outcome(F.scaled_dot_product_attention)
    with kt.enabled() as places:
        result = outcome(F.scaled_dot_product_attention)
    assert type(result) is type(expected)
    if isinstance(expected, Exception):
        assert str(result) == str(expected)
    elif given[2].shape[-2] == L:  # PyTorch reads past a value that is shorter
        torch.testing.assert_close(result, expected, equal_nan=True)
        assert not places.on_kiln


@of_pytorch
def test_functions_of_a_program_run_on_kiln():
    q, k = copies([Q, KEYS])
    with kt.enabled(strict=True) as places:
        F.scaled_dot_product_attention(q, k, k, is_causal=True, scale=0.5).sum().backward()
        F.scaled_dot_product_attention(q, k[:, :2], k[:, :2], SEEN, enable_gqa=True)
    (row,) = {row.function for row in places}
    assert row == "scaled_dot_product_attention" and len(places.on_kiln) == 2


WIDTH = 8


def optimized(net, **words):
    """A copy on Kiln, in which every layer has to be."""
    return kt.optimize(copy.deepcopy(net), strict=True, **words)


def tensors_of(result):
    return [each for each in (result if isinstance(result, tuple) else (result,)) if each is not None]


def same_with_gradients(net, *given, mine=None, **words):
    """Results and gradients of all inputs and parameters are PyTorch's; a tensor that is given twice stays one."""
    mine = optimized(net) if mine is None else mine

    def run(of):
        of.zero_grad()
        made = {id(each): each.detach().clone().requires_grad_() for each in given}
        results = tensors_of(of(*(made[id(each)] for each in given), **words))
        torch.manual_seed(5)
        sum((each * torch.randn(each.shape)).sum() for each in results).backward()
        return [*(each.detach() for each in results), *(each.grad for each in (*made.values(), *of.parameters()))]

    close(run(mine), run(net), 1e-4)


def causal_mask(extent=M):
    return torch.full((extent, extent), -torch.inf).triu(1)


PADDED = torch.tensor([[False, False, True], [False, True, True]])  # images and keys
ALL_HEADS = torch.arange(2 * 2 * M * M).view(4, M, M) % 4 == 3
ALL_HEADS[..., 0] = False  # the key that all queries see
MULTI_HEAD = {
    "nothing": ({}, {}),
    "weights of heads": ({}, {"need_weights": True, "average_attn_weights": False}),
    "weights": ({"batch_first": True}, {"need_weights": True, "key_padding_mask": PADDED}),
    "weights and two masks": ({}, {"need_weights": True, "key_padding_mask": PADDED, "attn_mask": causal_mask()}),
    "images first": ({"batch_first": True, "bias": False}, {"attn_mask": causal_mask()}),
    "a mask of bools": ({}, {"attn_mask": causal_mask() != 0}),
    "a mask of heads": ({}, {"attn_mask": ALL_HEADS}),
    "a mask of heads and padding": ({}, {"attn_mask": ALL_HEADS, "key_padding_mask": PADDED}),
    "padding of floats": ({}, {"key_padding_mask": torch.randn(2, M)}),
    "further keys": (
        {"add_bias_kv": True, "add_zero_attn": True},
        {"key_padding_mask": PADDED, "attn_mask": causal_mask()},
    ),
    "a further key": ({"add_bias_kv": True}, {"attn_mask": causal_mask() != 0}),
    "a key of zeros": ({"add_zero_attn": True}, {"need_weights": True, "attn_mask": ALL_HEADS}),
}
quiet = pytest.mark.filterwarnings("ignore:Support for mismatched")


@quiet
@pytest.mark.parametrize("name", MULTI_HEAD)
def test_multi_head_attention_is_pytorch_s(name):
    made, words = MULTI_HEAD[name]
    net, x = nn.MultiheadAttention(WIDTH, 2, **made), torch.randn(M, 2, WIDTH)
    x = x.transpose(0, 1) if made.get("batch_first") else x
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.5)
    same_with_gradients(net, x, x, x, **{"need_weights": False, **words})


def test_multi_head_attention_of_other_keys_is_pytorch_s():
    q, memory, values = torch.randn(M, 2, WIDTH), torch.randn(L, 2, WIDTH), torch.randn(L, 2, 4)
    net = nn.MultiheadAttention(WIDTH, 2)
    same_with_gradients(net, q, memory, memory, need_weights=False)
    same_with_gradients(net, q, memory, memory + 1)
    same_with_gradients(net, q, q + 1, q, need_weights=False)
    same_with_gradients(nn.MultiheadAttention(WIDTH, 2, vdim=4), q, memory, values, need_weights=False)
    same_with_gradients(nn.MultiheadAttention(WIDTH, 2, kdim=4, bias=False), q, values, memory, need_weights=False)


def test_one_image_is_pytorch_s():
    x, net = torch.randn(M, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    same_with_gradients(net, x, x, x, key_padding_mask=PADDED[0], attn_mask=ALL_HEADS[:2])
    same_with_gradients(net, x, x, x, key_padding_mask=PADDED[1], need_weights=False)


def test_the_hint_that_a_mask_is_causal_takes_its_place():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    weights = (net.in_proj_weight, net.in_proj_bias, None, None, False, 0.0, net.out_proj.weight, net.out_proj.bias)
    words = {"need_weights": False, "attn_mask": causal_mask()}
    expected = net(x, x, x, **words)[0]
    with kt.record() as requests:
        y, _ = K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True)
    close([y], [expected])
    (line,) = (each for each in requests if each.startswith("attention"))
    assert " right=0" in line and "bias" not in line
    words["need_weights"] = True
    close(K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True), net(x, x, x, **words))
    words |= {"need_weights": False, "key_padding_mask": PADDED}
    words["attn_mask"] = ALL_HEADS  # beside padding the mask itself counts
    y, _ = K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True)
    close([y], [net(x, x, x, **words)[0]])
    with pytest.raises(kiln.InvalidArgument, match="without attn_mask"):
        K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, is_causal=True)


@quiet
def test_queries_without_keys_give_zeros_before_the_last_projection():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    nn.init.normal_(net.out_proj.bias)
    hidden = torch.zeros(M, M, dtype=torch.bool)
    hidden[1] = True
    y, _ = optimized(net)(x, x, x, attn_mask=hidden, need_weights=False)
    close([y[1]], [net.out_proj.bias.expand(2, WIDTH)])
    _, weights = optimized(net)(x, x, x, attn_mask=hidden)
    _, expected = net(x, x, x, attn_mask=hidden)
    torch.testing.assert_close(weights, expected, equal_nan=True)


def test_multi_head_attention_in_half_precision_and_autocast():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2, add_bias_kv=True)
    mask = causal_mask()
    for asked in (False, True):
        expected = net(x, x, x, attn_mask=mask, need_weights=asked)
        half = x.bfloat16()
        y, weights = optimized(net).to(torch.bfloat16)(half, half, half, attn_mask=mask, need_weights=asked)
        mine = optimized(net)
        with torch.autocast("cpu", torch.bfloat16):
            cast = mine(x, x, x, attn_mask=mask, need_weights=asked)
        assert {each.dtype for each in tensors_of((y, weights, *cast))} == {torch.bfloat16}
        close(tensors_of((y, weights)), [each.bfloat16() for each in tensors_of(expected)], 0.06)
        close(tensors_of(cast), [each.bfloat16() for each in tensors_of(expected)], 0.06)
        cast[0].float().sum().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in mine.parameters())


def test_gradients_of_gradients_of_multi_head_attention():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)

    def penalty(of):
        given = x.clone().requires_grad_()
        asked = of is net  # else PyTorch 2.x has no gradients of gradients
        y, _ = of(given, given, given, need_weights=asked, attn_mask=causal_mask())
        first = torch.autograd.grad(y.square().sum(), (given, *of.parameters()), create_graph=True)
        sum(each.square().sum() for each in first).backward()
        return [*(each.detach() for each in first), given.grad, *(each.grad for each in of.parameters())]

    close(penalty(optimized(net)), penalty(net), 1e-4)


LAYERS = {
    "encoder": lambda **words: nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.0, **words),
    "decoder": lambda **words: nn.TransformerDecoderLayer(WIDTH, 2, 12, dropout=0.0, **words),
}


@pytest.mark.parametrize("kind, words", [("encoder", {}), ("decoder", {"batch_first": True, "norm_first": True})])
def test_a_training_step_of_a_layer_of_transformers_is_pytorch_s(kind, words):
    net = LAYERS[kind](**words)
    x, memory = torch.randn(2, M, WIDTH), torch.randn(2, L, WIDTH)
    if not words:
        x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    mask = {"src_mask" if kind == "encoder" else "tgt_mask": causal_mask()}
    mine = optimized(net)
    same_with_gradients(net, *((x,) if kind == "encoder" else (x, memory)), mine=mine, **mask)
    report = kt.report(mine)
    assert not report.on_pytorch
    attentions = {row.place for row in report if row.function == "multi_head_attention_forward"}
    assert attentions == ({"self_attn"} if kind == "encoder" else {"self_attn", "multihead_attn"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_layers_of_transformers_run_on_kiln_without_gradients(fold, mode):
    net = nn.TransformerEncoder(LAYERS["encoder"](batch_first=True), 2).eval()
    x, mine = torch.randn(2, M, WIDTH), optimized(net, fold=fold)
    for words in ({}, {"mask": causal_mask() != 0}, {"src_key_padding_mask": PADDED}):
        with torch.enable_grad():  # PyTorch's own fast path leaves rows of padding out
            expected = net(x, **words)
        with mode():
            result = mine(x, **words)
        close([result], [expected])
    report = kt.report(mine)
    functions = {row.function for row in report}
    assert not report.on_pytorch and "multi_head_attention_forward" in functions
    assert not any("native" in each or "fwd" in each for each in functions)


def test_an_attention_module_runs_on_kiln_in_evaluation():
    net, x = nn.MultiheadAttention(WIDTH, 2, batch_first=True).eval(), torch.randn(2, M, WIDTH)
    mine = optimized(net)
    with torch.no_grad():
        close(tensors_of(mine(x, x, x)), tensors_of(net(x, x, x)))
    assert [row.function for row in kt.report(mine).on_kiln] == ["multi_head_attention_forward"]


@pytest.mark.parametrize("causal", (False, True))
def test_dropout_has_the_mask_of_dropout(causal):
    """A weight is element n, h, m, l of the mask that K.dropout draws from the same seed; gradients of any order."""
    torch.manual_seed(6)
    q, k, v = (torch.randn(2, HEADS, each, D, dtype=torch.float32) for each in (M, L, L))

    def by_hand(q, k, v):
        torch.manual_seed(9)
        mask = K.dropout(torch.ones(2, HEADS, M, L), 0.4)
        scores = q @ k.mT / D**0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(M, L, dtype=torch.bool).tril(), -torch.inf)
        return torch.softmax(scores, -1) * mask @ v

    def by_kiln(q, k, v):
        torch.manual_seed(9)
        return K.scaled_dot_product_attention(q, k, v, dropout_p=0.4, is_causal=causal)

    results = []
    for function in (by_hand, by_kiln):
        given = [each.clone().requires_grad_() for each in (q, k, v)]
        y = function(*given)
        first = torch.autograd.grad(y.square().sum(), given, create_graph=True)
        second = torch.autograd.grad(sum(each.square().sum() for each in first), given)
        results.append([y, *first, *second])
    for mine, theirs in zip(*results):
        torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-4)
    assert (K.scaled_dot_product_attention(q, k, v, dropout_p=1.0) == 0).all()
    assert not torch.equal(by_kiln(q, k, v), K.scaled_dot_product_attention(q, k, v, dropout_p=0.4, is_causal=causal))


def test_a_layer_with_dropout_trains_on_kiln():
    torch.manual_seed(6)
    net = optimized(nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.5, batch_first=True))
    x = torch.randn(2, M, WIDTH)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(net(x))
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    runs[2].square().mean().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in net.parameters())
    weights = optimized(nn.MultiheadAttention(WIDTH, 2, dropout=0.5))(x, x, x)[1]
    assert (weights == 0).any()


def test_what_is_not_served_is_computed_by_pytorch():
    x = torch.randn(M, 2, WIDTH)
    for net, given, reason in (
        (nn.MultiheadAttention(WIDTH, 2).double(), x.double(), "float64"),
    ):
        mine = kt.optimize(copy.deepcopy(net))
        results = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kiln.Warning)
            for each in (mine, net):
                torch.manual_seed(4)
                results.append(tensors_of(each(given, given, given)))
        close(*results)
        assert reason in kt.report(mine).on_pytorch[0].reason
        with pytest.raises((kiln.Unsupported, kiln.InvalidArgument), match=reason):
            optimized(net)(given, given, given)


def multi_head(x=None, **words):
    """Kiln's function, for arguments that differ from good ones."""
    x = torch.randn(M, 2, WIDTH) if x is None else x
    weights = {"in_proj_weight": torch.randn(3 * WIDTH, WIDTH), "out_proj_weight": torch.randn(WIDTH, WIDTH)}
    given = {"query": x, "key": x, "value": x, "embed_dim_to_check": WIDTH, "num_heads": 2, **weights, "in_proj_bias": None}
    given |= {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_bias": None}
    return K.multi_head_attention_forward(**{**given, **words})


def test_wrong_arguments_raise_pytorch_s_errors():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    mine = kt.optimize(copy.deepcopy(net))
    for given, words in (
        ((x, x, x[:2]), {}),
        ((x[..., :4], x, x), {}),
        ((x, x[0], x[0]), {}),
        ((x[None], x, x), {}),
        ((x, x, x), {"attn_mask": torch.zeros(M, L)}),
        ((x, x, x), {"attn_mask": torch.zeros(M, M, dtype=torch.int32)}),
        ((x, x, x), {"key_padding_mask": PADDED[:1]}),
        ((x.double(), x.double(), x.double()), {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kiln.Warning)
            with pytest.raises((RuntimeError, AssertionError)) as expected:
                net(*given, **words)
            with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
                mine(*given, **words)
    row = torch.randn(1, 1, WIDTH)
    for words, message in (
        ({"key": x[:, :1], "value": x[:, :1]}, "another batch"),
        ({"value": x[..., :4]}, "other extents than the key"),
        ({"value": x[:2]}, "a value for each key|other extents than the key"),
        ({"query": x[0]}, "other dimensions"),
        ({"query": x[None]}, "4 dimensions"),
        ({"embed_dim_to_check": 4}, "embed_dim_to_check"),
        ({"num_heads": 3}, "num_heads is 3"),
        ({"in_proj_weight": None}, "weights of a projection"),
        ({"in_proj_weight": torch.randn(WIDTH, WIDTH)}, "weights of a projection"),
        ({"use_separate_proj_weight": True}, "weights of a projection"),
        ({"in_proj_bias": torch.randn(WIDTH)}, "in_proj_bias"),
        ({"bias_k": row}, "bias_k or bias_v"),
        ({"bias_k": row, "bias_v": row[..., :4]}, "bias_k or bias_v"),
        ({"bias_k": row.half(), "bias_v": row}, "bias_k is torch.float16"),
        ({"out_proj_weight": torch.randn(WIDTH, 4)}, "out_proj_weight"),
        ({"out_proj_bias": torch.randn(4)}, "out_proj_weight"),
        ({"attn_mask": torch.zeros(2, M, M)}, "attn_mask is of"),
        ({"attn_mask": torch.zeros(M, M, dtype=torch.uint8)}, "attn_mask is torch.uint8"),
        ({"key_padding_mask": torch.zeros(2, L)}, "key_padding_mask is of"),
        ({"key_padding_mask": torch.zeros(2, M).int()}, "key_padding_mask is torch.int32"),
        ({"add_zero_attn": 1}, "add_zero_attn is 1"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=message):
            multi_head(x, **words)
    with pytest.raises(kiln.Unsupported, match="static"):
        multi_head(x, static_k=x)
    with pytest.raises(kiln.InvalidArgument, match="dropout_p is 1.5"):
        multi_head(x, dropout_p=1.5)
    assert multi_head(x, dropout_p=1.5, training=False)[0].shape == x.shape


def test_requests_of_a_layer_are_recorded():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)
    words = {"need_weights": False, "attn_mask": causal_mask()}
    with kt.record() as requests:
        net(x, x, x, **words)[0].sum().backward()
    names = [each.split()[0] for each in requests]
    assert names.count("attention_forward") == names.count("attention_backward") == 1
    assert requests.counts[requests[0]] == 1 and names.count("gemm") >= 4
    with kt.record() as own:
        optimized(net)(x, x, x, **words)[0].sum().backward()
    assert list(own) == list(requests)


@pytest.mark.parametrize("first", (False, True))
def test_rows_of_a_layer_keep_their_order_in_memory(first):
    x = torch.randn(2, M, WIDTH)
    net = optimized(nn.MultiheadAttention(WIDTH, 2, batch_first=first))
    with kt.record() as requests:
        net(*[x if first else x.transpose(0, 1).contiguous()] * 3, need_weights=False)
    (line,) = (each for each in requests if each.startswith("attention"))
    images, rows = (3 * M * WIDTH, 3 * WIDTH) if first else (3 * WIDTH, 2 * 3 * WIDTH)
    assert f" q=f32:2x2x{M}x{WIDTH // 2}:{images},{WIDTH // 2},{rows},1 " in line


@pytest.mark.skipif(not hasattr(torch, "export"), reason="this PyTorch has no torch.export, which 2.1 has")
def test_compiled_programs_hold_the_operators():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)
    mine = torch.compile(optimized(net), backend="aot_eager", fullgraph=True)
    same_with_gradients(net, x, x, x, mine=mine, need_weights=False, attn_mask=causal_mask())
    tensors, call = CALLS["groups and a head of values"]
    on_kiln = torch.compile(lambda *given: call(K.scaled_dot_product_attention, *given), backend="aot_eager", fullgraph=True)
    mine = with_gradients(on_kiln, copies(tensors))
    close(mine, with_gradients(lambda *given: call(reference, *given), copies(tensors)))
    for batch in (3, 5):  # with dynamic shapes
        q, k = torch.randn(batch, HEADS, M, D), torch.randn(batch, 2, L, D)
        close([on_kiln(q, k, k[:, :1])], [call(reference, q, k, k[:, :1])])
