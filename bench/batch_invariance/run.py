#!/usr/bin/env python3
"""Batch invariance, bit for bit: images of layers in batches of 1 to 64, by a Context with `batch_invariant`.

    python3 bench/batch_invariance/run.py [--batches N] [LAYER ...]

Every batch is a slice of 64 images that begins at another one, so it lies at other addresses too. Each image has to have
the bits that it has in the batch of 64. A line a layer: the images that were compared, those that differ, and those that
differ without `batch_invariant`; the variants that served; the time at batches 1, 8 and 64 in times of the choice without
(by estimates, where nothing is tuned); the order of sums. Takes the `kiln` package and the emulated device. Ends with 1 if
an image differs.
"""

import argparse
import re
import sys

import kiln
import numpy as np

IMAGES = 64
# NAME: request with N for the batch. The first operand has the images.
LAYERS = {
    "conv 3x3, f32": "conv_forward x=f32:Nx16x7x7 w=f32:24x16x3x3 pad=1",
    "conv 3x3, f16 nhwc": "conv_forward x=f16:Nx96x6x5:nhwc w=f16:32x96x3x3:nhwc pad=1",
    "first layer, f16 nhwc": "conv_forward x=f16:Nx3x17x17:nhwc w=f16:16x3x5x5:nhwc stride=2",
    "depthwise 3x3, f32": "conv_forward x=f32:Nx16x9x9 w=f32:16x1x3x3 groups=16",
    "data gradient, f32": "conv_backward_data dy=f32:Nx12x5x5 w=f32:12x8x3x3",
    "product, f32": "gemm a=f32:Nx301 b=f32:301x40",
    "product, f16": "gemm a=f16:Nx512 b=f16:512x48",
    "layer norm, f16": "norm_forward x=f16:Nx768 w=f32:1x768 axes=1",
    "RMS norm, f32": "norm_forward x=f32:Nx257 axes=1 mode=rms",
    "softmax, f32": "softmax_forward x=f32:Nx1000 axis=1",
    "long softmax, f16": "softmax_forward x=f16:Nx20011 axis=1",
    "softmax across, f32": "softmax_forward x=f32:Nx21x5x7 axis=1",
}


def filled(generator, word):
    """Random numbers for an operand of a request, `f32:2x3x4x5:nhwc`; in logical order whatever the memory's."""
    dtype, extents, *layout = word.split(":")
    shape = [int(each) for each in extents.split("x")]
    dtype = {"f32": np.float32, "f16": np.float16}[dtype]
    if layout == ["nhwc"]:
        n, c, h, w = shape
        return np.moveaxis(generator.standard_normal((n, h, w, c)).astype(dtype), -1, 1)
    return generator.standard_normal(shape).astype(dtype)


class Layer:
    def __init__(self, request):
        generator = np.random.default_rng(3)
        operation, *words = request.replace("N", str(IMAGES)).split()
        self.request = request
        self.function = getattr(kiln, operation)
        self.arguments = {}
        for word in words:
            name, value = word.split("=")
            self.arguments[name] = filled(generator, value) if ":" in value else int(value) if value.isdigit() else value
        self.images = next(iter(self.arguments))

    def results(self, context, first, count):
        """Bits of the images [first, first + count)."""
        made = self.function(
            **self.arguments | {self.images: self.arguments[self.images][first : first + count]}, context=context
        )
        return [np.ascontiguousarray(image).tobytes() for image in made]

    def differing(self, context, batches):
        """How many images were compared, and how many have other bits than in the batch of all."""
        every = self.results(context, 0, IMAGES)
        compared = wrong = 0
        for count in range(1, batches + 1):
            first = 7 * count % (IMAGES - count + 1)
            some = self.results(context, first, count)
            compared += count
            wrong += sum(one != other for one, other in zip(some, every[first:], strict=False))
        return compared, wrong

    def explained(self, context, count):
        return context.explain(re.sub(r"\bN(?=x)", str(count), self.request) + " batch_invariant").data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=IMAGES, help=f"1 to this many; {IMAGES} at the most")
    parser.add_argument("layers", nargs="*", help="layers by the beginnings of their names; else all")
    arguments = parser.parse_args()
    batches = min(arguments.batches, IMAGES)
    invariant, usual = kiln.Context(cache="off", batch_invariant=True), kiln.Context(cache="off")
    print(invariant.device_description)
    differ = 0
    for name, request in LAYERS.items():
        if arguments.layers and not name.startswith(tuple(arguments.layers)):
            continue
        layer = Layer(request)
        compared, wrong = layer.differing(invariant, batches)
        without = layer.differing(usual, batches)[1]
        why = [layer.explained(invariant, count) for count in (1, 8, 64)]
        variants = {(each["chosen"]["algorithm"], each["chosen"]["config"]) for each in why}
        slowdowns = " / ".join(f"{each['order_of_sums']['slowdown']:.2f}x" for each in why)
        print(
            f"{name:22} {compared} images, {wrong} differ, {without} without; {len(variants)} variants; {slowdowns}; "
            f"{why[0]['order_of_sums']['order']}",
            flush=True,
        )
        differ += wrong
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
