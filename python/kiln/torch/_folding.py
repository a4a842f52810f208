"""Chains of layers as one kernel, where no gradients are recorded.

The result of a convolution or linear layer is a tensor whose elements are not computed yet. A batch normalisation in
eval mode, an addition or an activation of it that follows becomes a part of the same kernel. Any function but these has
all elements computed first, so that nothing is changed that a kernel still has to read. Nothing is traced: the model's
own code runs each time, with its control flow and hooks.
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._pytree import tree_map

from .. import errors
from .._arguments import Arguments
from .._calls import Call, calls_taken, enqueue
from .._kiln import Expression
from . import _active
from ._arithmetic import operations_of
from ._autocast import autocasting
from ._known import Key, KnownCall, key_of, known_call, remember
from .functional._arguments import numbers_of
from .functional.activation import gelu_named
from .functional.normalisation import eps_and_momentum
from .operators._activations import ACTIVATIONS

if TYPE_CHECKING:
    from ._mode import KilnMode

Function = Callable[..., Any]

BEGINS = {getattr(torch.nn.functional, f"conv{kind}{axes}d") for kind in ("", "_transpose") for axes in (1, 2, 3)}
BEGINS.add(torch.nn.functional.linear)
_operations = ("conv_forward", "conv_backward_data", "gemm")
_additions = {torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__, operator.add}
_additions_in_place = {torch.Tensor.add_, torch.Tensor.__iadd__, operator.iadd}
_activations_in_place = {torch.relu_: "relu", torch.Tensor.relu_: "relu", torch.nn.functional.relu_: "relu"}
_names_of_stages = frozenset((*ACTIVATIONS, "gelu", "batch_norm"))
# Properties of a tensor that are known without its elements.
_attributes = ("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "is_leaf", "layout", "is_sparse")
_methods = ("dim", "ndimension", "size", "stride", "numel", "nelement", "is_contiguous", "is_floating_point")
_metadata = {
    *(getattr(torch.Tensor, name).__get__ for name in _attributes),
    *(getattr(torch.Tensor, name) for name in _methods),
}


class Stage(NamedTuple):
    """A stage of a chain: a function after its first one. `reads`: places of the function's arguments."""

    kind: str  # "norm", "add", "activation": each at most once
    name: str  # PyTorch's
    code: str  # a statement on `v`
    reads: tuple[tuple[str, int], ...]
    numbers: dict[str, float]
    in_place: bool = False

    def reads_all(self, args: tuple[Any, ...], kwargs: dict[str, Any], at: int) -> bool:
        """Whether the kernel reads each tensor among the arguments but that at `at`: no number was taken of one."""
        tensors = {place for place, each in enumerate((*args, *kwargs.values())) if isinstance(each, torch.Tensor)}
        return tensors - {at} == {place for _, place in self.reads}


class Form:
    """Stages that chains have in common, and their kernel's epilogue."""

    def __init__(self, stages: tuple[Stage, ...] = ()) -> None:
        self.stages = stages
        self.reads = any(stage.reads for stage in stages)
        self.after: dict[Key, Form] = {}  # with one stage more
        self._ends: dict[str | None, tuple[str | None, str]] = {}

    def end(self, epilogue: str | None) -> tuple[str | None, str]:
        """The epilogue of the kernel of all stages, by name or as user code; `epilogue`: that of the first function."""
        found = self._ends.get(epilogue)
        if found is None:
            found = self._ends[epilogue] = self._end(epilogue)
        return found

    def _end(self, epilogue: str | None) -> tuple[str | None, str]:
        names = [stage.name for stage in self.stages]
        if names in ([], ["add"], ["relu"], ["add", "relu"]):
            return "+".join([*([epilogue] if epilogue else []), *names]) or None, ""
        first = "float v = acc + bias;" if epilogue else "float v = acc;"
        return None, "\n".join([first, *(stage.code for stage in self.stages), "return v;"])


class First(NamedTuple):
    """A function that chains begin with, of arguments that are alike."""

    name: str
    operations: int
    call: KnownCall
    form: Form


_firsts: dict[Key, First] = {}


class Joined(NamedTuple):
    """A function that has become a stage of a chain: its arguments, with None for the chain's tensor, which is at `at`."""

    function: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    at: int

    def given(self, place: int) -> torch.Tensor:
        count = len(self.args)
        return self.args[place] if place < count else tuple(self.kwargs.values())[place - count]  # type: ignore[no-any-return]

    def by_itself(self, mode: KilnMode, value: torch.Tensor) -> Any:
        if self.function in _additions:
            return value + self.args[1 - self.at]
        return mode.compute(self.function, (*self.args[: self.at], value, *self.args[self.at + 1 :]), self.kwargs)


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
    form: Form
    joined: tuple[Joined, ...] = ()  # functions that the form has stages for
    past: tuple[tuple[weakref.ref[Deferred], int], ...] = ()  # tensors that this is computed of, with their stages
    elements: torch.Tensor | None = None

    @staticmethod
    def made(chains: Chains, chain: Chain, form: Form) -> Deferred:
        new = torch.Tensor._make_wrapper_subclass(
            Deferred, chain.shape, strides=chain.strides, dtype=chain.dtype, device=chain.device
        )
        new.chains, new.chain, new.form = chains, chain, form
        return new  # type: ignore[no-any-return]

    def extended(self, form: Form, joined: Joined) -> Deferred:
        new = Deferred.made(self.chains, self.chain, form)
        new.joined, new.past = (*self.joined, joined), (*self.past, (weakref.ref(self), len(self.joined)))
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
        return {name: _computed(each) for name, each in arguments.items()} if arguments else arguments
    if kind is tuple or kind is list:
        return kind([each if type(each) in _plain else _computed(each) for each in arguments])
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
            if joined is None and function in BEGINS:
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
        if not args or autocasting(args[0]):
            return None
        given = (*args, *kwargs.values()) if kwargs else args
        key = key_of(function, args, kwargs)
        first = None if key is None else _firsts.get(key)
        if first is not None:
            call, result = first.call.on(given)
            name, operations, form = first.name, first.operations, first.form
        else:
            made = self._taken(function, args, kwargs) if _served(given) else None
            if made is None:
                return None
            call, result = made
            name, form = self._mode.row(function)[0], Form()  # type: ignore[index]
            operations = operations_of(name, args, kwargs, result)
            known = None if key is None else known_call(call, given, result)
            if known is not None:
                remember(_firsts, key, First(name, operations, known, form))
        self._mode.places.add_by_kiln(self._mode.place(), name, operations)
        self._pending.append(Deferred.made(self, Chain((function, args, kwargs), call, result), form))
        return self._pending[-1]

    def _taken(self, function: Function, args: Any, kwargs: Any) -> tuple[Call, torch.Tensor] | None:
        """The one call of Kiln that a layer is, not enqueued, and what it writes; None if it is none or several."""
        calls: list[Call] = []
        with calls_taken(calls.append):
            result = self._mode.served_by_kiln(function, args, kwargs)
        if result is None or len(calls) != 1 or calls[0].definition.name not in _operations:
            return None
        return None if calls[0].epilogue not in (None, "bias") else (calls[0], result)

    def _waits(self, each: Any) -> bool:
        if type(each) is Deferred:
            for pending in self._pending:
                if pending is each:
                    return True
        return False

    def _extended(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Deferred | None:
        """A chain with `function` in it, if the kernel can have that."""
        is_addition = function in _additions or function in _additions_in_place
        if not (is_addition or self._may_be_a_stage(function)):
            return None
        at = [i for i, each in enumerate(args) if self._waits(each)]
        if not at:
            return None
        tensor: Deferred = args[at[0]]
        if is_addition:
            if kwargs or len(args) != 2:
                return None
            args = tuple([each if each is tensor else _elements_of(each) for each in args])
        key = key_of(function, args, kwargs, at[0])
        form = None if key is None else tensor.form.after.get(key)
        if form is None:
            stage = (self._added if is_addition else self._stage)(function, args, kwargs, at[0])
            if stage is None or any(each.kind == stage.kind for each in tensor.form.stages):
                return None
            form = Form((*tensor.form.stages, stage))
            if key is not None and stage.reads_all(args, kwargs, at[0]):
                remember(tensor.form.after, key, form)
        # The chain's tensor itself is not kept: that would count as somebody who holds a result in the middle.
        others = (*args[: at[0]], None, *args[at[0] + 1 :])
        return self._with(tensor, form, Joined(operator.add if is_addition else function, others, kwargs, at[0]))

    def _name(self, function: Function) -> str:
        row = self._mode.row(function)
        return row[0] if row is not None else _activations_in_place.get(function, "")

    def _may_be_a_stage(self, function: Function) -> bool:
        return self._name(function) in _names_of_stages

    def _stage(self, function: Any, args: Any, kwargs: Any, at: int) -> Stage | None:
        """A normalisation or activation of what comes first."""
        given = (*args, *kwargs.values())
        if at != 0 or not _served(given[1:]):
            return None
        name, row = self._name(function), self._mode.row(function)
        if row is None:
            bound: dict[str, Any] | None = {"input": Place(0), "inplace": True}
        else:
            behind = {key: Place(len(args) + i) for i, key in enumerate(kwargs)}
            bound = _bound(row[1], tuple(map(Place, range(len(args)))), behind)
        if bound is None or bound.pop("input") != 0:
            return None
        try:
            if name == "batch_norm":
                return _norm(bound, given, args[0].chain)
            return _activation(name, {key: _value(each, given) for key, each in bound.items()})
        except errors.InvalidArgument:  # PyTorch raises its own error
            return None

    def _added(self, function: Any, args: Any, kwargs: Any, at: int) -> Stage | None:
        tensor, other = args[at], args[1 - at]
        in_place = function in _additions_in_place
        if not isinstance(other, torch.Tensor) or other is tensor or (in_place and at == 1):
            return None
        chain = tensor.chain
        if (other.shape, other.dtype, other.device) != (chain.shape, chain.dtype, chain.device):
            return None
        if not _served((other,)) or (chain.shape != chain.shape_of_call and not other.is_contiguous()):
            return None
        return Stage("add", "add", "v = v + residual;", (("residual", 1 - at),), {}, in_place)

    def _with(self, tensor: Deferred, form: Form, joined: Joined) -> Deferred:
        stage = form.stages[-1]
        self._mode.places.add_by_kiln(self._mode.place(), stage.name, tensor.chain.elements, True)
        if stage.in_place:
            tensor.form, tensor.joined = form, (*tensor.joined, joined)
            return tensor
        self._forget(tensor)
        self._pending.append(tensor.extended(form, joined))
        return self._pending[-1]

    def _forget(self, tensor: Deferred) -> None:
        self._pending = [each for each in self._pending if each is not tensor]

    def compute(self, tensor: Deferred) -> None:
        """Gives a tensor its elements."""
        self._forget(tensor)
        chain, count = tensor.chain, len(tensor.joined)
        elements, in_one = self._computed(tensor)
        tensor.elements = elements
        # The inputs of its computation are let go: who keeps the result should not keep them.
        del tensor.chain, elements
        tensor.joined = tensor.past = ()
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
            for joined in tensor.joined[count:]:
                value = joined.by_itself(self._mode, value)
        return value, False


class Place(int):
    """The place of an argument, those by name behind the others."""


def _value(bound: Any, given: tuple[Any, ...]) -> Any:
    return given[bound] if type(bound) is Place else bound


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


def _activation(name: str, values: dict[str, Any]) -> Stage:
    in_place = bool(values.pop("inplace", False))
    kind = gelu_named(values.pop("approximate")) if name == "gelu" else name
    activation = ACTIVATIONS[kind]
    numbers = activation.numbers(numbers_of(kind, values))
    return Stage("activation", kind, f"v = {activation.value};", (), numbers, in_place)


def _norm(bound: dict[str, Any], given: tuple[Any, ...], chain: Chain) -> Stage | None:
    """A batch normalisation by running statistics, of the channels that the kernel knows."""
    value = {name: _value(each, given) for name, each in bound.items()}
    mean, variance = value["running_mean"], value["running_var"]
    eps, _ = eps_and_momentum("batch_norm", value["eps"], value["momentum"], value["training"])
    if value["training"] or mean is None or variance is None or value["residual"] is not None or value["activation"]:
        return None
    channels = (chain.shape[1],)
    if chain.shape != chain.shape_of_call or any(each is not None and each.shape != channels for each in (mean, variance)):
        return None
    reads = {"mean": bound["running_mean"], "variance": bound["running_var"]}
    code = "v = (v - mean) * rsqrtf(variance + epsilon)"
    if value["weight"] is not None:
        code, reads["weight"] = f"{code} * weight", bound["weight"]
    if value["bias"] is not None:
        code, reads["shift"] = f"{code} + shift", bound["bias"]
    return Stage("norm", "batch_norm", f"{code};", tuple(reads.items()), {"epsilon": eps})


def _enqueued(tensor: Deferred) -> bool:
    """Has Kiln compute all stages into the chain's result; False where Kiln does not serve that."""
    chain, form, call = tensor.chain, tensor.form, tensor.chain.call
    epilogue, code = form.end(call.epilogue)
    given = call.given
    if form.reads or code:
        tensors, words, numbers, integers = given
        reads, values = _read(tensor)
        if not code:
            tensors = {**tensors, **reads}
        else:
            if "bias" in tensors:
                reads["bias"] = tensors["bias"]
                tensors = {name: each for name, each in tensors.items() if name != "bias"}
            epilogue = Expression(code, reads, values)
        given = Arguments(tensors, words, numbers, integers)
    try:
        enqueue(call.definition, call.text, given, epilogue, None, None, call.context)
    except (errors.Unsupported, errors.InvalidArgument):  # PyTorch computes it, or raises its own error
        return False
    return True


def _read(tensor: Deferred) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """Tensors and numbers that the stages read."""
    chain = tensor.chain
    reads: dict[str, torch.Tensor] = {}
    numbers: dict[str, float] = {}
    for stage, joined in zip(tensor.form.stages, tensor.joined, strict=True):
        for name, place in stage.reads:
            reads[name] = joined.given(place)
        numbers |= stage.numbers
    if "residual" in reads and chain.shape != chain.shape_of_call:
        reads["residual"] = reads["residual"].reshape(chain.shape_of_call)
    return reads, numbers
