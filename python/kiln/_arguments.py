"""Arguments of a call by name: sorted by the kind that each name has in the operation, and checked for their type."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Union

from ._arrays import Array
from ._kiln import Expression
from .errors import InvalidArgument, require_text

Word = Union[None, bool, int, str, Sequence[int]]  # the value of an attribute: pad=1, pad=(1, 1), mode="max"


@dataclasses.dataclass(frozen=True)
class Definition:
    """Names that an operation has for its arguments, as `kiln describe --json` says."""

    name: str
    inputs: tuple[str, ...]
    required: tuple[str, ...]  # those of the inputs that cannot be left out
    outputs: tuple[str, ...]  # what is written, the updated operands too
    result: str
    result_required: bool  # its extents cannot be told from the inputs
    words: Mapping[str, Word]  # attributes and words without a value, with their defaults
    numbers: frozenset[str]
    integers: frozenset[str]
    stages: Mapping[str, str]  # operands of an epilogue, and the stage that reads each
    likenesses: Mapping[str, tuple[str, bool, str | None]]  # of outputs that may be True: like what, reduced, dtype

    @functools.cached_property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each name: tensor, number, integer or word."""
        kinds = dict.fromkeys(self.words, "word")
        kinds |= dict.fromkeys(self.integers, "integer") | dict.fromkeys(self.numbers, "number")
        return kinds | dict.fromkeys((*self.inputs, *self.outputs), "tensor")


class Arguments(NamedTuple):
    """A call's arguments, sorted."""

    tensors: dict[str, Array]
    words: dict[str, Word]
    numbers: dict[str, float]
    integers: dict[str, int]


unknown = Definition("", (), (), (), "", True, {}, frozenset(), frozenset(), {}, {})


def definition_of(what: str) -> Definition:
    """The definition of the operation which the line begins with, or `unknown`: the library says which operations
    exist."""
    words = require_text("what", what).split(None, 1)
    return _definitions().get(words[0], unknown) if words else unknown


@functools.cache
def _definitions() -> Mapping[str, Definition]:
    from ._definitions import DEFINITIONS  # which needs Definition

    return DEFINITIONS


def sort_arguments(definition: Definition, arguments: Mapping[str, Any], text: str = "") -> Arguments:
    """Each of `arguments` by what its name is in the operation; None counts as not given. `text`: the request, whose
    words may leave a number to the arguments (dropout=any); without it, a number brings that word.

    A name that the operation does not have counts as a word if it is one of Python's own types, else as a tensor: the
    library knows it neither, and says which there are. Raises InvalidArgument for a value of the wrong type.
    """
    tensors: dict[str, Array] = {}
    words: dict[str, Word] = {}
    numbers: dict[str, float] = {}
    integers: dict[str, int] = {}
    kinds = definition.kinds
    for name, value in arguments.items():
        if value is None:
            continue
        kind = kinds.get(name)
        if kind == "tensor":
            if isinstance(value, bool) and name in definition.outputs:
                raise _wrong(name, value, "an array to write to")
            tensors[name] = value
        elif kind == "number":
            numbers[name] = _number(name, value)
            if definition.words.get(name) == "none" and not _leaves_open(text, name):
                words[name] = "any"
        elif kind == "integer":
            integers[name] = _integer(name, value)
        elif kind == "word" or isinstance(value, (bool, int, float, str, tuple, list)):
            words[name] = _word(name, value, definition.words.get(name))
        else:
            tensors[name] = value
    return Arguments(tensors, words, numbers, integers)


def _leaves_open(text: str, name: str) -> bool:
    """Whether a word of the request leaves that number open; raises InvalidArgument if one says that there is none."""
    for word in text.split()[1:]:
        if word == f"{name}=any":
            return True
        if word.startswith(f"{name}="):
            raise InvalidArgument(f"{name} is given, and the request has {word}", f"write {name}=any, or leave {name} out")
    return False


def _wrong(name: str, value: Any, expected: str) -> InvalidArgument:
    return InvalidArgument(f"{name} is {value!r}", f"give {expected}")


def _number(name: str, value: Any) -> float:
    if type(value) is float:
        return value
    try:
        if hasattr(value, "__float__") or hasattr(value, "__index__"):  # not a string, which float() reads
            return float(value)
    except (ArithmeticError, RuntimeError, TypeError, ValueError):  # an array of several elements
        pass
    raise _wrong(name, value, "a number")


def _integer(name: str, value: Any) -> int:
    try:
        integer = operator.index(value)
    except TypeError:
        integer = -1
    if 0 <= integer < 1 << 64:
        return integer
    raise _wrong(name, value, "an integer from 0 to 2**64 - 1")


# Words that say something with the value true; elsewhere (ceil) true is the number 1.
_flags = frozenset(("tf32", "fast", "deterministic", "constant_weights", "batch_invariant", "dynamic_batch"))


def _word(name: str, value: Any, usual: Word = None) -> Word:
    """`usual`: what it is where it is not given, if that is known."""
    if value is usual:
        return usual
    if name in _flags:
        if isinstance(value, bool):
            return value
        raise _wrong(name, value, "True or False")
    if isinstance(value, str):
        if isinstance(usual, (int, tuple)):
            raise _wrong(name, value, "an integer or integers")
        if value.split() == [value]:
            return value
        raise _wrong(name, value, "one word")
    integers = _integers_of(value)
    if not integers:
        raise _wrong(name, value, "an integer, integers or a word")
    if not all(-(1 << 63) <= each < 1 << 63 for each in integers):
        raise _wrong(name, value, "integers of 64 bits")
    return tuple(integers) if isinstance(value, Iterable) else integers[0]


def _integers_of(value: Any) -> list[int]:
    """An integer or integers; none if the value is anything else."""
    if type(value) is int:
        return [value]
    if not isinstance(value, (tuple, list)) and hasattr(value, "__index__"):
        try:
            return [operator.index(value)]
        except TypeError:  # an array of several elements
            pass
    try:
        return [] if isinstance(value, (Mapping, Set)) else [operator.index(each) for each in value]
    except TypeError:
        return []


def text_of_words(words: Mapping[str, Word]) -> str:
    """` pad=1,1 mode=max tf32 n=?`, as requests have it; what is False or not there is left out."""
    text = ""
    for name, value in words.items():
        if value is False:
            continue
        if name == "dynamic_batch":
            text += " n=?"
        elif value is True:
            text += f" {name}"
        elif isinstance(value, Sequence) and not isinstance(value, str):
            text += f" {name}={','.join(map(str, value))}"
        else:
            text += f" {name}={value}"
    return text


@functools.lru_cache(maxsize=1024)
def _text_of_stages(stages: str) -> str:
    return f" epilogue={_word('epilogue', stages)}"


def text_of_epilogue(epilogue: str | Expression | None) -> str:
    """` epilogue=bias+relu` of stages; nothing of user code, which is no text of a request."""
    if epilogue is None or isinstance(epilogue, Expression):
        return ""
    if isinstance(epilogue, str):
        return _text_of_stages(epilogue)
    raise _wrong("epilogue", epilogue, "stages joined with +, or what kiln.expression() returns")
