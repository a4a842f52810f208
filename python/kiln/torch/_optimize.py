"""optimize(): a model whose layers run on Kiln, and enabled(): any code whose layers do."""

from __future__ import annotations

import contextlib
import copy
import inspect
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import nn

from .. import errors
from . import _active
from ._active import is_compiling
from ._folding import can_become_plain
from ._mode import KilnMode, current
from ._report import Places

Module = TypeVar("Module", bound=nn.Module)

_attribute = "_kiln"  # of an optimized module, beside its own


class Settings:
    """Settings that the modules of an optimized model share. `model`: the argument of optimize(); None for a copy.
    `model`: what optimize() was given; None for a copy."""

    def __init__(self, strict: bool, fold: bool, model: nn.Module | None = None) -> None:
        self.strict = strict
        self.fold = fold
        self.places = Places()
        self._model = (lambda: None) if model is None else weakref.ref(model)

    def are_of(self, model: nn.Module | None) -> bool:
        return self._model() is model

    def __reduce__(self) -> Any:
        return Settings, (self.strict, self.fold)


Parts = dict[Settings, str]  # settings of the models that a module is part of, and its name there; the latest is the last


class _OnKiln:
    """The optimized form of a module: what its instance has in place of methods of its class, which stays as it is."""

    names = ("forward", "__reduce_ex__", "_replicate_for_data_parallel", "__prepare_scriptable__")

    def __init__(self, module: nn.Module | None, parts: Parts, own: Any = None) -> None:
        self.module = module
        self.parts = parts
        self.own = own  # a forward that the instance had before
        self._only = next(iter(parts.items())) if len(parts) == 1 else None  # nothing is to be chosen

    @property
    def settings(self) -> Settings:
        """The settings of the module as a model, else those of the latest model that it is part of."""
        return next((each for each in self.parts if each.are_of(self.module)), next(reversed(self.parts)))

    def put(self) -> None:
        assert self.module is not None
        attributes = self.module.__dict__
        attributes[_attribute] = self
        methods = _Forward(self), self.reduce_ex, self.replicate_for_data_parallel, self.prepare_scriptable
        attributes.update(zip(self.names, methods, strict=True))

    def plain(self, attributes: dict[str, Any] | None = None) -> dict[str, Any]:
        """Attributes of the module, or those that it says, without those of Kiln."""
        assert self.module is not None
        all_of_them = self.module.__dict__ if attributes is None else attributes
        kept = {key: each for key, each in all_of_them.items() if key not in (_attribute, *self.names)}
        return kept if self.own is None else {**kept, "forward": self.own}

    def take_off(self) -> None:
        assert self.module is not None
        plain = self.plain()
        self.module.__dict__.clear()
        self.module.__dict__.update(plain)

    def run(self, args: Any, kwargs: Any) -> Any:
        """The module's own forward within the mode, whoever calls it."""
        mode = current()
        if mode is not None and self._only is not None:
            settings, name = self._only
            if mode.places is settings.places:
                return self._within(mode, name, args, kwargs)
        elif mode is not None:
            is_model = next(reversed(self.parts)).are_of(self.module)  # optimized by itself, behind what it is part of
            for settings, name in self.parts.items():
                if mode.places is settings.places and (not is_model or settings is self.settings):
                    return self._within(mode, name, args, kwargs)
        settings = self.settings if self._only is None else self._only[0]
        mode = KilnMode(settings.places, settings.strict, settings.fold and not is_compiling())
        with mode:
            result = self._within(mode, self.parts[settings], args, kwargs)
        return mode.finished(result)

    def _within(self, mode: KilnMode, name: str, args: Any, kwargs: Any) -> Any:
        module: Any = self.module
        mode.path.append(name)
        try:
            if self.own is not None:
                return self.own(*args, **kwargs)
            return type(module).forward(module, *args, **kwargs)
        finally:
            mode.path.pop()

    def reduce_ex(self, protocol: Any) -> Any:
        """As the module's class is copied and stored, with an optimized form of the copy's own."""
        module: Any = self.module
        made, arguments, *rest = type(module).__reduce_ex__(module, protocol)
        if rest and isinstance(rest[0], dict):
            rest[0] = self.plain(rest[0])  # what a __getstate__ left out stays so
        return (_remade, (made, arguments, list(self.parts.items()), self.own), *rest)

    def replicate_for_data_parallel(self) -> Any:
        module: Any = self.module
        replica = type(module)._replicate_for_data_parallel(module)
        _OnKiln(replica, self.parts, self.own).put()
        return replica

    def prepare_scriptable(self) -> Any:
        """A module of the same parts that is not optimized: TorchScript compiles the class's own forward."""
        module: Any = self.module
        plain = type(module).__new__(type(module))
        plain.__dict__.update(self.plain())
        plain.__dict__["_modules"] = dict(module._modules)
        prepare = getattr(plain, "__prepare_scriptable__", None)
        return plain if prepare is None else prepare()

    def __deepcopy__(self, memo: Any) -> _OnKiln:
        """For classes that copy attributes by themselves."""
        parts, own = copy.deepcopy((list(self.parts.items()), self.own), memo)
        return _OnKiln(memo.get(id(self.module)), dict(parts), own)

    def __reduce__(self) -> Any:
        return _made, (list(self.parts.items()),)


_active.forwards.add(id(_OnKiln._within.__code__))


def _made(parts: Any) -> _OnKiln:
    return _OnKiln(None, dict(parts))


class _Forward:
    """The forward of an optimized module, with the signature of its class's."""

    def __init__(self, on_kiln: _OnKiln) -> None:
        self.on_kiln = on_kiln

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.on_kiln.run(args, kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._own())

    def _own(self) -> Any:
        module: Any = self.on_kiln.module
        return self.on_kiln.own or type(module).forward.__get__(module)

    def __getattr__(self, name: str) -> Any:
        """Programs read of a forward what a method has: torch.export its code."""
        if name in ("__code__", "__defaults__", "__globals__", "__name__", "__qualname__"):
            return getattr(self._own(), name)
        raise AttributeError(name)


def _remade(made: Any, arguments: Any, parts: Any, own: Any) -> Any:
    module = made(*arguments)
    _OnKiln(module, dict(parts), own).put()
    return module


def _is_optimized(module: nn.Module) -> bool:
    return _attribute in module.__dict__


def _has_a_forward(module: nn.Module) -> bool:
    """Whether the module has a forward that optimize() can take: not lists of modules, TorchScript, nor layers without
    their shapes yet."""
    if isinstance(module, (torch.jit.ScriptModule, nn.modules.lazy.LazyModuleMixin)):
        return False
    return type(module).forward is not nn.Module.forward


def optimize(model: Module, *, strict: bool = False, fold: bool | None = None) -> Module:
    """Has Kiln compute the layers of `model`, in place, and returns it. What its forward calls as a function
    (F.relu, torch.softmax) counts too.

        net = kiln.torch.optimize(Net())

    The model stays what it is: its parameters and buffers, keys of its state dict, hooks, training flags, the classes of
    its modules; copies of it and what torch.save() stores are optimized too. What Kiln does not serve PyTorch computes, and a
    kiln.Warning says once for each place which that is and why; report() lists all. With `strict` it raises
    kiln.Unsupported or InvalidArgument instead.

    With `fold`, where no gradients are recorded (torch.no_grad, torch.inference_mode) chains of a convolution or linear
    layer with a batch normalisation in eval mode, an addition and an activation run as one kernel. It reads the
    parameters as they are then, so nothing is computed beforehand and nothing grows stale. None, the default: where
    PyTorch is 2.3 or later, so that results which the model keeps become plain tensors.

    A model that is optimized already gets the new settings; a module that is part of two has those of the one that runs.
    restore() undoes it. Raises InvalidArgument for what is no torch.nn.Module.
    """
    errors.require_type("model", model, nn.Module, "a torch.nn.Module")
    errors.require_type("strict", strict, bool, "True or False")
    errors.require_type("fold", fold, (bool, type(None)), "True, False or None")
    settings = Settings(strict, can_become_plain if fold is None else fold, model)
    for name, module in model.named_modules():
        if not _has_a_forward(module):
            continue
        parts: Parts = {}
        if _is_optimized(module):
            on_kiln = module.__dict__[_attribute]
            parts = {each: of for each, of in on_kiln.parts.items() if not (each.are_of(model) or each.are_of(None))}
            on_kiln.take_off()
        parts[settings] = name or type(module).__name__
        _OnKiln(module, parts, module.__dict__.get("forward")).put()
    return model


def restore(model: Module) -> Module:
    """Undoes optimize(): PyTorch computes the layers of `model` again. Returns it. Modules that are part of another
    optimized model too stay on Kiln there."""
    errors.require_type("model", model, nn.Module, "a torch.nn.Module")
    optimized = [module for module in model.modules() if _is_optimized(module)]
    is_whole = any(each.are_of(model) for module in optimized for each in module.__dict__[_attribute].parts)
    for module in optimized:
        on_kiln = module.__dict__[_attribute]
        on_kiln.take_off()
        others = {each: name for each, name in on_kiln.parts.items() if is_whole and not each.are_of(model)}
        if others:
            _OnKiln(module, others, on_kiln.own).put()
    return model


def report(model: nn.Module) -> Places:
    """Places of an optimized model that have run on Kiln so far, and on PyTorch, with the reasons. Raises
    InvalidArgument if the model is not optimized."""
    errors.require_type("model", model, nn.Module, "a torch.nn.Module")
    found = [module.__dict__[_attribute] for module in model.modules() if _is_optimized(module)]
    for on_kiln in found:  # its own, and those of what torch.compile wraps
        for settings in on_kiln.parts:
            if settings.are_of(model) or settings.are_of(getattr(model, "_orig_mod", model)):
                return settings.places
    if found:
        return found[0].settings.places  # type: ignore[no-any-return]
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
