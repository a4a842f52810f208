"""CuPy's arrays, and objects that have a protocol alone."""

import numpy as np
import torch
import torch.nn.functional as F

import kiln

from checks import Skip, check, refusal
from tensors import compare, exact, synchronize, tensor


def cupy():
    try:
        import cupy
    except ImportError:
        raise Skip("CuPy is not installed") from None
    return cupy


def of_cupy(array):
    return torch.from_numpy(cupy().asnumpy(array))


@check("CuPy before PyTorch has a context: conv, out, current stream", cuda=True)
def _():
    cp = cupy()
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((2, 3, 12, 13), (5, 3, 3, 3)))
    ref = F.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double(), padding=1)
    gx, gw = cp.asarray(x), cp.asarray(w)
    y = kiln.conv_forward(gx, gw, pad=1)
    assert isinstance(y, cp.ndarray) and y.dtype == cp.float32, type(y)
    notes = [compare(("y", of_cupy(y), ref))]
    side = cp.cuda.Stream(non_blocking=True)
    with side:
        big = cp.full((2, 3, 12, 13), np.nan, cp.float32)
        big[...] = gx
        z = kiln.conv_forward(big, gw, pad=1, epilogue="relu")
        big.fill(np.nan)
    side.synchronize()
    notes.append(compare(("side", of_cupy(z), ref.relu())))
    out = cp.full((2, 5, 12, 13), 9, cp.float32)
    assert kiln.conv_forward(gx[:, :, ::1], gw, pad=1, out=out, stream=side) is out
    notes.append(compare(("out, stream", of_cupy(out), ref)))
    half = kiln.softmax_forward(gx.astype(cp.float16)[:, :, ::2, ::3], axis=1)
    assert half.dtype == cp.float16
    expected = torch.from_numpy(x).half().double()[:, :, ::2, ::3].softmax(1)
    notes.append(compare(("strided f16", of_cupy(half), expected)))
    p, i = kiln.pool_forward(gx, window=2, stride=2, indices=True)
    assert isinstance(i, cp.ndarray) and i.dtype == cp.int32
    return ", ".join(notes)


@check("CuPy: negative strides, float64, device memory pool reuse", cuda=True)
def _():
    cp = cupy()
    x = cp.ones((4, 6), cp.float32)
    for bad in (x[::-1], x.astype(cp.float64)):
        refusal(lambda bad=bad: kiln.softmax_forward(bad), kiln.InvalidArgument)
    stream = cp.cuda.Stream(non_blocking=True)
    base = cp.asarray(np.random.default_rng(1).standard_normal((64, 512), dtype=np.float32))
    ref = cp.asnumpy(kiln.softmax_forward(base))
    cp.cuda.Device().synchronize()
    results = []
    with stream:
        for _ in range(200):
            a = base.copy()
            y = kiln.softmax_forward(a)
            a.fill(cp.nan)
            results.append(y.sum())
            del a, y
    stream.synchronize()
    assert all(abs(float(r) - ref.sum()) < 1e-2 for r in results)


@check("CuPy and PyTorch tensors in one call", cuda=True)
def _():
    cp = cupy()
    a, b = tensor((5, 7), "f32"), cp.arange(7 * 3, dtype=cp.float32).reshape(7, 3)
    c = kiln.gemm(a, b)
    assert isinstance(c, torch.Tensor)
    e = kiln.gemm(cp.from_dlpack(a), torch.from_dlpack(b))
    assert isinstance(e, cp.ndarray)
    expected = exact(a) @ of_cupy(b).double()
    return compare(("PyTorch first", c, expected), ("CuPy first", of_cupy(e), expected))


@check("objects with DLPack alone, and with __cuda_array_interface__ alone", cuda=True)
def _():
    class ByDlpack:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **given):
            return self.t.__dlpack__(**given)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

    class ByInterface:
        def __init__(self, t, **more):
            self.t, self.__cuda_array_interface__ = t, {**t.__cuda_array_interface__, **more}

    x = tensor((6, 9), "f32")
    y = torch.empty_like(x)
    kiln.softmax_forward(ByDlpack(x), out=y)
    notes = [compare(("dlpack", y, exact(x).softmax(1)))]
    b = tensor((6, 9), "bf16")
    z = torch.empty_like(b)
    kiln.softmax_forward(ByDlpack(b), out=ByDlpack(z))
    synchronize()
    notes.append(compare(("dlpack bf16", z, exact(b).softmax(1))))
    for stream in (None, 1, 2, torch.cuda.Stream().cuda_stream):
        y.fill_(0)
        kiln.softmax_forward(ByInterface(x, stream=stream), out=ByInterface(y, stream=stream))
        synchronize()
        compare((f"interface {stream}", y, exact(x).softmax(1)))
    refusal(lambda: kiln.softmax_forward(ByInterface(x, stream=0), out=y), kiln.InvalidArgument)
    return ", ".join(notes)


@check("kiln.DeviceMemory as an array", cuda=True)
def _():
    cp = cupy()
    memory = kiln.DeviceMemory(kiln.default_context(0), 4096)
    array = cp.asarray(memory).view(cp.float32)
    kiln.tensor_set(out=array, value=3.0)
    assert float(array.sum()) == 3072.0
