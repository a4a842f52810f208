"""Mistakes of a caller: each is a clear exception before anything is enqueued, or it is served."""

import gc
import threading

import numpy as np
import pytest

import kiln

X = np.zeros((2, 3, 6, 6), np.float32)
W = np.zeros((4, 3, 3, 3), np.float32)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"alpha": "2"}, "alpha is '2' .give a number"),
        ({"alpha": [1.0, 2.0]}, r"alpha is \[1.0, 2.0\] .give a number"),
        ({"beta": np.zeros(2)}, "beta is .* .give a number"),
        ({"pad": 1.5}, "pad is 1.5 .give an integer, integers or a word"),
        ({"pad": (1, "x")}, "pad is .*give an integer, integers or a word"),
        ({"pad": "1"}, "pad is '1' .give an integer or integers"),
        ({"mode": "convolution tf32"}, "mode is 'convolution tf32' .give one word"),
        ({"clip_lo": 0.0, "epilogue": "relu"}, "clip_lo is given, and the epilogue does not clip"),
        ({"clip_hi": 0.0, "epilogue": kiln.expression("acc")}, "clip_hi is given, and the epilogue does not clip"),
        ({"bias": np.ma.array(np.ones(4, np.float32))}, "tensor bias is a masked array.*give its filled"),
        ({"pad": (1, 1, 1, 1, 1)}, "pad"),
        ({"stride": 0}, "stride"),
        ({"tf32": 1}, "tf32 is 1 .give True or False"),
        ({"dynamic_batch": "yes"}, "dynamic_batch is 'yes' .give True or False"),
        ({"epilogue": 5}, "epilogue is 5 .give stages"),
        ({"epilogue": "relu "}, "epilogue is 'relu ' .give one word"),
        ({"epilogue": "rellu"}, "rellu"),
        ({"stream": "main"}, "stream is 'main' .give an address"),
        ({"stream": -5}, "stream is -5 .give an address"),
        ({"context": "emulator"}, "context is a str .give a kiln.Context"),
        ({"out": "y"}, "tensor y is a str"),
        ({"bias": 1.0}, "tensor bias is a float"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_with_what_to_give(context, given, said):
    with pytest.raises(ValueError, match=said) as raised:
        kiln.conv_forward(X, W, **{"context": context, **given})
    assert isinstance(raised.value, kiln.Error) and raised.value.hint


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda **c: kiln.conv_forward(None, None, **c), "^conv_forward: x is not given .give a tensor"),
        (lambda **c: kiln.gemm(X[0, 0], None, **c), "^gemm: b is not given"),
        (lambda **c: kiln.softmax_forward(None, out=X, **c), "^softmax_forward: x is not given"),
        (lambda **c: kiln.conv_backward_filter(X, X, out=None, **c), "out is not given .give a tensor for dw"),
        (lambda **c: kiln.tensor_set(out=None, **c), "out is not given .give a tensor for y"),
        (lambda **c: kiln.pool_backward(X, window=2, **c), "operand dx is missing .give out"),
        (lambda **c: kiln.pool_backward(X, window=1, out=X.copy(), **c), "operand x is missing .give x or indices: where"),
        (lambda **c: kiln.call("softmax_forward", x=X, **c), "tensor y is not given .give it by that name"),
    ],
    ids=range(8),
)
def test_a_tensor_that_is_not_given_is_named_as_an_argument(context, call, said):
    with pytest.raises(kiln.InvalidArgument, match=said) as raised:
        call(context=context)
    assert "dtype:extents" not in str(raised.value)


@pytest.mark.parametrize(
    "call, hint",
    [
        (lambda **c: kiln.pool_forward(X, **c), 'give window=(h, w), a number for each axis, or window="global"'),
        (lambda **c: kiln.pool_forward(X, window=1, mode="avg", indices=True, **c), 'leave them out, or give mode="max"'),
        (lambda **c: kiln.conv_forward(X, W, residual=X, epilogue="relu", **c), 'give epilogue="add" or leave out residual'),
    ],
    ids=range(3),
)
def test_hints_are_arguments_and_not_words_of_a_request(context, call, hint):
    with pytest.raises(kiln.InvalidArgument) as raised:
        call(context=context)
    assert raised.value.hint == hint


def test_integers_are_a_number_or_numbers_of_64_bits(context):
    for pad in ({1: 2}, {1, 2}, (), [1, [2]], 1.5):
        with pytest.raises(kiln.InvalidArgument, match="pad is .*give an integer, integers or a word"):
            kiln.conv_forward(X, W, pad=pad, context=context)
    with pytest.raises(kiln.InvalidArgument, match="pad is .*give integers of 64 bits"):
        kiln.conv_forward(X, W, pad=10**30, context=context)
    y = kiln.conv_forward(X, W, pad=(each for each in (1, 1)), context=context)
    assert y.shape == (2, 4, 6, 6)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda **c: kiln.conv_forward(X, W, epilogue="releu", **c), "unknown epilogue stage 'releu' (did you mean relu?)"),
        (lambda **c: kiln.call("reduce", x=X, y=np.zeros_like(X), axs=1, **c), "reduce has no operand or attribute 'axs'"),
    ],
    ids=range(2),
)
def test_an_error_of_a_call_counts_no_columns(context, call, text):
    with pytest.raises(kiln.ParseError) as raised:
        call(context=context)
    assert str(raised.value).startswith(text)


def test_a_batch_beyond_a_plan_is_one_of_the_tensors(context):
    plan = kiln.plan("softmax_forward x=f32:2x8 n=?", context=context)
    x = np.ones((3, 8), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="n is 3, and the request serves batches of 0 to 2 .*give tensors of such a batch"):
        plan.run(x=x, y=np.empty_like(x))


def test_dates_are_no_tensors(context):
    """Their buffers have no strides, which the protocol demands: they are looked at before anything reads them."""
    for date in (np.datetime64("2026"), np.timedelta64(1, "s")):
        with pytest.raises(kiln.InvalidArgument, match="tensor x is a (datetime|timedelta)64 .give an array"):
            kiln.softmax_forward(date, axis=0, context=context)


def test_a_window_in_the_padding_alone_has_no_maximum_and_an_average_of_0(context):
    x = np.ones((1, 1, 2, 2), np.float32)
    for mode, of_nothing in ("max", -np.inf), ("avg", 0), ("avg_padded", 0):
        y = kiln.pool_forward(x, window=1, pad=1, mode=mode, context=context)
        assert (y[0, 0, 1:3, 1:3] == 1).all() and (y[0, 0, (0, 3)] == of_nothing).all(), mode


def test_the_largest_seed_is_a_seed(context):
    ones = np.ones(256, np.float32)
    masks = {seed: kiln.dropout(ones, p=0.5, seed=seed, context=context).tobytes() for seed in (0, 1 << 63, (1 << 64) - 1)}
    assert len(set(masks.values())) == 3


def test_an_integer_out_of_range(context):
    for seed in (-1, 1 << 64, 1.5, "7"):
        with pytest.raises(kiln.InvalidArgument, match="seed is .* .give an integer from 0"):
            kiln.dropout(X, p=0.5, seed=seed, context=context)


def test_a_keyword_that_a_function_does_not_have_is_a_type_error(context):
    with pytest.raises(TypeError, match="padding"):
        kiln.conv_forward(X, W, padding=1, context=context)


def test_numbers_of_numpy_are_numbers(context, random):
    x = random.standard_normal((2, 8), dtype=np.float32)
    y = kiln.softmax_forward(x, axis=np.int64(1), alpha=np.float32(2), context=context)
    np.testing.assert_allclose(y.sum(1), 2, rtol=1e-5)
    padded = kiln.conv_forward(X, W, pad=np.array([1, 1]), stride=[np.int32(1), 1], context=context)
    assert padded.shape == (2, 4, 6, 6)


def test_a_workspace_has_to_be_device_memory_of_enough_bytes(context):
    with pytest.raises(kiln.InvalidArgument, match="workspace is a bytearray .give a kiln.DeviceMemory"):
        kiln.call("softmax_forward", x=X, y=X, workspace=bytearray(64), context=context)


@pytest.mark.parametrize("dtype", [np.bool_, ">f4", np.uint16, "U3", object])
def test_types_that_kiln_does_not_have(context, dtype):
    with pytest.raises(kiln.InvalidArgument, match="tensor x has elements of .*convert it; Kiln has float32"):
        kiln.tensor_transform(np.zeros((2, 4), dtype), context=context)


def test_inputs_of_different_types_or_shapes(context):
    with pytest.raises(kiln.InvalidArgument, match="w is i32"):
        kiln.conv_forward(X, W.astype(np.int32), context=context)
    with pytest.raises(kiln.InvalidArgument, match="w"):
        kiln.conv_forward(X, np.zeros((4, 2, 3, 3), np.float32), context=context)
    with pytest.raises(kiln.InvalidArgument, match="y"):
        kiln.conv_forward(X, W, out=np.zeros((2, 4, 5, 5), np.float32), context=context)


def test_negative_strides_are_refused_but_of_one_element(context):
    with pytest.raises(kiln.InvalidArgument, match="tensor x: .*stride"):
        kiln.softmax_forward(X[:, :, ::-1], context=context)
    one = np.arange(4, dtype=np.float32).reshape(4, 1)[:, ::-1]
    np.testing.assert_array_equal(kiln.tensor_transform(one, alpha=2.0, context=context), 2 * one)


def test_elements_that_are_not_aligned(context):
    x = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float32).reshape(2, 4)
    assert not x.flags.aligned
    with pytest.raises(kiln.InvalidArgument, match="x"):
        kiln.tensor_transform(x, context=context)


def test_tensors_without_elements(context):
    empty = np.zeros((0, 3), np.float32)
    assert kiln.tensor_transform(empty, alpha=2.0, context=context).shape == (0, 3)
    assert kiln.gemm(np.ones((4, 0), np.float32), np.ones((0, 5), np.float32), context=context).tolist() == [[0] * 5] * 4


def test_outputs_that_overlap(context, random):
    x = random.standard_normal((4, 8), dtype=np.float32)
    with pytest.raises(kiln.InvalidArgument, match="overlap|share"):
        kiln.softmax_forward(x[:3], out=x[1:], context=context)
    with pytest.raises(kiln.InvalidArgument, match="y"):
        kiln.tensor_set(out=np.lib.stride_tricks.as_strided(x, (4, 8), (0, 4)), value=1.0, context=context)


def test_torch_tensors_that_cannot_be_served(context, torch):
    class WithoutMemory(torch.Tensor):
        def data_ptr(self):
            raise RuntimeError("there is none here\nand none elsewhere")

    class Nested(torch.Tensor):
        is_nested = True

    for tensor, said in (
        (torch.zeros(2, 4, device="meta"), "is on device meta"),
        (torch.zeros(2, 4, dtype=torch.float64), "elements of torch.float64"),
        (torch.zeros(2, 4, dtype=torch.bool), "elements of torch.bool"),
        (torch.zeros(2, 4, dtype=torch.cfloat).conj().imag, "give its resolve_neg"),
        (torch.ones(2, 4).to_sparse(), "has the layout torch.sparse_coo .give its to_dense"),
        (torch.ones(2, 4).to_sparse_csr(), "has the layout torch.sparse_csr .give its to_dense"),
        (WithoutMemory(2, 4), "has no memory: there is none here"),
        (Nested(2, 4), "is a nested tensor"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=f"tensor x .*{said}"):
            kiln.softmax_forward(tensor, context=context)


def test_tensors_that_the_caller_drops_during_a_call_live_until_it_ends(context):
    """The caller's only names of the arrays go while another thread is inside of the call."""
    results = []
    given = [np.full((64, 64), 1.0, np.float32) for _ in range(2)]

    def work():
        results.append(kiln.gemm(given.pop(), given.pop(), context=context))

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        gc.collect()
    assert (results[0] == 64).all()


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: kiln.Context("cpu"), "device is 'cpu'"),
        (lambda: kiln.Context(True), "device is True"),
        (lambda: kiln.Context(driver=3), "driver is 3"),
        (lambda: kiln.Context(cache=3), "cache is 3"),
        (lambda: kiln.Context(packs=3), "packs is 3"),
        (lambda: kiln.Context(bundles=["a", 3]), "bundles is 3"),
        (lambda: kiln.Context(workspace_limit="1G"), "workspace_limit is '1G'"),
        (lambda: kiln.Context(kept_plans="many"), "kept_plans is 'many'"),
        (lambda: kiln.Context(kept_plans=0), "kept_plans is 0"),
        (lambda: kiln.Context(kept_plans=2**63), "kept_plans is 9223372036854775808 .give less than"),
        (lambda: kiln.Context(kept_plan_bytes=-1), "kept_plan_bytes is -1"),
        (lambda: kiln.Context(first_call="later"), "first_call is 'later' .give .exact. or .at_once."),
        (lambda: kiln.Context(deterministic="yes"), "deterministic is 'yes'"),
        (lambda: kiln.Context(tuning="never"), "tuning is 'never' .give a kiln.Tuning"),
        (lambda: kiln.Context(announce=3), "announce is 3"),
        (lambda: kiln.Tuning("sometimes"), "mode is 'sometimes'"),
        (lambda: kiln.Tuning(candidates="x"), "candidates is 'x'"),
        (lambda: kiln.default_context("cpu"), "device is 'cpu'"),
        (lambda: kiln.default_context(X), "device is array"),
        (lambda: kiln.expression(None), "text is None"),
        (lambda: kiln.plan(None), "request is None"),
        (lambda: kiln.call(None), "what is None"),
    ],
    ids=range(22),
)
def test_a_setting_of_a_wrong_type_is_named(make, said):
    with pytest.raises(kiln.InvalidArgument, match=said):
        make()


@pytest.mark.parametrize("nbytes", [-1, 1.5, "16", None, 1 << 63])
def test_bytes_of_device_memory_are_a_number(context, nbytes):
    with pytest.raises(kiln.InvalidArgument, match=f"nbytes is {nbytes!r} .give a number of bytes"):
        kiln.DeviceMemory(context, nbytes)
    with pytest.raises(kiln.InvalidArgument, match="context is 3 .give a kiln.Context"):
        kiln.DeviceMemory(3, 16)


@pytest.mark.parametrize("requests", [3, None, [1]])
def test_requests_are_text(context, requests):
    with pytest.raises(kiln.InvalidArgument, match="is 3|is None|is 1"):
        context.prepare(requests)
    with pytest.raises(kiln.InvalidArgument, match="request is"):
        context.explain(requests)


@pytest.mark.parametrize(
    "work, options, error, said",
    [
        ("nofile.onnx", {}, kiln.FileError, "there is no file nofile.onnx"),
        ("--help", {}, kiln.FileError, "there is no file --help"),
        ([], {}, kiln.InvalidArgument, "no request is given"),
        (3, {}, kiln.InvalidArgument, "work is 3"),
        ([3], {}, kiln.InvalidArgument, r"work is \[3\]"),
        (["softmax_forward x=f32:4x16", "softmax x=f32:4"], {}, kiln.ParseError, "^request 2: .*unknown operation"),
        ([], {"candidates": 0}, kiln.InvalidArgument, "candidates is 0"),
        ([], {"budget": float("nan")}, kiln.InvalidArgument, "budget is nan"),
        ([], {"device": "cpu"}, kiln.InvalidArgument, "device is 'cpu'"),
        ([], {"device": True}, kiln.InvalidArgument, "device is True"),
        ([], {"device": []}, kiln.InvalidArgument, r"device is \[\]"),
        ([], {"device": [0, "1"]}, kiln.InvalidArgument, r"device is \[0, '1'\]"),
        ("softmax_forward x=f32:4x16", {"device": [0, 0]}, kiln.InvalidArgument, "names device 0 twice"),
        ("softmax_forward x=f32:4x16", {"device": [0, 7]}, kiln.InvalidArgument, "there is no device 7"),
    ],
    ids=str,
)
def test_what_cannot_be_tuned_is_said_in_words_of_python(tmp_path, work, options, error, said):
    with pytest.raises(error, match=said):
        kiln.tune(work, cache=tmp_path / "a.db", driver="emulator", progress=False, **options)
