"""Calls by name, and the function of each operation."""

import inspect
import json
import subprocess
import threading

import numpy as np
import pytest
from conftest import conv_reference

import kiln
from kiln import _library


def test_call_takes_words_tensors_and_numbers_by_name(context, random):
    x = random.standard_normal((1, 3, 6, 6), dtype=np.float32)
    w = random.standard_normal((4, 3, 3, 3), dtype=np.float32)
    b = random.standard_normal(4, dtype=np.float32)
    y = np.empty((1, 4, 6, 6), np.float32)
    kiln.call("conv_forward", pad=(1, 1), epilogue="bias+relu", x=x, w=w, y=y, bias=b, alpha=0.5, context=context)
    expected = np.maximum(0.5 * conv_reference(x, w, 1) + b[:, None, None], 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_a_word_that_is_false_is_not_there(context):
    x = np.ones((2, 4), np.float32)
    y = np.empty_like(x)
    kiln.call("softmax_forward", x=x, y=y, fast=False, dynamic_batch=False, context=context)
    assert (y == 0.25).all()


def test_limits_clip(context, random):
    x, w = random.standard_normal((1, 2, 4, 4), dtype=np.float32), random.standard_normal((3, 2, 1, 1), dtype=np.float32)
    b = np.array([1, 2, 3], np.float32)
    plain = kiln.conv_forward(x, w, b, context=context)
    np.testing.assert_array_equal(kiln.conv_forward(x, w, b, clip_lo=1.0, context=context), np.maximum(plain, 1))
    both = kiln.conv_forward(x, w, b, clip_lo=1.0, clip_hi=2.0, epilogue="clip+bias", context=context)
    np.testing.assert_array_equal(
        both, np.clip(kiln.conv_forward(x, w, context=context), 1, 2) + b.reshape(1, 3, 1, 1)
    )


def test_an_epilogue_follows_from_its_tensors(context, random):
    a = random.standard_normal((5, 6), dtype=np.float32)
    b = random.standard_normal((6, 7), dtype=np.float32)
    bias = random.standard_normal(7, dtype=np.float32)
    np.testing.assert_allclose(kiln.gemm(a, b, bias, context=context), a @ b + bias, rtol=1e-5, atol=1e-5)
    relu = kiln.gemm(a, b, bias, epilogue="bias+relu", context=context)
    np.testing.assert_allclose(relu, np.maximum(a @ b + bias, 0), rtol=1e-5, atol=1e-5)


def test_alpha_and_beta(context):
    y = np.full((2, 3), 3.0, np.float32)
    kiln.tensor_transform(np.full((2, 3), 5.0, np.float32), alpha=2.0, beta=0.5, out=y, context=context)
    np.testing.assert_array_equal(y, 11.5)
    with pytest.raises(kiln.InvalidArgument, match="beta is 0.5, and y is not given"):
        kiln.tensor_transform(y, beta=0.5, context=context)


def test_further_outputs_are_written_where_they_are_given(context, random):
    x = random.standard_normal((1, 2, 4, 4), dtype=np.float32)
    indices = np.empty((1, 2, 2, 2), np.int32)
    y = kiln.pool_forward(x, window=2, stride=2, indices=indices, context=context)
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, 16), indices.reshape(2, 4), 1), y.reshape(2, 4))


def test_further_outputs_that_are_true_are_allocated_and_returned(context, random):
    x = random.standard_normal((2, 3, 4, 4), dtype=np.float32).transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    y, indices = kiln.pool_forward(x, window=2, stride=2, indices=True, context=context)
    assert indices.dtype == np.int32 and indices.strides == y.strides
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, 3, 16), indices.reshape(2, 3, 4), 2), y.reshape(2, 3, 4))
    out = np.empty_like(x)
    y, mean, inverse = kiln.norm_forward(x, axes=(0, 2, 3), mean=True, inv_deviation=True, out=out, context=context)
    assert y is out and mean.shape == inverse.shape == (1, 3, 1, 1)
    np.testing.assert_allclose(mean, x.mean((0, 2, 3), keepdims=True), rtol=1e-4, atol=1e-6)
    dy = random.standard_normal(x.shape, dtype=np.float32)
    saved = {"mean": mean, "inv_deviation": inverse, "w": np.ones((1, 3, 1, 1), np.float32)}
    dx, dw, db = kiln.norm_backward(dy, x, **saved, axes=(0, 2, 3), dw=True, db=True, context=context)
    assert dx.shape == x.shape and dw.shape == (1, 3, 1, 1)
    np.testing.assert_allclose(db, dy.sum((0, 2, 3), keepdims=True), rtol=1e-4, atol=1e-5)


def test_scale_and_shift_are_a_normalisation(context, random):
    x = random.standard_normal((2, 6, 4, 5), dtype=np.float32)
    w, b = random.standard_normal((1, 6, 1, 1), dtype=np.float32), random.standard_normal((1, 6, 1, 1), dtype=np.float32)
    scale, shift = kiln.norm_affine(x, w, b, axes=(2, 3), shift=True, context=context)
    assert scale.shape == shift.shape == (2, 6, 1, 1)
    y = kiln.norm_forward(x, w, b, axes=(2, 3), context=context)
    np.testing.assert_allclose(x * scale + shift, y, rtol=1e-4, atol=1e-5)
    assert kiln.norm_affine(x.astype(np.float16), axes=(2, 3), out=scale, mode="rms", context=context) is scale
    np.testing.assert_allclose(scale, (np.square(x).mean((2, 3), keepdims=True) + 1e-5) ** -0.5, rtol=1e-3)


def test_a_further_output_like_what_is_not_given_is_refused(context):
    x = np.ones((4, 8), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="dw is as w, which is not given"):
        kiln.norm_backward(x, x, mean=x[:, :1], inv_deviation=x[:, :1], axes=1, dw=True, context=context)
    with pytest.raises(kiln.InvalidArgument, match="running_mean is True .give an array to write to"):
        kiln.norm_forward(x, axes=1, running_mean=True, context=context)


def test_an_output_that_has_to_be_an_array_is_refused_as_true(context):
    q = np.ones((1, 2, 4, 8), np.float32)
    lse = np.ones((1, 2, 4), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="^lse is True .give an array to write to"):
        kiln.attention_forward(q, q, q, lse=True, context=context)
    with pytest.raises(kiln.InvalidArgument, match="^dk is True .give an array to write to"):
        kiln.attention_backward(q, q, q, q, q, lse, dk=True, context=context)
    with pytest.raises(kiln.InvalidArgument, match="^indices is False .give an array to write to"):
        kiln.pool_forward(q, window=2, indices=False, context=context)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_cross_entropy_returns_the_output_that_its_reduction_has(context, random, reduction):
    x = random.standard_normal((4, 5), dtype=np.float32)
    targets = np.array([0, 3, 2, 4], np.int32)
    expected = np.log(np.exp(x).sum(1)) - x[np.arange(4), targets]
    losses = kiln.cross_entropy_forward(x, targets, reduction=reduction, context=context)
    np.testing.assert_allclose(losses, expected if reduction == "none" else [expected.mean()], rtol=1e-5)


def test_label_smoothing_is_a_number(context, random):
    x = random.standard_normal((4, 5), dtype=np.float32)
    targets = np.array([1, 0, 4, 2], np.int32)
    loss = kiln.cross_entropy_forward(x, targets, smoothing=0.1, context=context)
    of_classes = np.log(np.exp(x).sum(1, keepdims=True)) - x
    expected = 0.9 * of_classes[np.arange(4), targets] + 0.1 * of_classes.mean(1)
    np.testing.assert_allclose(loss, [expected.mean()], rtol=1e-5)


@pytest.mark.parametrize(
    "what, number, tensors",
    [
        ("attention_forward", "dropout", {"q": (1, 2, 4, 8), "k": (1, 2, 4, 8), "v": (1, 2, 4, 8), "y": (1, 2, 4, 8)}),
        ("cross_entropy_forward", "smoothing", {"x": (4, 5), "loss": (1,)}),
    ],
    ids=["attention", "cross entropy"],
)
def test_a_number_that_the_text_leaves_open_is_given_at_the_call(context, random, what, number, tensors):
    given = {name: random.standard_normal(extents, dtype=np.float32) for name, extents in tensors.items()}
    result = next(reversed(given.values()))
    if what == "cross_entropy_forward":
        given["targets"] = np.array([1, 0, 4, 2], np.int32)
    results = []
    for text in (what, f"{what} {number}=any"):
        for value in (0.25, 0.5):
            kiln.call(text, **given, **{number: value}, context=context)
            results.append(result.copy())
    assert (results[0] != results[1]).any()
    np.testing.assert_array_equal(results[:2], results[2:])
    plan = kiln.plan_of_call(f"{what} {number}=any", **given, **{number: 0.5}, context=context)
    assert f" {number}=any" in plan.request
    for value, said in ((2, f"{number} is 2"), ("x", f"{number} is 'x' .give a number")):
        with pytest.raises(kiln.InvalidArgument, match=said):
            kiln.call(f"{what} {number}=any", **given, **{number: value}, context=context)
    with pytest.raises(kiln.InvalidArgument, match=f"{number} is given, and the request has {number}=none"):
        kiln.call(f"{what} {number}=none", **given, **{number: 0.5}, context=context)
    with pytest.raises(kiln.InvalidArgument, match=f"write {number}=any, and give {number} at the call"):
        kiln.call(f"{what} {number}=0.5", **given, context=context)


def test_integers_and_an_output_that_has_to_be_given(context, random):
    x = np.ones((4, 64), np.float32)
    first = kiln.dropout(x, p=0.5, seed=7, context=context)
    np.testing.assert_array_equal(first, kiln.dropout(x, p=0.5, seed=7, context=context))
    assert (first != kiln.dropout(x, p=0.5, seed=8, context=context)).any()
    dy = random.standard_normal((1, 2, 4, 4), dtype=np.float32)
    x = random.standard_normal((1, 3, 6, 6), dtype=np.float32)
    dw = kiln.conv_backward_filter(x, dy, out=np.empty((2, 3, 3, 3), np.float32), context=context)
    expected = conv_reference(x.transpose(1, 0, 2, 3), dy.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    np.testing.assert_allclose(dw, expected, rtol=1e-4, atol=1e-5)


def test_a_dynamic_batch(context, random):
    for batch in (1, 3):
        x = random.standard_normal((batch, 10), dtype=np.float32)
        y = kiln.activation_forward(x, mode="tanh", dynamic_batch=True, context=context)
        np.testing.assert_allclose(y, np.tanh(x), rtol=1e-5, atol=1e-6)


def test_user_code_as_an_epilogue(context, random):
    x = random.standard_normal((3, 8), dtype=np.float32)
    gate = random.standard_normal((3, 8), dtype=np.float32)
    code = kiln.expression("acc * gate + s", gate=gate, s=2.0)
    y = kiln.activation_forward(x, mode="identity", epilogue=code, context=context)
    np.testing.assert_allclose(y, x * gate + 2, rtol=1e-5, atol=1e-6)


def test_user_code_of_one_text_reads_what_each_call_gives(context, random):
    """The code of a text is parsed once for the names that it reads: their values, and which are tensors, may differ."""
    x = random.standard_normal((2, 3, 4, 5), dtype=np.float32)
    gate = random.standard_normal(x.shape, dtype=np.float32)

    def applied(**reads):
        code = kiln.expression("acc * gate + s", **reads)
        return kiln.activation_forward(x, mode="identity", epilogue=code, context=context)

    np.testing.assert_allclose(applied(gate=gate, s=2.0), x * gate + 2, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(applied(gate=x, s=3.0), x * x + 3, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(applied(gate=0.5, s=gate), x * 0.5 + gate, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(applied(s=0.25, gate=0.5), x * 0.5 + 0.25, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(applied(gate=0.25, s=0.5), x * 0.25 + 0.5, rtol=1e-5, atol=1e-5)
    for _ in range(2):
        with pytest.raises(kiln.ParseError):
            kiln.expression("acc * (gate", gate=gate)


def test_wrong_names_are_refused_with_those_that_there_are(context):
    x = np.zeros((2, 4), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="softmax_forward"):
        kiln.call("softmax_forwrd", x=x, y=x, context=context)
    with pytest.raises(kiln.InvalidArgument, match="no tensor 'z'"):
        kiln.call("softmax_forward", x=x, z=x, context=context)
    with pytest.raises(kiln.Error, match="axes"):
        kiln.call("softmax_forward", x=x, y=x, axes=1, context=context)
    with pytest.raises(TypeError):
        kiln.softmax_forward(x, axes=1, context=context)


def described():
    text = subprocess.run([_library.program(), "describe", "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(text)["operations"]


@pytest.mark.parametrize("operation", described(), ids=lambda operation: operation["operation"])
def test_every_operation_has_a_function_with_all_of_its_names(operation):
    function = getattr(kiln, operation["operation"])
    names = set(inspect.signature(function).parameters)
    expected = {each["name"] for kind in ("operands", "attributes", "numbers", "integers") for each in operation[kind]}
    decided_by_numbers = {each["name"] for each in operation["numbers"]}
    assert expected - {operation["result"]} - decided_by_numbers <= names
    assert decided_by_numbers <= names
    assert {"out", "alpha", "beta", "stream", "context"} <= names
    for name in names:
        assert f"  {name}: " in function.__doc__


def test_threads_call_at_the_same_time_while_others_compile(context):
    """The GIL is not held while a kernel is compiled, and calls on the host's memory take turns."""
    results = {}

    def work(size):
        x = np.full((size, size), 1.0, np.float32)
        for _ in range(3):
            results[size] = kiln.softmax_forward(x, context=context)

    threads = [threading.Thread(target=work, args=(size,)) for size in (5, 6, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size, y in results.items():
        np.testing.assert_allclose(y, 1 / size, rtol=1e-5)


def compiles(context):
    kiln.plan("tensor_set y=f32:11", context=context)


def prepares(context):
    context.prepare("tensor_set y=f32:12")


def tunes(context):
    kiln.tune("tensor_set y=f32:13", candidates=1, cache="off", driver="emulator", progress=False)


def launches(context):
    a = np.ones((256, 256), np.float32)
    kiln.gemm(a, a, context=context)


@pytest.mark.parametrize("work", [compiles, prepares, tunes, launches])
def test_other_threads_run_meanwhile(work):
    context = kiln.Context(driver="emulator", cache="off", kernel_store="off")
    launches(context)
    ticks = []
    ended = threading.Event()

    def tick():
        while not ended.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    work(context)
    during = len(ticks) - before
    ended.set()
    thread.join()
    assert during >= 5
