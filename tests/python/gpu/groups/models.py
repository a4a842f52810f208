"""ONNX models of a folder (run.py --models), against ONNX Runtime on the CPU."""

import os
import pathlib
import tempfile
import time

import numpy as np
import torch

import kiln

from checks import DEVICE, ON_GPU, Skip, check, refusal, run_kiln
from tensors import compare, drawn, sleep_on_device, synchronize

FOLDER = os.environ.get("CHECKS_MODELS")
FILES = sorted(pathlib.Path(FOLDER).rglob("*.onnx")) if FOLDER else []
TOLERANCE = {"f32": 1e-4, "f16": 2e-2}


class Model:
    """A model of Kiln and the same one of ONNX Runtime; draws inputs."""

    def __init__(self, file, **options):
        import kiln.onnx

        try:
            import onnxruntime
        except ImportError:
            raise Skip("ONNX Runtime is not installed") from None
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
        self.kiln = kiln.onnx.load(file, **options)

    def inputs(self, batch=None):
        shapes = [tensor.shape for tensor in self.kiln.inputs]
        return [drawn((batch, *shape[1:]) if batch else shape) for shape in shapes]

    def expected(self, inputs):
        names = [tensor.name for tensor in self.kiln.inputs]
        results = self.session.run(None, {name: x.cpu().numpy() for name, x in zip(names, inputs)})
        return [torch.from_numpy(result).double() for result in results]

    def compare(self, name, results, inputs, tolerance=TOLERANCE["f32"]):
        results = results if isinstance(results, (tuple, list)) else [results]
        expected = self.expected(inputs)
        return compare(*((f"{name} {i}", y, ref, tolerance) for i, (y, ref) in enumerate(zip(results, expected))))


def batches(file):
    model = Model(file)
    notes = [f"{len(model.kiln.steps)} steps"]
    for batch in (1, 3) if model.kiln.has_open_batch else (None,):
        inputs = model.inputs(batch)
        results = model.kiln(*(x.to(DEVICE) for x in inputs))
        notes.append(model.compare(f"batch {batch}" if batch else "output", results, inputs))
    return ", ".join(notes)


def in_f16(file):
    model = Model(file, dtype="f16")
    inputs = [x.half() for x in model.inputs()]
    on_device = [x.to(DEVICE) for x in inputs]
    results = model.kiln(*on_device)
    notes = [model.compare("f16", results, [x.float() for x in inputs], TOLERANCE["f16"])]
    first, *others = on_device
    for wrong in (first.float(), first.cpu(), first[..., :-1]):
        notes.append(refusal(lambda wrong=wrong: model.kiln(wrong, *others), kiln.InvalidArgument))
    return "; ".join(notes)


def in_cuda_graphs(file):
    """A Model's own CUDA graph, and one that captures a run; times."""
    model = Model(file)
    inputs = [x.to(DEVICE) for x in model.inputs()]
    outputs = [torch.empty(tensor.shape, device=DEVICE) for tensor in model.kiln.outputs]
    named_inputs = dict(zip((tensor.name for tensor in model.kiln.inputs), inputs))
    named_outputs = dict(zip((tensor.name for tensor in model.kiln.outputs), outputs))

    def run():
        model.kiln.run(named_inputs, named_outputs)

    def draw():
        for x in inputs:
            x.copy_(drawn(x.shape))

    for _ in range(3):
        run()
    synchronize()
    runs, start = 200, time.perf_counter()
    for _ in range(runs):
        run()
    host = (time.perf_counter() - start) / runs
    synchronize()
    whole = (time.perf_counter() - start) / runs
    notes = [f"{whole * 1e6:.0f} us a run, of which the host {host * 1e6:.1f}, {model.kiln.graphs} CUDA graphs"]
    draw()
    run()
    notes.append(model.compare("own CUDA graph", outputs, inputs))
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    draw()
    graph.replay()
    synchronize()
    notes.append(model.compare("captured", outputs, inputs))
    return "; ".join(notes)


def on_a_side_stream(file):
    """Inputs come late, and are overwritten behind the run."""
    model = Model(file)
    inputs = [x.to(DEVICE) for x in model.inputs()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        late = [torch.full_like(x, float("nan")) for x in inputs]
        sleep_on_device(ms=2)
        for to, x in zip(late, inputs):
            to.copy_(x)
        results = model.kiln(*late)
        for to in late:
            to.fill_(float("nan"))
    side.synchronize()
    return model.compare("output", results, inputs)


def by_the_program(file):
    model = Model(file)
    if len(model.kiln.inputs) != 1:
        raise Skip("has several inputs")
    with tempfile.TemporaryDirectory() as folder:
        x = model.inputs()[0]
        np.save(f"{folder}/x.npy", x.numpy())
        device = [] if ON_GPU else ["--device", "emulator"]
        run_kiln("infer", file, "--input", f"{folder}/x.npy", "--output", f"{folder}/y.npy", *device)
        return model.compare("output", torch.from_numpy(np.load(f"{folder}/y.npy")), [x])


for file in FILES:
    name = file.relative_to(FOLDER)
    check(f"{name}")(lambda file=file: batches(file))
    check(f"{name} in f16", cuda=True)(lambda file=file: in_f16(file))
    check(f"{name} in CUDA graphs", cuda=True)(lambda file=file: in_cuda_graphs(file))
    check(f"{name} on a side stream", cuda=True)(lambda file=file: on_a_side_stream(file))
    check(f"{name} by kiln infer")(lambda file=file: by_the_program(file))
if not FILES:

    @check("models")
    def _():
        raise Skip("--models names no folder with ONNX models")
