"""Chains of layers as one kernel, where no gradients are recorded.

The result of a convolution or linear layer is a tensor whose elements are not computed yet. A batch normalisation in
eval mode, an addition or an activation of it that follows becomes a part of the same kernel. Any function but these has
all elements computed first, so that nothing is changed that a kernel still has to read. Nothing is traced: the model's
own code runs each time, with its control flow and hooks.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map

from .. import errors
from .._calls import Call, calls_taken, enqueue
from .._expression import expression
from . import _active
from ._autocast import autocasting
from .operators._activations import ACTIVATIONS

if TYPE_CHECKING:
    from ._mode import KilnMode

Function = Callable[..., Any]

_begins = {getattr(torch.nn.functional, f"conv{kind}{axes}d") for kind in ("", "_transpose") for axes in (1, 2, 3)}
_begins.add(torch.nn.functional.linear)
_operations = ("conv_forward", "conv_backward_data", "gemm")
_additions = {torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__, operator.add}
_additions_in_place = {torch.Tensor.add_, torch.Tensor.__iadd__, operator.iadd}
_activations_in_place = {torch.relu_: "relu", torch.Tensor.relu_: "relu", torch.nn.functional.relu_: "relu"}
# Properties of a tensor that are known without its elements.
_attributes = ("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "is_leaf", "layout", "is_sparse")
_methods = ("dim", "ndimension", "size", "stride", "numel", "nelement", "is_contiguous", "is_floating_point")
_metadata = {
    *(getattr(torch.Tensor, name).__get__ for name in _attributes),
    *(getattr(torch.Tensor, name) for name in _methods),
}


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a chain: a function after its first one."""

    kind: str  # "norm", "add", "activation": each at most once
    name: str  # PyTorch's
    code: str  # a statement on `v`
    reads: Mapping[str, Any]
    again: Callable[[torch.Tensor], torch.Tensor]  # the function by itself


class Chain:
    """State that the tensors of a chain share."""

    def __init__(self, first: tuple[Function, tuple[Any, ...], dict[str, Any]], call: Call, result: torch.Tensor) -> None:
        self.first = first  # the function that it begins with
        self.call = call  # what that enqueues
        self.result: torch.Tensor | None = result  # where the elements of one tensor will be; None when they are
        # Properties of all tensors of the chain. A Deferred answers many times as slowly.
        self.shape, self.strides, self.dtype, self.device = result.shape, result.stride(), result.dtype, result.device
        self.elements = result.numel()
        self.shape_of_call = call.given.tensors[call.definition.result].shape  # as the operation has it
        self.done: tuple[int, torch.Tensor] | None = None  # that tensor's number of stages, and its elements


# Gives an object of Python another tensor. PyTorch has it from 2.3 on.
_swap = getattr(torch._C, "_swap_tensor_impl", None)
can_become_plain = _swap is not None


class Deferred(torch.Tensor):
    """A tensor whose elements are computed when they are needed. It is given to the model's code as any other.

    When its elements are there, the object becomes a plain tensor. If PyTorch cannot do that, it stays a Deferred with
    `elements`.
    """

    chains: Chains
    chain: Chain
    stages: tuple[Stage, ...]
    past: tuple[tuple[weakref.ref[Deferred], int], ...]  # tensors that this is computed of, with their stages
    elements: torch.Tensor | None

    @staticmethod
    def made(chains: Chains, chain: Chain) -> Deferred:
        new = torch.Tensor._make_wrapper_subclass(
            Deferred, chain.shape, strides=chain.strides, dtype=chain.dtype, device=chain.device
        )
        new.chains, new.chain = chains, chain
        new.stages, new.past, new.elements = (), (), None
        return new  # type: ignore[no-any-return]

    def extended(self, stage: Stage) -> Deferred:
        new = Deferred.made(self.chains, self.chain)
        new.stages, new.past = (*self.stages, stage), (*self.past, (weakref.ref(self), len(self.stages)))
        return new

    def computed(self) -> torch.Tensor:
        """The tensor with its elements: this object, if it has become a plain one."""
        if self.elements is None:
            self.chains.compute(self)
        return _elements_there(self)

    def become_plain(self) -> bool:
        """Makes this object the tensor with its elements, if nothing of C++ holds it, as a call above may."""
        if _swap is None or self.elements is None:
            return False
        kept = dict(vars(self))
        elements = kept["elements"]
        vars(self).clear()
        self.__class__ = torch.Tensor  # type: ignore[assignment]
        try:
            _swap(self, elements)
        except RuntimeError:
            self.__class__ = Deferred
            vars(self).update(kept)
            return False
        return True

    @classmethod
    def __torch_function__(cls, function: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _metadata and not _has_elements(args):
            with torch._C.DisableTorchFunction():
                return function(*args, **(kwargs or {}))
        return _as_given(function(*_computed(args), **_computed(kwargs or {})), args)

    @classmethod
    def __torch_dispatch__(cls, function: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*tree_map(_elements_of, args), **tree_map(_elements_of, kwargs or {}))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.computed().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.computed().__deepcopy__(memo)


def _elements_of(each: Any) -> Any:
    return each.computed() if isinstance(each, Deferred) else each


def _elements_there(tensor: torch.Tensor) -> torch.Tensor:
    """Elements of a tensor that are computed."""
    if not isinstance(tensor, Deferred):
        return tensor
    assert tensor.elements is not None
    return tensor.elements


_plain = frozenset((torch.Tensor, torch.nn.Parameter, int, float, bool, type(None)))


def _computed(arguments: Any) -> Any:
    """The same arguments of a function with tensors that have their elements; in lists too."""
    kind = type(arguments)
    if kind in _plain:
        return arguments
    if kind is dict:
        return {name: _computed(each) for name, each in arguments.items()}
    if kind is tuple or kind is list:
        return kind([_computed(each) for each in arguments])
    return arguments.computed() if kind is Deferred else arguments


def _has_elements(args: Any) -> bool:
    """Whether a method's tensor has elements, and so may have got other extents in place (squeeze_)."""
    return bool(args) and isinstance(args[0], Deferred) and args[0].elements is not None


def _as_given(result: Any, args: Any) -> Any:
    """The model's own tensor for that with its elements: a function in place returns what it was given."""
    return args[0] if _has_elements(args) and result is args[0].elements else result


class Chains:
    """The chains of one run of a model, and which of their tensors are not computed: the last one of each."""

    def __init__(self, mode: KilnMode) -> None:
        self._mode = mode
        self._pending: list[Deferred] = []
        self._held: list[weakref.ref[Deferred]] = []  # computed, and not yet plain

    def call(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Result of `function`: a chain that it begins or extends, or its value."""
        if function in _metadata:
            return function(*args, **kwargs)  # which Deferred answers
        without_gradients = self._mode.without_gradients and not torch.is_grad_enabled()
        if without_gradients and not _active.transform() and not _active.foreign_mode():
            joined = self._extended(function, args, kwargs) if self._pending else None
            if joined is None and function in _begins:
                args, kwargs = _computed(args), _computed(kwargs)
                joined = self._begun(function, args, kwargs)
            if joined is not None:
                return joined
        self.flush()
        return _as_given(self._mode.compute(function, _computed(args), _computed(kwargs)), args)

    def flush(self) -> None:
        while self._pending:
            self.compute(self._pending[0])

    def finished(self, result: Any) -> Any:
        """The result of a model, with its elements. Tensors that the model has kept elsewhere have theirs too."""
        self.flush()
        for reference in self._held:
            tensor = reference()
            if isinstance(tensor, Deferred):
                tensor.become_plain()
        self._held.clear()
        return _elements_of(result) if isinstance(result, torch.Tensor) else tree_map(_elements_of, result)

    def _begun(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Deferred | None:
        """The result of a layer, which waits for what follows; None if the layer is no single call of Kiln."""
        given = (*args, *kwargs.values())
        if not args or autocasting(args[0]) or not _served(given):
            return None
        calls: list[Call] = []
        with calls_taken(calls.append):
            result = self._mode.served_by_kiln(function, args, kwargs)
        if result is None or len(calls) != 1 or calls[0].definition.name not in _operations:
            return None
        if calls[0].epilogue not in (None, "bias"):
            return None
        self._mode.note(function, args, kwargs, result)
        self._pending.append(Deferred.made(self, Chain((function, args, kwargs), calls[0], result)))
        return self._pending[-1]

    def _waits(self, each: Any) -> bool:
        if type(each) is Deferred:
            for pending in self._pending:
                if pending is each:
                    return True
        return False

    def _extended(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Deferred | None:
        """A chain with `function` in it, if the kernel can have that."""
        at = [i for i, each in enumerate(args) if self._waits(each)]
        if not at:
            return None
        if function in _additions or function in _additions_in_place:
            return self._added(function, args, kwargs, at[0])
        if at[0] != 0 or not _served((*args[1:], *kwargs.values())):
            return None
        stage, in_place = self._stage(function, args, kwargs, args[0])
        if stage is None:
            return None
        return self._with(args[0], stage, in_place)

    def _stage(self, function: Any, args: Any, kwargs: Any, tensor: Deferred) -> tuple[Stage | None, bool]:
        """A normalisation or activation, and whether it is in place."""
        row = self._mode.row(function)
        name, served = row if row is not None else (_activations_in_place.get(function, ""), None)
        if name not in ACTIVATIONS and name not in ("gelu", "batch_norm"):
            return None, False
        if served is None:
            given = {"inplace": True}
        else:
            bound = _bound(served, args, kwargs)
            if bound is None:
                return None, False
            given = bound
            given.pop("input")

        def again(value: torch.Tensor) -> Any:
            return self._mode.compute(function, (value, *args_behind), kwargs)

        args_behind = args[1:]
        if name == "batch_norm":
            return _norm(given, tensor.chain, again), False
        in_place = bool(given.pop("inplace", False))
        kind = "gelu_tanh" if given.pop("approximate", "none") == "tanh" else name
        activation = ACTIVATIONS[kind]
        numbers = activation.numbers([float(each) for each in given.values()])
        return Stage("activation", kind, f"v = {activation.value};", numbers, again), in_place

    def _added(self, function: Any, args: Any, kwargs: Any, at: int) -> Deferred | None:
        if kwargs or len(args) != 2:
            return None
        tensor, other = args[at], args[1 - at]
        in_place = function in _additions_in_place
        if not isinstance(other, torch.Tensor) or other is tensor or (in_place and at == 1):
            return None
        chain = tensor.chain
        if (other.shape, other.dtype, other.device) != (chain.shape, chain.dtype, chain.device):
            return None
        value = _elements_of(other)
        if not _served((value,)) or (chain.shape != chain.shape_of_call and not value.is_contiguous()):
            return None
        reads = {"residual": value.reshape(chain.shape_of_call)}
        return self._with(tensor, Stage("add", "add", "v = v + residual;", reads, lambda before: before + value), in_place)

    def _with(self, tensor: Deferred, stage: Stage, in_place: bool) -> Deferred | None:
        for each in tensor.stages:
            if each.kind == stage.kind:
                return None
        self._mode.places.add(self._mode.place(), stage.name, operations=tensor.chain.elements, joined=True)
        if in_place:
            tensor.stages = (*tensor.stages, stage)
            return tensor
        self._forget(tensor)
        self._pending.append(tensor.extended(stage))
        return self._pending[-1]

    def _forget(self, tensor: Deferred) -> None:
        self._pending = [each for each in self._pending if each is not tensor]

    def compute(self, tensor: Deferred) -> None:
        """Gives a tensor its elements."""
        self._forget(tensor)
        chain, count = tensor.chain, len(tensor.stages)
        elements, in_one = self._computed(tensor)
        tensor.elements = elements
        # The inputs of its computation are let go: who keeps the result should not keep them.
        del tensor.chain, elements
        tensor.stages = tensor.past = ()
        if not tensor.become_plain():
            self._held.append(weakref.ref(tensor))
        if in_one:
            chain.done = count, _elements_there(tensor)

    def _computed(self, tensor: Deferred) -> tuple[torch.Tensor, bool]:
        """The elements, and whether one kernel made them. A part of the chain whose result somebody holds is computed
        by itself."""
        chain, done = tensor.chain, tensor.chain.done
        for reference, count in reversed(tensor.past):
            earlier = reference()
            if earlier is not None:
                done = count, _elements_of(earlier)
                break
        if done is None and _enqueued(tensor):
            result, chain.result = chain.result, None  # the tensor's own from now on
            assert result is not None
            return result, True
        if done is None:
            function, args, kwargs = chain.first
            with torch.no_grad():
                done = 0, self._mode.compute(function, args, kwargs)
        count, value = done
        with torch.no_grad():  # as when the chain began
            for stage in tensor.stages[count:]:
                value = stage.again(value)
        return value, False


_types = (torch.float32, torch.float16, torch.bfloat16)


def _served(arguments: Sequence[Any]) -> bool:
    """Whether the tensors among these are such as a kernel of a chain may read: plain ones, of floats."""
    for each in arguments:
        if isinstance(each, torch.Tensor) and each.dtype not in _types:
            return False
    return not _active.foreign_tensor(arguments)


@functools.cache
def _parameters(function: Function) -> tuple[tuple[str, ...], dict[str, Any], frozenset[str]]:
    """The names of parameters that may be given by place, the defaults of those that have one, and all names."""
    parameters = inspect.signature(function).parameters
    by_place = tuple(name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD)
    defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    return by_place, defaults, frozenset(parameters)


def _bound(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """All arguments of a call by name; None where the function does not take them. `inspect` says so more slowly."""
    by_place, defaults, names = _parameters(function)
    if len(args) > len(by_place) or not kwargs.keys().isdisjoint(by_place[: len(args)]):
        return None
    given = {**defaults, **dict(zip(by_place, args)), **kwargs}
    return given if given.keys() == names else None


def _norm(given: dict[str, Any], chain: Chain, again: Any) -> Stage | None:
    """A batch normalisation by running statistics, of the channels that the kernel knows."""
    mean, variance, weight, bias = (given[name] for name in ("running_mean", "running_var", "weight", "bias"))
    if given["training"] or mean is None or variance is None or given["residual"] is not None or given["activation"]:
        return None
    channels = (chain.shape[1],)
    if chain.shape != chain.shape_of_call or any(each is not None and each.shape != channels for each in (mean, variance)):
        return None
    reads = {"mean": mean, "variance": variance, "epsilon": float(given["eps"])}
    code = "v = (v - mean) * rsqrtf(variance + epsilon)"
    if weight is not None:
        code, reads["weight"] = f"{code} * weight", weight
    if bias is not None:
        code, reads["shift"] = f"{code} + shift", bias
    return Stage("norm", "batch_norm", f"{code};", reads, again)


def _enqueued(tensor: Deferred) -> bool:
    """Has Kiln compute all stages into the chain's result; False where Kiln does not serve that."""
    call, stages = tensor.chain.call, tensor.stages
    given, epilogue = call.given, call.epilogue
    kinds = [stage.name for stage in stages]
    if kinds in (["add"], ["relu"], ["add", "relu"]):
        named = [*([epilogue] if epilogue else []), *kinds]
        epilogue = "+".join(named)  # type: ignore[arg-type]
        tensors = {**given.tensors, **{name: value for stage in stages for name, value in stage.reads.items()}}
        given = given._replace(tensors=tensors)
    elif stages:
        tensors = {name: each for name, each in given.tensors.items() if name != "bias"}
        reads = {name: value for stage in stages for name, value in stage.reads.items()}
        lines = ["float v = acc;", *(stage.code for stage in stages), "return v;"]
        if "bias" in given.tensors:
            reads["bias"] = given.tensors["bias"]
            lines[0] = "float v = acc + bias;"
        given = given._replace(tensors=tensors)
        epilogue = expression("\n".join(lines), **reads)
    try:
        enqueue(call.definition, call.text, given, epilogue, None, None, call.context)
    except (errors.Unsupported, errors.InvalidArgument):  # PyTorch computes it, or raises its own error
        return False
    return True
