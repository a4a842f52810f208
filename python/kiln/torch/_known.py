"""Calls of Kiln that are known from earlier ones, so that a layer of a model is decided on once.

The decision depends on the function of PyTorch, on its arguments but for the elements of tensors (their likeness), and on
PyTorch's settings. The key holds all of these; arguments that it cannot hold have no key. Refusals are not kept: each is
found again, with its message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import _kiln
from .._arguments import Arguments, Definition, Word
from .._calls import Call, are_taken
from . import _active
from ._launch import context_of

Key = tuple[Callable[..., Any], bool, bytes]


def key_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], waiting: int = -1) -> Key | None:
    """The key of a call; None for arguments without a likeness, and where somebody sees the operators of a call.

    Callers ask for it without gradients, autocast, transforms and unknown modes. `waiting`: the place of an argument that
    the key leaves out, because the caller keeps keys for each of its kind.
    """
    if are_taken() or torch._C._autograd._profiler_enabled():
        return None
    likeness = _kiln.likeness(args, kwargs, _active.known_tensors, waiting)
    return None if likeness is None else (function, torch.are_deterministic_algorithms_enabled(), likeness)


_most = 4096


def remember(known: dict[Key, Any], key: Key, value: Any) -> None:
    """Keeps the value, among a limited number: shapes may change in each call."""
    if len(known) >= _most:
        known.clear()
    known[key] = value


Extents = tuple[int, ...]
_RESULT = -1


class KnownCall(NamedTuple):
    """The call of Kiln that computes a function, but for its tensors."""

    definition: Definition
    text: str
    words: dict[str, Word]
    numbers: dict[str, float]
    epilogue: Any
    # Tensors of the call: the name of each, the place of the argument that it is, and its extents and strides if these are
    # not the argument's.
    tensors: tuple[tuple[str, int, tuple[Extents, Extents] | None], ...]
    extents: Extents  # of the result
    strides: Extents
    dtype: torch.dtype

    def on(self, given: tuple[Any, ...]) -> tuple[Call, torch.Tensor]:
        """The call on arguments of that likeness, and the new tensor that it writes."""
        device = given[self.tensors[0][1]].device
        result = torch.empty_strided(self.extents, self.strides, dtype=self.dtype, device=device)
        tensors = {}
        for name, place, view in self.tensors:
            tensor = result if place == _RESULT else given[place]
            tensors[name] = tensor if view is None else tensor.as_strided(*view)
        arguments = Arguments(tensors, self.words, self.numbers, {})
        return Call(self.definition, self.text, arguments, self.epilogue, context_of(device)), result


def known_call(call: Call, given: tuple[Any, ...], result: Any) -> KnownCall | None:
    """The call by which Kiln has computed `result` of these arguments. None unless the tensors of the call are exactly
    those of the arguments and the result, or views of all of their memory."""
    if not isinstance(result, torch.Tensor):
        return None
    memory = {each.data_ptr(): place for place, each in enumerate(given) if isinstance(each, torch.Tensor)}
    memory[result.data_ptr()] = _RESULT
    if len(memory) != 1 + sum(isinstance(each, torch.Tensor) for each in given) or call.given.integers:
        return None  # the same memory twice, or a number that was drawn
    if len(memory) != len(call.given.tensors) or isinstance(call.epilogue, _kiln.Expression):
        return None
    tensors = []
    for name, tensor in call.given.tensors.items():
        place = memory.pop(tensor.data_ptr(), None)
        if place is None:
            return None
        own = result if place == _RESULT else given[place]
        same = (tensor.shape, tensor.stride()) == (own.shape, own.stride())
        tensors.append((name, place, None if same else (tuple(tensor.shape), tensor.stride())))
    _, words, numbers, _ = call.given
    if tensors[0][1] == _RESULT:
        return None
    shape = tuple(result.shape), result.stride()
    return KnownCall(call.definition, call.text, words, numbers, call.epilogue, tuple(tensors), *shape, result.dtype)
