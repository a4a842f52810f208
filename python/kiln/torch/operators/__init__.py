"""torch.ops.kiln: Kiln's operations as operators of PyTorch, with shape functions, gradients and autocast.

kiln.torch.functional is made of them, under PyTorch's own names and rules. An operator takes what the operation of its
name takes (docs/request-syntax.md); attributes of windows have a number for each axis, pads one for each side.
"""

from . import attention, columns, contraction, ctc, elementwise, local, moves, normalisation, pooling, recurrent, rows, sampling

__all__ = [
    "attention",
    "columns",
    "contraction",
    "ctc",
    "elementwise",
    "local",
    "moves",
    "normalisation",
    "pooling",
    "recurrent",
    "rows",
    "sampling",
]
