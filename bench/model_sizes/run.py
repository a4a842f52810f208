#!/usr/bin/env python3
"""Runs ONNX models at several sizes by Kiln and by ONNX Runtime, and prints a line for each model and size.

usage: run.py [--skip FILE] CASES FOLDER

CASES: a JSON file, the sizes of each model: {"model": [["x=1x3x320x320@text", "sr=scalar@16000"], ...]}. An input is
NAME=SHAPE[@FILL]; FILL is normal (the default of floats), uniform (0 to 1), LO..HI, sorted:LO..HI, a number, or text: a
page of dark strokes, with which detectors find something. FOLDER: MODEL.onnx of each. One Model of Kiln serves all sizes
of a file.

A line is tab-separated: the model, its shapes, the largest difference of an output in units of its largest magnitude
beside that of ONNX Runtime without optimisation, and what the size cost: milliseconds of the host, kernels compiled, and
milliseconds of their compiles. "refused" with the reason stands in place of a difference.
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import kiln
import kiln.onnx
import numpy
import onnxruntime

TYPES = {
    "tensor(float)": numpy.float32,
    "tensor(double)": numpy.float64,
    "tensor(float16)": numpy.float16,
    "tensor(int64)": numpy.int64,
    "tensor(int32)": numpy.int32,
    "tensor(int8)": numpy.int8,
    "tensor(uint8)": numpy.uint8,
    "tensor(bool)": numpy.bool_,
}


def page(random: numpy.random.Generator, shape: tuple[int, ...]) -> numpy.ndarray:
    """Pictures in -1 to 1: white, with rows of dark strokes."""
    count, channels, height, width = shape
    pages = numpy.ones((count, 1, height, width))
    for each in range(count):
        y = 6
        while y + 14 < height:
            x, end = int(random.integers(6, 24)), width - int(random.integers(6, max(7, width // 3)))
            while x + 8 < end:
                stroke = numpy.kron(random.random((6, 4)) < 0.5, numpy.ones((2, 2)))
                pages[each, 0, y : y + 12, x : x + 8] = numpy.where(stroke, -1.0, 1.0)
                x += 10 if random.random() > 0.15 else 22
            y += 14 + int(random.integers(8, 28))
    return numpy.repeat(pages, channels, 1) + 0.05 * random.standard_normal(shape)


def array(name: str, shape: tuple[int, ...], fill: str, dtype: type) -> numpy.ndarray:
    random = numpy.random.default_rng(zlib.crc32(name.encode()))
    is_float = numpy.issubdtype(dtype, numpy.floating)
    fill = fill or ("normal" if is_float else "0..1" if dtype is numpy.bool_ else "0..9")
    if fill == "normal":
        values = random.standard_normal(shape)
    elif fill == "uniform":
        values = random.random(shape)
    elif fill == "text":
        values = page(random, shape)
    elif ".." in fill:
        low, high = (float(bound) for bound in fill.removeprefix("sorted:").split(".."))
        values = random.uniform(low, high, shape) if is_float else random.integers(int(low), int(high) + 1, shape)
        if fill.startswith("sorted:"):
            values = numpy.sort(values)
            if values.size and not is_float:
                values[0], values[-1] = int(low), int(high)
    else:
        values = numpy.full(shape, {"zeros": 0.0, "ones": 1.0}.get(fill) if fill in ("zeros", "ones") else float(fill))
    return numpy.asarray(values).astype(dtype)


def session(path: Path, level: onnxruntime.GraphOptimizationLevel) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs_of(texts: list[str], types: dict[str, type]) -> dict[str, numpy.ndarray]:
    arrays = {}
    for text in texts:
        head, _, fill = text.partition("@")
        name, _, shape = head.rpartition("=")
        extents = () if shape == "scalar" else tuple(int(extent) for extent in shape.split("x"))
        arrays[name] = array(name, extents, fill, types[name])
    return arrays


def distance(expected: list[numpy.ndarray], given: list[numpy.ndarray]) -> float:
    """The largest of all outputs; infinite for other shapes, or NaN and infinities elsewhere."""
    worst = 0.0
    for wanted, got in zip(expected, given, strict=True):
        wanted, got = numpy.asarray(wanted, numpy.float64), numpy.asarray(got, numpy.float64)
        if wanted.shape != got.shape:
            return numpy.inf
        is_number = numpy.isfinite(wanted)
        if not numpy.array_equal(wanted[~is_number], got[~is_number], equal_nan=True):
            return numpy.inf
        if is_number.any():
            difference = numpy.abs(wanted - got)[is_number].max()
            scale = numpy.abs(wanted[is_number]).max()
            worst = max(worst, difference if scale == 0 else difference / scale)
    return worst


def outputs_of(model: kiln.onnx.Model, arrays: dict[str, numpy.ndarray]) -> list[numpy.ndarray]:
    known = {tensor.name for tensor in model.declared_inputs}
    results = model(**{name: each for name, each in arrays.items() if name in known})
    return list(results) if isinstance(results, tuple) else [results]


def run(path: Path, sizes: list[list[str]]) -> None:
    levels = onnxruntime.GraphOptimizationLevel
    fast, plain = session(path, levels.ORT_ENABLE_ALL), session(path, levels.ORT_DISABLE_ALL)
    types = {each.name: TYPES[each.type] for each in fast.get_inputs()}
    model = None
    for size in sizes:
        arrays = inputs_of(size, types)
        words = [path.stem, " ".join(text.partition("@")[0] for text in size)]
        expected = fast.run(None, arrays)
        noise = distance(expected, plain.run(None, arrays))
        begin = time.monotonic()
        try:
            if model is None:
                model = kiln.onnx.load(path)
            given = outputs_of(model, arrays)
            cost = model.cost
            words += [f"{distance(expected, given):.1e}", f"{noise:.1e}", f"{1e3 * cost.seconds:.0f}"]
            words += [str(cost.compiled), f"{1e3 * cost.compile_seconds:.0f}", f"{time.monotonic() - begin:.1f} s"]
        except kiln.Error as error:
            words += ["refused", " ".join(str(error).split())[:600]]
        print("\t".join(words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", help="only these of CASES")
    options = parser.parse_args()
    print("model\tsize\tdistance\tof ONNX Runtime itself\thost ms\tcompiled\tcompile ms")
    for name, sizes in json.loads(options.cases.read_text()).items():
        if not options.models or name in options.models:
            run(options.folder / f"{name}.onnx", sizes)


if __name__ == "__main__":
    main()
