"""Whole models from ONNX files: load() one, and call it (docs/models.md)."""

from __future__ import annotations

import dataclasses
import operator
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _kiln, _kiln_model
from ._arrays import Array, CudaArray, Stream, TorchTensor, empty, named_dtype, streams_of
from ._context import Context, Path, context_for
from ._tables import html_table, text_table
from .errors import InvalidArgument, Unsupported, require_text, require_type

if TYPE_CHECKING:
    import cupy
    import torch
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class ModelTensor:
    """An input or output of a model. `type`: in the file ("float", "int64", "bool"); `dtype`: on the device ("f32")."""

    name: str
    type: str
    dtype: str
    shape: tuple[int, ...]  # -1 for an open extent, of a model without sizes

    def __str__(self) -> str:
        extents = "x".join("?" if extent < 0 else str(extent) for extent in self.shape) or "one element"
        return f"{self.name}: {self.type} {extents} (on the device {self.dtype})"


@dataclasses.dataclass(frozen=True)
class ModelStep:
    """A step of a run: a call, with its request, variant, choice and nodes of the model, or a copy, without nodes."""

    request: str
    definition: str = dataclasses.field(repr=False)  # of its user code: what a requests file has in front; or ""
    variant: str
    source: str
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ModelMemory:
    """Device memory of a model, in bytes.

    `weights`: constants, values computed from them once, and prepared filters. `arena`: values in between, and
    workspaces; `least_arena`: the most that one step needs; `unshared`: size of the arena without sharing.
    """

    weights: int
    arena: int
    least_arena: int
    unshared: int

    def __str__(self) -> str:
        weights, arena, unshared = (f"{size / 2**20:.2f} MiB" for size in (self.weights, self.arena, self.unshared))
        return f"{weights} of weights, {arena} in between ({unshared} if nothing were shared)"


@dataclasses.dataclass(frozen=True)
class ModelCost:
    """Cost for the host of making a model ready for a size.

    `seconds`: in all. `compiled`: kernels that neither bundles nor the store of compiled kernels had;
    `compile_seconds`: their duration, summed over threads.
    """

    seconds: float
    compiled: int
    compile_seconds: float

    def __str__(self) -> str:
        compiles = f"{self.compiled} kernels compiled in {1e3 * self.compile_seconds:.0f} ms" if self.compiled else "without a compile"
        return f"ready after {1e3 * self.seconds:.0f} ms of the host's time, {compiles}"


@dataclasses.dataclass(frozen=True)
class ModelGraphs:
    """The CUDA graphs of a model's runs.

    A run whose tensors have the addresses of one of the last runs is launched as one CUDA graph, not kernel by kernel.
    The second run at the same addresses makes it; up to four are kept for each size. `kept` counts the graphs of all
    sizes. `unused_because` is empty, or the reason why there are none: `use_graph`, recorded calls, or the driver's
    refusal.
    """

    kept: int
    unused_because: str


# Types of a model whose name in NumPy is another one.
_numpy_names = {
    "bool": "bool_",
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e5m2": "float8_e5m2",
}
_alignment = 16  # bytes, of the addresses that a run takes


class Model:
    """A network, compiled and loaded, with its weights on the device: load() makes it. Valid while its Context is.

    A size of a model is a set of shapes of all its inputs. `batch`, `inputs`, `outputs`, `steps`, `memory` and `cost`
    are those of the size in use: the last one that load(), set_shapes(), set_batch() or a call took. `sizes` counts
    those that are kept. `declared_inputs` has -1 where the file leaves an extent open.
    Calls of several threads take turns. Runs share one arena: on a GPU they must be ordered, by one stream or
    otherwise.
    """

    def __init__(
        self,
        path: Path,
        batch: int | None,
        shapes: Mapping[str, Sequence[int]],
        dtype: str | None,
        layout: str,
        limits: tuple[int, int],
        flags: set[str],
        context: Context,
    ) -> None:
        self.path = os.fspath(path)
        self._context = context
        self._lock = threading.RLock()  # a call of a model makes a run
        self._model = _kiln_model.Model(context, self.path, batch, _extents(shapes), dtype, layout, limits, flags)
        _kiln.do_work(context, self._model.load(), _kiln.Arguments({}, {}, {}), (), (0, []))
        self.has_open_batch: bool = self._model.has_open_batch()
        self.has_open_extents: bool = self._model.has_open_extents()
        self.declared_inputs = tuple(ModelTensor(*tensor) for tensor in self._model.declared_inputs())
        self._describe()
        both = {tensor.name for tensor in self.inputs} & {tensor.name for tensor in self.outputs}
        if both:
            raise Unsupported(f"{self.path}: '{min(both)}' is an input and an output", "put an Identity in between")

    def _describe(self) -> None:
        self.batch: int = self._model.batch()
        self.sizes: int = self._model.sizes()
        self.inputs = tuple(ModelTensor(*tensor) for tensor in self._model.inputs())
        self.outputs = tuple(ModelTensor(*tensor) for tensor in self._model.outputs())
        self.steps = tuple(ModelStep(*step) for step in self._model.steps())
        _kiln.learn_definitions("\n".join({step.definition for step in self.steps if step.definition}))
        self.memory = ModelMemory(*self._model.memory())
        self.cost = ModelCost(*self._model.cost())

    @property
    def graphs(self) -> ModelGraphs:
        """The CUDA graphs that runs have become so far."""
        with self._lock:
            return ModelGraphs(*self._model.graphs())

    def set_shapes(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Makes the model take inputs of these shapes; a call does so by itself if the file leaves extents open.

            model.set_shapes({"x": (1, 3, 480, 640)})

        Inputs that are not named take open extents from others with extents of the same name in the file. Plans and
        CUDA graphs of a size are kept for its return, within the limits of load(). A new size reads the files again,
        which must not have changed, and makes its plans; weights are shared. If it needs a larger arena than the sizes
        before, the arena is allocated anew, and CUDA graphs that a caller captured before must not be launched any
        more, nor those of a size that was given up: set the largest one first.
        """
        with self._lock:
            self._work(self._model.set_shapes(_extents(shapes)))

    def set_batch(self, batch: int) -> None:
        """Changes the batch, as set_shapes() does; also where the file fixes a batch, and all inputs have it."""
        _require_batch(batch)
        with self._lock:
            self._work(self._model.set_batch(batch))

    def _work(self, work: object) -> None:
        try:
            _kiln.do_work(self._context, work, _kiln.Arguments({}, {}, {}), (), (0, []))
        finally:  # Ctrl-C is raised behind what was done
            self._describe()

    @overload
    def __call__(self, *arrays: TorchTensor, stream: Stream = None, **named: TorchTensor) -> torch.Tensor: ...
    @overload
    def __call__(self, *arrays: CudaArray, stream: Stream = None, **named: CudaArray) -> cupy.ndarray: ...
    @overload
    def __call__(self, *arrays: Array, stream: Stream = None, **named: Array) -> NDArray[Any]: ...
    def __call__(self, *arrays: Array, stream: Stream = None, **named: Array) -> Any:
        """One inference: the inputs in their order, or by name. Returns the output, or a tuple of several outputs. Type
        checkers see one array, which may also be unpacked.

        Arrays are used in place if they have the shapes and device types of `inputs`, in row-major order. Other arrays
        of NumPy are converted; of other frameworks they are refused. If the file leaves extents open, those of the
        arrays are taken, as by set_shapes(). Results of NumPy have the types of the model (int64 is int32 on the device, bool
        is uint8), results of other frameworks the device's types. The call is enqueued on `stream` or the current
        stream of PyTorch or CuPy. Raises InvalidArgument for missing or wrong inputs; then nothing is enqueued.
        """
        given = self._by_name(arrays, named)
        first = next(iter(given.values()), None)
        with self._lock:
            self._take_shapes_of(given)
            tensors = {tensor.name: _on_device(tensor, given[tensor.name]) for tensor in self.inputs}
            results = {tensor.name: _empty(first, tensor) for tensor in self.outputs}
            self.run(tensors, results, stream=stream)
            returned = tuple(_as_in_model(tensor, results[tensor.name]) for tensor in self.outputs)
        return returned[0] if len(returned) == 1 else returned

    def _take_shapes_of(self, given: Mapping[str, Array]) -> None:
        if not (self.has_open_batch or self.has_open_extents):
            return
        shapes = {
            tensor.name: tuple(given[tensor.name].shape)
            for tensor in self.inputs
            if hasattr(given.get(tensor.name), "shape")
        }
        differs = any(shapes.get(tensor.name, tensor.shape) != tensor.shape for tensor in self.inputs)
        if (differs or not self.sizes) and len(shapes) == len(self.inputs):
            self.set_shapes(shapes)

    def run(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], *, stream: Stream = None) -> None:
        """One inference into the caller's arrays, by name, with the shapes and device types of `inputs` and `outputs`.

        Nothing is converted or copied. The second run with arrays at the same addresses makes a CUDA graph of the
        kernels, and later runs launch it (`graphs`). After the first run of a size, runs can be captured into a CUDA
        graph of yours.
        """
        for name in inputs:
            if name in outputs:
                raise InvalidArgument(f"'{name}' is given as an input and as an output")
        tensors = {**inputs, **outputs}
        arguments = _kiln.Arguments(tensors, {}, {})
        streams = streams_of(stream, tensors.values())
        with self._lock:
            self._take_shapes_of(inputs)
            names = {tensor.name for tensor in self.outputs}
            for name in outputs:
                if name not in names:
                    raise InvalidArgument(f"the model has no output '{name}'", f"it has {', '.join(sorted(names))}")
            _kiln.do_work(self._context, self._model.run(), arguments, names, streams)

    def requests(self) -> list[str]:
        """The model's requests for kiln.tune(): the definitions of user code, then each request of a run once."""
        definitions = dict.fromkeys(step.definition for step in self.steps if step.definition)
        return [*definitions, *dict.fromkeys(step.request for step in self.steps)]

    def _by_name(self, arrays: Sequence[Array], named: Mapping[str, Array]) -> dict[str, Array]:
        names = [tensor.name for tensor in self.inputs]
        known = f"it has {', '.join(names)}"
        if len(arrays) > len(names):
            raise InvalidArgument(f"{len(arrays)} inputs are given, and the model has {len(names)}", known)
        given = dict(zip(names, arrays))
        for name, array in named.items():
            if name not in names:
                raise InvalidArgument(f"the model has no input '{name}'", known)
            if name in given:
                raise InvalidArgument(f"input '{name}' is given twice")
            given[name] = array
        for tensor in self.inputs:
            if tensor.name not in given:
                raise InvalidArgument(f"input '{tensor.name}' is not given", f"it is {tensor}")
        return given

    _headings = ("request", "variant", "choice", "nodes")

    def _rows(self) -> list[list[str]]:
        return [
            [step.request, step.variant, step.source, ", ".join(step.nodes) or "(copy)"] for step in self.steps
        ]

    def _heading(self) -> list[str]:
        return [
            f"{self.path} on {self._context.device_description}",
            *(f"input  {tensor}" for tensor in self.inputs),
            *(f"output {tensor}" for tensor in self.outputs),
            f"memory: {self.memory}",
            str(self.cost),
        ]

    def __repr__(self) -> str:
        return "\n".join([*self._heading(), text_table(self._headings, self._rows())])

    def _repr_html_(self) -> str:
        return html_table((), [[line] for line in self._heading()]) + html_table(self._headings, self._rows())


def load(
    path: Path,
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dtype: str | None = None,
    dynamic_batch: bool = False,
    fuse: bool = True,
    layout: str = "auto",
    use_graph: bool = True,
    tf32: bool = False,
    fast: bool = False,
    deterministic: bool = False,
    kept_sizes: int = 32,
    kept_bytes: int = 256 << 20,
    context: Context | None = None,
) -> Model:
    """The model in an ONNX file, compiled and loaded, with the best variants that the Context knows.

        model = kiln.onnx.load("model.onnx", batch=8)
        y = model(x)

    `batch`: the batch of a model that leaves it open, by default 1; calls may have any other. `shapes`: shapes of
    inputs, by their names, whose extents the file leaves open; without them, the first call says them. `kept_sizes` and
    `kept_bytes`: limits of the sizes that are kept ready, and of the weights that only one of them needs; the size that
    was not used for longest is given up for another. `dtype`: storage of
    floating-point numbers ("f16"), by default the model's own. `dynamic_batch`: kernels serve every batch of a
    power-of-two bucket, so that another batch of the bucket compiles nothing. `fuse`: normalisations go into filters,
    and calls into the epilogue of the call before them, if this changes only roundings. `layout`: "nchw" or "nhwc" for
    values between convolutions, "auto" for the cheaper one by Kiln's estimates. `use_graph`: runs on arrays at earlier
    addresses are launched as one CUDA graph. `tf32`, `fast`, `deterministic`: arithmetic that convolutions, products
    and reductions permit or demand, as in their own calls. With `fast`, Winograd's transforms may serve convolutions;
    their filters are transformed once. Without a `context`, the default one serves new sizes at once; with
    `deterministic`, a default one that does not. Raises FileError, ParseError, the errors of plan(), and Unsupported,
    which names all nodes that are not covered with the reasons.
    """
    require_type("path", path, (str, os.PathLike), "the path of an ONNX model")
    if batch is not None:
        _require_batch(batch)
    if dtype is not None:
        require_text("dtype", dtype)
    require_text("layout", layout)
    flags = {
        "dynamic_batch": dynamic_batch,
        "fuse": fuse,
        "use_graph": use_graph,
        "tf32": tf32,
        "fast": fast,
        "deterministic": deterministic,
    }
    for name, flag in flags.items():
        require_type(name, flag, bool, "True or False")
    limits = (_limit("kept_sizes", kept_sizes), _limit("kept_bytes", kept_bytes))
    wanted = {name for name, flag in flags.items() if flag}
    chosen = context_for(context, first_call="exact" if deterministic else "at_once")
    return Model(path, batch, shapes or {}, dtype, layout, limits, wanted, chosen)


def _limit(name: str, limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit < 2**63:
        raise InvalidArgument(f"{name} is {limit!r}", "give a number, 0 or more")
    return limit


def _extents(shapes: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    if not isinstance(shapes, Mapping):
        raise InvalidArgument(f"shapes is {shapes!r}", "give a mapping of names to shapes: {'x': (1, 3, 224, 224)}")
    extents = {}
    for name, shape in shapes.items():
        try:
            extents[str(name)] = [operator.index(extent) for extent in shape]
        except TypeError:
            raise InvalidArgument(f"the shape of '{name}' is {shape!r}", "give a tuple of integers") from None
        if not all(-(2**63) <= extent < 2**63 for extent in extents[str(name)]):
            raise InvalidArgument(f"the shape of '{name}' is {shape!r}", "give extents of 64 bits")
    return extents


def _require_batch(batch: object) -> None:
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise InvalidArgument(f"batch is {batch!r}", "give a number, 1 or more")


def _is_numpy(array: Array) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def _on_device(tensor: ModelTensor, array: Array) -> Array:
    """`array` as a run takes it: a copy only of NumPy's, and where type or layout ask for it."""
    if not _is_numpy(array):
        return array
    numpy = sys.modules["numpy"]
    if array.shape != tensor.shape:
        raise InvalidArgument(f"input '{tensor.name}' has the shape {array.shape}", f"the model is for {tensor.shape}")
    wanted = numpy.dtype(named_dtype(numpy, _kiln.framework_name(tensor.dtype)))
    if array.dtype != wanted:
        if array.dtype.kind in "OSUcMm" or array.dtype.names:
            raise InvalidArgument(f"input '{tensor.name}' has elements of {array.dtype}", f"give {wanted}")
        array = _converted(tensor.name, array, wanted)
    address, _ = array.__array_interface__["data"]
    if not array.flags.c_contiguous or address % _alignment:
        array = array.copy(order="C")
    return array


def _converted(name: str, array: Array, wanted: Any) -> Array:
    """`array` with elements of `wanted`, which has to hold them: a float may be rounded, and infinite or NaN before."""
    numpy = sys.modules["numpy"]
    with numpy.errstate(all="ignore"):
        converted = array.astype(wanted)
    if wanted.kind in "iu":
        limits = numpy.iinfo(wanted)
        numbers = array if array.dtype.kind in "biu" else array.astype("float64")
        wrong = (numbers < limits.min) | (numbers > limits.max) | (numbers != numbers // 1)
    else:
        wrong = numpy.isfinite(array) & ~numpy.isfinite(converted)
    if wrong.any():
        raise InvalidArgument(f"input '{name}' holds {array[wrong].flat[0]}, which {wanted} does not hold")
    return converted


def _empty(first: Array | None, tensor: ModelTensor) -> Array:
    strides = [0] * len(tensor.shape)
    stride = 1
    for dimension in reversed(range(len(strides))):
        strides[dimension] = stride
        stride *= max(tensor.shape[dimension], 1)
    return empty(first, _kiln.framework_name(tensor.dtype), tensor.shape, strides)


def _as_in_model(tensor: ModelTensor, array: Array) -> Array:
    """`array`, which a run has written; one of NumPy in the type that the model has."""
    if not _is_numpy(array):
        return array
    numpy = sys.modules["numpy"]
    return array.astype(named_dtype(numpy, _numpy_names.get(tensor.type, tensor.type)), copy=False)
