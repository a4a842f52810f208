"""Nodes on Kiln by the library of custom operators, against ONNX Runtime's own."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/onnxruntime"
LIBRARY = os.environ["EXAMPLE_LIBRARY"]
sys.path.append(str(EXAMPLE))
import to_kiln  # noqa: E402

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE}


def model_of(nodes, inputs, outputs=("y",), constants=(), opset=17, dtype="float32"):
    """`inputs`: extents by name, open where they are None."""
    kind = TYPES[dtype]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, kind, extents) for name, extents in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in dict(constants).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def session_of(model, with_kiln=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what fails is raised too
    if with_kiln:
        options.register_custom_ops_library(LIBRARY)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def on_kiln(model):
    """A session of `model`, all of whose nodes Kiln covers."""
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    count, stayed = to_kiln.convert(moved)
    assert count == len(moved.graph.node) and not stayed
    return session_of(moved, with_kiln=True)


def run(session, **inputs):
    return session.run(None, inputs)[0]


def normal(*extents, dtype=np.float32):
    return np.random.default_rng(sum(extents)).standard_normal(extents).astype(dtype)


CONVOLUTIONS = {
    "of an image": ((1, 3, 17, 19), (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "with strides": ((2, 5, 13, 13), (7, 5, 3, 3), {"strides": [2, 3], "pads": [0, 1, 2, 3]}),
    "dilated": ((1, 4, 15, 11), (6, 4, 3, 2), {"dilations": [2, 3]}),
    "in groups": ((3, 6, 9, 9), (9, 2, 3, 3), {"group": 3, "kernel_shape": [3, 3]}),
    "depthwise": ((1, 13, 8, 8), (13, 1, 5, 5), {"group": 13, "pads": [2, 2, 2, 2]}),
    "1x1": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "1-D": ((2, 3, 31), (5, 3, 4), {"strides": [3], "pads": [2, 1]}),
    "3-D": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), {"pads": [1, 0, 0, 0, 1, 0]}),
    "padded to the same": ((1, 3, 10, 7), (4, 3, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "padded in front": ((1, 3, 10, 7), (4, 3, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [3, 2]}),
    "not padded": ((1, 3, 10, 7), (4, 3, 4, 3), {"auto_pad": "VALID"}),
    "of an empty batch": ((0, 3, 10, 7), (4, 3, 4, 3), {}),
}


def conv_model(x, w, attributes, bias=True):
    names = ["x", "w", "bias"] if bias else ["x", "w"]
    inputs = {"x": x, "w": w} | ({"bias": w[:1]} if bias else {})
    return model_of([helper.make_node("Conv", names, ["y"], **attributes)], inputs)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_is_that_of_onnx_runtime(case, bias):
    x, w, attributes = CONVOLUTIONS[case]
    model = conv_model(x, w, attributes, bias)
    inputs = {"x": normal(*x), "w": normal(*w)} | ({"bias": normal(w[0])} if bias else {})
    stock = session_of(model)
    expected, got = run(stock, **inputs), run(on_kiln(model), **inputs)
    sums = run(stock, **{name: np.abs(array) for name, array in inputs.items()})
    assert got.shape == expected.shape
    # Either side adds up so many products, whose roundings the sum of their sizes bounds.
    assert np.all(np.abs(got - expected) <= 2 * (np.prod(w[1:]) + 1) * 2.0**-24 * sums)


POOLINGS = {
    "MaxPool": ("MaxPool", (1, 3, 9, 11), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "MaxPool, rounded up": ("MaxPool", (2, 1, 10, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "MaxPool, dilated": ("MaxPool", (1, 2, 12, 12), {"kernel_shape": [3, 3], "dilations": [2, 3]}),
    "MaxPool, the same": ("MaxPool", (1, 2, 11), {"kernel_shape": [4], "strides": [3], "auto_pad": "SAME_LOWER"}),
    "AveragePool": ("AveragePool", (1, 3, 9, 9), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "AveragePool, padded": (
        "AveragePool",
        (1, 3, 9, 9),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1, "strides": [2, 2]},
    ),
    "AveragePool, 3-D": ("AveragePool", (1, 2, 4, 5, 6), {"kernel_shape": [2, 2, 3]}),
    "GlobalAveragePool": ("GlobalAveragePool", (2, 5, 7, 3), {}),
    "GlobalMaxPool": ("GlobalMaxPool", (2, 5, 7, 3), {}),
    "Softmax": ("Softmax", (3, 17), {}),
    "Softmax along channels": ("Softmax", (2, 5, 3, 3), {"axis": 1}),
    "LogSoftmax": ("LogSoftmax", (4, 3, 9), {"axis": -2}),
}


@pytest.mark.parametrize("case", POOLINGS)
def test_poolings_and_softmax_are_those_of_onnx_runtime(case):
    kind, extents, attributes = POOLINGS[case]
    model = model_of([helper.make_node(kind, ["x"], ["y"], **attributes)], {"x": extents})
    x = normal(*extents)
    expected, got = run(session_of(model), x=x), run(on_kiln(model), x=x)
    assert got.shape == expected.shape
    if "Max" in kind and "Soft" not in kind:
        assert np.array_equal(got, expected)
    else:  # averages of some ten numbers around 1, and exponentials: a few roundings of either side
        assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_f16_is_rounded_once():
    x, w, attributes = CONVOLUTIONS["of an image"]
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    inputs = {"x": normal(*x, dtype=np.float16), "w": normal(*w, dtype=np.float16)}
    wide = {name: array.astype(np.float32) for name, array in inputs.items()}
    expected = run(session_of(conv_model(x, w, attributes, bias=False)), **wide)
    got = run(on_kiln(model_of([node], {"x": x, "w": w}, dtype="float16")), **inputs)
    assert got.dtype == np.float16
    assert np.allclose(got, expected, rtol=2.0**-10, atol=1e-4)


def test_bf16_is_rounded_once():
    x, w, attributes = CONVOLUTIONS["of an image"]
    narrow, wide = {"to": TensorProto.BFLOAT16}, {"to": TensorProto.FLOAT}
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], **narrow),
        helper.make_node("Cast", ["w"], ["b"], **narrow),
        helper.make_node("Conv", ["a", "b"], ["c"], **attributes),
        helper.make_node("Cast", ["c"], ["y"], **wide),
    ]
    model = model_of(nodes, {"x": x, "w": w})
    assert to_kiln.convert(model) == (1, [])
    # Numbers of few bits, which bf16 holds.
    inputs = {"x": np.round(normal(*x) * 8) / 8, "w": np.round(normal(*w) * 8) / 8}
    expected = run(session_of(conv_model(x, w, attributes, bias=False)), **inputs)
    assert np.allclose(run(session_of(model, with_kiln=True), **inputs), expected, rtol=2.0**-8, atol=1e-6)


def test_a_relu_behind_a_convolution_is_part_of_it():
    x, w, attributes = CONVOLUTIONS["of an image"]
    nodes = [
        helper.make_node("Conv", ["x", "w", "bias"], ["a"], **attributes),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    model = model_of(nodes, {"x": x, "w": w, "bias": w[:1]})
    inputs = {"x": normal(*x), "w": normal(*w), "bias": normal(w[0])}
    expected = run(session_of(model), **inputs)
    assert to_kiln.convert(model) == (1, [])
    assert [node.op_type for node in model.graph.node] == ["Conv"]
    assert np.allclose(run(session_of(model, with_kiln=True), **inputs), expected, rtol=1e-5, atol=1e-5)


def branch_that_reads(name):
    """A graph without inputs, whose node reads a value of the graph around it."""
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Neg", [name], ["z"])], "branch", [], [result])


@pytest.mark.parametrize("inside", [False, True])
def test_a_result_that_others_use_keeps_its_relu(inside):
    branches = {name: branch_that_reads("a") for name in ("then_branch", "else_branch")}
    other = [
        helper.make_node("Constant", [], ["condition"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["condition"], ["c"], **branches),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        *(other if inside else [helper.make_node("Neg", ["a"], ["c"])]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 2, 4, 4), "w": (3, 2, 1, 1)})
    inputs = {"x": normal(1, 2, 4, 4), "w": normal(3, 2, 1, 1)}
    expected = run(session_of(model), **inputs)
    assert to_kiln.convert(model) == (1, [])
    assert np.allclose(run(session_of(model, with_kiln=True), **inputs), expected, rtol=1e-5, atol=1e-6)


def squeezenet():
    """The example with small images and random weights, which keep the size of what they multiply."""
    model = onnx.load(ROOT / "examples/models/squeezenet1_1.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    for dimension in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dimension.dim_value = 47
    del model.graph.value_info[:]
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in list(model.graph.node):
        if node.op_type == "ConstantOfShape":
            extents = tuple(shapes[node.input[0]])
            weights = normal(*extents) * np.float32(np.sqrt(2 / max(np.prod(extents[1:]), 1)))
            model.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
            model.graph.node.remove(node)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def test_a_whole_network_gives_the_same_answer(tmp_path):
    model = squeezenet()
    onnx.save(model, tmp_path / "model.onnx")
    command = [sys.executable, EXAMPLE / "to_kiln.py", tmp_path / "model.onnx", "-o", tmp_path / "kiln.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    moved = onnx.load(tmp_path / "kiln.onnx")
    assert {node.op_type for node in moved.graph.node if not node.domain} <= {"Concat", "Dropout", "Flatten", "Reshape"}
    assert f"run on Kiln: {tmp_path / 'kiln.onnx'}" in done.stdout
    (name,) = (value.name for value in model.graph.input)
    x = normal(2, 3, 47, 47)
    expected, got = run(session_of(model), **{name: x}), run(session_of(moved, with_kiln=True), **{name: x})
    assert np.std(expected) > 0
    assert np.allclose(got, expected, rtol=1e-4, atol=1e-4 * np.max(np.abs(expected)))


def test_shapes_that_do_not_fit_raise_kilns_message():
    model = conv_model((1, None, None, None), (4, 3, 3, 3), {}, bias=False)
    session = on_kiln(model)
    with pytest.raises(Exception, match="kiln: conv_forward: w has 3 channels per filter, expected 5"):
        run(session, x=normal(1, 5, 9, 9), w=normal(4, 3, 3, 3))
    with pytest.raises(Exception, match="kiln: conv_forward: the filter does not fit into the padded input"):
        run(session, x=normal(1, 3, 2, 2), w=normal(4, 3, 3, 3))
    # The session goes on.
    assert run(session, x=normal(1, 3, 9, 9), w=normal(4, 3, 3, 3)).shape == (1, 4, 7, 7)


def test_attributes_without_sense_raise_kilns_message():
    model = conv_model((1, 3, 9, 9), (4, 3, 3, 3), {"auto_pad": "SAME"}, bias=False)
    model.graph.node[0].domain = "kiln"
    model.opset_import.append(helper.make_opsetid("kiln", 1))
    with pytest.raises(Exception, match="auto_pad is 'SAME'.*ONNX has NOTSET"):
        run(session_of(model, with_kiln=True), x=normal(1, 3, 9, 9), w=normal(4, 3, 3, 3))
    pool = model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2])], {"x": (None,) * 4})
    with pytest.raises(Exception, match="kiln: kernel_shape has 1 numbers, expected 2"):
        run(on_kiln(pool), x=normal(1, 3, 9, 9))


def test_another_type_is_refused_when_the_model_is_loaded():
    node = helper.make_node("Softmax", ["x"], ["y"], domain="kiln")
    model = model_of([node], {"x": (2, 3)}, dtype="float64")
    model.opset_import.append(helper.make_opsetid("kiln", 1))
    with pytest.raises(Exception, match=r"tensor\(double\)|an implementation for Softmax"):
        session_of(model, with_kiln=True)


def test_what_stays_is_named_with_the_reason():
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a", "at"], kernel_shape=[2, 2]),
        helper.make_node("GlobalAveragePool", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, opset=11)
    moved, stayed = to_kiln.convert(model)
    assert moved == 1
    assert [(node.op_type, reason) for node, reason in stayed] == [
        ("MaxPool", "it has a second output"),
        ("Softmax", "before opset 13 it is the softmax of a matrix"),
    ]
    integers = model_of([helper.make_node("Softmax", ["x"], ["y"])], {"x": (1, 3)}, dtype="float64")
    assert to_kiln.convert(integers)[1][0][1] == "its tensors are of type double"


def test_sessions_and_threads_share_the_device():
    """Two sessions, in four threads each, with two shapes: every result has the bits of a run by itself."""
    model = conv_model((None, 3, 12, 12), (8, 3, 3, 3), {})
    w, bias = normal(8, 3, 3, 3), normal(8)
    batches = {n: normal(n, 3, 12, 12) for n in (1, 3)}
    sessions = [on_kiln(model), on_kiln(model)]
    alone = {n: run(sessions[0], x=x, w=w, bias=bias) for n, x in batches.items()}

    def work(number):
        n = 1 + number % 2 * 2
        return np.array_equal(run(sessions[number // 2 % 2], x=batches[n], w=w, bias=bias), alone[n])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


def test_the_snippet_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("build/onnxruntime").mkdir(parents=True)
    pathlib.Path("build/onnxruntime/libkiln_onnxruntime.so").symlink_to(LIBRARY)
    model = model_of([helper.make_node("Softmax", ["x"], ["y"], axis=1)], {"x": (1, 3, 8, 8)})
    to_kiln.convert(model)
    onnx.save(model, "kiln.onnx")
    section = (ROOT / "docs/engines.md").read_text().split("## ONNX Runtime")[1].split("\n## ")[0]
    (snippet,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(snippet, "docs/engines.md", "exec"), names)
    assert np.allclose(names["y"], 1 / 3)
