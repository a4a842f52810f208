#!/usr/bin/env python3
"""Measures the time to the first result: of a layer, of a model, and of a new size of a model.

usage: run.py [--rounds N] [--flags '--arch 90'] [--model MODEL.onnx --shape NAME=1x3x224x224 --new-shape NAME=1x3x256x320] KILN

KILN: the `kiln` program; its Python package must be importable. Each figure is the median of fresh processes, in
milliseconds of the host, from before `import kiln` to the result on the host: with nothing stored ("cold"), with every
kernel in the store of compiled kernels ("store"), and with a bundle and no store ("bundle"). On the emulated device the
result is computed by the CPU, which is in all three alike: the column "run" is a second run of the same.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

LAYER = "conv_forward x=f32:1x64x56x56 w=f32:64x64x3x3 pad=1 epilogue=relu"

PROGRAMS = {
    "a layer": """
        import time; begin = time.perf_counter()
        import kiln, numpy
        x, w = numpy.ones((1, 64, 56, 56), "f"), numpy.ones((64, 64, 3, 3), "f")
        kiln.conv_forward(x, w, pad=1, epilogue="relu"); first = time.perf_counter()
        kiln.conv_forward(x, w, pad=1, epilogue="relu"); print(first - begin, time.perf_counter() - first)
    """,
    "a model": """
        import sys, time; begin = time.perf_counter()
        import kiln.onnx, numpy
        name, shape = sys.argv[2].split("=")
        x = numpy.ones([int(extent) for extent in shape.split("x")], "f")
        model = kiln.onnx.load(sys.argv[1]); model(**{name: x}); first = time.perf_counter()
        model(**{name: x}); print(first - begin, time.perf_counter() - first)
    """,
    "a new size of it": """
        import sys, time
        import kiln.onnx, numpy
        name, shape = sys.argv[2].split("=")
        model = kiln.onnx.load(sys.argv[1]); model(**{name: numpy.ones([int(e) for e in shape.split("x")], "f")})
        shape = sys.argv[3].split("=")[1]
        x = numpy.ones([int(extent) for extent in shape.split("x")], "f")
        begin = time.perf_counter(); model(**{name: x}); first = time.perf_counter()
        model(**{name: x}); print(first - begin, time.perf_counter() - first)
    """,
}


def measure(program: str, arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of the first result and of a second run, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *arguments]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, second = (1e3 * float(word) for word in said.stdout.split())
    return first, second


def bundle_of(kiln: str, what: str, options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> Path:
    path = folder / f"{what.replace(' ', '_')}.kiln"
    if what == "a layer":
        inputs = [LAYER]
    else:
        inputs = [options.model, "--shape", f"{options.shape},{options.new_shape.split('=')[1]}"]
    command = [kiln, "bundle", *inputs, "--untuned", *options.flags.split(), "-o", str(path)]
    subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kiln")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flags", default="--emulated --arch 90", help="of `kiln bundle`, for the device at hand")
    parser.add_argument("--model")
    parser.add_argument("--shape")
    parser.add_argument("--new-shape")
    options = parser.parse_args()
    print("time to the first result\tcold\tstore\tbundle\trun")
    for what, program in PROGRAMS.items():
        if what != "a layer" and not options.model:
            continue
        arguments = [] if what == "a layer" else [options.model, options.shape, options.new_shape]
        rows: dict[str, list[float]] = {"cold": [], "store": [], "bundle": [], "run": []}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            plain = {**os.environ, "KILN_CACHE": "off"}
            bundle = bundle_of(options.kiln, what, options, folder, {**plain, "KILN_KERNEL_STORE": str(folder / "b")})
            for each in range(options.rounds):
                stored = {**plain, "KILN_KERNEL_STORE": str(folder / f"store{each}")}
                rows["cold"].append(measure(program, arguments, stored)[0])
                first, second = measure(program, arguments, stored)
                rows["store"].append(first)
                rows["run"].append(second)
                bundled = {**plain, "KILN_KERNEL_STORE": "off", "KILN_BUNDLE_PATH": str(bundle)}
                rows["bundle"].append(measure(program, arguments, bundled)[0])
        print("\t".join([what, *(f"{statistics.median(times):.0f}" for times in rows.values())]), flush=True)


if __name__ == "__main__":
    main()
