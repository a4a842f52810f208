"""Attention of PyTorch as a function of kiln.torch."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from attention_cases import (  # noqa: E402, F401
    CALLS, FLOATS, HEADS, SEEN, D, L, M, close, has_function, inputs, of_pytorch, reference, seeded, shared, with_gradients,
)  # fmt: skip
from comparison import copies  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402
from kiln.torch.operators import attention as operators  # noqa: E402

try:  # functorch until PyTorch 2.0
    from torch.func import grad, jvp, vmap
except ImportError:
    from functorch import grad, jvp, vmap

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


@pytest.mark.skipif(not hasattr(torch, "export"), reason="this PyTorch has no torch.export, which 2.1 has")
def test_a_compiled_function_holds_the_operator():
    tensors, call = CALLS["groups and a head of values"]
    on_kiln = torch.compile(lambda *given: call(K.scaled_dot_product_attention, *given), backend="aot_eager", fullgraph=True)
    mine = with_gradients(on_kiln, copies(tensors))
    close(mine, with_gradients(lambda *given: call(reference, *given), copies(tensors)))
    for batch in (3, 5):  # with dynamic shapes
        q, k = torch.randn(batch, HEADS, M, D), torch.randn(batch, 2, L, D)
        close([on_kiln(q, k, k[:, :1])], [call(reference, q, k, k[:, :1])])
