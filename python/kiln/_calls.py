"""Calls of any operation by name: what the function of each operation ends in."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from . import _kiln
from ._arguments import Arguments, Definition, Word, definition_of, sort_arguments, text_of_epilogue, text_of_words
from ._arrays import Array, Stream, empty, streams_of
from ._context import Context, context_for
from ._kiln import Expression
from .errors import Error, InvalidArgument, of_a_call

Memory = Any  # a DeviceMemory, or what has __cuda_array_interface__


def memory_of(memory: Memory, name: str) -> tuple[int, int, int | None]:
    """The address of device memory, its bytes, and the stream that it is used on, if it says one; of None 0 and 0.

    `name`: what an error calls it.
    """
    return (0, 0, None) if memory is None else _kiln.given_memory(name, memory)


def call(
    what: str,
    *,
    epilogue: str | Expression | None = None,
    stream: Stream = None,
    workspace: Memory = None,
    context: Context | None = None,
    **arguments: Any,
) -> None:
    """Enqueue any operation, with all of its tensors, by the names of docs/request-syntax.md.

        kiln.call("conv_forward", pad=(1, 1), epilogue="bias+relu", x=x, w=w, y=y, bias=b, alpha=0.5)

    `what`: the operation, and words of its request if any. `epilogue`: stages, or an Expression. `workspace`: device
    memory for what the call makes in between; by default the Context's. On a GPU the call returns without waiting; on
    the emulated device it is done. Raises InvalidArgument, before anything is enqueued, for what is wrong or missing.
    """
    definition = definition_of(what)
    given = sort_arguments(definition, arguments, what)
    text = what + text_of_words(given.words)
    enqueue(definition, text, given, epilogue, stream, workspace, context)


class Call(NamedTuple):
    """A call that is about to be enqueued."""

    definition: Definition
    text: str  # the operation and its words
    given: Arguments
    epilogue: str | Expression | None
    context: Context | None


class _Taker(threading.local):
    take: Callable[[Call], object] | None = None
    note: Callable[[Call], object] | None = None


_taker = _Taker()
observers: list[Callable[[Call], object]] = []  # told of each call of any thread that is enqueued


@contextlib.contextmanager
def calls_taken(take: Callable[[Call], object]) -> Iterator[None]:
    """Gives the calls that this thread makes meanwhile to `take`, in place of enqueueing them."""
    before, _taker.take = _taker.take, take
    try:
        yield
    finally:
        _taker.take = before


@contextlib.contextmanager
def calls_noted(note: Callable[[Call], object]) -> Iterator[None]:
    """Tells `note` of the calls that this thread enqueues meanwhile."""
    before, _taker.note = _taker.note, note
    try:
        yield
    finally:
        _taker.note = before


def are_taken() -> bool:
    """Whether calls of this thread are not enqueued, so that tensors need not have their elements."""
    return _taker.take is not None


def enqueue(
    definition: Definition,
    text: str,
    given: Arguments,
    epilogue: str | Expression | None,
    stream: Stream,
    workspace: Memory,
    context: Context | None,
) -> None:
    if _taker.take is not None or _taker.note is not None or observers:
        call = Call(definition, text, given, epilogue, context)
        if _taker.take is not None:
            _taker.take(call)
            return
        if _taker.note is not None:
            _taker.note(call)
        for observe in list(observers):
            observe(call)
    tensors = given.tensors
    code = epilogue if isinstance(epilogue, Expression) else None
    address, size, used_on = memory_of(workspace, "workspace")
    try:
        _kiln.call(
            context_for(context, tensors.values()),
            text + text_of_epilogue(epilogue),
            (tensors, given.numbers, given.integers),
            code,
            definition.outputs,
            streams_of(stream, tensors.values(), used_on),
            (address, size),
        )
    except Error as error:
        raise of_a_call(error) from None


Spec = tuple[str, tuple[int, ...], tuple[int, ...]]  # dtype as frameworks call it, extents, strides in elements


@functools.lru_cache(maxsize=4096)
def _operands(line: str) -> Mapping[str, Spec]:
    return {name: (dtype, extents, strides) for name, dtype, extents, strides in _kiln.request_operands(line)}


def _further(definition: Definition, name: str, words: Mapping[str, Word], operands: Mapping[str, Spec]) -> Spec:
    """Shape and type that a further output has to have when it is allocated."""
    like, reduced, dtype = definition.likenesses[name]
    if like not in operands:
        raise InvalidArgument(f"{name} is as {like}, which is not given", "give an array")
    of_like, extents, strides = operands[like]
    if reduced:
        axes = words.get("axes", definition.words["axes"])
        ones = {axis % len(extents) for axis in ([axes] if isinstance(axes, int) else axes)}  # type: ignore[union-attr]
        extents = tuple(1 if axis in ones else extent for axis, extent in enumerate(extents))
    return dtype or of_like, extents, strides


def run(
    definition: Definition,
    arguments: Mapping[str, Any],
    epilogue: str | Expression | None,
    out: Array | None,
    stream: Stream,
    context: Context | None,
) -> Any:
    """An operation with its output in `out`, or in a new tensor; returns that, with the further outputs that are True."""
    asked = [name for name in definition.likenesses if arguments.get(name) is True]
    if asked:
        arguments = {name: value for name, value in arguments.items() if name not in asked}
    given = sort_arguments(definition, arguments)
    tensors, numbers = given.tensors, given.numbers
    usual = definition.words
    words = {name: value for name, value in given.words.items() if value != usual.get(name)}
    text = definition.name + text_of_words(words)
    limit = "clip_lo" if "clip_lo" in numbers else "clip_hi" if "clip_hi" in numbers else None
    if epilogue is None:
        stages = [stage for name, stage in definition.stages.items() if name in tensors]
        epilogue = "+".join([*stages, "clip"] if limit else stages) or None
    elif limit and "clip" not in text_of_epilogue(epilogue).removeprefix(" epilogue=").split("+"):
        raise InvalidArgument(f"{limit} is given, and the epilogue does not clip", "write clip into it: relu+clip")
    for name in definition.required:
        if name not in tensors:
            raise InvalidArgument(f"{definition.name}: {name} is not given", "give a tensor")
    if out is None and definition.result_required:
        raise InvalidArgument(f"{definition.name}: out is not given", f"give a tensor for {definition.result}")
    if out is not None and (definition.result_required or len(definition.outputs) == 1):
        tensors[definition.result] = out
    else:
        like = next(iter(tensors.values()))
        of_this_batch = definition.name + text_of_words({**words, "dynamic_batch": False})  # n=? rounds extents up
        try:
            operands = _operands(_kiln.request_line(of_this_batch, tensors) + text_of_epilogue(epilogue))
        except Error as error:
            raise of_a_call(error, definition.result) from None
        written = [name for name in operands if name in definition.outputs]
        if out is not None:
            tensors[written[0]] = out
        for name in written:
            if name in tensors:
                continue
            if numbers.get("beta"):
                raise InvalidArgument(f"beta is {numbers['beta']}, and {name} is not given", "give out")
            tensors[name] = empty(like, *operands[name])
        out = tensors[written[0]]
        for name in asked:
            tensors[name] = empty(like, *_further(definition, name, words, operands))
    enqueue(definition, text, given._replace(words=words), epilogue, stream, None, context)
    return (out, *(tensors[name] for name in asked)) if asked else out
