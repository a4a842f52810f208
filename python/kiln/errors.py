"""Exceptions that Kiln raises: Error, and one class for each kind of fault."""

from __future__ import annotations

import re
import reprlib
import sys
import types
import warnings


class Error(RuntimeError):
    """A fault: what was wrong and what was expected, and in brackets what to do about it.

    `code` is the kind, as everywhere in Kiln ("invalid argument"); `message` and `hint` are the two parts of the text.
    """

    code = "internal error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint


class InvalidArgument(Error, ValueError):
    """A request, tensor, number or setting is wrong. Nothing was enqueued."""

    code = "invalid argument"


class ParseError(Error, ValueError):
    """Text (a request, model or pack) is malformed; the message has the position."""

    code = "parse error"


class Unsupported(Error, NotImplementedError):
    """Well formed, but nothing here can serve it."""

    code = "unsupported"


class CompileFailed(Error):
    """NVRTC rejected a source; the message has its log."""

    code = "compile failed"


class DriverError(Error):
    """A call of the CUDA driver failed."""

    code = "driver error"


class MissingLibrary(Error):
    """libcuda, NVRTC, the emulator or the kiln program was not found."""

    code = "missing library"


class OutOfMemory(Error, MemoryError):
    """Host or device memory ran out."""

    code = "out of memory"


class FileError(Error):
    """A file could not be read or written."""

    code = "input/output error"


class NotFinite(Error, ArithmeticError):
    """KILN_CHECK_NUMERICS=error found NaN or infinity in an operand or a result."""

    code = "not finite"


class Warning(UserWarning):  # noqa: A001 - kiln.Warning, as kiln.Error
    """Warning that a Context gives once: a cache that cannot be used, the emulated device in place of a GPU."""


def user_frame(*also: str) -> tuple[types.FrameType | None, int]:
    """The innermost frame outside of this package and of the packages `also`, and its stacklevel for the caller."""
    level = 1
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in (__package__, *also):
        level, frame = level + 1, frame.f_back
    return frame, level


def warn(message: str, *also: str) -> None:
    """A Warning that points to the user's line, that of user_frame()."""
    warnings.warn(message, Warning, stacklevel=user_frame(*also)[1])


# C++ names in messages of the library, replaced in this order.
_words = {
    "define the expression in the requests file, in a file given with --expression, or for Request::parse(); ": (
        "make the code by kiln.expression() before, or put its definition in front of the request; "
    ),
    "define it in the requests file or in a file given with --expression, or give it to Request::parse()": (
        "give a kiln.expression() as the epilogue of a call"
    ),
    "Context::prepare()": "Context.prepare()",
    "Context::prepare_open()": "Context.prepare_open()",
    "Context::plan()": "kiln.plan()",
    "plan_of_call()": "kiln.plan_of_call()",
    "Plan::run()": "Plan.run()",
    "Plan::run": "Plan.run()",
    "or call()": "or kiln.call()",
    "Request::parse()": "kiln.plan()",
    "TensorSpec::packed()": "tensors without gaps",
    "kiln::bias(values)": 'epilogue="bias"',
    "kiln::add(residual)": 'epilogue="add"',
    "kiln::expression()": "kiln.expression()",
    "expression(...)": "kiln.expression(...)",
    "TuningMode::never": 'kiln.Tuning("never")',
    "one of TuningMode": "never, within_budget or in_background",
    "one of kiln::DType": "one of Kiln's types",
    "one of kiln::Scale": "0, 1 or any",
    "set ContextOptions::first_call to FirstCall::at_once": 'make a Context with first_call="at_once"',
    "ContextOptions::workspace_allocator": "workspace",
    "ContextOptions::": "Context's ",
    "--shape NAME=1x3x224x224, ModelOptions::shapes": "shapes={'NAME': (1, 3, 224, 224)} of kiln.onnx.load(), or call the model",
    "ModelOptions::": "kiln.onnx.load()'s ",
    "Model::set_batch()": "Model.set_batch()",
    "Model::set_shapes()": "Model.set_shapes()",
    "Model::outputs()": "Model.outputs",
    "give the batch in RunValues::n, and ask for the plan of its bucket": (
        "give tensors of such a batch, or make a plan for a batch as large as theirs"
    ),
    "RunValues::": "",
}


# How requests name an operand, in hints to calls, which have it as an argument.
_operand = re.compile(r"add (\S+?)=dtype:extents:layout(?: or (\w+)=\w+:\.\.\.)?")
_column = re.compile(r"^column \d+: ")  # of a line that the user has not written
_words_of_calls = {
    r"add window=h,w \(one number an axis\) or window=global": (
        'give window=(h, w), a number for each axis, or window="global"'
    ),
    r"add epilogue=user:NAME": "give a kiln.expression() as the epilogue",
    r"add epilogue=(\w+)": r'give epilogue="\1"',
    r"or use (mode|reduction)=(\w+)": r'or give \1="\2"',
}


def of_a_call(error: Error, result: str = "") -> Error:
    """An error of what is enqueued, which says arguments, not parts of a request. `result`: what is called `out`."""

    def given(found: re.Match[str]) -> str:
        return "give " + " or ".join("out" if name == result else name for name in found.groups() if name)

    message = _column.sub("", error.message)
    hint = _operand.sub(given, error.hint)
    for of_request, of_call in _words_of_calls.items():
        hint = re.sub(of_request, of_call, hint)
    return error if (message, hint) == (error.message, error.hint) else error_of(error.code, message, hint)


def in_words_of_python(text: str) -> str:
    for cpp, python in _words.items():
        text = text.replace(cpp, python)
    return text


def require_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raises InvalidArgument unless `value` is one of `kinds`. True is no integer."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise InvalidArgument(f"{name} is {reprlib.repr(value)}", f"give {expected}")


def require_text(name: str, value: object) -> str:
    """`value`, a string; of anything else raises InvalidArgument."""
    if isinstance(value, str):
        return value
    raise InvalidArgument(f"{name} is {reprlib.repr(value)}", "give text")


codes = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: str, message: str, hint: str) -> Error:
    """The exception of that code; of one that has no class of its own, an Error with the code."""
    error = codes.get(code, Error)(in_words_of_python(message), in_words_of_python(hint))
    error.code = code
    return error
