"""record(): the requests of a run, for `kiln tune`."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .. import _kiln, errors
from .._arguments import text_of_epilogue, text_of_words
from .._calls import Call, calls_taken, observers
from . import _active
from ._mode import TABLE, accepted, current

Path = Any


class Requests(Sequence[str]):
    """Lines of request syntax, each once, in the order of the run; `counts` says how often each was called.

    Requests with user code need its text, which `definitions` has: text() and save() put it in front.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.definitions: dict[str, None] = {}
        self._lock = threading.Lock()

    def add(self, line: str, definition: str = "") -> None:
        with self._lock:
            self.counts[line] = self.counts.get(line, 0) + 1
            if definition:
                self.definitions.setdefault(definition)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, index: Any) -> Any:
        return list(self.counts)[index]

    def text(self) -> str:
        """A requests file: what expressions mean, then a request on each line, with the times that it was called."""
        lines = [line if count == 1 else f"{line} *{count}" for line, count in self.counts.items()]
        return "\n".join([*self.definitions, *lines, ""])

    def save(self, path: Path) -> None:
        """Writes text() to `path`, for `kiln tune` and kiln.tune(). Raises FileError."""
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.text())
        except OSError as error:
            raise errors.FileError(f"cannot write {os.fspath(path)}: {error.strerror}", "give another path") from None

    def __repr__(self) -> str:
        return f"<{len(self)} requests of {sum(self.counts.values())} calls>\n{self.text()}"


def _request_of(call: Call) -> tuple[str, str]:
    """The canonical line of a call's request, and the definition of its user code, if it has any."""
    line = _kiln.request_line(call.text, call.given.tensors)
    for name, value in call.given.numbers.items():  # the classes of scales, which the numbers of a call decide
        usual = 0.0 if name.endswith("beta") else 1.0
        if name.endswith(("alpha", "beta")) and value != usual:
            line += f" {name}={int(value) if value in (0, 1) else 'any'}"
    if not isinstance(call.epilogue, _kiln.Expression):
        return _kiln.request_key(line + text_of_epilogue(call.epilogue)), ""
    return _kiln.key_with_code(line, call.epilogue)


class _Shapes(TorchFunctionMode):
    """Notes what Kiln would be asked where PyTorch computes: Kiln's functions run, but nothing is enqueued."""

    def __init__(self, note: Callable[[Call], object]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        row = TABLE.get(function)
        if row is None or current() is not None or _active.foreign((*args, *kwargs.values())):
            return function(*args, **kwargs)
        shadow = self._forward(row[1], args, kwargs)
        result = function(*args, **kwargs)
        for real, noted in zip(_tensors(result), _tensors(shadow)):
            if real.requires_grad and noted.requires_grad:
                real.register_hook(lambda gradient, noted=noted: self._backward(noted, gradient))
        return result

    def _forward(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Result of Kiln's function, whose elements are not computed; None where it refuses."""
        generator = torch.get_rng_state()  # of which a seed may be drawn
        try:
            bound = inspect.signature(function).bind(*args, **accepted(kwargs))
            bound.arguments.pop("inplace", None)
            made: dict[int, torch.Tensor] = {}
            with calls_taken(self._note):
                return function(*_shadow(bound.args, made), **_shadow(bound.kwargs, made))
        except (errors.Unsupported, errors.InvalidArgument, TypeError):
            return None
        finally:
            torch.set_rng_state(generator)

    def _backward(self, result: torch.Tensor, gradient: torch.Tensor) -> None:
        with calls_taken(self._note):
            result.backward(gradient.data, retain_graph=True)


def _shadow(value: Any, made: dict[int, torch.Tensor]) -> Any:
    """Another tensor of the same shape, strides and alignment, in lists too: nothing that is done to it is seen. `made`:
    those of a call, by the id of what each is in place of; a tensor that is given twice stays one. Tensors of integers
    stay themselves: requests depend on lengths, and no function writes them."""
    if isinstance(value, dict):
        return {name: _shadow(each, made) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_shadow(each, made) for each in value)
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    if id(value) in made:
        return made[id(value)]
    behind = value.data_ptr() % 16 // value.element_size() if value.numel() else 0
    elements = behind + sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride())) + 1
    memory = torch.empty(max(elements, 0), dtype=value.dtype, device=value.device)
    shadow = memory.as_strided(value.shape, value.stride(), behind if value.numel() else 0)
    made[id(value)] = shadow.requires_grad_(value.requires_grad)
    return shadow


def _tensors(result: Any) -> list[torch.Tensor]:
    return [each for each in (result if isinstance(result, tuple) else (result,)) if isinstance(each, torch.Tensor)]


_active.known_modes.append(_Shapes)


@contextlib.contextmanager
def record() -> Iterator[Requests]:
    """Collects the requests of what runs meanwhile: of optimized models, of functions of Kiln, and of layers that
    PyTorch computes, forward and backward.

        with kiln.torch.record() as requests:
            loss(net(x), target).backward()
        requests.save("requests.txt")

    A model that is not optimized runs on PyTorch as always; Kiln only notes what it would be asked, and what it does
    not serve is left out. Requests of Kiln's own calls are noted in all threads, those of PyTorch's in this one.
    """
    requests = Requests()

    def note(call: Call) -> None:
        requests.add(*_request_of(call))

    observers.append(note)
    try:
        with _Shapes(note):
            yield requests
    finally:
        observers.remove(note)
