"""Order between the streams of a call: what makes its elements comes before it, and what reuses its memory after it."""

import ctypes
import pathlib
import re
import sys
import types

import numpy as np
import pytest

import kiln
from kiln._arrays import stream_address, streams_of


def test_streams_of_any_framework_have_an_address():
    streams = (
        type("OfPyTorch", (), {"cuda_stream": 5}),
        type("OfCuPy", (), {"ptr": 6}),
        type("OfOthers", (), {"__cuda_stream__": lambda self: (0, 7)}),
    )
    assert [stream_address(stream()) for stream in streams] == [5, 6, 7]


class OfPyTorch:
    is_cuda, get_device = True, lambda self: 0


OfCuPy = type("ndarray", (), {"__module__": "cupy"})


def torch_of_2():
    return types.SimpleNamespace(Tensor=OfPyTorch, _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 7))


def torch_of_1():
    stream = types.SimpleNamespace(cuda_stream=7)
    return types.SimpleNamespace(Tensor=OfPyTorch, cuda=types.SimpleNamespace(current_stream=lambda device: stream))


@pytest.fixture(params=[torch_of_1, torch_of_2])
def frameworks(request, monkeypatch):
    """PyTorch and CuPy, of which 7 and 8 are the current streams."""
    cupy = types.SimpleNamespace(
        cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=8))
    )
    monkeypatch.setitem(sys.modules, "torch", request.param())
    monkeypatch.setitem(sys.modules, "cupy", cupy)


def test_a_call_runs_on_the_current_stream_of_its_first_tensors_framework(frameworks):
    assert streams_of(None, [np.zeros(2)]) == (0, [])
    assert streams_of(None, [np.zeros(2), OfPyTorch(), OfPyTorch()]) == (7, [])
    assert streams_of(None, [OfCuPy(), OfPyTorch()]) == (8, [7])
    assert streams_of(None, [OfPyTorch()], None, 9) == (7, [9])


def test_a_stream_of_the_callers_is_in_order_with_the_current_ones(frameworks):
    assert streams_of(5, [OfPyTorch(), OfPyTorch()]) == (5, [7])
    assert streams_of(7, [OfPyTorch()]) == (7, [])
    assert streams_of(5, [OfPyTorch(), OfCuPy()], 9, 5) == (5, [7, 8, 9])


class Driver:
    """The emulated device's own streams and captures."""

    def __init__(self):
        self.library = ctypes.CDLL(str(pathlib.Path(kiln.__file__).parent / "lib" / "libkiln_emulator.so"))
        self.context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self("cuCtxSetCurrent", self.context)

    def __call__(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        assert result == 0, f"{name} gave {result}"

    def stream(self):
        made = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(made), 1)
        return made.value

    def kernels_of_capture(self, stream, work):
        """How many kernels a capture of `stream` holds in which `work` is done. It fails if it is left open."""
        relaxed, graph, count = 2, ctypes.c_void_p(), ctypes.c_size_t()
        self("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), relaxed)
        try:
            work()
        finally:
            self("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self("cuGraphGetNodes", graph, None, ctypes.byref(count))
        self("cuGraphDestroy", graph)
        return count.value

    def close(self):
        self("cuCtxSetCurrent", None)
        self("cuDevicePrimaryCtxRelease_v2", 0)


@pytest.fixture(scope="module")
def driver(context):
    driver = Driver()
    yield driver
    driver.close()


class Shown:
    """An object with an interface, as another library's arrays on the device have."""

    def __init__(self, interface):
        self.__cuda_array_interface__ = interface


class OnDevice:
    """Eight f32 on the device, as another library shows them; `changed`: what differs in its interface."""

    def __init__(self, context, numbers=0, **changed):
        self.context = context
        self.memory = kiln.DeviceMemory(context, 32)
        self.plain = {"shape": (2, 4), "typestr": "<f4", "data": (self.memory.data, False), "version": 3}
        self.interface = {**self.plain, **changed}
        self.fill(numbers)

    @property
    def __cuda_array_interface__(self):
        return self.interface

    def fill(self, numbers):
        x = np.full((2, 4), numbers, np.float32)
        kiln.call("tensor_transform", x=x, y=Shown(self.plain), context=self.context)

    @property
    def elements(self):
        return kiln.tensor_transform(Shown(self.plain), out=np.empty((2, 4), np.float32), context=self.context)


def relu(x, y, **options):
    kiln.call("activation_forward", x=x, y=y, mode="relu", **options)


def test_arrays_on_the_device_are_read_and_written_where_they_are(context, random):
    numbers = random.standard_normal((2, 4), dtype=np.float32)
    x, y = OnDevice(context, numbers, descr="ignored"), OnDevice(context)
    relu(x, y, context=context)
    np.testing.assert_array_equal(y.elements, np.maximum(numbers, 0))


@pytest.mark.parametrize("which", ["x", "y"])
def test_a_call_stands_between_works_of_the_stream_that_an_array_names(context, driver, which):
    """A stream that waits for a captured one is captured too, and the capture ends only if that waits for it."""
    producer, own = driver.stream(), driver.stream()
    x, y = OnDevice(context, 1.0), OnDevice(context)
    relu(x, y, stream=own, context=context)
    {"x": x, "y": y}[which].interface["stream"] = producer
    y.fill(0)
    assert driver.kernels_of_capture(producer, lambda: relu(x, y, stream=own, context=context)) == 1
    assert (y.elements == 0).all()  # captured, not run
    x.interface["stream"] = y.interface["stream"] = None
    assert driver.kernels_of_capture(producer, lambda: relu(x, y, stream=own, context=context)) == 0
    assert (y.elements == 1).all()


def test_so_do_runs_of_plans_memory_and_tensors_of_user_code(context, driver):
    producer, own = driver.stream(), driver.stream()
    x, y, gate = OnDevice(context, 1.0), OnDevice(context), OnDevice(context, 3.0, stream=producer)
    code = kiln.expression("acc * gate", gate=gate)
    plan = kiln.plan("activation_forward x=f32:2x4 mode=relu", context=context)
    workspace, from_producer = OnDevice(context, stream=producer), OnDevice(context, 1.0, stream=producer)
    relu(x, y, epilogue=code, stream=own, context=context)
    assert (y.elements == 3).all()
    for work in (
        lambda: relu(x, y, epilogue=code, stream=own, context=context),
        lambda: plan.run(x=from_producer, y=y, stream=own),
        lambda: relu(x, y, workspace=workspace, stream=own, context=context),
    ):
        assert driver.kernels_of_capture(producer, work) == 1


def test_a_call_that_fails_leaves_no_stream_waiting(context, driver):
    producer, own = driver.stream(), driver.stream()
    x, y = OnDevice(context, stream=producer), OnDevice(context, shape=(4, 2))

    def work():
        with pytest.raises(kiln.InvalidArgument, match="y"):
            relu(x, y, stream=own, context=context)

    assert driver.kernels_of_capture(producer, work) == 0


@pytest.mark.parametrize("stream", [1, 2])
def test_default_streams_of_the_protocol(context, stream):
    x, y = OnDevice(context, 2.0, stream=stream), OnDevice(context, stream=stream)
    relu(x, y, context=context)
    relu(x, y, stream=2, context=context)
    assert (y.elements == 2).all()


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"stream": 0}, "tensor x has the stream 0 .*1 is the default stream, 2 that of the thread"),
        ({"stream": -1}, "tensor x has the stream -1"),
        ({"stream": "main"}, "tensor x has the stream 'main'"),
        ({"mask": np.zeros(8, np.bool_)}, "tensor x has a mask, which Kiln does not heed"),
        ({"typestr": "<f8"}, "tensor x has elements of <f8"),
        ({"strides": (18, 4)}, "tensor x has strides that are no multiple of an element"),
    ],
    ids=["zero", "negative", "text", "mask", "f64", "strides"],
)
def test_what_an_array_says_that_kiln_cannot_heed_is_refused(context, changed, said):
    y = OnDevice(context)
    with pytest.raises(kiln.InvalidArgument, match=said):
        relu(OnDevice(context, **changed), y, context=context)


def test_an_interface_that_lacks_a_part_is_refused(context):
    x = OnDevice(context)
    for part in ("shape", "typestr", "data"):
        wrong = OnDevice(context)
        del wrong.interface[part]  # a copy of the plain one
        with pytest.raises(kiln.InvalidArgument, match=f"tensor x has a __cuda_array_interface__ without '{part}'"):
            relu(wrong, x, context=context)
    x.interface = [1]
    with pytest.raises(kiln.InvalidArgument, match="tensor x has a __cuda_array_interface__ that is no dict"):
        relu(x, x, context=context)


@pytest.mark.parametrize(
    "part, wrong",
    [
        *(("shape", wrong) for wrong in ("ab", None, (2.5, 4), 8)),
        *(("strides", wrong) for wrong in ("ab", (16.5, 4))),
        *(("data", wrong) for wrong in (None, (4096,), (-5, False), (None, False), (4096, "no"))),
    ],
)
def test_an_interface_with_a_malformed_part_is_refused(context, part, wrong):
    y = OnDevice(context)
    said = f"tensor x has {part}={wrong!r} in its array interface ({part} is "
    with pytest.raises(kiln.InvalidArgument, match=re.escape(said)):
        relu(OnDevice(context, **{part: wrong}), y, context=context)


def test_an_interface_has_a_stride_for_each_dimension(context):
    y = OnDevice(context)
    with pytest.raises(kiln.InvalidArgument, match="tensor x has 1 strides for 2 dimensions .strides is None, or a tuple"):
        relu(OnDevice(context, strides=(16,)), y, context=context)


def test_an_array_that_reaches_beyond_its_memory_is_refused(context):
    with pytest.raises(
        kiln.InvalidArgument,
        match="x takes 64 bytes, from 0x[0-9a-f]+ to 0x[0-9a-f]+, and only 32 of them are there: its memory is an "
        "allocation of 32 bytes at 0x[0-9a-f]+ .give memory that is as large",
    ):
        relu(OnDevice(context, shape=(4, 4)), np.empty((4, 4), np.float32), context=context)


def test_a_read_only_array_on_the_device_is_never_written(context):
    x = OnDevice(context, 1.0)
    x.interface["data"] = (x.memory.data, True)
    relu(x, OnDevice(context), context=context)
    with pytest.raises(kiln.InvalidArgument, match="y cannot be written: it is read-only"):
        relu(OnDevice(context), x, context=context)
    assert (x.elements == 1).all()


def test_a_stream_that_there_is_not_is_refused(context):
    for stream in ("main", -5, True, 1 << 64):
        with pytest.raises(kiln.InvalidArgument, match="stream is .* .give an address, or a stream of"):
            relu(OnDevice(context), OnDevice(context), stream=stream, context=context)
