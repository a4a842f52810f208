"""User code as an epilogue."""

from __future__ import annotations

from typing import Any

from ._kiln import Expression
from .errors import require_text


def expression(text: str, **reads: Any) -> Expression:
    """User code on each result, with the tensors and numbers that it reads by name (docs/user-code.md).

        kiln.conv_forward(x, w, epilogue=kiln.expression("acc * sigmoid(acc) * s + gate", gate=t, s=2.0))

    Make that of frequent calls once and keep it. Raises ParseError or InvalidArgument.
    """
    require_text("text", text)
    numbers = {name: value for name, value in reads.items() if isinstance(value, (int, float))}
    tensors = {name: value for name, value in reads.items() if name not in numbers}
    return Expression(text, tensors, numbers)
