"""kiln.onnx: whole models on arrays and tensors."""

import subprocess
import sys
import threading
from contextlib import nullcontext

import numpy as np
import onnx_files as files
import pytest
from conftest import conv_reference

import kiln
import kiln.onnx

W = np.linspace(-1, 1, 4 * 2 * 3 * 3, dtype=np.float32).reshape(4, 2, 3, 3)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """y = relu(conv(x)), the mean of y over its pixels, and its channels before softmax."""
    nodes = [
        files.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        files.node("Relu", ["c"], ["y"]),
        files.node("GlobalAveragePool", ["y"], ["m"]),
        files.node("Flatten", ["m"], ["mean"]),
    ]
    inputs = [files.value("x", "float", ["n", 2, 5, 6])]
    outputs = [files.value("y", "float", ["n", 4, 5, 6]), files.value("mean", "float", ["n", 4])]
    file = tmp_path_factory.mktemp("onnx") / "small.onnx"
    file.write_bytes(files.model(nodes, inputs, outputs, [files.tensor("w", W)]))
    return file


@pytest.fixture(scope="module")
def loaded(path, context):
    return kiln.onnx.load(path, batch=3, context=context)


@pytest.fixture
def model(loaded):
    loaded.set_batch(3)
    return loaded


@pytest.fixture
def x(random):
    return random.standard_normal((3, 2, 5, 6), dtype=np.float32)


def expected_of(x):
    y = np.maximum(conv_reference(x, W, 1), 0)
    return y, y.mean(axis=(2, 3))


def expect_close(results, x, tolerance=1e-4):
    for result, expected in zip(results, expected_of(np.asarray(x, np.float64)), strict=True):
        result = np.asarray(result, np.float64)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def test_a_model_runs_on_arrays_by_place_or_name(model, x):
    expect_close(model(x), x)
    expect_close(model(x=x), x)
    wide = np.asfortranarray(x.astype(np.float64))  # another type and layout: converted
    y, mean = model(wide)
    assert y.dtype == np.float32
    expect_close((y, mean), x)
    unaligned = np.frombuffer(bytearray(4) + x.tobytes(), np.float32)[1:].reshape(x.shape)
    expect_close(model(unaligned), x)


def test_it_says_what_it_is(model):
    (only,) = model.inputs
    assert only == kiln.onnx.ModelTensor("x", "float", "f32", (3, 2, 5, 6))
    assert [tensor.name for tensor in model.outputs] == ["y", "mean"]
    assert {node for step in model.steps for node in step.nodes} >= {"c", "m"}
    assert all(step.variant and step.source for step in model.steps)
    assert model.memory.weights >= W.nbytes and model.memory.least_arena <= model.memory.arena <= model.memory.unshared
    text = repr(model)
    for part in ("small.onnx on ", "input  x: float 3x2x5x6", "output mean: float 3x4", "MiB of weights", "conv_forward"):
        assert part in text
    assert "<td style=" in model._repr_html_() and "conv_forward" in model._repr_html_()


def test_its_requests_are_what_its_runs_tune(model, context):
    requests = model.requests()
    assert any(line.startswith("conv_forward x=f32:3x2x5x6") for line in requests)
    assert len(set(requests)) == len(requests)
    context.prepare(requests)


def test_fusing_is_optional(model, path, context, x):
    plain = kiln.onnx.load(path, batch=3, fuse=False, context=context)
    assert len(plain.steps) > len(model.steps)  # the relu is a call of its own
    expect_close(plain(x), x)


def test_layouts_change_what_runs_and_not_the_results(path, context, x):
    lines = {}
    for layout in ("auto", "nchw", "nhwc"):
        model = kiln.onnx.load(path, batch=3, layout=layout, context=context)
        expect_close(model(x), x)
        lines[layout] = [step.request for step in model.steps]
    assert lines["nchw"] != lines["nhwc"]


def test_storage_is_what_was_asked_for(path, context, x):
    half = kiln.onnx.load(path, batch=3, dtype="f16", context=context)
    assert half.inputs[0].dtype == "f16" and half.inputs[0].type == "float"
    y, mean = half(x)
    assert y.dtype == np.float32  # as the model has it
    expect_close((y, mean), x, 1e-2)
    with pytest.raises(kiln.InvalidArgument, match="dtype is 'i32'"):
        kiln.onnx.load(path, dtype="i32", context=context)
    every = r"give f32, f16, bf16, f8e4m3 or f8e5m2"
    with pytest.raises(kiln.InvalidArgument, match=f"dtype is 'half'.*{every}"):
        kiln.onnx.load(path, dtype="half", context=context)


def test_batches_of_one_bucket_share_their_kernels(path, context, random):
    for batch in (3, 4):
        x = random.standard_normal((batch, 2, 5, 6), dtype=np.float32)
        dynamic = kiln.onnx.load(path, batch=batch, dynamic_batch=True, context=context)
        assert any("n=?" in line for line in dynamic.requests())
        expect_close(dynamic(x), x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_call_takes_any_batch_that_the_file_leaves_open(path, context, random, dynamic):
    model = kiln.onnx.load(path, dynamic_batch=dynamic, context=context)
    assert model.has_open_batch and model.batch == 1
    arena = model.memory.arena
    for batch in (4, 1, 9, 3):
        x = random.standard_normal((batch, 2, 5, 6), dtype=np.float32)
        expect_close(model(x), x)
        assert model.batch == batch and model.inputs[0].shape == x.shape
        y, mean = np.empty((2, 4, 5, 6), np.float32), np.empty((2, 4), np.float32)
        model.run({"x": x[:1].repeat(2, axis=0)}, {"y": y, "mean": mean})
        assert model.batch == 2
        expect_close((y, mean), x[:1].repeat(2, axis=0))
        model.set_batch(batch)
        assert any(f"{batch}x2x5x6" in line or "n=?" in line for line in model.requests())
    model.set_batch(1)
    assert model.memory.arena == arena and model.outputs[1].shape == (1, 4)
    for wrong in (0, True, 2.0, "2"):
        with pytest.raises(kiln.InvalidArgument, match=f"batch is {wrong!r}"):
            model.set_batch(wrong)
    assert model.batch == 1


def test_the_batch_is_that_of_the_input_that_leaves_it_open(tmp_path, context):
    file = tmp_path / "two.onnx"
    inputs = [files.value("k", "float", [1, 3]), files.value("x", "float", ["n", 3])]
    file.write_bytes(files.model([files.node("Add", ["x", "k"], ["y"])], inputs, [files.value("y", "float", ["n", 3])], []))
    model = kiln.onnx.load(file, context=context)
    k, x = np.ones((1, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(model(k, x), x + 1)


def test_a_wrong_shape_changes_no_batch(path, context):
    model = kiln.onnx.load(path, context=context)
    with pytest.raises(kiln.InvalidArgument, match="input 'x' is given as 8x2x5x7: extent 3 is 7, expected 6"):
        model(np.ones((8, 2, 5, 7), np.float32))
    assert model.batch == 1


@pytest.fixture
def open_file(tmp_path):
    """y = x * z - x of any extents, z of one row."""
    file = tmp_path / "open.onnx"
    nodes = [files.node("Mul", ["x", "z"], ["p"]), files.node("Sub", ["p", "x"], ["y"])]
    inputs = [files.value("x", "float", ["rows", "width"]), files.value("z", "float", [1, "width"])]
    file.write_bytes(files.model(nodes, inputs, [files.value("y", "float", ["rows", "width"])], []))
    return file


def test_a_model_with_open_extents_takes_those_of_each_call(open_file, context, random):
    model = kiln.onnx.load(open_file, kept_sizes=2, context=context)
    assert model.has_open_extents and model.sizes == 0 and model.outputs == () and model.batch == 0
    assert model.inputs == model.declared_inputs and model.inputs[0].shape == (-1, -1)
    assert str(model.inputs[0]) == "x: float ?x? (on the device f32)"
    assert "ready after 0 ms" in repr(model)
    for rows, width in ((3, 5), (1, 1), (7, 11), (3, 5)):
        x = random.standard_normal((rows, width), dtype=np.float32)
        z = random.standard_normal((1, width), dtype=np.float32)
        np.testing.assert_allclose(model(x, z), x * z - x, rtol=1e-6, atol=1e-6)
        assert model.inputs[0].shape == (rows, width) and model.outputs[0].shape == (rows, width)
        assert model.sizes <= 2 and model.cost.seconds > 0
        y = np.empty_like(x)
        model.run({"x": x, "z": z}, {"y": y})
        np.testing.assert_allclose(y, x * z - x, rtol=1e-6, atol=1e-6)


def test_shapes_may_be_said_before_a_call(open_file, context):
    model = kiln.onnx.load(open_file, shapes={"x": (2, 3)}, context=context)
    assert [tensor.shape for tensor in model.inputs] == [(2, 3), (1, 3)]  # z by the name of its extent
    model.set_shapes({"x": (4, 6), "z": [1, 6]})
    assert model.outputs[0].shape == (4, 6) and model.sizes == 2
    model.set_batch(5)
    assert model.outputs[0].shape == (5, 6)
    for shapes, message in (
        ({"x": (1, 2, 3)}, "it has 3 dimensions, expected 2"),
        ({"q": (1,)}, "the model has no input 'q'"),
        ({"z": (2, 6), "x": (1, 6)}, "input 'z' is given as 2x6: extent 0 is 2, expected 1"),
        ({"x": (1, -6)}, "extent 1 is below 0"),
        ({"x": 3}, "the shape of 'x' is 3"),
        ({"x": (1, 2.5)}, "the shape of 'x' is"),
        ({"x": (1, 2**63)}, "give extents of 64 bits"),
        ({"x": (1, -(2**63) - 1)}, "give extents of 64 bits"),
        ({"x": (1, -(2**63))}, "extent 1 is below 0"),
        ((1, 2), "shapes is"),
        ({"z": (1, 6)}, None),
    ):
        if message:
            with pytest.raises(kiln.InvalidArgument, match=message):
                model.set_shapes(shapes)
            assert model.outputs[0].shape == (5, 6)
    model.set_shapes({"z": (1, 4)})
    assert model.outputs[0].shape == (1, 4)  # an open batch is 1
    with pytest.raises(kiln.InvalidArgument, match=r"open: 'x' \[rows, width\], 'z' \[1, width\].*shapes="):
        model.set_shapes({})
    for limit in (-1, 2**63, True, 1.0):
        with pytest.raises(kiln.InvalidArgument, match=f"kept_sizes is {limit!r} .give a number, 0 or more"):
            kiln.onnx.load(open_file, kept_sizes=limit, context=context)
    with pytest.raises(kiln.InvalidArgument, match="kept_bytes is '1'"):
        kiln.onnx.load(open_file, kept_bytes="1", context=context)
    kiln.onnx.load(open_file, kept_sizes=0, kept_bytes=2**63 - 1, context=context)


def test_a_batch_that_the_file_says_is_kept(tmp_path, context):
    nodes = [files.node("Relu", ["x"], ["y"])]
    file = tmp_path / "fixed.onnx"
    file.write_bytes(files.model(nodes, [files.value("x", "float", [2, 3])], [files.value("y", "float", [2, 3])], []))
    model = kiln.onnx.load(file, context=context)
    assert not model.has_open_batch and model.batch == 2
    with pytest.raises(kiln.InvalidArgument, match="input 'x' has the shape"):
        model(np.ones((4, 3), np.float32))
    model.set_batch(4)
    np.testing.assert_array_equal(model(-np.ones((4, 3), np.float32)), np.zeros((4, 3)))


def test_tensors_of_pytorch_are_used_where_they_are(model, x, torch):
    given = torch.tensor(x.tolist())
    y, mean = model(given)
    assert isinstance(y, torch.Tensor) and y.dtype == torch.float32
    expect_close((y.tolist(), mean.tolist()), x)
    with pytest.raises(kiln.InvalidArgument, match="elements of torch.float64"):
        model(given.double())


def test_tensors_of_pytorch_that_a_run_cannot_use_are_refused(model, x, torch):
    given = torch.tensor(x.tolist())
    unaligned = torch.zeros(given.numel() + 1)[1:].view(given.shape)
    for tensor, message in (
        (given.to(memory_format=torch.channels_last), "input 'x' has the strides 60x1x12x2, expected logical order"),
        (unaligned, "input 'x' is not 16-byte aligned"),
        (given.half(), "is f16 3x2x5x6, expected f32 3x2x5x6 .convert it"),
        (given[:, :1].contiguous(), r"input 'x' is given as 3x1x5x6: extent 1 is 1, expected 2 .*\[n, 2, 5, 6\]\)$"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=message):
            model(tensor)


def test_run_writes_where_the_caller_says(model, x):
    y, mean = np.empty((3, 4, 5, 6), np.float32), np.empty((3, 4), np.float32)
    model.run({"x": x}, {"mean": mean, "y": y})
    expect_close((y, mean), x)
    with pytest.raises(kiln.InvalidArgument, match="the model has no output 'z'"):
        model.run({"x": x}, {"mean": mean, "z": y})
    with pytest.raises(kiln.InvalidArgument, match="'x' is given as an input and as an output"):
        model.run({"x": x}, {"x": x})
    with pytest.raises(kiln.InvalidArgument, match="output 'y' is not given"):
        model.run({"x": x}, {"mean": mean})
    with pytest.raises(kiln.InvalidArgument, match="float64"):  # nothing is converted
        model.run({"x": x.astype(np.float64)}, {"mean": mean, "y": y})
    mean.flags.writeable = False
    with pytest.raises(kiln.InvalidArgument, match="mean cannot be written"):
        model.run({"x": x}, {"mean": mean, "y": y})


def test_runs_on_the_same_arrays_become_one_graph(path, context, random):
    for wanted in (True, False):
        model = kiln.onnx.load(path, batch=3, use_graph=wanted, context=context)
        x = np.empty(model.inputs[0].shape, np.float32)
        outputs = {tensor.name: np.empty(tensor.shape, np.float32) for tensor in model.outputs}
        for graphs in (0, 1, 1):
            x[...] = random.standard_normal(x.shape, dtype=np.float32)
            model.run({"x": x}, outputs)
            expect_close([outputs["y"], outputs["mean"]], x)
            assert model.graphs.kept == (graphs if wanted else 0)
        assert (model.graphs.unused_because == "") == wanted
        other = random.standard_normal(x.shape, dtype=np.float32)
        expect_close(model(other), other)


class Shown:
    """f32 on the device, as another library's arrays show them."""

    def __init__(self, memory, shape):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (memory.data, False), "version": 3}


def test_an_input_that_reaches_beyond_its_memory_is_named(model, x, context):
    outputs = {"y": np.empty((3, 4, 5, 6), np.float32), "mean": np.empty((3, 4), np.float32)}
    for nbytes in (720, 704):
        memory = kiln.DeviceMemory(context, nbytes)
        given = Shown(memory, x.shape)
        if nbytes == 720:
            kiln.activation_forward(x, mode="identity", out=given)
        message = "input 'x' takes 720 bytes, from 0x[0-9a-f]+ to 0x[0-9a-f]+, and only 704 of them are there"
        with nullcontext() if nbytes == 720 else pytest.raises(kiln.InvalidArgument, match=message):
            model.run({"x": given}, outputs)


def test_wrong_inputs_are_refused(model, x):
    for call, message in (
        (lambda: model(), "input 'x' is not given .it is x: float 3x2x5x6"),
        (lambda: model(x, x), "2 inputs are given, and the model has 1"),
        (lambda: model(x, x=x), "input 'x' is given twice"),
        (lambda: model(z=x), "the model has no input 'z' .it has x"),
        (lambda: model(x[:, :1]), "input 'x' is given as 3x1x5x6: extent 1 is 1, expected 2"),
        (lambda: model(x.astype(complex)), "elements of complex128"),
        (lambda: model(np.full_like(x, 1e300, np.float64)), "input 'x' holds 1e.300, which float32 does not hold"),
        (lambda: model(3), "tensor x is a int"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=message):
            call()


def test_files_that_are_no_models_of_kilns_are_refused(tmp_path, context):
    with pytest.raises(kiln.FileError):
        kiln.onnx.load(tmp_path / "none.onnx", context=context)
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(kiln.ParseError):
        kiln.onnx.load(tmp_path / "text.onnx", context=context)
    x, y = files.value("x", "float", [2]), files.value("y", "float", [2])
    odd = files.model([files.node("NoSuchOperator", ["x"], ["y"])], [x], [y])
    (tmp_path / "odd.onnx").write_bytes(odd)
    with pytest.raises(kiln.Unsupported, match="node 'y' .*NoSuchOperator"):
        kiln.onnx.load(tmp_path / "odd.onnx", context=context)
    for wrong in ({"batch": 0}, {"batch": "2"}, {"dynamic_batch": 1}, {"fuse": 1}, {"use_graph": 1}, {"tf32": 1}, {"fast": 1}, {"deterministic": "yes"}, {"shapes": 3}, {"kept_bytes": True}, {"layout": "chwn"}, {"dtype": 16}, {"context": 1}):
        with pytest.raises(kiln.InvalidArgument):
            kiln.onnx.load(tmp_path / "odd.onnx", **wrong)


def test_models_that_callers_could_not_name_or_bring_tensors_for_are_refused(tmp_path, context):
    relu = [files.node("Relu", ["x"], ["y"])]
    x, y = files.value("x", "float", [2]), files.value("y", "float", [2])
    deep = files.value("x", "float", [1, 2, 1, 2, 1, 2, 1])
    for inputs, outputs, error, message in (
        ([x], [], kiln.ParseError, "has no outputs"),
        ([x, x], [y], kiln.ParseError, "has two inputs 'x'"),
        ([x], [y, y], kiln.ParseError, "has two outputs 'y'"),
        ([x], [y, files.value("z", "float", [2])], kiln.ParseError, "has an output 'z', which nothing defines"),
        ([deep], [y], kiln.Unsupported, "input 'x' has 7 dimensions, and tensors have up to 6"),
    ):
        (tmp_path / "odd.onnx").write_bytes(files.model(relu, inputs, outputs))
        with pytest.raises(error, match=message):
            kiln.onnx.load(tmp_path / "odd.onnx", context=context)


def test_infinities_and_nan_are_converted(model, x):
    x[0, 0, 0, 0], x[1, 1, 1, 1] = np.inf, np.nan
    for result, same in zip(model(x.astype(np.float64)), model(x)):
        np.testing.assert_array_equal(result, same)


def test_integers_and_booleans_are_converted(tmp_path, context):
    nodes = [files.node(kind, ["a", "b"], [name]) for kind, name in (("Add", "sum"), ("Less", "less"), ("Mod", "rest"))]
    inputs = [files.value("a", "int64", [2, 3]), files.value("b", "int64", [2, 3])]
    outputs = [files.value(name, "bool" if name == "less" else "int64", [2, 3]) for name in ("sum", "less", "rest")]
    (tmp_path / "integers.onnx").write_bytes(files.model(nodes, inputs, outputs))
    model = kiln.onnx.load(tmp_path / "integers.onnx", context=context)
    a, b = np.arange(6).reshape(2, 3), np.full((2, 3), 3)
    total, less, rest = model(a, b=b)
    assert total.dtype == np.int64 and less.dtype == np.bool_
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(less, a < b)
    np.testing.assert_array_equal(rest, a % b)
    assert any(" epilogue=user:" in line for line in model.requests())
    context.prepare(model.requests())  # what the user code means stands in front
    for wrong in (np.full((2, 3), 1 << 40), np.full((2, 3), 0.5), np.full((2, 3), np.nan)):
        with pytest.raises(kiln.InvalidArgument, match="input 'a' holds .*, which int32 does not hold"):
            model(wrong, b)


def test_threads_take_turns(model, random):
    arrays = [random.standard_normal((3 - i % 2, 2, 5, 6), dtype=np.float32) for i in range(4)]
    results = [None] * len(arrays)

    def work(i):
        results[i] = model(arrays[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, result in zip(arrays, results):
        expect_close(result, x)


def test_importing_kiln_loads_no_onnx():
    code = "import kiln; assert 'onnx' not in open('/proc/self/maps').read(); import kiln.onnx"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_keeps_its_context(path, x):
    model = kiln.onnx.load(path, batch=3, context=kiln.Context(driver="emulator", cache="off"))
    expect_close(model(x), x)
