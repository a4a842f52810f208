#!/usr/bin/env python3
"""Print layers of random sizes in classes, for bench_open_kernels: `# NAME`, then a request a line.

A class is what an application gives a name to: an operation, its types and layout, its window. Sizes are drawn from
what layers have and what is awkward: 1, primes, odd channels, sizes of pictures, lengths of text.

    bench/open_kernels/sweep.py [REQUESTS_A_CLASS] > sweep.txt
"""

import random
import sys
from collections.abc import Callable, Iterator

draw = random.Random(39)


def channels() -> int:
    return draw.choice([1, 3, 16, 17, 24, 31, 64, 96, 128, 192, 255, 256, 512])


def batch() -> int:
    return draw.choice([1, 1, 2, 5, 8, 16])


def pixels() -> int:
    return draw.choice([7, 8, 13, 14, 15, 20, 28, 31, 40, 56, 80, 97, 112])


def tensor(dtype: str, extents: tuple[int, ...], layout: str = "") -> str:
    return f"{dtype}:" + "x".join(map(str, extents)) + layout


def convolution(operation: str, dtype: str, layout: str, window: int, stride: int) -> str:
    n, c, k, h, w = batch(), channels(), channels(), pixels(), pixels()
    pad = window // 2
    p, q = ((extent + 2 * pad - window) // stride + 1 for extent in (h, w))
    x, y = tensor(dtype, (n, c, h, w), layout), tensor(dtype, (n, k, p, q), layout)
    f = tensor(dtype, (k, c, window, window), layout)
    operands = {
        "conv_forward": f"x={x} w={f}",
        "conv_backward_data": f"dy={y} w={f} dx={x}",
        "conv_backward_filter": f"x={x} dy={y} dw={f}",
    }
    return f"{operation} {operands[operation]} pad={pad} stride={stride}"


def depthwise(dtype: str, layout: str) -> str:
    n, c, h, w = batch(), channels(), pixels(), pixels()
    return (
        f"conv_forward x={tensor(dtype, (n, c, h, w), layout)} w={tensor(dtype, (c, 1, 3, 3), layout)} pad=1 groups={c}"
    )


def product(dtype: str) -> str:
    m, n, k = (draw.choice([1, 7, 17, 64, 100, 128, 197, 256, 384, 512, 768, 1000]) for _ in range(3))
    return f"gemm a={tensor(dtype, (m, k))} b={tensor(dtype, (k, n))} c={tensor(dtype, (m, n))}"


def rows() -> tuple[int, int]:
    return (
        draw.choice([1, 3, 16, 100, 128, 512, 1000, 4096, 8192]),
        draw.choice([10, 37, 64, 100, 256, 768, 1000, 1024, 4096, 8191]),
    )


def image(dtype: str, layout: str) -> str:
    return tensor(dtype, (batch(), channels(), pixels(), pixels()), layout)


def classes() -> Iterator[tuple[str, Callable[[], str]]]:
    for dtype in ("f16", "f32"):
        for layout in (":nhwc", ":nchw"):
            for operation in ("conv_forward", "conv_backward_data", "conv_backward_filter"):
                for window, stride in ((1, 1), (3, 1), (3, 2), (7, 2)):
                    name = f"{operation} {dtype}{layout} {window}x{window} stride {stride}"
                    yield name, lambda o=operation, d=dtype, l=layout, w=window, s=stride: convolution(o, d, l, w, s)
            yield f"depthwise {dtype}{layout}", lambda d=dtype, l=layout: depthwise(d, l)
            yield f"softmax {dtype}{layout}", lambda d=dtype, l=layout: f"softmax_forward x={image(d, l)} axis=1"
            yield (
                f"max pooling {dtype}{layout}",
                lambda d=dtype, l=layout: f"pool_forward x={image(d, l)} window=3 pad=1 stride=2 mode=max",
            )
            yield f"relu {dtype}{layout}", lambda d=dtype, l=layout: f"activation_forward x={image(d, l)} mode=relu"
        yield f"gemm {dtype}", lambda d=dtype: product(d)
        yield f"softmax of rows {dtype}", lambda d=dtype: f"softmax_forward x={tensor(d, rows())} axis=1"
        yield f"reduce {dtype}", lambda d=dtype: f"reduce x={tensor(d, rows())} axes=1 mode=add"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, request in classes():
        print("#", name)
        for _ in range(count):
            print(request())


if __name__ == "__main__":
    main()
