"""Kiln's layers for PyTorch: functions with gradients, as operators that torch.compile and torch.export see.

kiln.torch.functional has them under the names and rules of torch.nn.functional, and optimize() puts a model on them.
docs/pytorch.md is the guide. Importing kiln does not import this, nor PyTorch.
"""

from . import functional, operators
from ._launch import caching_allocator, default_context, set_default_context
from ._optimize import enabled, optimize, report, restore
from ._record import Requests, record
from ._report import Places

__all__ = [
    "Places",
    "Requests",
    "caching_allocator",
    "default_context",
    "enabled",
    "functional",
    "operators",
    "optimize",
    "record",
    "report",
    "restore",
    "set_default_context",
]
