"""Messages name what Python has."""

import pathlib
import re

import pytest

import kiln
from kiln.errors import in_words_of_python

SOURCE = pathlib.Path(__file__).parents[2]


def test_words_stand_for_those_of_cpp():
    assert in_words_of_python("set either ContextOptions::locked or ContextOptions::tuning") == (
        "set either Context's locked or Context's tuning"
    )
    assert in_words_of_python("by Context::prepare(), Context::plan() or the same call") == (
        "by Context.prepare(), kiln.plan() or the same call"
    )
    assert in_words_of_python("plain text: a::b") == "plain text: a::b"


def test_every_name_of_cpp_in_a_message_has_one_of_python():
    literal = re.compile(r"""(?:^|\n)#include[^\n]*|'(?:\\.|[^'\\])'|//[^\n]*|"((?:\\.|[^"\\\n])*)\"""")
    name = re.compile(r"\b(?:kiln|[A-Z][A-Za-z]+)::[A-Za-z]")
    texts = []
    for room in ("base", "device", "generator", "execution", "runtime", "cache"):
        for file in (SOURCE / room).rglob("*"):
            if file.suffix in (".cpp", ".h"):
                texts += [text for text in literal.findall(file.read_text()) if name.search(text)]
    assert len(texts) > 8
    assert [text for text in texts if name.search(in_words_of_python(text))] == []


def test_hints_are_of_python(tmp_path):
    with pytest.raises(kiln.InvalidArgument, match='or "off" for no database'):
        kiln.Context(driver="emulator", cache="")
    with pytest.raises(kiln.Error, match=r"give a kiln.expression\(\) as the epilogue"):
        kiln.plan("softmax_forward x=f32:1x8 epilogue=user:mine", context=kiln.Context(driver="emulator", cache="off"))
    with pytest.raises(kiln.Error, match="Context's locked"):
        kiln.Context(driver="emulator", cache="off", locked=True, tuning=kiln.Tuning("within_budget"))
