"""What Kiln has to know of the frameworks whose tensors it is given. It imports none of them itself."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from .errors import InvalidArgument

Array = Any  # an array or tensor: of NumPy, PyTorch, CuPy, JAX, or with __dlpack__ or the buffer protocol
Stream = Any  # None, an address, or a stream of PyTorch or CuPy


def _framework(array: Array) -> str:
    return type(array).__module__.partition(".")[0]


def _is_torch(array: Array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def device_of(tensors: Iterable[Array]) -> int:
    """The CUDA device that the first of `tensors` lies on which says so; 0 if none does."""
    for tensor in tensors:
        if _is_torch(tensor) and tensor.is_cuda:
            return int(tensor.device.index)
        if _framework(tensor) == "cupy":
            return int(tensor.device.id)
    return 0


def stream_address(stream: Stream, tensors: Iterable[Array]) -> int:
    """The address of `stream`; None is the current one of the framework whose tensors these are, else the default."""
    if stream is None:
        for tensor in tensors:
            if _is_torch(tensor) and tensor.is_cuda:
                return int(sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream)
            if _framework(tensor) == "cupy":
                return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
        return 0
    if isinstance(stream, int) and 0 <= stream < 1 << 64:
        return stream
    if hasattr(stream, "cuda_stream"):
        return int(stream.cuda_stream)
    if hasattr(stream, "ptr"):
        return int(stream.ptr)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise InvalidArgument(f"stream is {stream!r}", "give an address, or a stream of PyTorch or CuPy")


def empty(like: Array, dtype: str, extents: Sequence[int], strides: Sequence[int]) -> Array:
    """A new tensor without gaps of the framework of `like`, on its device; of NumPy for frameworks that are not known.

    `dtype` as frameworks call it ("float32"); `strides` in elements say the order of the dimensions in memory.
    """
    order = sorted(range(len(extents)), key=lambda dimension: -strides[dimension])
    packed = [extents[dimension] for dimension in order]
    places = sorted(range(len(order)), key=order.__getitem__)
    if _is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(packed, dtype=getattr(torch, dtype), device=like.device).permute(places)
    library = importlib.import_module("cupy" if _framework(like) == "cupy" else "numpy")
    return library.empty(packed, named_dtype(library, dtype)).transpose(places)


def named_dtype(library: Any, name: str) -> Any:
    """The type that frameworks call `name`, of NumPy or CuPy; those that these have not are of ml_dtypes."""
    if hasattr(library, name):
        return getattr(library, name)
    return getattr(importlib.import_module("ml_dtypes"), name)  # NumPy's bfloat16 and fp8
