"""Sorting and checks of arguments, and properties of arrays, by themselves: nothing runs on a device."""

import sys
import types

import numpy as np
import pytest

import kiln
from kiln import _arguments, _arrays


class Indexed:
    """A number of another library, which has __index__ alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Floating:
    """One that has __float__ alone, or raises there."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def sorted_of(operation, **given):
    return _arguments.sort_arguments(_arguments.definition_of(operation), given)


def refused(said, operation, **given):
    with pytest.raises(kiln.InvalidArgument, match=said):
        sorted_of(operation, **given)


def test_arguments_are_sorted_by_what_their_operation_calls_them():
    x = np.zeros((2, 3))
    assert sorted_of("dropout", x=x, y=None, p=0.5, seed=Indexed(3)) == ({"x": x}, {}, {"p": 0.5}, {"seed": 3})
    given = sorted_of("softmax_forward", x=x, axis=1, mode="log", alpha=True)
    assert given == ({"x": x}, {"axis": 1, "mode": "log"}, {"alpha": 1.0}, {})
    assert type(given.numbers["alpha"]) is float
    assert sorted_of("cross_entropy_forward", smoothing=0.25)[1:] == ({"smoothing": "any"}, {"smoothing": 0.25}, {})


def test_names_that_an_operation_lacks_are_words_if_python_has_their_type():
    x = np.zeros(3)
    given = sorted_of("softmax_forward", p=True, q=1, r="word", s=(1, 2), t=[3], u=x)
    assert given == ({"u": x}, {"p": 1, "q": 1, "r": "word", "s": (1, 2), "t": (3,)}, {}, {})
    refused("q is 1.5 .give an integer, integers or a word", "softmax_forward", q=1.5)
    assert sorted_of("no_such_operation", x=1, y=x) == ({"y": x}, {"x": 1}, {}, {})
    assert _arguments.definition_of(" ") is _arguments.unknown
    assert _arguments.definition_of("gemm batch_invariant").name == "gemm"


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), Indexed(2), Floating(2.0)], ids=repr)
def test_numbers_are_whatever_python_makes_a_float_of(number):
    assert sorted_of("softmax_forward", alpha=number).numbers == {"alpha": 2.0}


@pytest.mark.parametrize(
    "number",
    ["2", 10**400, np.zeros(2), [2.0], Floating(RuntimeError()), Floating(ValueError()), Floating(TypeError()), object()],
    ids=range(8),
)
def test_what_is_no_number_is_said(number):
    refused("alpha is .*give a number", "softmax_forward", alpha=number)


def test_integers_have_64_bits():
    for seed in (0, 1, 2**64 - 1, np.uint64(2**64 - 1)):
        assert sorted_of("dropout", seed=seed).integers == {"seed": int(seed)}
    for seed in (-1, 2**64, 1.0, "1", [1]):
        refused("seed is .*give an integer from 0", "dropout", seed=seed)


def test_words_are_integers_of_64_bits_or_one_word():
    def pad(value):
        return sorted_of("conv_forward", pad=value).words["pad"]

    assert pad(2**63 - 1) == 2**63 - 1 and pad(-(2**63)) == -(2**63)
    assert pad((1, np.int32(2))) == (1, 2) and pad([Indexed(1)]) == (1,) and pad(np.array([3, 4])) == (3, 4)
    assert pad(Indexed(5)) == 5 and pad(np.array(6)) == (6,) and pad(iter([7])) == (7,)
    for wrong in (2**63, -(2**63) - 1, (1, 2**63)):
        refused("pad is .*give integers of 64 bits", "conv_forward", pad=wrong)
    for wrong in ({1: 2}, {1}, frozenset([1]), (), 1.5, (1, "2"), object()):
        refused("pad is .*give an integer, integers or a word", "conv_forward", pad=wrong)
    refused("pad is '1' .give an integer or integers", "conv_forward", pad="1")
    for wrong in ("", "two words", " mode", "mode\n"):
        refused("mode is .*give one word", "conv_forward", mode=wrong)


def test_flags_are_true_or_false():
    for value in (True, False):
        assert sorted_of("conv_forward", tf32=value).words == {"tf32": value}
    for wrong in (1, 0, "yes", np.True_):
        refused("tf32 is .*give True or False", "conv_forward", tf32=wrong)


def test_words_are_written_as_requests_have_them():
    words = {"pad": (1, 2), "axes": [3], "mode": "max", "tf32": True, "fast": False, "n": 4, "dynamic_batch": True}
    assert _arguments.text_of_words(words) == " pad=1,2 axes=3 mode=max tf32 n=4 n=?"
    assert _arguments.text_of_words({"dynamic_batch": False}) == ""
    assert _arguments.text_of_epilogue(None) == "" and _arguments.text_of_epilogue(kiln.expression("acc")) == ""
    assert _arguments.text_of_epilogue("bias+relu") == " epilogue=bias+relu"
    for wrong, said in ((5, "give stages"), ("bias relu", "give one word")):
        with pytest.raises(kiln.InvalidArgument, match=said):
            _arguments.text_of_epilogue(wrong)


def test_streams_are_addresses_or_say_theirs():
    for address in (0, 5, 2**64 - 1):
        assert _arrays.stream_address(address) == address
    for wrong in (-1, 2**64, True, "5", 5.0):
        with pytest.raises(kiln.InvalidArgument, match="stream is .*give an address"):
            _arrays.stream_address(wrong)


def test_the_device_is_that_of_the_first_tensor_that_says_one(monkeypatch):
    of_torch = type("Tensor", (), {"get_device": lambda self: 3})
    on_host, on_device = of_torch(), of_torch()
    on_host.is_cuda, on_device.is_cuda = False, True
    of_cupy = type("ndarray", (), {"__module__": "cupy._core", "device": types.SimpleNamespace(id=2)})()
    other = type("ndarray", (), {"__module__": "other.cupy", "device": types.SimpleNamespace(id=9)})()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=of_torch))
    assert _arrays.device_of([]) == 0 and _arrays.device_of([np.zeros(2), on_host, other]) == 0
    assert _arrays.device_of([on_host, on_device, of_cupy]) == 3
    assert _arrays.device_of([np.zeros(2), of_cupy, on_device]) == 2
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _arrays.device_of([on_device]) == 0


def test_new_tensors_have_no_gaps_and_the_order_of_the_strides():
    like = np.zeros(2)
    for extents, strides, expected in (
        ((2, 3, 4), (12, 4, 1), (12, 4, 1)),
        ((2, 3, 4), (100, 1, 10), (12, 1, 3)),
        ((2, 3, 4), (1, 2, 6), (1, 2, 6)),
        ((2, 0, 4), (1, 8, 2), (1, 8, 2)),
        ((3,), (7,), (1,)),
    ):
        made = _arrays.empty(like, "float32", extents, strides)
        assert made.shape == extents and made.dtype == np.float32
        if made.size:
            assert made.strides == tuple(4 * each for each in expected)
        assert _arrays._packed(extents, strides)[2] == expected
    assert _arrays.empty(like, "bfloat16", (2,), (1,)).dtype.name == "bfloat16"
