"""Autocast: the type of products, and what PyTorch computes in float32, which differs between a GPU and the CPU."""

from __future__ import annotations

from typing import Any

import torch

_AXES = (1, 2, 3)
_OPERATORS = (
    "softmax.int",
    "log_softmax.int",
    "layer_norm",
    "group_norm",
    "rms_norm",
    "softplus",
    *(f"{kind}_pool{axes}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for axes in _AXES),
    *(f"{kind}_pad{axes}d" for kind in ("reflection", "replication") for axes in _AXES),
    *(f"upsample_{kind}{axes}d" for kind in ("nearest", "linear", "bilinear", "trilinear", "bicubic") for axes in _AXES),
    *(f"_upsample_nearest_exact{axes}d" for axes in _AXES),
)
_WIDEST = ("grid_sampler",)  # operators that autocast of a GPU computes in the widest type of their inputs


def has_a_type(operator: str, key: str) -> bool:
    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{operator}", f"Autocast{key}"))
    except RuntimeError:  # an older PyTorch does not have the operator
        return False


# PyTorch's operators that autocast computes in float32, of those that Kiln's functions are.
IN_F32 = {key.lower(): frozenset(each for each in _OPERATORS if has_a_type(each, key)) for key in ("CPU", "CUDA")}
IN_F32["cpu"] |= {each for each in _WIDEST if has_a_type(each, "CPU")}


_is_any_enabled = getattr(torch._C, "_is_any_autocast_enabled", None)  # PyTorch 1.13 does not have it


def autocasting(tensor: torch.Tensor) -> bool:
    if _is_any_enabled is not None and not _is_any_enabled():
        return False
    if hasattr(torch, "get_autocast_dtype"):  # from PyTorch 2.4 on
        return bool(torch.is_autocast_enabled(tensor.device.type))
    if tensor.is_cuda:
        return bool(torch.is_autocast_enabled())
    return bool(torch.is_autocast_cpu_enabled())


def autocast_dtype(device: str) -> torch.dtype:
    """Type in which autocast computes convolutions and products, on "cuda" or "cpu"."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device)
    return torch.get_autocast_gpu_dtype() if device == "cuda" else torch.get_autocast_cpu_dtype()


def cast_by_autocast(tensor: torch.Tensor) -> bool:
    """Autocast leaves float64 as it is, which Kiln then refuses."""
    return tensor.dtype.is_floating_point and tensor.dtype != torch.float64


def autocast_type(tensor: torch.Tensor, operator: str) -> torch.dtype:
    """The type that autocast gives the operator of PyTorch: float32, or that of its input."""
    in_f32 = autocasting(tensor) and cast_by_autocast(tensor) and operator in IN_F32.get(tensor.device.type, ())
    return torch.float32 if in_f32 else tensor.dtype


def as_autocast(tensor: torch.Tensor, operator: str) -> Any:
    """The tensor in that type."""
    return tensor.to(autocast_type(tensor, operator))


def as_autocasts(operator: str, *tensors: torch.Tensor) -> tuple[Any, ...]:
    """The same for operators of several inputs, which have one type."""
    first = tensors[0]
    if operator in _WIDEST and first.is_cuda and autocasting(first) and all(map(cast_by_autocast, tensors)):
        dtypes = {each.dtype for each in tensors}
        return tensors if len(dtypes) == 1 else tuple(each.float() for each in tensors)
    return tuple(as_autocast(each, operator) for each in tensors)
