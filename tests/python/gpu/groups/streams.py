"""Order between calls, streams and PyTorch's caching allocator."""

import torch

import kiln
import kiln.torch.functional as K

from checks import DEVICE, check
from tensors import compare, error_of, exact, sleep_on_device, synchronize, tensor


def race(call, name):
    """Inputs come late, and are overwritten at once behind the call."""
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            for i in range(12):
                x = torch.full((4, 16, 24, 24), float("nan"), device=DEVICE)
                sleep_on_device(ms=2)
                x.fill_(float(i + 1))
                y = call(x)
                x.fill_(float("nan"))  # behind the call
                expected = call(torch.full_like(x, float(i + 1)))
                stream.synchronize()
                assert not bool(y.isnan().any()) and torch.allclose(y, expected, rtol=1e-5), f"{name} round {i}"


@check("order of calls and fills on default and side streams", cuda=True)
def _():
    w = tensor((16, 16, 3, 3), "f32")
    race(lambda x: kiln.conv_forward(x, w, pad=1, deterministic=True), "conv")
    race(lambda x: kiln.softmax_forward(x), "softmax")
    race(lambda x: K.avg_pool2d(K.conv2d(x, w, padding=1), 2), "K")


@check("stream=: waits for the current stream, which waits for it; memory is released at once", cuda=True)
def _():
    side = torch.cuda.Stream()
    w = tensor((16, 16, 3, 3), "f32")
    x0 = tensor((4, 16, 24, 24), "f32")
    ref = kiln.conv_forward(x0, w, pad=1)
    for i in range(30):
        x = torch.full_like(x0, float("nan"))
        sleep_on_device(ms=1)
        x.copy_(x0)
        y = kiln.conv_forward(x, w, pad=1, stream=side if i % 3 else side.cuda_stream)
        del x
        other = torch.full_like(x0, float("nan"))  # likely the memory of x
        z = y * 1.0
        del y, other
        synchronize()
        assert error_of(z, exact(ref)) < 1e-6, i


@check("caching allocator: 400 rounds of allocating, calling, freeing on three streams, no synchronisation", cuda=True)
def _():
    streams = [torch.cuda.Stream() for _ in range(3)]
    w, long = tensor((24, 16, 3, 3), "f16"), tensor((20000, 3), "f32")
    base = tensor((4, 16, 20, 20), "f16")
    lhs = tensor((2, 20000), "f32")
    ref, refg = kiln.conv_forward(base, w, pad=1).float().sum(), kiln.gemm(lhs, long)
    synchronize()
    sums, products = [], []
    for i in range(400):
        with torch.cuda.stream(streams[i % 3]):
            x = base.clone()
            y = kiln.conv_forward(x, w, pad=1)
            x.fill_(float("nan"))
            sums.append(y.float().sum())
            if i % 4 == 0:
                a = lhs.clone()
                products.append(K.matmul(a, long) if i % 8 else kiln.gemm(a, long))  # with workspace
                a.fill_(float("nan"))
            y.fill_(float("nan"))
            del x, y
    synchronize()
    wrong = [i for i, s in enumerate(sums) if not torch.allclose(s, ref, rtol=1e-4)]
    off = [i for i, p in enumerate(products) if not error_of(p, exact(refg)) < 1e-4]
    assert not wrong and not off, f"rounds {wrong[:10]}, products {off[:10]}"


@check("workspace of a Context on 24 streams at once", cuda=True)
def _():
    streams = [torch.cuda.Stream() for _ in range(24)]
    lefts = [tensor((2, 20000), "f32") for _ in streams]
    b = tensor((20000, 3), "f32")
    kiln.gemm(lefts[0], b)
    synchronize()
    out = []
    for _ in range(5):
        for s, a in zip(streams, lefts):
            with torch.cuda.stream(s):
                out.append(kiln.gemm(a, b))
    synchronize()
    compare(*((str(i), y, exact(lefts[i % 24]) @ exact(b), 1e-4) for i, y in enumerate(out)))


@check("no growth of device memory over 3000 calls", cuda=True)
def _():
    x, w = tensor((4, 16, 20, 20), "f16"), tensor((24, 16, 3, 3), "f16")
    grown = []
    for _ in range(6):  # the first warms up
        before = torch.cuda.mem_get_info()[0]
        for _ in range(300):
            K.conv2d(x, w, padding=1)
            kiln.conv_forward(x, w, pad=1)
        synchronize()
        grown.append(before - torch.cuda.mem_get_info()[0])
    # The driver counts the memory of the whole device, which other processes take meanwhile. What leaks grows each time.
    assert min(grown[1:]) <= 1 << 20, grown
    return f"{min(grown[1:])} bytes"


@check("the legacy and the per-thread default stream by number", cuda=True)
def _():
    x = tensor((64, 64), "f32")
    for stream in (0, 1, 2):
        y = torch.full_like(x, float("nan"))
        kiln.activation_forward(x, mode="relu", out=y, stream=stream)
        synchronize()
        compare((f"stream {stream}", y, exact(x).relu()))
