"""Properties of the frameworks whose tensors Kiln is given. It imports none of them itself."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .errors import InvalidArgument

Array = Any  # an array or tensor: of NumPy, PyTorch, CuPy, JAX, or with __dlpack__ or the buffer protocol
Stream = Any  # None, an address, or a stream of PyTorch or CuPy


class TorchTensor(Protocol):
    """A torch.Tensor as type checkers see it where PyTorch need not be installed."""

    @property
    def is_cuda(self) -> bool: ...
    @property
    def requires_grad(self) -> bool: ...


class CudaArray(Protocol):
    """The same of an array of CuPy."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


def _framework(array: Array) -> str:
    return type(array).__module__.partition(".")[0]


def _is_torch(array: Array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def device_of(tensors: Iterable[Array]) -> int:
    """The CUDA device that the first of `tensors` lies on which says so; 0 if none does."""
    for tensor in tensors:
        if _is_torch(tensor):
            if tensor.is_cuda:
                return int(tensor.get_device())
        elif _framework(tensor) == "cupy":
            return int(tensor.device.id)
    return 0


def stream_address(stream: Stream) -> int:
    """The address of `stream`, which is one. Raises InvalidArgument."""
    if isinstance(stream, int) and not isinstance(stream, bool) and 0 <= stream < 1 << 64:
        return stream
    if hasattr(stream, "cuda_stream"):
        return int(stream.cuda_stream)
    if hasattr(stream, "ptr"):
        return int(stream.ptr)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise InvalidArgument(f"stream is {stream!r}", "give an address, or a stream of PyTorch or CuPy")


def _current_stream_of_torch(device: int) -> int:
    """The address of PyTorch's current stream of a GPU. PyTorch's own compilers ask the first of these, which makes no
    objects; older versions lack it."""
    torch = sys.modules["torch"]
    of_c = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    return int(torch.cuda.current_stream(device).cuda_stream if of_c is None else of_c(device))


def _current_streams(tensors: Iterable[Array]) -> list[int]:
    """Addresses of the current streams of the frameworks whose tensors these are, in that order."""
    found: dict[object, int] = {}
    torch = sys.modules.get("torch")
    for tensor in tensors:
        if torch is not None and isinstance(tensor, torch.Tensor):
            if tensor.is_cuda and (device := tensor.get_device()) not in found:
                found[device] = _current_stream_of_torch(device)
        elif _framework(tensor) == "cupy" and "cupy" not in found:
            found["cupy"] = int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return list(found.values())


def streams_of(stream: Stream, tensors: Iterable[Array], *memory: int | None) -> tuple[int, list[int]]:
    """The address of the stream that a call runs on, and those of others that come before it and wait for it.

    None is the current stream of the framework whose tensors these are, else the default one. The others are further
    current ones, on which frameworks make elements ready and give freed memory away, and those of `memory`.
    """
    current = _current_streams(tensors)
    own = stream_address(stream) if stream is not None else current[0] if current else 0
    return own, [other for other in (*current, *memory) if other is not None and other != own]


def empty(like: Array, dtype: str, extents: Sequence[int], strides: Sequence[int]) -> Array:
    """A new tensor without gaps of the framework of `like`, on its device; of NumPy for frameworks that are not known.

    `dtype` as frameworks call it ("float32"); `strides` in elements say the order of the dimensions in memory.
    """
    packed, places, packed_strides = _packed(tuple(extents), tuple(strides))
    if _is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty_strided(extents, packed_strides, dtype=getattr(torch, dtype), device=like.device)
    library = importlib.import_module("cupy" if _framework(like) == "cupy" else "numpy")
    return library.empty(packed, named_dtype(library, dtype)).transpose(places)


Integers = tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _packed(extents: Integers, strides: Integers) -> tuple[Integers, Integers, Integers]:
    """A tensor without gaps whose dimensions are in the order that `strides` say: its extents in the order of memory, the
    place of each dimension among these, and the stride of each dimension."""
    order = sorted(range(len(extents)), key=lambda dimension: -strides[dimension])
    places = sorted(range(len(order)), key=order.__getitem__)
    behind, stride = {}, 1
    for dimension in reversed(order):
        behind[dimension] = stride
        stride *= max(extents[dimension], 1)
    return (
        tuple(extents[dimension] for dimension in order),
        tuple(places),
        tuple(behind[dimension] for dimension in range(len(order))),
    )


def named_dtype(library: Any, name: str) -> Any:
    """The type that frameworks call `name`, of NumPy or CuPy; those that these have not are of ml_dtypes."""
    if hasattr(library, name):
        return getattr(library, name)
    return getattr(importlib.import_module("ml_dtypes"), name)  # NumPy's bfloat16 and fp8
