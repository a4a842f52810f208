"""Takes PyTorch's calls of layers to Kiln while it is active: those of modules and those of functions alike.

Modules of torch.nn compute by torch.nn.functional, so one table of functions serves both.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from .. import errors
from .._calls import Call, calls_noted, enqueue
from . import _active, functional
from ._active import is_compiling
from ._arithmetic import operations_of
from ._autocast import autocasting
from ._known import Key, KnownCall, key_of, known_call, remember
from ._report import Places
from .operators._activations import ACTIVATIONS

Function = Callable[..., Any]

# Functions of torch.nn.functional that tensors have as methods too, and `torch` as functions, with the same arguments.
_elsewhere = ("relu", "sigmoid", "softmax", "log_softmax", "tanh", "hardshrink", "celu", "selu")


_kinds = (type(lambda: None), type(len), type(torch.conv2d))


def _table() -> Mapping[Function, tuple[str, Function]]:
    rows: dict[Function, tuple[str, Function]] = {}
    for name in functional.__all__:
        of_kiln = getattr(functional, name)
        homes = [torch] if name in functional.recurrent.__all__ else [torch.nn.functional]
        homes += (torch, torch.Tensor) if name in _elsewhere else ()
        for original in (getattr(home, name, None) for home in homes):
            if original is not None:
                rows[original] = (name, of_kiln)
        with_indices = getattr(torch.nn.functional, f"{name}_with_indices", None)
        if with_indices is not None:  # what PyTorch makes of return_indices=True
            rows[with_indices] = (name, functools.partial(of_kiln, return_indices=True))
    return rows


# Layers that torch.nn.functional does not have: their modules call these.
_of_torch = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")


def _other_layers() -> Mapping[Function, str]:
    names = {name: getattr(torch.nn.functional, name) for name in dir(torch.nn.functional) if not name.startswith("_")}
    names |= {name: getattr(torch, name) for name in _of_torch if hasattr(torch, name)}
    return {
        function: name
        for name, function in names.items()
        if name.islower() and callable(function) and isinstance(function, _kinds) and function not in TABLE
    }


TABLE = _table()  # PyTorch's functions that Kiln has: the name of each, and Kiln's
OTHER_LAYERS = _other_layers()  # layers of PyTorch that Kiln does not have, by name

# Products that no layer is: PyTorch computes them, and they count in the report's arithmetic.
PRODUCTS: Mapping[Function, str] = {
    getattr(home, function): name
    for name in ("matmul", "mm", "bmm", "addmm", "baddbmm")
    for home in (torch, torch.Tensor)
    for function in (name, f"__{name}__")
    if hasattr(home, function)
}
_AFFINE = {function for function, name in PRODUCTS.items() if name == "addmm"}
_of_labels = (torch.int64, torch.bool)


def layer_of(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str | None, Function | None]:
    """The name of the layer that a call is, and Kiln's function for it; None where there is none.

    `addmm` with a vector is a linear layer whose weight is not transposed. What has integers of 64 bits or bools alone
    is none: it moves labels and masks.
    """
    if function in _AFFINE and _adds_a_bias(args, kwargs):
        return "addmm", functional.addmm
    name, of_kiln = TABLE.get(function, (OTHER_LAYERS.get(function), None))
    if name is not None and _of_labels_alone((*args, *kwargs.values()) if kwargs else args):
        return None, None
    return name, of_kiln


def _adds_a_bias(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    added = args[0] if args else kwargs.get("input")
    scales = (kwargs.get(name, 1) for name in ("beta", "alpha"))
    return isinstance(added, torch.Tensor) and added.dim() == 1 and all(each == 1 for each in scales)


def _of_labels_alone(given: tuple[Any, ...]) -> bool:
    has_tensors = False
    for each in given:
        if isinstance(each, torch.Tensor):
            if each.dtype not in _of_labels:
                return False
            has_tensors = True
    return has_tensors


def _constant(function: Function) -> Function:
    """Has a compiler call `function` of constants while it records a program."""
    mark = getattr(getattr(torch, "compiler", None), "assume_constant_result", None)
    return function if mark is None else mark(function)  # type: ignore[no-any-return]


@_constant
def _add_compiled(number: str, place: str, name: str, reason: str) -> int:
    places = Places.numbered(number)
    if places is not None:
        places.add_compiled(place, name, reason)
    return 0


_thread = threading.local()


def current() -> KilnMode | None:
    """The mode that is at work on this thread, if one is."""
    stack = getattr(_thread, "stack", ())
    return stack[-1] if stack else None


class KilnMode(TorchFunctionMode):
    """Has Kiln compute the functions of TABLE, and PyTorch what Kiln does not serve.

    `places`: receives what has run where. `strict`: what Kiln refuses raises, instead of a warning. `fold`: joins
    chains (_folding.py). `exported`: what torch.export records holds Kiln's operators.
    """

    def __init__(self, places: Places, strict: bool = False, fold: bool = False, exported: bool = False) -> None:
        super().__init__()
        self.places = places
        self.strict = strict
        self.exported = exported
        self.path: list[str] = []  # names of the modules whose forward is running
        self._chains = _folding.Chains(self) if fold else None
        self.without_gradients = False

    def __enter__(self) -> KilnMode:
        # Where that begins later, a function of autograd may be running (its forward, a checkpoint), whose results get their
        # gradients when it ends: they have to be plain tensors.
        self.without_gradients = not torch.is_grad_enabled()
        if not hasattr(_thread, "stack"):
            _thread.stack = []
        _thread.stack.append(self)
        return super().__enter__()  # type: ignore[no-any-return]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _thread.stack.pop()
        super().__exit__(kind, error, trace)

    def __torch_function__(
        self, function: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        for kind in types:
            if not issubclass(kind, torch.Tensor):  # what stands for a tensor: torch.fx's proxies
                return function(*args, **kwargs)
        if self._chains is not None:
            return self._chains.call(function, args, kwargs)
        return self.compute(function, args, kwargs)

    def row(self, function: Function) -> tuple[str, Function] | None:
        """The name of a function that Kiln has, and Kiln's."""
        return TABLE.get(function)

    def served_by_kiln(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Result of Kiln's function; None if there is none, or it refuses."""
        row = TABLE.get(function)
        try:
            return None if row is None else served(row[1], args, kwargs)
        except (errors.Unsupported, errors.InvalidArgument):
            return None

    def _add(self, name: str, reason: str, operations: int) -> bool:
        """Whether it is the first time with a reason. A compiler notes it where it records the program."""
        if not is_compiling():
            if reason:
                return self.places.add_by_pytorch(self.place(), name, reason, operations)
            self.places.add_by_kiln(self.place(), name, operations)
        elif self.path:
            _add_compiled(self.places.number, self.path[-1], name, reason)
        return False

    def finished(self, result: Any) -> Any:
        """The result of the model, all of whose elements are computed. The mode is not used any more."""
        chains, self._chains = self._chains, None  # which hold the mode: no cycle is left to the garbage collector
        return result if chains is None else chains.finished(result)

    def compute(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Result of `function`, by Kiln where it serves it."""
        key = self._key(function, args, kwargs)
        known = None if key is None else _known.get(key)
        if known is not None:
            result = self._again(known, (*args, *kwargs.values()) if kwargs else args)
            if result is not None:
                return result
        name, of_kiln = layer_of(function, args, kwargs)
        given = (*args, *kwargs.values()) if kwargs else args
        compiling = is_compiling()
        if name is None or getattr(_thread, "refused", False) or self._only_recorded(given, compiling):
            result = function(*args, **kwargs)
            product = PRODUCTS.get(function)
            if product is not None and not compiling and not getattr(_thread, "refused", False):
                self._add(product, "a product that is no linear layer", operations_of(product, args, kwargs, result))
            return result
        foreign = ""
        try:
            if of_kiln is None:
                raise errors.Unsupported(f"Kiln has no layer {name}", "let PyTorch compute it: strict=False")
            foreign = _active.foreign(given)
            if foreign:
                raise errors.Unsupported(foreign, "let PyTorch compute it: strict=False")
            result = served(of_kiln, args, kwargs) if key is None else _learnt(key, name, of_kiln, args, kwargs)
        except (errors.Unsupported, errors.InvalidArgument) as refusal:
            if self.strict:
                raise type(refusal)(f"{self.place()}: {name}: {refusal.message}", refusal.hint) from None
            reason = "Kiln has no such layer" if of_kiln is None else foreign or str(refusal)
        else:
            self._add(name, "", 0 if compiling else operations_of(name, args, kwargs, result))
            return result
        _thread.refused = of_kiln is not None  # no other mode tries again
        try:
            result = function(*args, **kwargs)  # which raises its own error where the arguments are wrong
        finally:
            _thread.refused = False
        operations = 0 if compiling else operations_of(name, args, kwargs, result)
        if self._add(name, reason, operations) and of_kiln is not None and not foreign:
            errors.warn(f"{self.place()}: PyTorch computes {name}: {reason}", "torch")
        return result

    def _key(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key | None:
        """The key of a function that Kiln may compute by one call which is known; else None."""
        if is_compiling() or function not in _of_one_call or torch.is_grad_enabled() or getattr(_thread, "refused", False):
            return None
        if not args or not isinstance(args[0], torch.Tensor) or autocasting(args[0]):
            return None
        if _active.transform() or _active.foreign_mode() or _active.checkpoint():
            return None
        return key_of(function, args, kwargs)

    def _again(self, known: _Known, given: tuple[Any, ...]) -> torch.Tensor | None:
        """Result of a function that Kiln has computed of such arguments before; None if it refuses now."""
        call, result = known.call.on(given)
        try:
            enqueue(call.definition, call.text, call.given, call.epilogue, None, None, call.context)
        except (errors.Unsupported, errors.InvalidArgument):
            return None
        self.places.add_by_kiln(self.place(), known.name, known.operations)
        return result

    def _only_recorded(self, given: tuple[Any, ...], compiling: bool) -> bool:
        """Whether nothing is computed, and what is recorded is to be PyTorch's own: an export, and shapes alone."""
        if compiling:
            return _active.is_exporting() and not self.exported
        return _active.has_no_elements(given)

    def place(self) -> str:
        """The module that is running, or the line of the program."""
        if self.path:
            return self.path[-1]
        frame, _ = errors.user_frame("torch")
        return "?" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


# Arguments that PyTorch passes on for its own use, and those of old that nobody should give any more.
_of_pytorch = ("_stacklevel", "size_average", "reduce")


def accepted(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of PyTorch's function that Kiln's has. Raises Unsupported for one that it does not have."""
    for name in ("size_average", "reduce"):
        if kwargs.get(name) is not None:
            raise errors.Unsupported(f"{name} is given", "give reduction")
    if kwargs.get("dim", 0) is None:
        raise errors.Unsupported("dim is not given", "give the dimension")
    return {name: value for name, value in kwargs.items() if name not in _of_pytorch}


def served(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Result of Kiln's function for arguments of PyTorch's. Raises Unsupported for one that it does not have."""
    passed = accepted(kwargs) if kwargs else kwargs
    try:
        return function(*args, **passed)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        raise errors.Unsupported(str(error), "call PyTorch's function") from None


class _Known(NamedTuple):
    """A function that Kiln computes by one call, of arguments that are alike."""

    name: str
    operations: int
    call: KnownCall


_known: dict[Key, _Known] = {}


def _learnt(key: Key, name: str, of_kiln: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """served(), of which the call is known from now on, if it is one."""
    calls: list[Call] = []
    with calls_noted(calls.append):
        result = served(of_kiln, args, kwargs)
    call = known_call(calls[0], (*args, *kwargs.values()), result) if len(calls) == 1 else None
    if call is not None:
        remember(_known, key, _Known(name, operations_of(name, args, kwargs, result), call))
    return result


_active.known_modes.append(KilnMode)

from . import _folding  # noqa: E402 - it computes through the mode

# Functions that Kiln computes by one call and nothing else of PyTorch's but views.
_of_one_call = {
    *_folding.BEGINS,
    *(function for function, (name, _) in TABLE.items() if name in ACTIVATIONS),
    *(getattr(torch.nn.functional, f"{kind}_pool{axes}d") for kind in ("max", "avg", "adaptive_avg") for axes in (1, 2, 3)),
}
