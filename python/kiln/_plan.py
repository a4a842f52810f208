"""Plan: a variant compiled and loaded, to be run again and again."""

from __future__ import annotations

import dataclasses
from typing import Any

from . import _kiln
from ._arguments import Arguments, definition_of, sort_arguments, text_of_epilogue, text_of_words
from ._arrays import Array, Stream, streams_of
from ._calls import Memory, memory_of
from ._context import Context, context_for
from ._kiln import Expression
from .errors import Error, InvalidArgument, of_a_call, require_text


@dataclasses.dataclass(frozen=True)
class PlanOperand:
    """A tensor that a plan's run takes."""

    name: str
    role: str  # "input", "output", "updated"
    tensor: str  # "f32:1x3x224x224:nchw"


class Plan:
    """A variant compiled and loaded: plan() and plan_of_call() make it. It never changes; valid while its Context is.

    Runs take tensors, numbers and integers by name, of the shapes and strides that the plan is for, and no other: with
    dynamic_batch of any batch up to the plan's. A plan with user code takes the same code with other tensors and
    numbers as `epilogue`; without it, those that it was made with.
    """

    def __init__(self, made: Any, context: Context, epilogue: Expression | None = None) -> None:
        self._plan = made
        self._context = context
        self._epilogue = epilogue
        self._request = str(made.request)
        self._definition = definition_of(self._request)

    @property
    def request(self) -> str:
        """The canonical line of the request."""
        return self._request

    @property
    def variant(self) -> str:
        """The variant that runs: "conv_implicit_gemm BLOCK_M=64,..."."""
        return str(self._plan.variant)

    @property
    def source(self) -> str:
        """Source of the choice: "measured on this device", "estimate", ..."""
        return str(self._plan.source)

    @property
    def deterministic(self) -> bool:
        """Equal inputs give bitwise equal outputs."""
        return bool(self._plan.deterministic)

    @property
    def workspace_bytes(self) -> int:
        """Device memory that run() needs, in bytes."""
        return int(self._plan.workspace_bytes)

    @property
    def prepared_bytes(self) -> int:
        """The part of it that depends only on the weights; 0: there is nothing to prepare."""
        return int(self._plan.prepared_bytes)

    @property
    def prepared_workspace_bytes(self) -> int:
        """Workspace of run_prepared(), in bytes."""
        return int(self._plan.prepared_workspace_bytes)

    @property
    def operands(self) -> list[PlanOperand]:
        """The operands that runs take."""
        return [PlanOperand(*operand) for operand in self._plan.operands]

    def run(
        self,
        *,
        stream: Stream = None,
        workspace: Memory = None,
        epilogue: Expression | None = None,
        **arguments: Any,
    ) -> None:
        """Enqueue the layer. `workspace`: workspace_bytes of device memory, 256-byte aligned (DeviceMemory)."""
        given = self._given(arguments)
        between, used_on = _memory(workspace, self.workspace_bytes, "workspace")
        streams = streams_of(stream, given.tensors.values(), used_on)
        self._plan.run(_bound(given, epilogue or self._epilogue), streams, between)

    def prepare_weights(self, prepared: Memory, *, stream: Stream = None, **weights: Array) -> None:
        """Make what depends only on the weights, into prepared_bytes of device memory: for this plan's runs only."""
        given = self._given(weights)
        made, used_on = _memory(prepared, self.prepared_bytes, "prepared")
        self._plan.prepare_weights(_bound(given), streams_of(stream, given.tensors.values(), used_on), made)

    def run_prepared(
        self,
        prepared: Memory,
        *,
        stream: Stream = None,
        workspace: Memory = None,
        epilogue: Expression | None = None,
        **arguments: Any,
    ) -> None:
        """run() without that work, with all tensors; `workspace`: prepared_workspace_bytes."""
        given = self._given(arguments)
        made, *used_on = _memory(prepared, self.prepared_bytes, "prepared")
        between, also = _memory(workspace, self.prepared_workspace_bytes, "workspace")
        streams = streams_of(stream, given.tensors.values(), *used_on, also)
        self._plan.run_prepared(_bound(given, epilogue or self._epilogue), streams, made, between)

    def _given(self, arguments: dict[str, Any]) -> Arguments:
        given = sort_arguments(self._definition, arguments, self._request)
        for name in given.words:
            if name in given.numbers:
                raise InvalidArgument(f"{name} is given, and the plan's request has no {name}=any", "make a plan that has it")
            raise InvalidArgument(f"{name} is no tensor or number of a run", "it is the plan's, which is made")
        return given

    def __repr__(self) -> str:
        return f"<kiln.Plan of {self.request}: {self.variant} ({self.source})>"


def _bound(given: Arguments, epilogue: Expression | None = None) -> _kiln.Arguments:
    return _kiln.Arguments(given.tensors, given.numbers, given.integers, epilogue)


def _memory(memory: Memory, needed: int, name: str) -> tuple[int, int | None]:
    """The address of at least `needed` bytes, and the stream that they are used on, if any."""
    address, size, used_on = memory_of(memory, name)
    if size < needed:
        raise InvalidArgument(f"{name} has {size} bytes", f"give kiln.DeviceMemory(context, {needed})")
    return address, used_on


def plan(request: str, *, context: Context | None = None) -> Plan:
    """The best known variant for a request line, compiled and loaded."""
    require_text("request", request)
    context = context_for(context)
    return Plan(_kiln.plan(context, request), context)


def plan_of_call(
    what: str, *, epilogue: str | Expression | None = None, context: Context | None = None, **arguments: Any
) -> Plan:
    """The plan that call() runs for these arguments, all of the operation's tensors among them."""
    code = epilogue if isinstance(epilogue, Expression) else None
    given = sort_arguments(definition_of(what), arguments, what)
    text = what + text_of_words(given.words) + text_of_epilogue(epilogue)
    context = context_for(context, given.tensors.values())
    try:
        return Plan(_kiln.plan_of_call(context, text, _bound(given, code)), context, code)
    except Error as error:
        raise of_a_call(error) from None
