"""Context: one device, its tuning database and its plans."""

from __future__ import annotations

import atexit
import dataclasses
import operator
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from . import _kiln, _library, errors
from ._arrays import Array, device_of
from ._explanation import Explanation

Path = str | os.PathLike[str]
FirstCall = Literal["exact", "at_once"]
# allocate(bytes, stream) and release(address, bytes, stream); allocate returns an address, or None.
WorkspaceAllocator = tuple[Callable[[int, int], int | None], Callable[[int, int, int], object]]


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Whether a Context tunes what has no time of its device yet, in worker processes (docs/tuning.md).

    `mode`: "never"; "within_budget": before the first call of a shape returns; "in_background": calls never wait, and
    later ones use the better variant. `budget`: the most seconds that the Context spends on it in all. `candidates`:
    the most variants of each request that get a time.
    """

    mode: Literal["never", "within_budget", "in_background"] = "never"
    budget: float = 60.0
    candidates: int = 16

    def __post_init__(self) -> None:
        errors.require_type("budget", self.budget, (int, float), "seconds")
        errors.require_type("candidates", self.candidates, int, "how many variants to time")
        if self.mode not in ("never", "within_budget", "in_background"):
            raise errors.InvalidArgument(f"mode is {self.mode!r}", "give never, within_budget or in_background")


def _path(name: str, path: Path) -> str:
    errors.require_type(name, path, (str, os.PathLike), "a path")
    return os.fspath(path)


def _paths(name: str, paths: Path | Iterable[Path]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    errors.require_type(name, paths, Iterable, "a path, or paths")
    return [_path(name, path) for path in paths]


def _lines_of(name: str, requests: str | Iterable[str]) -> str:
    if isinstance(requests, str):
        return requests
    errors.require_type(name, requests, Iterable, "a request, or requests")
    return "\n".join(errors.require_text("a request", request) for request in requests)


class CompileCount(NamedTuple):
    """The compiles of a Context in this process, in the background too; tuning compiles in workers.

    `seconds`: the host's time for them, the sum over all threads.
    """

    kernels: int
    seconds: float


class PlanCount(NamedTuple):
    """The plans of a Context that are loaded.

    `bytes`: of their compiled code. `held`: those that the limits leave alone, because somebody holds or runs them, or a
    CUDA graph has them. `given_up`: how often a plan was given up so far, because of the limits.
    """

    plans: int
    bytes: int
    held: int
    given_up: int


class Context(_kiln.Context):
    """One device, its tuning database and the plans made so far. All threads may share it.

    `device`: the ordinal. `driver`: "cuda", "emulator" or a path; by default a GPU if there is one, else the emulated
    device. `cache`: the tuning database, `kernel_store`: the folder of compiled kernels; "off" for none. `packs`,
    `bundles`, `user_templates`: a path, or paths, beside those of the environment. `workspace_limit`, `deterministic`,
    `batch_invariant` (a row has the same bits in every batch: docs/numerics.md), `locked`, `allow_failed_variants`,
    `allow_unchecked_templates`: which variants may be used. `kept_plans`, `kept_plan_bytes`: how many plans the Context
    keeps that nobody else holds, and how many bytes of compiled code they may have; those that were not used for longest
    are given up (docs/sizes.md). `first_call`: what serves a shape that has no plan yet, the "exact" plan, or "at_once" a
    kernel of many shapes until that plan is made; KILN_FIRST_CALL, else "exact". `tuning`: what has no time yet.
    `announce`: receives what should be known once; by default it is a kiln.Warning.
    `workspace_allocator`: two functions, by which calls take their workspace from memory of the application's.
    allocate(bytes, stream) returns the address of that much device memory, aligned to 256 bytes, for work that is
    enqueued on that stream next, or None; release(address, bytes, stream) gets it back when that work is enqueued, not
    done. Both are called by the thread that makes the call.

    The settings of docs/environment.md fill what is not given. Raises MissingLibrary, DriverError, InvalidArgument; a
    database, pack or bundle that cannot be used is announced.
    """

    tuning: Tuning

    def __init__(
        self,
        device: int = 0,
        *,
        driver: str | None = None,
        cache: Path | None = None,
        packs: Path | Sequence[Path] = (),
        bundles: Path | Sequence[Path] = (),
        kernel_store: Path | None = None,
        user_templates: Path | Sequence[Path] = (),
        workspace_limit: int | None = None,
        kept_plans: int | None = None,
        kept_plan_bytes: int | None = None,
        first_call: FirstCall | None = None,
        deterministic: bool = False,
        batch_invariant: bool = False,
        locked: bool = False,
        allow_failed_variants: bool = False,
        allow_unchecked_templates: bool = False,
        tuning: Tuning = Tuning(),
        announce: Callable[[str], object] | None = None,
        workspace_allocator: WorkspaceAllocator | None = None,
    ) -> None:
        errors.require_type("device", device, int, "the device's number, from 0")
        errors.require_type("tuning", tuning, Tuning, "a kiln.Tuning")
        for name, flag in (
            ("deterministic", deterministic),
            ("batch_invariant", batch_invariant),
            ("locked", locked),
            ("allow_failed_variants", allow_failed_variants),
            ("allow_unchecked_templates", allow_unchecked_templates),
        ):
            errors.require_type(name, flag, bool, "True or False")
        if announce is not None and not callable(announce):
            raise errors.InvalidArgument(f"announce is {announce!r}", "give a function that takes a string")
        if driver is not None:
            errors.require_text("driver", driver)
        functions = (None, None) if workspace_allocator is None else workspace_allocator
        if workspace_allocator is not None and not (
            isinstance(functions, tuple) and len(functions) == 2 and all(map(callable, functions))
        ):
            raise errors.InvalidArgument(
                f"workspace_allocator is {workspace_allocator!r}", "give two functions, (allocate, release)"
            )
        self.tuning = tuning
        options = _kiln.Options()
        options.set_libraries(driver, _library.nvrtc())
        options.set_tuning(tuning.mode, tuning.budget, tuning.candidates)
        options.device = device
        options.packs = _paths("packs", packs)
        options.bundles = _paths("bundles", bundles)
        options.user_templates = _paths("user_templates", user_templates)
        if cache is not None:
            options.cache = _path("cache", cache)
        if kernel_store is not None:
            options.kernel_store = _path("kernel_store", kernel_store)
        for name, limit in (
            ("workspace_limit", workspace_limit),
            ("kept_plans", kept_plans),
            ("kept_plan_bytes", kept_plan_bytes),
        ):
            if limit is not None:
                errors.require_type(name, limit, int, "a number of plans" if name == "kept_plans" else "a number of bytes")
                if limit >= 2**63:
                    raise errors.InvalidArgument(f"{name} is {limit}", "give less than 2**63")
                setattr(options, name, limit)
        if first_call is not None:
            if first_call not in ("exact", "at_once"):
                raise errors.InvalidArgument(f"first_call is {first_call!r}", 'give "exact" or "at_once"')
            options.set_first_call(first_call == "at_once")
        options.deterministic = deterministic
        options.batch_invariant = batch_invariant
        options.locked = locked
        options.allow_failed_variants = allow_failed_variants
        options.allow_unchecked_templates = allow_unchecked_templates
        announce = announce or errors.warn
        super().__init__(options, announce, *functions)
        named = os.environ.get("KILN_CACHE") if cache is None else _path("cache", cache)
        if named and named != "off" and tuning.mode == "never" and not os.path.exists(named):
            announce(f'there is no database {named}: nothing that was tuned is known (tune into it, or give cache="off")')

    @property
    def compiles(self) -> CompileCount:
        """The kernels that were compiled until now, which neither bundles nor the store had."""
        return CompileCount(*self._compiles())

    @property
    def plan_count(self) -> PlanCount:
        """The plans that are loaded now."""
        return PlanCount(*self._plan_count())

    def prepare(self, requests: str | Iterable[str], *, allow_code: bool = True) -> None:
        """Make the plans of all requests now, so that no later call of theirs compiles while there is room for them.

        `requests`: lines of request syntax, or the text of a requests file. With tuning "within_budget" they are tuned
        first. Raises what the first that fails raises, after trying all.

        `allow_code`: False refuses a text that defines user code (`expression NAME ... end expression`), which runs with
        the rights of the process: for requests of somebody whose code you would not run.
        """
        requests = _lines_of("requests", requests)
        errors.require_type("allow_code", allow_code, bool, "True or False")
        self._prepare(requests, allow_code)

    def prepare_open(self, lines: str | Iterable[str]) -> None:
        """Make open kernels for all sizes of `lines` now: in a Context with `first_call="at_once"` no later call of such
        a size waits for a compile.

        `lines`: requests whose extents may be `?` (any number), `?N` (up to N), `?NAME` or what follows from names,
        `?(h-1)/2+1`; see docs/sizes.md. A convolution of three open extents has some five kernels, a product of three a
        hundred. Before anything is compiled, raises the error of a line of which no size makes a request, and
        Unsupported for a line that no open kernel serves, and if the options let calls take none; then what the first
        kernel that fails raises, after trying all.

            context = kiln.Context(first_call="at_once")
            context.prepare_open("softmax_forward x=f16:?x4096")
        """
        self._prepare_open(_lines_of("lines", lines))

    def explain(self, request: str) -> Explanation:
        """Why `request` runs as it does: the variant that a plan would use, and what stands against the others."""
        return Explanation(self._explain(errors.require_text("request", request)))

    def __repr__(self) -> str:
        return f"<kiln.Context: {self.device_description}>"


class DeviceMemory(_kiln.DeviceMemory):
    """`nbytes` of device memory, 256-byte aligned: workspace for a Plan. Raises InvalidArgument, OutOfMemory."""

    def __init__(self, context: Context, nbytes: int) -> None:
        errors.require_type("context", context, Context, "a kiln.Context")
        try:
            size = operator.index(nbytes)
        except TypeError:
            size = -1
        if not 0 <= size < 1 << 63:
            raise errors.InvalidArgument(f"nbytes is {nbytes!r}", "give a number of bytes, 0 or more")
        super().__init__(context, size)


_defaults: dict[tuple[int, WorkspaceAllocator | None, FirstCall], Context] = {}
_defaults_lock = threading.Lock()


def default_context(device: int = 0) -> Context:
    """The Context of `device` that functions use which are given none: made when it is first asked for.

    Its first_call is "at_once", where KILN_FIRST_CALL does not say otherwise (docs/sizes.md).
    """
    errors.require_type("device", device, int, "the device's number, from 0")
    return default_context_with(device, None)


def default_context_with(
    device: int, workspace_allocator: WorkspaceAllocator | None, *, first_call: FirstCall = "at_once"
) -> Context:
    """The same for each framework whose memory its calls take their workspace from.

    `first_call`: "exact" for calls that have to give equal bits for equal inputs. Two Contexts for that, and one where
    KILN_FIRST_CALL says what it is.
    """
    key = (device, workspace_allocator, first_call)
    found = _defaults.get(key)
    if found is not None:
        return found
    with _defaults_lock:
        named = os.environ.get("KILN_FIRST_CALL")
        one_key = (device, workspace_allocator, "exact" if named == "exact" else first_call)
        if one_key not in _defaults:
            first: FirstCall | None = None if named and first_call == "at_once" else first_call
            _defaults[one_key] = Context(device, workspace_allocator=workspace_allocator, first_call=first)
        return _defaults.setdefault(key, _defaults[one_key])


def context_for(context: Context | None, tensors: Iterable[Array] = (), *, first_call: FirstCall = "at_once") -> Context:
    """`context`; of None, the default one of the tensors' device. Raises InvalidArgument for anything else."""
    if context is None:
        return default_context_with(device_of(tensors), None, first_call=first_call)
    if isinstance(context, Context):
        return context
    raise errors.InvalidArgument(f"context is a {type(context).__name__}", "give a kiln.Context")


@atexit.register
def forget_default_contexts() -> None:
    """Have default_context() make new ones, which read what has been tuned since."""
    with _defaults_lock:
        _defaults.clear()
