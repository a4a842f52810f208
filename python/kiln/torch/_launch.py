"""Where operators call Kiln: on which Context."""

from __future__ import annotations

import atexit
import functools
from typing import Any

import torch

from .. import errors
from .._arguments import sort_arguments, text_of_words
from .._calls import enqueue
from .._context import Context, FirstCall, WorkspaceAllocator, default_context_with
from .._definitions import DEFINITIONS

_chosen: dict[torch.device, Context] = {}
atexit.register(_chosen.clear)  # threads of a Context have to end before the libraries that they are in do


def _key(device: Any) -> torch.device:
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def set_default_context(context: Context | None, device: Any = "cpu") -> None:
    """Have functions on tensors of `device` use `context` from now on; None: the one that they use by default."""
    if context is None:
        _chosen.pop(_key(device), None)
        return
    errors.require_type("context", context, Context, "a kiln.Context")
    _chosen[_key(device)] = context


def default_context(device: Any = "cpu") -> Context:
    """The Context that functions use for tensors of `device`, made when it is first asked for.

    On a GPU its calls take their workspace from PyTorch's caching allocator, on the stream of each. On the CPU it is
    kiln.default_context(), whose device is the emulated one where there is no GPU. While PyTorch's deterministic mode is
    on, it is another one, which serves no shape by an open kernel first.
    """
    return context_of(_key(device))


def context_of(device: torch.device, deterministic: bool | None = None) -> Context:
    """The same of the device that a tensor says. `deterministic`: whether that mode is on, where the caller knows."""
    chosen = _chosen.get(device)
    if chosen is not None:
        return chosen
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    first_call: FirstCall = "exact" if deterministic else "at_once"
    if device.type == "cuda":
        return default_context_with(device.index, caching_allocator(device.index), first_call=first_call)
    return default_context_with(0, None, first_call=first_call)


@functools.cache
def caching_allocator(device: int) -> WorkspaceAllocator:
    """PyTorch's allocator of memory of that GPU, as the workspace_allocator of a kiln.Context.

    Memory belongs to the stream of the call, as that of PyTorch's own operations does, and is taken from the pool of a
    graph while the stream is captured into one.
    """

    def allocate(bytes: int, stream: int) -> int:
        return torch.cuda.caching_allocator_alloc(bytes, device, stream)  # type: ignore[no-any-return]

    def release(address: int, bytes: int, stream: int) -> None:
        torch.cuda.caching_allocator_delete(address)

    return allocate, release


def launch(operation: str, *, epilogue: Any = None, **arguments: Any) -> None:
    """kiln.call(), on the Context of the tensors' device. Equal inputs give equal bits where PyTorch is asked for that."""
    definition = DEFINITIONS[operation]
    deterministic = torch.are_deterministic_algorithms_enabled()
    if deterministic and "deterministic" in definition.words:
        arguments["deterministic"] = True
    given = sort_arguments(definition, arguments)
    context = context_of(next(iter(given.tensors.values())).device, deterministic)
    enqueue(definition, operation + text_of_words(given.words), given, epilogue, None, None, context)
