"""Tensors go in and out as they are: no copies, any strides, and a clear error for what cannot be served."""

import numpy as np
import pytest
from conftest import conv_reference

import kiln
from kiln._arrays import device_of


def test_numpy_arrays_are_read_and_written_where_they_are(context, random):
    x = random.standard_normal((2, 3, 8, 9), dtype=np.float32)
    w = random.standard_normal((4, 3, 3, 3), dtype=np.float32)
    y = np.zeros((2, 4, 8, 9), np.float32)
    assert kiln.conv_forward(x, w, pad=1, out=y, context=context) is y
    np.testing.assert_allclose(y, conv_reference(x, w, 1), rtol=1e-5, atol=1e-5)


def test_views_with_strides_and_channels_last_are_served(context, random):
    whole = random.standard_normal((2, 10, 12, 3), dtype=np.float32)
    x = whole.transpose(0, 3, 1, 2)[:, :, 1:9, 2:11]
    w = random.standard_normal((4, 3, 3, 3), dtype=np.float32)
    y = kiln.conv_forward(x, w, context=context)
    np.testing.assert_allclose(y, conv_reference(x, w), rtol=1e-5, atol=1e-5)


def test_the_output_has_the_layout_of_the_input(context, random):
    x = random.standard_normal((2, 8, 9, 3), dtype=np.float32).transpose(0, 3, 1, 2)
    y = kiln.pool_forward(x, window=2, stride=2, context=context)
    assert y.shape == (2, 3, 4, 4)
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous


def test_half_precision_and_integers(context, random):
    x = random.standard_normal((4, 33)).astype(np.float16)
    y = kiln.softmax_forward(x, axis=1, context=context)
    assert y.dtype == np.float16
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-3, atol=1e-4)
    i = random.integers(0, 100, (3, 5), dtype=np.int32)
    assert (kiln.reduce(i, axes=1, mode="max", context=context) == i.max(1, keepdims=True)).all()


def test_a_result_in_place(context, random):
    x = random.standard_normal((4, 16), dtype=np.float32)
    expected = np.maximum(x, 0)
    kiln.activation_forward(x, mode="relu", out=x, context=context)
    np.testing.assert_array_equal(x, expected)


def test_buffers_and_read_only_inputs(context):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    x.flags.writeable = False
    y = bytearray(32)
    kiln.call("tensor_transform", x=memoryview(x), y=memoryview(y).cast("f", (2, 4)), alpha=2.0, context=context)
    np.testing.assert_array_equal(np.frombuffer(y, np.float32).reshape(2, 4), 2 * x)


def test_arrays_without_elements_are_served(context):
    """NumPy says strides of 0 there."""
    x = np.empty((0, 3, 5, 5), np.float32)
    assert x.strides == (0, 0, 0, 0)
    w = np.ones((4, 3, 3, 3), np.float32)
    for dynamic in (False, True):
        assert kiln.conv_forward(x, w, dynamic_batch=dynamic, context=context).shape == (0, 4, 3, 3)
        assert kiln.softmax_forward(x, axis=1, dynamic_batch=dynamic, context=context).shape == x.shape
        a, b = np.ones((0, 6), np.float32), np.ones((6, 7), np.float32)
        assert kiln.gemm(a, b, dynamic_batch=dynamic, context=context).shape == (0, 7)
    filters = np.full_like(w, 9)
    kiln.conv_backward_filter(x, np.empty((0, 4, 3, 3), np.float32), out=filters, context=context)
    np.testing.assert_array_equal(filters, np.zeros_like(w))


def test_a_read_only_output_is_refused(context):
    y = np.zeros((2, 4), np.float32)
    y.flags.writeable = False
    with pytest.raises(kiln.InvalidArgument, match="y cannot be written"):
        kiln.tensor_set(out=y, value=1.0, context=context)


def test_a_read_only_array_of_ml_dtypes_is_never_written(context):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    y = np.zeros((2, 4), ml_dtypes.bfloat16)
    y.flags.writeable = False
    with pytest.raises(kiln.InvalidArgument, match="y cannot be written: it is read-only"):
        kiln.tensor_set(out=y, value=1.0, context=context)
    assert (kiln.tensor_transform(y, alpha=2.0, context=context) == 0).all()


class OfJax:
    """An array whose DLPack says that it may be written, as JAX's does."""

    __module__ = "jaxlib.stand_in"

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **asked):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def read_and_never_written(x, context):
    y = kiln.softmax_forward(x, context=context)
    assert isinstance(y, np.ndarray) and (y.astype(np.float32) == 0.25).all()
    with pytest.raises(kiln.InvalidArgument, match="y cannot be written: it is read-only"):
        kiln.softmax_forward(x, out=x, context=context)


def test_what_says_that_it_is_of_jax_is_never_written(context):
    read_and_never_written(OfJax(np.ones((2, 4), np.float32)), context)


def test_arrays_of_jax_are_read_and_never_written(context):
    jax = pytest.importorskip("jax")
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16, jax.numpy.float16):
        read_and_never_written(jax.numpy.ones((2, 4), dtype), context)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.complex64])
def test_types_that_kiln_does_not_have_are_named(context, dtype):
    with pytest.raises(kiln.InvalidArgument, match=f"tensor x has elements of {np.dtype(dtype)}.*convert it"):
        kiln.softmax_forward(np.zeros((2, 4), dtype), context=context)


def test_what_is_no_tensor_and_what_grows_backwards_is_refused(context):
    with pytest.raises(kiln.InvalidArgument, match="tensor x is a set"):
        kiln.softmax_forward({1}, context=context)
    with pytest.raises(kiln.InvalidArgument, match="tensor x is a list"):
        kiln.softmax_forward([[1.0, 2.0]], context=context)
    with pytest.raises(kiln.InvalidArgument, match="tensor x: .*stride"):
        kiln.softmax_forward(np.zeros((2, 4), np.float32)[:, ::-1], context=context)


def test_arrays_of_ml_dtypes(context):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([[0.5, 1.5, -2.0, 100.0]], ml_dtypes.bfloat16)
    y = kiln.activation_forward(x, mode="relu", context=context)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), np.maximum(x.astype(np.float32), 0))
    eighth = kiln.call("tensor_transform", x=x, y=np.zeros((1, 4), ml_dtypes.float8_e4m3fn), context=context)
    assert eighth is None


def test_torch_tensors_with_gradients_in_bfloat16_and_channels_last(context, torch):
    torch.manual_seed(1)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    w = torch.randn(4, 3, 3, 3, requires_grad=True)
    b = torch.nn.Parameter(torch.randn(4))
    y = kiln.conv_forward(x, w, b, pad=1, context=context)
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, torch.conv2d(x, w, b, padding=1).detach(), rtol=1e-5, atol=1e-5)
    half = torch.randn(3, 7).bfloat16()
    torch.testing.assert_close(kiln.softmax_forward(half, context=context), torch.softmax(half, 1), rtol=2e-2, atol=1e-3)


def test_a_call_is_on_the_device_of_its_tensors():
    of_cupy = type("ndarray", (), {"__module__": "cupy", "device": type("Device", (), {"id": 3})})
    assert device_of([np.zeros(2), of_cupy()]) == 3


def test_a_kernel_may_touch_only_the_tensors_of_its_call(context):
    """Memory that a call registers is taken back: other memory of the host is not the device's."""
    x = np.zeros((2, 4), np.float32)
    kiln.tensor_set(out=x, value=1.0, context=context)
    plan = kiln.plan("tensor_set y=f32:2x4", context=context)
    plan.run(y=x, value=2.0)
    assert (x == 2).all()


def test_tensors_of_one_call_may_share_memory(context, random):
    both = random.standard_normal((2, 3, 5), dtype=np.float32)
    total = kiln.tensor_op(both[0], both[1], mode="add", context=context)
    np.testing.assert_allclose(total, both[0] + both[1])
    square = kiln.tensor_op(both[0], both[0], mode="mul", context=context)
    np.testing.assert_allclose(square, both[0] * both[0])
