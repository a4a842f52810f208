"""Matrix products and fully connected layers."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import InvalidArgument
from ..operators import contraction
from ._arguments import Activation, number, of_shape, require, same_dtype
from .activation import with_epilogue

__all__ = ["addmm", "baddbmm", "bmm", "linear", "matmul", "mm"]


def _gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: Activation = None,
) -> torch.Tensor:
    columns, rows = a.shape[-1], b.shape[-2]
    if columns != rows:
        raise InvalidArgument(f"the first factor has {columns} columns and the second {rows} rows", "give as many")

    def call(*end: Any) -> torch.Tensor:
        return contraction.gemm(a, b, bias, scale, residual, alpha, beta, *end)

    return with_epilogue(call, activation, a, b, bias, residual)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """As a matrix, of its last dimension."""
    if tensor.dim() == 2:
        return tensor
    return tensor.unsqueeze(0) if tensor.dim() == 1 else tensor.flatten(0, -2)


def linear(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    scale: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    activation: Activation = None,
) -> torch.Tensor:
    """torch.nn.functional.linear, with an epilogue of Kiln's own: activation(scale * product + bias + residual).

    `scale`: a number for each output feature; it has no gradient. `residual`: has the extents of the result.
    `activation`: the name of one of this module's activations, or a tuple of it and its numbers.
    """
    same_dtype("linear", input=input, weight=weight, bias=bias)
    require(input.dim() >= 1, "linear takes an input of 1 dimension or more", "give features last")
    if weight.dim() == 1:  # one output feature, without a dimension for it
        shape = input.shape[:-1]
        weight, bias = weight.unsqueeze(0), None if bias is None else bias.reshape(1)
    else:
        shape = (*input.shape[:-1], weight.shape[0])
    rest = None if residual is None else _rows(residual)
    result = _gemm(_rows(input), weight.t(), bias, scale, rest, activation=activation)
    return of_shape(shape, result) if len(shape) == input.dim() else result.view(shape)


def mm(input: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """torch.mm"""
    same_dtype("mm", input=input, mat2=mat2)
    require(input.dim() == mat2.dim() == 2, "mm takes two matrices", "call matmul for others")
    return _gemm(input, mat2)


def bmm(input: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """torch.bmm"""
    same_dtype("bmm", input=input, mat2=mat2)
    require(
        input.dim() == mat2.dim() == 3 and input.shape[0] == mat2.shape[0],
        "bmm takes two batches of as many matrices",
        "call matmul for others",
    )
    return _gemm(input, mat2)


def matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """torch.matmul: vectors, matrices, and batches of them that repeat where their extent is 1."""
    same_dtype("matmul", input=input, other=other)
    require(input.dim() >= 1 and other.dim() >= 1, "matmul takes vectors and matrices", "multiply numbers by *")
    a = input.unsqueeze(0) if input.dim() == 1 else input
    b = other.unsqueeze(1) if other.dim() == 1 else other
    if b.dim() == 2 and a.dim() > 2:
        c = _gemm(_rows(a), b).view(*a.shape[:-1], b.shape[-1])
    else:
        c = _batched(a, b)
    c = c.squeeze(-1) if other.dim() == 1 else c
    return c.squeeze(-1 if other.dim() == 1 else -2) if input.dim() == 1 else c


def _batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    rank = max(a.dim(), b.dim())
    a = a.reshape(*[1] * (rank - a.dim()), *a.shape)
    b = b.reshape(*[1] * (rank - b.dim()), *b.shape)
    if rank <= 5:
        return _gemm(a, b)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = a.expand(*batch, *a.shape[-2:]).flatten(0, -3)
    b = b.expand(*batch, *b.shape[-2:]).flatten(0, -3)
    return _gemm(a, b).view(*batch, a.shape[-2], b.shape[-1])


def addmm(
    input: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """torch.addmm: beta * input + alpha * mat1 @ mat2. `input` may repeat; with beta=0 it is not read."""
    same_dtype("addmm", input=input, mat1=mat1, mat2=mat2)
    require(mat1.dim() == mat2.dim() == 2, "addmm takes two matrices", "call baddbmm for batches")
    alpha, beta = number("alpha", alpha), number("beta", beta)
    if beta == alpha == 1 and input.shape == mat2.shape[1:]:
        return _gemm(mat1, mat2, input)
    rest = input.expand(mat1.shape[0], mat2.shape[1]) if beta != 0 else None
    return _gemm(mat1, mat2, residual=rest, alpha=alpha, beta=beta if beta != 0 else 1.0)


def baddbmm(
    input: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """torch.baddbmm: beta * input + alpha * batch1 @ batch2. `input` may repeat; with beta=0 it is not read."""
    same_dtype("baddbmm", input=input, batch1=batch1, batch2=batch2)
    require(batch1.dim() == batch2.dim() == 3, "baddbmm takes two batches of matrices", "call addmm for matrices")
    alpha, beta = number("alpha", alpha), number("beta", beta)
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    rest = input.expand(shape) if beta != 0 else None
    return _gemm(batch1, batch2, residual=rest, alpha=alpha, beta=beta if beta != 0 else 1.0)
