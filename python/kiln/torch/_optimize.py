"""optimize(): a model whose layers run on Kiln, and enabled(): any code whose layers do."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from .. import errors
from ._active import is_compiling
from ._folding import can_become_plain
from ._mode import KilnMode, current
from ._report import Places

Module = TypeVar("Module", bound=nn.Module)

_attribute = "_kiln"  # of an optimized module, beside its own


class Settings:
    """What the modules of an optimized model share."""

    def __init__(self, strict: bool, fold: bool) -> None:
        self.strict = strict
        self.fold = fold
        self.places = Places()


class _OnKiln:
    """What optimize() adds to the class of a module: its forward has the mode, whoever calls it."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        settings, name = self.__dict__[_attribute]
        mode = current()
        if mode is not None and mode.places is settings.places:
            return self._within(mode, name, args, kwargs)
        mode = KilnMode(settings.places, settings.strict, settings.fold and not is_compiling())
        with mode:
            result = self._within(mode, name, args, kwargs)
        return mode.finished(result)

    def _within(self, mode: KilnMode, name: str, args: Any, kwargs: Any) -> Any:
        mode.path.append(name)
        try:
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        finally:
            mode.path.pop()

    _kiln_original: type  # the model's own class

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Of the class that the model's source has: the one that optimize() made has no name to be found by."""
        reduced: Any = super().__reduce_ex__(protocol)
        made, arguments, *rest = reduced
        of_class = [_Class(each._kiln_original) if each is type(self) else each for each in arguments]
        return (_remade, (made, of_class), *rest)


class _Class:
    """Stands for the optimized form of a class where a module is copied or stored."""

    def __init__(self, original: type) -> None:
        self.original = original


def _remade(made: Any, arguments: list[Any]) -> Any:
    return made(*(_optimized_class(each.original) if isinstance(each, _Class) else each for each in arguments))


@functools.cache
def _optimized_class(original: type) -> type:
    @functools.wraps(original.forward)  # type: ignore[attr-defined]
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _OnKiln.forward(self, *args, **kwargs)

    names = {name: getattr(original, name) for name in ("__module__", "__qualname__", "__doc__")}
    names |= {"forward": forward, "_kiln_original": original}
    return type(original.__name__, (_OnKiln, original), names)


def _with_base(kind: Any, base: type, other: type) -> type:
    """`kind`, which is a class of one module alone, on `other` instead of `base`."""
    names = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    bases = tuple(other if each is base else each for each in kind.__bases__)
    return type(kind)(kind.__name__, bases, names)  # type: ignore[no-any-return]


def _class_on_kiln(module: nn.Module) -> type:
    """The optimized form of a module's class. That of a parametrized module stays outermost: PyTorch takes it off where
    parametrizations are removed."""
    kind: Any = type(module)
    if not is_parametrized(module):
        return _optimized_class(kind)
    base = kind.__bases__[0]
    return _with_base(kind, base, _optimized_class(base))


def _class_off_kiln(module: nn.Module) -> type:
    kind: Any = type(module)
    if "_kiln_original" in vars(kind):
        return kind._kiln_original  # type: ignore[no-any-return]
    base = next(each for each in kind.__bases__ if issubclass(each, _OnKiln))  # parametrized
    return _with_base(kind, base, kind._kiln_original)


def _is_optimized(module: nn.Module) -> bool:
    return isinstance(module, _OnKiln)


def _has_a_forward(module: nn.Module) -> bool:
    """That optimize() can take: not of lists of modules, of TorchScript, nor of layers without their shapes yet."""
    if isinstance(module, (torch.jit.ScriptModule, nn.modules.lazy.LazyModuleMixin)):
        return False
    return type(module).forward is not nn.Module.forward


def optimize(model: Module, *, strict: bool = False, fold: bool | None = None) -> Module:
    """Has Kiln compute the layers of `model`, in place, and returns it. What its forward calls as a function
    (F.relu, torch.softmax) counts too.

        net = kiln.torch.optimize(Net())

    The model stays what it is: its parameters and buffers, keys of its state dict, hooks, training flags, its class's
    name; copies of it and what torch.save() stores are optimized too. What Kiln does not serve PyTorch computes, and a
    kiln.Warning says once for each place which that is and why; report() lists all. With `strict` it raises
    kiln.Unsupported or InvalidArgument instead.

    With `fold`, where no gradients are recorded (torch.no_grad, torch.inference_mode) chains of a convolution or linear
    layer with a batch normalisation in eval mode, an addition and an activation run as one kernel. It reads the
    parameters as they are then, so nothing is computed beforehand and nothing grows stale. None, the default: where
    PyTorch is 2.3 or later, so that results which the model keeps become plain tensors.

    A model that is optimized already gets the new settings. restore() undoes it. Raises InvalidArgument for what is no
    torch.nn.Module.
    """
    errors.require_type("model", model, nn.Module, "a torch.nn.Module")
    errors.require_type("strict", strict, bool, "True or False")
    errors.require_type("fold", fold, (bool, type(None)), "True, False or None")
    settings = Settings(strict, can_become_plain if fold is None else fold)
    for name, module in model.named_modules():
        if not _has_a_forward(module):
            continue
        if not _is_optimized(module):
            module.__class__ = _class_on_kiln(module)
        module.__dict__[_attribute] = (settings, name or type(module).__name__)
    return model


def restore(model: Module) -> Module:
    """Undoes optimize(): PyTorch computes the layers of `model` again. Returns it."""
    errors.require_type("model", model, nn.Module, "a torch.nn.Module")
    for module in model.modules():
        if _is_optimized(module):
            module.__class__ = _class_off_kiln(module)
            del module.__dict__[_attribute]
    return model


def report(model: nn.Module) -> Places:
    """What of an optimized model has run on Kiln so far, what on PyTorch, and why. Raises InvalidArgument if the model
    is not optimized."""
    for module in model.modules():
        if _is_optimized(module):
            settings: Settings = module.__dict__[_attribute][0]
            return settings.places
    raise errors.InvalidArgument("the model is not optimized", "call kiln.torch.optimize(model) first")


@contextlib.contextmanager
def enabled(*, strict: bool = False) -> Iterator[Places]:
    """Has Kiln compute the layers that run in this thread meanwhile, of models that are not optimized too, and of loss
    functions; gradients follow.

        with kiln.torch.enabled():
            train(net)

    Yields what runs where. What Kiln does not serve is as with optimize().
    """
    errors.require_type("strict", strict, bool, "True or False")
    with KilnMode(Places(), strict, exported=True) as mode:
        yield mode.places
