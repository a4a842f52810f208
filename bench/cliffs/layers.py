#!/usr/bin/env python3
"""Writes the layers of bench/cliffs: layers.py > examples/requests/cliffs.txt

Layers off the beaten path, each of a group with the reason why it is there: where libraries have a fast kernel for common
sizes, and something far slower beside them. Extents are such that a layer takes some microseconds to some hundred at a
card's best rate.
"""

from collections.abc import Iterator

Line = str
PASSES = ("forward", "data", "filter")


def pick(values: list, index: int):
    return values[index % len(values)]


def outputs(extent: int, window: int, pad: int, stride: int, dilation: int) -> int:
    return (extent + 2 * pad - dilation * (window - 1) - 1) // stride + 1


def join(extents: list[int]) -> str:
    return "x".join(map(str, extents))


def conv(direction: str, dtype: str, order: str, n: int, c: int, k: int, spatial: list[int], window: list[int], *, pad=None,
         stride=None, dilation=None, groups: int = 1) -> Line:
    """A convolution, or its gradient by input or filter, for extents of the forward one."""
    axes = len(spatial)
    pad, stride, dilation = pad or [0] * axes, stride or [1] * axes, dilation or [1] * axes
    result = [outputs(*each) for each in zip(spatial, window, pad, stride, dilation)]
    assert all(extent > 0 for extent in result), (spatial, window)
    layout = {1: {"nchw": "ncw", "nhwc": "nwc"}, 2: {}, 3: {"nchw": "ncdhw", "nhwc": "ndhwc"}}[axes].get(order, order)
    x = f"{dtype}:{join([n, c, *spatial])}:{layout}"
    w = f"{dtype}:{join([k, c // groups, *window])}:{layout}"
    y = f"{dtype}:{join([n, k, *result])}:{layout}"
    numbers = " ".join(
        f"{name}={','.join(map(str, values))}" for name, values in (("pad", pad), ("stride", stride), ("dilation", dilation))
    )
    operands = {"forward": ("conv_forward", f"x={x} w={w}"), "data": ("conv_backward_data", f"dy={y} w={w} dx={x}"),
                "filter": ("conv_backward_filter", f"x={x} dy={y} dw={w}")}[direction]
    return f"{operands[0]} {operands[1]} {numbers} groups={groups}"


def same(window: list[int], dilation: list[int] | None = None) -> list[int]:
    return [d * (size - 1) // 2 for size, d in zip(window, dilation or [1] * len(window))]


def both(make, passes=PASSES) -> Iterator[Line]:
    """Three passes, in f32 in NCHW and in f16 channels last."""
    for direction in passes:
        yield make(direction, "f32", "nchw")
        yield make(direction, "f16", "nhwc")


def sound() -> Iterator[Line]:
    for length, window, c, k, stride in ((16000, 10, 1, 512, 5), (3200, 3, 512, 512, 2), (48000, 1025, 1, 1, 1), (16000, 401, 1, 64, 160),
                                         (4000, 31, 256, 256, 1), (1000, 5, 80, 512, 1), (8192, 129, 16, 16, 1)):
        pad = window // 2
        yield from both(lambda d, t, o: conv(d, t, o, 1, c, k, [length], [window], pad=[pad], stride=[stride]))


def dilated_sound() -> Iterator[Line]:
    for dilation in (2, 8, 32, 512):
        yield from both(lambda d, t, o: conv(d, t, o, 1, 64, 64, [8000], [3], pad=[dilation], dilation=[dilation]))


def patches() -> Iterator[Line]:
    for size, extent in ((2, 56), (4, 224), (8, 224), (14, 224), (16, 224), (32, 224)):
        c, k = (96, 192) if size == 2 else (3, 384)
        yield from both(lambda d, t, o: conv(d, t, o, 8, c, k, [extent] * 2, [size] * 2, stride=[size] * 2))


def dilated() -> Iterator[Line]:
    for dilation in (2, 4, 12, 18, 32):
        yield from both(lambda d, t, o: conv(d, t, o, 1, 256, 64, [65, 65], [3, 3], pad=[dilation] * 2, dilation=[dilation] * 2))


def depthwise() -> Iterator[Line]:
    for size in (3, 5, 7, 13, 31, 63):
        c, extent = (384, 14) if size <= 13 else (96, 64)
        yield from both(lambda d, t, o: conv(d, t, o, 8 if size <= 13 else 2, c, c, [extent] * 2, [size] * 2, pad=[size // 2] * 2, groups=c))


def groups() -> Iterator[Line]:
    for each in (1, 2, 4, 8, 16, 64):
        c = 256
        yield from both(lambda d, t, o: conv(d, t, o, 8, c, c, [28, 28], [3, 3], pad=[1, 1], groups=c // each))


def tiny_images() -> Iterator[Line]:
    for n, c, k, size in ((1, 2048, 1000, 1), (32, 1280, 320, 1), (1, 512, 512, 3), (256, 3, 17, 1)):
        extent = [size] * 2
        yield from both(lambda d, t, o: conv(d, t, o, n, c, k, extent, [size] * 2))


def few_channels() -> Iterator[Line]:
    for c, k in ((1, 1), (1, 64), (3, 3), (64, 1), (3, 64), (2, 127)):
        yield from both(lambda d, t, o: conv(d, t, o, 4, c, k, [224, 224], [3, 3], pad=[1, 1]))


def primes() -> Iterator[Line]:
    for n, c, k, h, w, size in ((1, 61, 67, 127, 131, 3), (7, 31, 37, 53, 59, 5), (3, 131, 139, 17, 19, 1)):
        yield from both(lambda d, t, o: conv(d, t, o, n, c, k, [h, w], [size] * 2, pad=[size // 2] * 2))


def transposed() -> Iterator[Line]:
    """In the words of the forward convolution whose gradient a transposed convolution is."""
    yield ("conv_backward_data dy=f32:1x514x128 w=f32:514x1x1024 dx=f32:1x1x33536 stride=256")  # an inverse STFT
    for stride, window, channels, length in ((2, 4, 512, 512), (8, 16, 256, 512), (64, 128, 64, 256), (320, 640, 80, 128), (512, 2048, 257, 64)):
        whole = (length - 1) * stride + window
        yield from both(lambda d, t, o: conv(d, t, o, 1, 1 if stride > 64 else channels // 2, channels, [whole], [window], stride=[stride]))
    for stride, size in ((2, 2), (2, 4), (4, 8), (8, 16)):
        whole = [31 * stride + size] * 2
        yield from both(lambda d, t, o: conv(d, t, o, 1, 32, 64, whole, [size] * 2, stride=[stride] * 2))


def volumes() -> Iterator[Line]:
    yield from both(lambda d, t, o: conv(d, t, o, 1, 32, 32, [32, 56, 56], [3, 3, 3], pad=[1, 1, 1]))
    yield from both(lambda d, t, o: conv(d, t, o, 1, 3, 192, [16, 112, 112], [2, 16, 16], stride=[2, 16, 16]))
    yield from both(lambda d, t, o: conv(d, t, o, 1, 64, 64, [16, 28, 28], [3, 1, 1], pad=[1, 0, 0]))
    yield from both(lambda d, t, o: conv(d, t, o, 1, 48, 48, [16, 28, 28], [3, 3, 3], pad=[1, 1, 1], groups=48))


def pooling() -> Iterator[Line]:
    for mode in ("max", "avg_padded"):
        for n, c, extent, size, stride in ((8, 64, 112, 3, 2), (1, 512, 32, 13, 1), (1, 256, 64, 31, 1), (8, 256, 56, 56, 56), (1, 3, 1024, 7, 7)):
            for dtype, order in (("f32", "nchw"), ("f16", "nhwc")):
                out = outputs(extent, size, 0, stride, 1)
                x, y = f"{dtype}:{n}x{c}x{extent}x{extent}:{order}", f"{dtype}:{n}x{c}x{out}x{out}:{order}"
                yield f"pool_forward x={x} window={size} stride={stride} mode={mode}"
                yield f"pool_backward dy={y} {'x' if mode == 'max' else 'dx'}={x} window={size} stride={stride} mode={mode}"


ROWS = ((1, 4194304), (4194304, 1), (7, 600000), (600000, 7), (2048, 2048), (131072, 33), (33, 131072))


def reductions() -> Iterator[Line]:
    for rows, length in ROWS:
        for dtype in ("f32", "f16"):
            yield f"reduce x={dtype}:{rows}x{length} axes=1"
    for axes in ("0", "1", "2", "0,2", "0,1,2"):
        yield f"reduce x=f32:64x256x257 axes={axes}"
    yield "reduce x=f32:4194304 axes=0 mode=max"
    yield "reduce x=f16:8x3136x512 axes=1 mode=mean"


def softmax() -> Iterator[Line]:
    for rows, length in ROWS:
        if length < 2:
            continue
        for dtype in ("f32", "f16"):
            yield f"softmax_forward x={dtype}:{rows}x{length} axis=1"
            yield f"softmax_backward y={dtype}:{rows}x{length} axis=1"
    yield "softmax_forward x=f32:16x21x512x512 axis=1"
    yield "softmax_forward x=f16:64x1000x49 axis=2"
    yield "softmax_forward x=f32:257x4099 axis=0"


def norms() -> Iterator[Line]:
    for rows, length in ROWS:
        if length < 2:
            continue
        for dtype in ("f32", "f16"):
            yield f"norm_forward x={dtype}:{rows}x{length} w=f32:1x{length} b=f32:1x{length}"
            yield f"norm_backward dy={dtype}:{rows}x{length} x={dtype}:{rows}x{length} w=f32:1x{length} dw=f32:1x{length} db=f32:1x{length}"
    for dtype, order in (("f32", "ncdhw"), ("f16", "ndhwc")):  # groups of channels: N, groups, channels of one, h, w
        yield f"norm_forward x={dtype}:1x32x16x128x128:{order} axes=2,3,4"
        yield f"norm_forward x={dtype}:1x1x64x128x128:{order} axes=2,3,4"
    for dtype, order in (("f32", "nchw"), ("f16", "nhwc")):
        yield f"norm_forward x={dtype}:32x64x56x56:{order} axes=0,2,3"
        yield f"norm_forward x={dtype}:2x2048x7x7:{order} axes=0,2,3"
        yield f"norm_forward x={dtype}:8x64x128x128:{order} axes=2,3"


def moves() -> Iterator[Line]:
    yield "gather x=f32:30522x768 indices=i32:512x1"
    yield "gather x=f16:250002x384 indices=i32:4096x1"
    yield "gather x=f32:1000000x1 indices=i32:100000x1"
    yield "gather x=f32:64x4096 indices=i32:64x17 axis=1"
    for dtype, order in (("f32", "nchw"), ("f16", "nhwc")):
        for mode in ("nearest", "linear", "cubic"):
            yield f"resize x={dtype}:1x64x64x64:{order} size=128,128 mode={mode}"
            yield f"resize x={dtype}:1x3x1080x1920:{order} size=224,224 mode={mode}"
            yield f"resize_backward dy={dtype}:1x64x128x128:{order} dx={dtype}:1x64x64x64:{order} mode={mode}"
            yield f"resize_backward dy={dtype}:1x3x224x224:{order} dx={dtype}:1x3x1080x1920:{order} mode={mode}"
            yield f"resize_backward dy={dtype}:1x19x512x512:{order} dx={dtype}:1x19x64x64:{order} mode={mode}"
        yield f"tensor_transform x={dtype}:8x64x56x56:{order} y={dtype}:8x64x56x56:{'nhwc' if order == 'nchw' else 'nchw'}"
    yield "tensor_op a=f32:64x1024x1 b=f32:1x1024x513 mode=mul"
    yield "tensor_op a=f32:4194304 b=f32:4194304 mode=add"


def products() -> Iterator[Line]:
    shapes = ((1, 4096, 4096), (4096, 4096, 1), (4096, 1, 4096), (8, 11008, 4096), (1, 1, 1048576), (17, 19, 65537), (127, 131, 137),
              (2048, 2048, 7), (3, 50257, 768), (100000, 3, 3), (3, 100000, 3))
    for m, n, k in shapes:
        for dtype in ("f32", "f16"):
            yield f"gemm a={dtype}:{m}x{k} b={dtype}:{k}x{n}"


def attention() -> Iterator[Line]:
    # images, heads, heads of keys, queries, keys, elements
    layers = ((1, 12, 12, 128, 128, 64), (8, 12, 12, 512, 512, 64), (1, 16, 16, 4096, 4096, 64), (2, 8, 8, 4096, 77, 40), (1, 32, 8, 1, 4096, 128),
              (16, 32, 8, 1, 1024, 128), (1, 64, 8, 1, 32768, 128), (1, 8, 8, 1, 1500, 64), (1, 8, 1, 7, 131, 257), (64, 4, 4, 49, 49, 32), (1, 1, 1, 1024, 1024, 512),
              (1, 3, 3, 197, 197, 24), (257, 1, 1, 1, 17, 8))
    for images, heads, shared, queries, keys, elements in layers:
        for dtype in ("f32", "f16"):
            of_keys = f"{dtype}:{images}x{shared}x{keys}x{elements}"
            of_queries = f"{dtype}:{images}x{heads}x{queries}x{elements}"
            causal = " right=0 align=end" if queries > 1 else ""
            yield f"attention_forward q={of_queries} k={of_keys} v={of_keys}{causal}"
            if queries > 1:
                yield (f"attention_backward dy={of_queries} q={of_queries} k={of_keys} v={of_keys} y={of_queries} "
                       f"lse=f32:{images}x{heads}x{queries} dk={of_keys} dv={of_keys}{causal}")


GROUPS = (
    ("sound: long 1-D signals, long filters, one channel", sound),
    ("dilated 1-D filters, as WaveNet has them", dilated_sound),
    ("filters as large as the stride, as vision transformers cut patches", patches),
    ("dilation up to 32, as segmentation has it", dilated),
    ("depthwise windows of 3 to 63", depthwise),
    ("groups of 1 to 64 channels", groups),
    ("1x1 images and images as large as the filter", tiny_images),
    ("one channel, three, and such that fit no tile", few_channels),
    ("prime extents", primes),
    ("transposed convolutions with strides of 2 to 512, and their gradients", transposed),
    ("volumes", volumes),
    ("pooling with large windows", pooling),
    ("reductions of one long row, of many short ones, along each axis", reductions),
    ("softmax likewise", softmax),
    ("normalisations likewise, and few large groups", norms),
    ("gather, resize, and tensors that are moved", moves),
    ("thin products", products),
    ("attention: short and long, of one query and many, heads that share keys, odd elements", attention),
)


def main() -> None:
    print("# Layers off the beaten path. Made by bench/cliffs/layers.py; do not edit.")
    for reason, make in GROUPS:
        print(f"\n# {reason}")
        for line in dict.fromkeys(make()):
            print(line)


if __name__ == "__main__":
    main()
