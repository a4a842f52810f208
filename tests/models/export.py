#!/usr/bin/env python3
"""Exports the networks of networks.py, and the repository's example models with random weights, with what ONNX Runtime
makes of them on the CPU.

Usage: export.py FOLDER [NAME...]
       export.py --stored              (both need torch, torchvision, timm, onnx, onnxscript, onnxruntime)

Each network is exported twice: by PyTorch's exporter of today (NAME.new.onnx) and by that of torch.jit (NAME.jit.onnx).
Beside each model stand its input, NAME.new.x.npy, and ONNX Runtime's result, NAME.new.y.npy. check.py compares.

With --stored the few networks that the test command runs are made anew in tests/models/networks, as ONNX's
own tests are stored.
"""

import logging
import pathlib
import shutil
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper

import networks

EXPORTERS = {"new": (True, 20), "jit": (False, 17)}  # torch.onnx.export's `dynamo`, opset
STORED = {"vit": "new", "yolo_distances": "new", "super_resolution": "jit", "vae_decoder": "jit"}
STORED_FOLDER = pathlib.Path(__file__).parent / "networks"
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "models"
EXAMPLE_EXTENTS = (1, 3, 64, 64)  # in place of 224x224


def save(folder, stem, x):
    """The input, and what ONNX Runtime makes of it without rewriting the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / f"{stem}.onnx"), options, providers=["CPUExecutionProvider"])
    y, other = (session.run(None, {session.get_inputs()[0].name: values})[0] for values in (x, 1.5 * x[..., ::-1] + 0.5))
    assert numpy.isfinite(y).all(), "the result is not finite"
    assert numpy.abs(y - other).max() > 0.02 * numpy.abs(y).max(), "the result hardly depends on the input"
    numpy.save(folder / f"{stem}.x.npy", x)
    numpy.save(folder / f"{stem}.y.npy", y)
    return y


def export(folder, name):
    network, x = networks.make(name)
    with torch.no_grad():
        expected = network(x).numpy()
    for kind, (dynamo, opset) in EXPORTERS.items():
        path = folder / f"{name}.{kind}.onnx"
        options = {"external_data": False, "verbose": False} if dynamo else {}
        torch.onnx.export(network, (x,), str(path), dynamo=dynamo, opset_version=opset, input_names=["x"], output_names=["y"],
                          **options)
        onnx.save(without_notes(onnx.load(path)), path)
        y = save(folder, f"{name}.{kind}", x.numpy())
        report(path, f"PyTorch differs by {numpy.abs(y - expected).max() / numpy.abs(expected).max():.1e} of the largest")


def without_notes(model):
    """Without what exporters write for people who debug them, which is larger than a small network."""
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        value.ClearField("metadata_props")
    return model


def report(path, note):
    model = onnx.load(path)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    print(f"{path.name}: opset {opset}, {len(model.graph.node)} nodes, {path.stat().st_size >> 10} KiB, "
          f"{model.producer_name} {model.producer_version}; {note}", flush=True)


def with_random_weights(model, generator):
    """Gives the ConstantOfShape nodes that stand for weights values: filters that keep what passes near 1, biases and
    statistics near those that stood there."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in tensors:
            nodes.append(node)
            continue
        shape = tensors[node.input[0]]
        fill = float(numpy_helper.to_array(node.attribute[0].t).ravel()[0])
        if len(shape) > 1:
            size = 2 if len(shape) > 2 else 0.01  # small logits, which the softmax tells apart
            values = generator.standard_normal(shape) * (size / numpy.prod(shape[1:])) ** 0.5
        else:
            values = fill + 0.1 * generator.random(shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(numpy.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def example(folder, name):
    generator = numpy.random.default_rng(0)
    model = with_random_weights(onnx.load(EXAMPLES / f"{name.removeprefix('example_')}.onnx"), generator)
    image = model.graph.input[0]
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info(image.name, onnx.TensorProto.FLOAT, EXAMPLE_EXTENTS))
    del model.graph.value_info[:]
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    save(folder, path.stem, generator.standard_normal(EXAMPLE_EXTENTS).astype(numpy.float32))
    report(path, "random weights")


def store():
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in STORED.items():
            export(pathlib.Path(folder), name)
            data = STORED_FOLDER / name / "test_data_set_0"
            data.mkdir(parents=True, exist_ok=True)
            shutil.copy(f"{folder}/{name}.{kind}.onnx", STORED_FOLDER / name / "model.onnx")
            for file, letter in (("input_0.pb", "x"), ("output_0.pb", "y")):
                tensor = numpy_helper.from_array(numpy.load(f"{folder}/{name}.{kind}.{letter}.npy"))
                (data / file).write_bytes(tensor.SerializeToString())


def main():
    if sys.argv[1:] == ["--stored"]:
        return store()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:]
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    jobs = {name: export for name in networks.ALL}
    jobs.update({f"example_{path.stem}": example for path in sorted(EXAMPLES.glob("*.onnx"))})
    failed = 0
    for name, job in jobs.items():
        if wanted and name not in wanted:
            continue
        try:
            job(folder, name)
        except Exception as error:  # the others are exported all the same
            print(f"{name}: {type(error).__name__}: {str(error)[-300:]}", flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
