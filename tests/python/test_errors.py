"""Messages name what Python has."""

import pathlib
import re

import pytest

import kiln
from kiln.errors import codes, error_of, in_words_of_python, of_a_call, require_text, require_type, user_frame, warn

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


def test_errors_of_a_call_name_arguments():
    def hint(text, result="", message="wrong"):
        error = of_a_call(kiln.InvalidArgument(message, text), result)
        assert isinstance(error, kiln.InvalidArgument)
        return error.hint

    assert hint("add x=dtype:extents:layout") == "give x"
    assert hint("add dx=dtype:extents:layout or x=f32:...", "dx") == "give out or x"
    assert hint("add x=dtype:extents:layout or indices=i32:...") == "give x or indices"
    assert hint("add epilogue=user:NAME") == "give a kiln.expression() as the epilogue"
    assert hint("add epilogue=add or leave it out") == 'give epilogue="add" or leave it out'
    assert hint("leave it out, or use mode=max") == 'leave it out, or give mode="max"'
    same = kiln.Unsupported("nothing", "else")
    assert of_a_call(same) is same
    assert of_a_call(kiln.ParseError("column 12: what is this")).message == "what is this"
    assert of_a_call(kiln.ParseError("in column 12: that")).message == "in column 12: that"


def test_errors_have_the_class_of_their_code():
    for code, kind in codes.items():
        error = error_of(code, "give Plan::run() a batch", "by ContextOptions::locked")
        assert type(error) is kind and error.code == code == kind.code
        assert str(error) == "give Plan.run() a batch (by Context's locked)"
    other = error_of("a new one", "text", "")
    assert type(other) is kiln.Error and other.code == "a new one" and str(other) == "text"


def test_what_has_a_wrong_type_is_named():
    require_type("n", 1, int, "a number")
    require_type("n", True, bool, "a flag")
    require_type("n", True, (int, float), "a number")
    for value, kinds in ((True, int), ("1", int), (None, (int, float))):
        with pytest.raises(kiln.InvalidArgument, match="^n is .* .give a number.$"):
            require_type("n", value, kinds, "a number")
    with pytest.raises(kiln.InvalidArgument, match="x is b'text' .give text"):
        require_text("x", b"text")


def test_warnings_point_to_the_line_of_the_user():
    with pytest.warns(kiln.Warning, match="a word") as caught:
        warn("a word")
    assert [each.filename for each in caught] == [__file__]
    frame, level = user_frame()
    assert frame.f_code.co_filename == __file__ and level == 1
    frame, level = user_frame(__name__.partition(".")[0])
    assert frame.f_code.co_filename != __file__ and level > 1
