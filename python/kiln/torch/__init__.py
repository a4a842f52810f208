"""Kiln's layers for PyTorch: functions with gradients, as operators that torch.compile and torch.export see.

kiln.torch.functional has them under the names and rules of torch.nn.functional. docs/pytorch.md is the guide. Importing
kiln does not import this, nor PyTorch.
"""

from . import functional, operators
from ._launch import caching_allocator, default_context, set_default_context

__all__ = ["caching_allocator", "default_context", "functional", "operators", "set_default_context"]
