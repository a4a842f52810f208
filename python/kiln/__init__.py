"""Kiln: layers of neural networks as kernels made, tuned and compiled for exactly their shapes.

A function for each operation (kiln.conv_forward, kiln.softmax_forward, ...) takes tensors of NumPy, PyTorch, CuPy or
JAX as they are: on a GPU, or on the CPU with the emulated device. docs/python.md is the guide.
"""

from . import errors
from ._calls import call
from ._context import CompileCount, Context, DeviceMemory, PlanCount, Tuning, context_for, default_context
from ._explanation import Candidate, Explanation, Refusal
from ._expression import expression
from ._kiln import Expression
from ._kiln import version as __version__
from ._plan import Plan, PlanOperand, plan, plan_of_call
from ._progress import TuneProgress
from .errors import (
    CompileFailed,
    DriverError,
    Error,
    FileError,
    InvalidArgument,
    MissingLibrary,
    NotFinite,
    OutOfMemory,
    ParseError,
    Unsupported,
    Warning,
)
from .operations import *  # noqa: F403
from .operations import __all__ as _operations
from .tuning import TunedLayer, TuneResult, tune


def explain(request: str, *, context: Context | None = None) -> Explanation:
    """Why `request` runs as it does on the Context's device: Context.explain()."""
    return context_for(context).explain(request)


__all__ = [
    "Candidate",
    "CompileCount",
    "CompileFailed",
    "Context",
    "DeviceMemory",
    "DriverError",
    "Error",
    "Explanation",
    "Expression",
    "FileError",
    "InvalidArgument",
    "MissingLibrary",
    "NotFinite",
    "OutOfMemory",
    "ParseError",
    "Plan",
    "PlanCount",
    "PlanOperand",
    "Refusal",
    "TuneProgress",
    "TuneResult",
    "TunedLayer",
    "Tuning",
    "Unsupported",
    "Warning",
    "__version__",
    "call",
    "default_context",
    "errors",
    "explain",
    "expression",
    "plan",
    "plan_of_call",
    "tune",
    *_operations,
]
