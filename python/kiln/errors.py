"""What Kiln raises: Error, and one class for each kind of fault."""

from __future__ import annotations


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


class Warning(UserWarning):  # noqa: A001 - kiln.Warning, as kiln.Error
    """What a Context tells once: a cache that cannot be used, the emulated device in place of a GPU."""


codes = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: str, message: str, hint: str) -> Error:
    """The exception of that code; of one that has no class of its own, an Error with the code."""
    error = codes.get(code, Error)(message, hint)
    error.code = code
    return error
