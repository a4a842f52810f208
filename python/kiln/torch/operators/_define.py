"""How operations of Kiln become operators of PyTorch, torch.ops.kiln.NAME.

An operator is a schema and two functions: one makes its outputs, the other has Kiln write them. The first is also what
torch.compile and torch.export see of it (shapes, types and strides without elements), so that these are said once; that
they are what the operation gives is checked by Kiln in each call. Gradients are made of operators too, so that a
compiled backward pass sees them.

The dispatcher calls a kernel in Python several times as slowly as Python itself does. So Kiln's functions go through it
only where it would come to more than autograd and the kernel (_active.is_direct).

Made of what PyTorch has had since 1.13: a torch.library.Library with an implementation for each dispatch key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...errors import Unsupported
from .. import _active
from .._autocast import autocast_dtype, autocasting, cast_by_autocast
from . import _by_pytorch

Tensors = Any  # a tensor, or a tuple of tensors
Gradient = Callable[..., Sequence[Any]]

_library = torch.library.Library("kiln", "DEF")
_tags = tuple(filter(None, [getattr(torch.Tag, "pt2_compliant_tag", None)]))


@contextlib.contextmanager
def _while(guard: Any) -> Iterator[None]:
    """Dispatches with `guard`, which is no context manager yet in PyTorch 1.13: it holds for as long as it lives."""
    if hasattr(guard, "__enter__"):
        with guard:
            yield
        return
    try:
        yield
    finally:
        del guard


def define(
    schema: str,
    outputs: Callable[..., Tensors],
    write: Callable[..., None],
    *,
    saved: Callable[..., Sequence[Any]] | None = None,
    gradient: Gradient | None = None,
    autocast: str | None = None,
) -> Any:
    """Registers kiln::NAME and returns a function that calls it, whose `overload` is the operator.

    `schema`: NAME(ARGUMENTS) -> RESULTS, in PyTorch's words. `outputs(*arguments)`: new tensors without values.
    `write(outputs, *arguments)`: has Kiln compute them; not called where none has an element. `saved(result,
    *arguments)`: what the gradient reads, `gradient(saved, needs, *dresults)`: the gradients of all arguments, None for
    those that have none; `needs` says which are asked for. Without `gradient` it is PyTorch's, of the function of that
    name in _by_pytorch.py, which computes all of the operator in transforms and tracers. `autocast`: "lower" computes in
    autocast's type, "f32" in float32.
    """
    name = schema.partition("(")[0]
    _library.define(schema, **({"tags": _tags} if _tags else {}))
    overload = getattr(torch.ops.kiln, name).default
    by_pytorch = getattr(_by_pytorch, name)

    def compute(*arguments: Any) -> Tensors:
        result = outputs(*arguments)
        if any(tensor.numel() for tensor in result) if isinstance(result, tuple) else result.numel():
            write(result, *arguments)
        else:
            _require_types(arguments)
        return result

    def below_autograd(*arguments: Any) -> Tensors:
        if _active.is_direct(arguments):
            return compute(*arguments)
        with _while(torch._C._AutoDispatchBelowAutograd()):
            return overload(*arguments)

    function = _differentiable(name, below_autograd, by_pytorch, saved, gradient)

    def with_gradients(*arguments: Any) -> Tensors:
        if _active.transform():
            return by_pytorch(*arguments)
        return function.apply(*arguments) if _asks_for_gradients(arguments) else below_autograd(*arguments)

    for key in ("CPU", "CUDA"):
        _library.impl(name, compute, key)
    _library.impl(name, outputs, "Meta")
    _library.impl(name, with_gradients, "Autograd")
    _library.impl(name, by_pytorch, "FuncTorchBatched")
    if autocast is not None:
        for key in ("CPU", "CUDA"):
            _library.impl(name, _autocasting(overload, key, autocast), f"Autocast{key}")

    def operator(*arguments: Any) -> Tensors:
        if _active.is_compiling():
            return overload(*arguments)
        if _active.is_direct(arguments) and (autocast is None or not autocasting(arguments[0])):
            return function.apply(*arguments) if _asks_for_gradients(arguments) else compute(*arguments)
        return by_pytorch(*arguments) if _active.transform() else overload(*arguments)

    operator.__name__ = operator.__qualname__ = name
    operator.overload = overload  # type: ignore[attr-defined]
    return operator


def _require_types(arguments: Sequence[Any]) -> None:
    """Refuses types that Kiln does not have where it is not asked, as nothing is computed: the gradient may be something."""
    for each in arguments:
        if isinstance(each, torch.Tensor) and (each.dtype == torch.float64 or each.dtype.is_complex):
            raise Unsupported(f"a tensor has elements of {each.dtype}", "convert it to float32, float16 or bfloat16")


def _asks_for_gradients(arguments: Sequence[Any]) -> bool:
    if torch.is_grad_enabled():
        for each in arguments:
            if isinstance(each, torch.Tensor) and each.requires_grad:
                return True
    return False


def _all(result: Tensors, *arguments: Any) -> Sequence[Any]:
    return arguments


def _differentiable(name: str, below: Callable[..., Tensors], by_pytorch: Any, saved: Any, gradient: Gradient | None) -> Any:
    """A function of autograd that computes by `below`."""
    keep_of = _all if gradient is None or saved is None else saved

    def forward(context: Any, *arguments: Any) -> Tensors:
        result = below(*arguments)
        keep = keep_of(result, *arguments)
        is_tensor = [isinstance(value, torch.Tensor) for value in keep]
        context.save_for_backward(*(value for value, yes in zip(keep, is_tensor, strict=True) if yes))
        context.is_tensor = is_tensor
        context.others = [None if yes else value for value, yes in zip(keep, is_tensor, strict=True)]
        integers = [each for each in (result if isinstance(result, tuple) else ()) if not each.dtype.is_floating_point]
        context.mark_non_differentiable(*integers)
        context.set_materialize_grads(False)
        return result

    def backward(context: Any, *gradients: Any) -> Any:
        if all(each is None for each in gradients):  # what depends on the result has no gradient itself
            return (None,) * len(context.needs_input_grad)
        tensors = iter(context.saved_tensors)
        keep = [next(tensors) if yes else value for yes, value in zip(context.is_tensor, context.others, strict=True)]
        if gradient is None:
            return tuple(_by_pytorch.vjp(by_pytorch, keep, context.needs_input_grad, *gradients))
        return tuple(gradient(keep, context.needs_input_grad, *gradients))

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (torch.autograd.Function,), members)


def _autocasting(operator: Any, key: str, kind: str) -> Callable[..., Tensors]:
    def dispatch(*arguments: Any) -> Tensors:
        device = key.lower()
        dtype = torch.float32 if kind == "f32" else autocast_dtype(device)
        cast = [
            each.to(dtype)
            if isinstance(each, torch.Tensor) and cast_by_autocast(each) and each.device.type == device
            else each
            for each in arguments
        ]
        with torch.autocast(device, enabled=False):
            return operator(*cast)

    return dispatch
