"""Times of calls on the host and the device, beside PyTorch's. They are printed, not judged."""

import copy
import statistics
import time

import torch
import torch.nn.functional as F

import kiln
import kiln.torch as kt
import kiln.torch.functional as K

from checks import DEVICE, ON_GPU, check
from tensors import TYPES, compare, exact, sleep_on_device, synchronize, tensor


@check("a call on the current side stream waits for nothing else", cuda=True)
def _():
    side = torch.cuda.Stream()
    x, w = tensor((4, 16, 32, 32), "f32"), tensor((16, 16, 3, 3), "f32")
    for _ in range(2):
        with torch.cuda.stream(side):  # memory of this stream's own, which the allocator keeps
            kiln.conv_forward(x, w, pad=1)
    synchronize()
    sleep_on_device(ms=200)  # on the default (legacy) stream; side is non-blocking
    end = torch.cuda.Event()
    t = time.perf_counter()
    with torch.cuda.stream(side):
        y = kiln.conv_forward(x, w, pad=1)
        end.record(side)
    while not end.query() and time.perf_counter() - t < 1:
        pass
    took = time.perf_counter() - t
    synchronize()
    compare(("y", y, F.conv2d(exact(x), exact(w), padding=1)))
    assert took < 0.1, f"the call waited {took:.3f} s for the default stream"
    return f"done after {took * 1e3:.2f} ms, beside a kernel of about 200 ms"


def host_us(function, n=1000):
    for _ in range(20):
        function()
    synchronize()
    best = 1e9
    for _ in range(3):
        t = time.perf_counter()
        for _ in range(n // 3):
            function()
        best = min(best, (time.perf_counter() - t) / (n // 3))
        synchronize()
    return best * 1e6


@check("host time of a call in us (small tensors)")
def _():
    n = 1500 if ON_GPU else 9
    x, y = tensor((1024,), "f32"), torch.empty(1024, device=DEVICE)
    a, b, c = tensor((8, 64), "f16"), tensor((64, 32), "f16"), torch.empty(8, 32, dtype=torch.float16, device=DEVICE)
    context = kiln.default_context(0)
    plan = kiln.plan_of_call("activation_forward", mode="relu", x=x, y=y)
    w = tensor((8, 8, 3, 3), "f16")
    i = tensor((1, 8, 8, 8), "f16")
    o = torch.empty(1, 8, 8, 8, dtype=torch.float16, device=DEVICE)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).to(DEVICE).eval()
    optimized = kt.optimize(copy.deepcopy(net))
    v = tensor((8, 64), "f32")
    rows = {
        "torch.relu": lambda: torch.relu(x),
        "kiln.activation_forward": lambda: kiln.activation_forward(x, mode="relu"),
        "kiln.activation_forward out": lambda: kiln.activation_forward(x, mode="relu", out=y),
        "kiln.activation_forward out context": lambda: kiln.activation_forward(x, mode="relu", out=y, context=context),
        "kiln.call": lambda: kiln.call("activation_forward", mode="relu", x=x, y=y, context=context),
        "plan.run": lambda: plan.run(x=x, y=y),
        "K.relu": lambda: K.relu(x),
        "torch.mm": lambda: torch.mm(a, b),
        "kiln.gemm out": lambda: kiln.gemm(a, b, out=c),
        "K.mm": lambda: K.mm(a, b),
        "F.conv2d": lambda: F.conv2d(i, w, padding=1),
        "kiln.conv_forward out": lambda: kiln.conv_forward(i, w, pad=1, out=o),
        "K.conv2d": lambda: K.conv2d(i, w, padding=1),
        "network of three layers": lambda: net(v),
        "the same, optimized": lambda: optimized(v),
    }
    with torch.no_grad():
        return "".join(f"\n{name}: {host_us(call, n):.1f}" for name, call in rows.items())


def device_us(function, repeat=10):
    """Median time of a call on the GPU, captured into a CUDA graph of `repeat` calls."""
    for _ in range(3):
        function()
    synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        function()
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeat):
            function()
    graph.replay()
    times = []
    for _ in range(7):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / repeat)
    return statistics.median(times)


class Rows:
    """Times of layers by Kiln, untuned, and by PyTorch."""

    def __init__(self):
        self.lines = []
        # Workspace is of PyTorch's allocator, so that calls with workspace can be captured.
        self.options = {"context": kt.default_context(DEVICE)}

    def add(self, name, ours, pytorchs, flops=0, bytes_moved=0):
        times = device_us(ours), device_us(pytorchs)
        unit, amount = ("TFLOP/s", flops / 1e6) if flops else ("GB/s", bytes_moved / 1e3)
        rates = " / ".join(f"{amount / us:.0f}" for us in times)
        self.lines.append(f"{name}: {times[0]:.1f} us, PyTorch {times[1]:.1f} us, {rates} {unit}")

    def add_convolution(self, dt, extents, filters, size, groups=1, backward=False):
        batch, channels, side = extents
        x = torch.randn(batch, side, side, channels, device=DEVICE, dtype=TYPES[dt]).permute(0, 3, 1, 2)
        w = torch.randn(filters, size, size, channels // groups, device=DEVICE, dtype=TYPES[dt]).permute(0, 3, 1, 2)
        flops = 2 * batch * side**2 * filters * (channels // groups) * size**2
        options = {"pad": size // 2, "groups": groups, **self.options}
        y = kiln.conv_forward(x, w, **options)
        name = f"convolution {dt} NHWC {batch}x{channels}x{side}x{side}, {filters} {size}x{size}, {groups} groups"
        self.add(
            name,
            lambda: kiln.conv_forward(x, w, out=y, **options),
            lambda: F.conv2d(x, w, None, 1, size // 2, 1, groups),
            flops,
        )
        if not backward:
            return
        dy, dx, dw = torch.randn_like(y), torch.empty_like(x), torch.empty_like(w)

        def pytorchs(*asked):
            sides = [[1, 1], [size // 2] * 2, [1, 1]]
            torch.ops.aten.convolution_backward(dy, x, w, None, *sides, False, [0, 0], groups, asked)

        self.add(
            f"{name}, by the input",
            lambda: kiln.conv_backward_data(dy, w, out=dx, **options),
            lambda: pytorchs(True, False, False),
            flops,
        )
        self.add(
            f"{name}, by the filter",
            lambda: kiln.conv_backward_filter(x, dy, out=dw, **options),
            lambda: pytorchs(False, True, False),
            flops,
        )


@check(
    "device time of convolutions, beside PyTorch's with cuDNN's benchmark (operands in L2 where they fit)", cuda=True
)
def _():
    torch.backends.cudnn.benchmark = True
    rows = Rows()
    rows.add_convolution("f16", (32, 64, 56), 64, 3, backward=True)
    rows.add_convolution("bf16", (32, 256, 14), 256, 3)
    rows.add_convolution("f16", (32, 256, 56), 64, 1)
    rows.add_convolution("f16", (32, 144, 56), 144, 3, groups=144, backward=True)
    rows.add_convolution("f32", (32, 64, 56), 64, 3)
    return "\n" + "\n".join(rows.lines)


@check("device time of matrix products, beside PyTorch's", cuda=True)
def _():
    rows = Rows()
    for dt, n in (("bf16", 4096), ("f16", 1024), ("f32", 2048)):
        a, b, c = (torch.randn(n, n, device=DEVICE, dtype=TYPES[dt]) for _ in range(3))
        rows.add(
            f"product {dt} {n}^3",
            lambda: kiln.gemm(a, b, out=c, **rows.options),
            lambda: torch.mm(a, b, out=c),
            2 * n**3,
        )
    return "\n" + "\n".join(rows.lines)


@check("device time of layers that move memory, f16 8192x4096, beside PyTorch's", cuda=True)
def _():
    rows = Rows()
    options = rows.options
    x = torch.randn(8192, 4096, device=DEVICE, dtype=torch.float16)
    y, images, one = torch.empty_like(x), x.view(8192, 64, 8, 8), torch.ones_like(x[0])
    for name, passes, ours, pytorchs in (
        ("softmax", 2, lambda: kiln.softmax_forward(x, out=y, **options), lambda: torch.softmax(x, 1, out=y)),
        (
            "layer norm",
            2,
            lambda: kiln.norm_forward(x, one[None], one[None], axes=-1, out=y, **options),
            lambda: F.layer_norm(x, (4096,), one, one),
        ),
        ("relu", 2, lambda: kiln.activation_forward(x, mode="relu", out=y, **options), lambda: F.relu(x)),
        (
            "max pool 2x2",
            1.25,
            lambda: kiln.pool_forward(images, window=2, stride=2, **options),
            lambda: F.max_pool2d(images, 2),
        ),
        ("sum of rows", 1, lambda: kiln.reduce(x, axes=1, **options), lambda: x.sum(1)),
    ):
        rows.add(name, ours, pytorchs, bytes_moved=passes * 2 * x.numel())
    return "\n" + "\n".join(rows.lines)
