#!/usr/bin/env python3
"""Runs the models that export.py made by `kiln infer`, and compares with ONNX Runtime's results.

Usage: check.py KILN FOLDER [--dtype f32|f16] [--layout auto|nchw|nhwc] [--jobs N] [NAME...]     (needs NumPy)

A result is right if no element is further from ONNX Runtime's, which are f32, than the bound of its type times the largest
element: 1e-4 in f32, where sums of other orders differ, and 2e-2 in f16, which rounds each tensor to 11 bits.
Prints a row for each model: right, refused with the reason, or wrong. Ends with status 1 if a result is wrong.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

BOUNDS = {"f32": 1e-4, "f16": 2e-2}
UNSUPPORTED = 1  # how `kiln` ends where a layer cannot be served


def infer(kiln, model, dtype, layout):
    """"right", "refused" or "wrong", and a note."""
    stem = str(model)[: -len(".onnx")]
    with tempfile.TemporaryDirectory() as folder:
        result = f"{folder}/y.npy"
        begin = time.monotonic()
        run = subprocess.run([kiln, "infer", str(model), "--input", f"{stem}.x.npy", "--output", result,
                              "--dtype", dtype, "--layout", layout], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        if run.returncode != 0:
            return ("refused" if run.returncode == UNSUPPORTED else "wrong"), run.stderr.strip()
        y = numpy.load(result).astype(numpy.float64)
    expected = numpy.load(f"{stem}.y.npy").astype(numpy.float64)
    if y.shape != expected.shape:
        return "wrong", f"extents {y.shape}, expected {expected.shape}"
    error = numpy.abs(y - expected).max() / numpy.abs(expected).max()
    return ("right" if error <= BOUNDS[dtype] else "wrong"), f"error {error:.1e}, {seconds:.1f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtype", choices=BOUNDS, default="f32")
    parser.add_argument("--layout", choices=("auto", "nchw", "nhwc"), default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    models = [model for model in sorted(arguments.folder.glob("*.onnx"))
              if not arguments.names or model.name.split(".")[0] in arguments.names]
    outcomes = {"right": 0, "refused": 0, "wrong": 0}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda m: infer(arguments.kiln, m, arguments.dtype, arguments.layout), models)
        for model, (outcome, note) in zip(models, results):
            outcomes[outcome] += 1
            print(f"{model.name[:-5]:32} {outcome:8} {note}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    return 1 if outcomes["wrong"] or not models else 0


if __name__ == "__main__":
    sys.exit(main())
