"""Attention by itself, and between the projections of nn.MultiheadAttention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...errors import InvalidArgument
from .._active import transform
from .._autocast import autocasting
from ..operators import attention, contraction
from ._arguments import flag, integer, needs_gradient, number, of_shape, require, require_served, same_dtype
from .activation import dropout, new_seed
from .loss import softmax
from .product import linear

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

Extents = tuple[int, ...]
_MOST_ELEMENTS = 1024  # of a query or value in a request
_LEAST_SCALE = torch.finfo(torch.float32).tiny  # smaller ones may be 0 as float32, which is another scale to Kiln


def _broadcast(what: str, *shapes: Sequence[int]) -> Extents:
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        text = ", ".join(str(tuple(each)) for each in shapes)
        raise InvalidArgument(f"{what} of query, key and value are {text}", "give equal ones, or 1") from None


def _heads_of(tensors: Sequence[Tensor], grouped: bool) -> tuple[int, int]:
    """Heads of the queries, and those of the keys and values, which divide them."""
    of_query, of_key, of_value = (each.shape[-3] if each.dim() > 2 else 1 for each in tensors)
    if not grouped:
        (heads,) = _broadcast("heads", (of_query,), (of_key,), (of_value,))
        return heads, 1 if of_key == of_value == 1 else heads
    divide = all(each > 0 and of_query % each == 0 for each in (of_key, of_value))
    require(divide, f"{of_query} heads share {of_key} of the key and {of_value} of the value", "give divisors")
    same = of_key == of_value or 1 in (of_key, of_value)
    require_served(same, f"{of_key} heads of the key and {of_value} of the value")
    return of_query, max(of_key, of_value)


def _as_images(tensor: Tensor, batch: Extents, heads: int) -> Tensor:
    """A tensor of 4 dimensions: images, heads, queries or keys, and their elements."""
    if len(batch) == 1 and tensor.shape[:-2] == (*batch, heads):
        return tensor
    whole = tensor.expand(*batch, heads, *tensor.shape[-2:])
    return whole.flatten(0, -4) if batch else whole.unsqueeze(0)


def _require_mask_type(name: str, mask: Tensor, query: Tensor) -> None:
    same = mask.dtype in (torch.bool, torch.float32, query.dtype) or (autocasting(query) and mask.is_floating_point())
    require(same, f"{name} is {mask.dtype}", "give bool, float32 or the type of the query")


def _mask_of_images(mask: Tensor, shape: Extents) -> Tensor:
    """A mask of scores of `shape` with 4 dimensions, of which extents of 1 repeat."""
    fewer = len(shape) - mask.dim()
    fits = 2 <= mask.dim() <= len(shape) and all(m in (1, n) for m, n in zip(mask.shape, shape[fewer:], strict=True))
    require(fits, f"attn_mask is of {tuple(mask.shape)}", f"give {shape}, or 1 where it repeats")
    mask = mask[(None,) * (max(len(shape), 4) - mask.dim())]
    if mask.dim() == 4:
        return mask
    repeats = all(extent == 1 for extent in mask.shape[:-3])
    return (mask if repeats else mask.expand(*shape[:-3], *mask.shape[-3:])).flatten(0, -4)


def _without_repetition(mask: Tensor) -> Tensor:
    """The mask with an extent of 1 where it repeats, unless its elements have gradients of their own."""
    for i, stride in enumerate(mask.stride()):
        if stride == 0 and mask.shape[i] > 1 and not mask.requires_grad:
            mask = mask.narrow(i, 0, 1)
    return mask


def _as_bytes(mask: Tensor) -> Tensor:
    """The mask's own memory as bytes; in transforms, which cannot look at memory in all versions of PyTorch, a copy."""
    return mask.to(torch.uint8) if transform() else mask.view(torch.uint8)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, visible: Tensor | None, causal: bool, p: float, scale: float = 0.0
) -> Tensor:
    """Attention of 4 dimensions. `visible`: of bools, whether a query sees a key. `p`: of dropout."""
    mask = None if visible is None else _as_bytes(_without_repetition(visible))
    bias = None if bias is None else _without_repetition(bias)
    save = needs_gradient(q, k, v, bias)
    seed = new_seed() if p else None
    y, _ = attention.attention(q, k, v, bias, mask, None, -1, 0 if causal else -1, "start", scale, p, seed, save)
    return y  # type: ignore[no-any-return]


def _require_elements(query: Tensor, key: Tensor, value: Tensor, least: int) -> None:
    rank = min(each.dim() for each in (query, key, value))
    require(rank >= least, f"a tensor has {rank} dimensions", f"give {least} or more")
    fits = key.shape[-1] == query.shape[-1] and value.shape[-2] == key.shape[-2]
    shapes = [tuple(each.shape) for each in (query, key, value)]
    require(fits, f"query, key and value are of {shapes}", "give query and key equal elements, a value for each key")
    for name, each in (("queries", query), ("values", value)):
        require_served(each.shape[-1] > 0, f"{name} without elements")
        require_served(each.shape[-1] <= _MOST_ELEMENTS, f"{name} of {each.shape[-1]} elements")


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention; dropout() says how weights are dropped.

    A query that sees no key gives 0, as in PyTorch from 2.5 on. Scores are not stored, but the gradient of a mask of
    floats is as large as they are.
    """
    name, tensors = "scaled_dot_product_attention", (query, key, value)
    same_dtype(name, query=query, key=key, value=value)
    p, causal, grouped = number("dropout_p", dropout_p), flag("is_causal", is_causal), flag("enable_gqa", enable_gqa)
    require(0 <= p <= 1, f"dropout_p is {p}", "give a probability, from 0 to 1")
    require(not (causal and attn_mask is not None), f"{name} is causal and has a mask", "give one of them")
    _require_elements(*tensors, 3 if grouped else 2)
    factor = 0.0 if scale is None else number("scale", scale)
    require_served(scale is None or abs(factor) >= _LEAST_SCALE, f"a scale of {factor}")
    heads, shared = _heads_of(tensors, grouped)
    batch = _broadcast("batches", *(each.shape[:-3] for each in tensors))
    leading = (*batch, heads) if max(each.dim() for each in tensors) > 2 else ()
    bias = visible = None
    if attn_mask is not None:
        _require_mask_type("attn_mask", attn_mask, query)
        mask = _mask_of_images(attn_mask, (*leading, query.shape[-2], key.shape[-2]))
        bias, visible = (None, mask) if mask.dtype == torch.bool else (mask, None)
    q, k, v = (_as_images(each, batch, count) for each, count in zip(tensors, (heads, shared, shared), strict=True))
    return of_shape((*leading, query.shape[-2], value.shape[-1]), _attended(q, k, v, bias, visible, causal, p, factor))


def _linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer on rows in the order that they have in memory."""
    if rows.dim() == 3 and rows.stride(0) < rows.stride(1):
        return linear(rows.transpose(0, 1), weight, bias).transpose(0, 1)
    return linear(rows, weight, bias)


class _Projections(NamedTuple):
    """Weights before attention, as one matrix or three, and the bias of all three."""

    packed: Tensor | None
    separate: tuple[Tensor | None, Tensor | None, Tensor | None]
    bias: Tensor | None

    def named(self) -> dict[str, Tensor | None]:
        three = zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), self.separate, strict=True)
        return {"in_proj_weight": self.packed, "in_proj_bias": self.bias, **dict(three)}

    def require_extents(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        width = query.shape[-1]
        weights: Sequence[Tensor | None] = self.separate
        expected = [(width, each.shape[-1]) for each in (query, key, value)]
        if self.packed is not None:
            weights, expected = (self.packed,), [(3 * width, width)]
            require(key.shape == value.shape, "the value has other extents than the key", "give separate weights")
        for each, shape in zip(weights, expected, strict=True):
            fits = each is not None and each.shape == shape
            require(fits, "weights of a projection are missing, or have other extents", f"give {shape}")
        fits = self.bias is None or self.bias.shape == (3 * width,)
        require(fits, "in_proj_bias has other extents", f"give {3 * width}")

    def __call__(self, query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
        """Projected rows of each, by one product for those that are the same tensor."""
        if self.packed is not None and query is key and key is value:
            return _linear(query, self.packed, self.bias).chunk(3, -1)  # type: ignore[no-any-return]
        if self.packed is not None and key is value:
            parts = [query.shape[-1], 2 * query.shape[-1]]
            of_query, of_both = self.packed.split(parts)
            bias_of_query, bias_of_both = (None, None) if self.bias is None else self.bias.split(parts)
            return _linear(query, of_query, bias_of_query), *_linear(key, of_both, bias_of_both).chunk(2, -1)
        weights = self.separate if self.packed is None else self.packed.chunk(3)
        biases = (None, None, None) if self.bias is None else self.bias.chunk(3)
        rows = (query, key, value)
        return [_linear(*each) for each in zip(rows, weights, biases, strict=True)]  # type: ignore[arg-type]


class _Masks(NamedTuple):
    """Numbers that are added to scores, and bools that hide keys: of 4 dimensions, of which extents of 1 repeat."""

    bias: Tensor | None
    hidden: Tensor | None

    @staticmethod
    def of(attn_mask: Tensor | None, padding: Tensor | None, query: Tensor, keys: int, heads: int) -> _Masks:
        """Both masks of multi_head_attention_forward(), whose `query` it is."""
        queries, images, given = query.shape[0], query.shape[1] if query.dim() == 3 else 1, []
        if attn_mask is not None:
            _require_mask_type("attn_mask", attn_mask, query)
            expected = ((queries, keys), (images * heads, queries, keys))
            fits = attn_mask.shape in expected
            require(fits, f"attn_mask is of {tuple(attn_mask.shape)}", f"give {expected[0]} or {expected[1]}")
            given.append(attn_mask[None, None] if attn_mask.dim() == 2 else attn_mask.unflatten(0, (images, heads)))
        if padding is not None:
            _require_mask_type("key_padding_mask", padding, query)
            shape = (images, keys) if query.dim() == 3 else (keys,)
            require(padding.shape == shape, f"key_padding_mask is of {tuple(padding.shape)}", f"give {shape}")
            adds = attn_mask is None or padding.dtype == torch.bool or hasattr(torch.nn.functional, "_canonical_mask")
            require_served(adds, "a key_padding_mask of floats beside another mask, before PyTorch 2.0")
            given.append(padding.view(images, 1, 1, keys))
        bias = hidden = None
        for each in given:
            if each.dtype == torch.bool:
                hidden = each if hidden is None else hidden | each
            else:
                bias = each if bias is None else bias + each
        return _Masks(bias, hidden)

    def with_more(self, keys: int) -> _Masks:
        """Masks of that many further keys, which all queries see."""

        def longer(mask: Tensor | None) -> Tensor | None:
            if mask is None or keys == 0:
                return mask
            return torch.cat([mask, mask.new_zeros((*mask.shape[:-1], keys))], -1)

        return _Masks(longer(self.bias), longer(self.hidden))

    def added(self, like: Tensor) -> Tensor | None:
        """The numbers with -inf for hidden keys, of the type of `like`."""
        bias = None if self.bias is None else self.bias.to(like.dtype)
        if self.hidden is None:
            return bias
        bias = torch.zeros_like(self.hidden, dtype=like.dtype) if bias is None else bias
        return bias.masked_fill(self.hidden, -torch.inf)


def _weighted(q: Tensor, k: Tensor, v: Tensor, masks: _Masks, p: float) -> tuple[Tensor, Tensor]:
    """Attention by its weights, and these."""
    added = masks.added(q)
    added = None if added is None else added.expand(*q.shape[:3], k.shape[2])
    scores = contraction.gemm(q, k.mT, None, None, added, float(q.shape[3]) ** -0.5, 1.0, "", [])
    weights = dropout(softmax(scores, -1), p)
    return contraction.gemm(weights, v, None, None, None, 1.0, 1.0, "", []), weights


def _of_heads(
    rows: Sequence[Tensor], heads: int, masks: _Masks, causal: bool, asked: bool, p: float
) -> tuple[Tensor, Tensor | None]:
    """Attention of queries, keys and values, whose rows hold the elements of all heads and come before images. Its
    weights, if they are `asked` for."""
    q, k, v = (each.unflatten(-1, (heads, each.shape[-1] // heads)).permute(1, 2, 0, 3) for each in rows)
    weights = None
    if asked:
        y, weights = _weighted(q, k, v, masks, p)
    else:
        y = _attended(q, k, v, masks.bias, None if masks.hidden is None else ~masks.hidden, causal, p)
    return y.permute(2, 0, 1, 3).flatten(2), weights


def _with_key(rows: Tensor, added: Tensor | None) -> Tensor:
    """Keys or values with one more for each image: `added`, or zeros."""
    shape = (1, *rows.shape[1:])
    return torch.cat([rows, rows.new_zeros(shape) if added is None else added.expand(shape)])


def _require_rows(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int) -> None:
    rank = query.dim()
    require(rank in (2, 3), f"the query has {rank} dimensions", "give queries, images and elements, or one image")
    require(key.dim() == value.dim() == rank, "key or value has other dimensions than the query", "give as many")
    require(key.shape[:-1] == value.shape[:-1], "the value has other extents than the key", "give a value for each key")
    require(key.shape[1:-1] == query.shape[1:-1], "the key has another batch than the query", "give the same")
    require(query.shape[-1] == width, f"embed_dim_to_check is {width}", f"give {query.shape[-1]}")
    require(heads > 0 and width > 0 and width % heads == 0, f"num_heads is {heads}", f"give a divisor of {width}")


def _require_weights(
    width: int, bias_k: Tensor | None, bias_v: Tensor | None, weight: Tensor, bias: Tensor | None
) -> None:
    """Refuses extents of further keys and values, and of the last projection."""
    for each in (bias_k, bias_v):
        fits = bias_k is None and bias_v is None or each is not None and each.shape == (1, 1, width)
        require(fits, "bias_k or bias_v has other extents, or is missing", f"give both of {(1, 1, width)}")
    fits = weight.dim() == 2 and weight.shape[1] == width and (bias is None or bias.shape == weight.shape[:1])
    require(fits, "out_proj_weight or its bias has other extents", f"give a matrix of {width} columns")


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """torch.nn.functional.multi_head_attention_forward, which nn.MultiheadAttention calls: projections, attention, and the
    projection of its result; without static_k and static_v. dropout() says how weights are dropped.

    Without `need_weights` attention is one kernel, and a query that sees no key gives 0. Else it is two products and a
    softmax, which give such a query NaN as PyTorch's do.
    """
    require_served(static_k is None and static_v is None, "static keys or values")
    p = number("dropout_p", dropout_p) if flag("training", training) else 0.0
    require(0 <= p <= 1, f"dropout_p is {p}", "give a probability, from 0 to 1")
    width, heads = integer("embed_dim_to_check", embed_dim_to_check), integer("num_heads", num_heads)
    _require_rows(query, key, value, width, heads)
    require_served(width // heads <= _MOST_ELEMENTS, f"heads of {width // heads} elements")
    separate = flag("use_separate_proj_weight", use_separate_proj_weight)
    three = (q_proj_weight, k_proj_weight, v_proj_weight) if separate else (None, None, None)
    before = _Projections(None if separate else in_proj_weight, three, in_proj_bias)
    before.require_extents(query, key, value)
    _require_weights(width, bias_k, bias_v, out_proj_weight, out_proj_bias)
    of_rows = {"query": query, "key": key, "value": value, "bias_k": bias_k, "bias_v": bias_v}
    of_end = {"out_proj_weight": out_proj_weight, "out_proj_bias": out_proj_bias}
    same_dtype("multi_head_attention_forward", **of_rows, **before.named(), **of_end)
    additions = [(bias_k, bias_v)] if bias_k is not None else []
    additions += [(None, None)] if flag("add_zero_attn", add_zero_attn) else []
    asked, hint = flag("need_weights", need_weights), flag("is_causal", is_causal)
    averages = flag("average_attn_weights", average_attn_weights)
    require(not hint or attn_mask is not None, "is_causal is given without attn_mask", "give the mask too")
    causal = hint and key_padding_mask is None and not asked
    masks = _Masks.of(None if causal else attn_mask, key_padding_mask, query, key.shape[0], heads)
    rows = [each if each.dim() == 3 else each.unsqueeze(1) for each in before(query, key, value)]
    for added in additions:
        rows[1:] = [_with_key(*each) for each in zip(rows[1:], added, strict=True)]
    y, weights = _of_heads(rows, heads, masks.with_more(len(additions)), causal, asked, p)
    y = _linear(y, out_proj_weight, out_proj_bias)
    weights = weights.mean(1) if averages and weights is not None else weights
    return (y, weights) if query.dim() == 3 else (y.squeeze(1), None if weights is None else weights.squeeze(0))
