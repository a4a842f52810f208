"""Calls of attention, its definition, and how results are held against it."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402

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
