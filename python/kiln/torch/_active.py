"""Modes, tracers and transforms of PyTorch that Kiln does not know: while one is active, PyTorch computes.

Kiln's operators are known to the dispatcher, so compiled and exported programs, autocast, saved-tensor hooks, anomaly
mode, checkpoints and inference mode see them as they see PyTorch's own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch.autograd import forward_ad

known_tensors = frozenset(
    filter(None, (torch.Tensor, torch.nn.Parameter, getattr(torch.nn.parameter, "Buffer", None)))
)  # their results are plain tensors
_plain_values = frozenset((int, float, bool, str, tuple, list, torch.Size, type(None)))  # of operators, beside tensors
known_modes: list[type] = []  # function modes that change nothing which Kiln computes
# Ids of the code that runs the forwards of optimized modules, on Kiln whoever calls them. Code itself, as a key, would be
# read whole each time.
forwards: set[int] = set()
_checkpoints = torch.utils.checkpoint.__file__
with contextlib.suppress(ImportError):
    from torch.utils._device import DeviceContext

    known_modes.append(DeviceContext)


def _never() -> bool:
    return False


# Older versions of PyTorch lack it.
is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", _never)


def is_exporting() -> bool:
    """Whether torch.export records the program, which is not torch.compile."""
    if not is_compiling():
        return False
    if hasattr(torch.compiler, "is_exporting"):  # from PyTorch 2.7 on
        # torch.compile of PyTorch 2.11 takes the function for True; the flag that it returns is False there.
        return bool(torch.compiler.is_exporting()) and bool(getattr(torch.compiler, "_is_exporting_flag", True))
    return not torch.compiler.is_dynamo_compiling()


def transform() -> str:
    """Names what gives tensors another meaning than that of their elements; "" if nothing does."""
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace records the program"
    if torch._C._are_functorch_transforms_active():
        return "a transform of torch.func is active"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation is active"
    return ""


def foreign_mode() -> str:
    """Names a mode of functions or of the dispatcher that is neither Kiln's nor known; "" if there is none."""
    for place in range(torch._C._len_torch_function_stack()):
        mode = type(torch._C._get_function_stack_at(place))
        if not issubclass(mode, tuple(known_modes)):
            return f"the function mode {mode.__name__} is active"
    if torch._C._len_torch_dispatch_stack():
        return "a dispatch mode is active"
    return ""


def checkpoint() -> str:
    """Names a checkpoint around the code that runs, unless an optimized module runs within it; "" if there is none.

    The backward pass runs that code again, where no mode of Kiln need be active: it has to save the same tensors, and to
    draw the same mask of dropout.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in forwards:
        if frame.f_code.co_filename == _checkpoints:
            return "a checkpoint runs the code again, where Kiln need not be active"
        frame = frame.f_back
    return ""


def foreign_tensor(arguments: Iterable[Any]) -> str:
    """Names what makes one of the tensors another than a plain one with elements, in lists too; "" if all are plain."""
    for each in arguments:
        if type(each) not in known_tensors:
            if isinstance(each, torch.Tensor):
                return f"a tensor is a {type(each).__name__}"
            within = foreign_tensor(each) if isinstance(each, (list, tuple)) else ""
            if within:
                return within
            continue
        if each.layout is not torch.strided:
            return f"a tensor has the layout {str(each.layout).removeprefix('torch.')}"
        if each.is_nested:
            return "a tensor is nested"
        if each.is_quantized:
            return "a tensor is quantized"
        if not (each.is_cpu or each.is_cuda):
            return f"a tensor is on the device {each.device.type}"
        if each.is_conj() or each.is_neg() or each._is_zerotensor():
            return "a tensor is a lazy conjugate, negation or zero"
    return ""


def is_direct(arguments: Iterable[Any]) -> bool:
    """Whether the dispatcher, asked for an operator of these arguments, would come to the kernel that computes its
    elements, past at most autograd and autocast: no mode, tracer, transform or profiler is active, and tensors are plain.
    """
    if (
        torch._C._len_torch_function_stack()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._autograd._profiler_enabled()
        or transform()
    ):
        return False
    for each in arguments:
        if type(each) in known_tensors:
            if not (each.is_cpu or each.is_cuda) or each.layout is not torch.strided or each.is_nested or each.is_neg():
                return False
            try:
                each.data_ptr()
            except RuntimeError:  # of a tensor around others, such as a batch of gradients (is_grads_batched)
                return False
        elif type(each) not in _plain_values:
            return False
    return True


def has_no_elements(arguments: Iterable[Any]) -> bool:
    """Whether a function of these tensors computes nothing but shapes."""
    for each in arguments:
        if type(each) in known_tensors:
            if each.is_meta:
                return True
        elif isinstance(each, torch.Tensor):
            if each.is_meta or type(each).__name__ in ("FakeTensor", "FunctionalTensor"):
                return True
    return False


def _foreign_type(arguments: Iterable[Any]) -> str:
    """Why PyTorch has to compute a compiler's tensors, by their types; "" if Kiln may. Their elements are not known yet."""
    for each in arguments:
        if isinstance(each, torch.Tensor) and (each.dtype == torch.float64 or each.dtype.is_complex):
            return f"a tensor has elements of {each.dtype}"
    return ""


def foreign(arguments: Iterable[Any]) -> str:
    """Why PyTorch has to compute a function of these arguments; "" if Kiln may. Compilers see Kiln's operators."""
    if is_compiling():
        return _foreign_type(arguments)
    return transform() or foreign_mode() or foreign_tensor(arguments) or checkpoint()
