"""Contexts, errors, tuning and explanations."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import kiln

REQUEST = "softmax_forward x=f32:4x16"


def test_errors_have_a_class_a_code_and_a_hint(context):
    with pytest.raises(kiln.ParseError) as parse:
        kiln.plan("softmax_forward x=f33:4x16", context=context)
    assert parse.value.code == "parse error"
    assert isinstance(parse.value, (kiln.Error, ValueError))
    with pytest.raises(kiln.InvalidArgument) as wrong:
        kiln.Context(driver="emulator", device=7)
    assert wrong.value.hint and str(wrong.value) == f"{wrong.value.message} ({wrong.value.hint})"


def test_every_code_has_its_class(context):
    codes = {kind.code for kind in kiln.Error.__subclasses__()}
    assert "input/output error" in codes and "out of memory" in codes
    with pytest.raises(kiln.MissingLibrary):
        kiln.Context(driver="/nowhere/libcuda.so")


def test_announcements_are_warnings_or_go_to_the_caller(tmp_path):
    told = []
    pack = tmp_path / "missing.pack"
    kiln.Context(driver="emulator", cache="off", packs=[pack], announce=told.append)
    assert any("missing.pack" in message for message in told)
    with pytest.warns(kiln.Warning, match="missing.pack") as warned:
        kiln.Context(driver="emulator", cache="off", packs=pack)
    assert {each.filename for each in warned} == {__file__}


def test_a_context_prepares_and_says_what_it_is(context):
    context.prepare([REQUEST, "# a comment", "tensor_set y=f32:7"])
    assert context.emulated
    assert "emulated" in context.device_id
    assert "Kiln emulated" in repr(context)
    with pytest.raises(kiln.Error):
        context.prepare("nonsense")


def test_tuning_by_the_program_and_what_it_found(tmp_path):
    database = tmp_path / "tuning.db"
    result = kiln.tune([REQUEST], candidates=1, cache=database, driver="emulator", progress=False)
    assert result.modelled
    assert len(result.layers) == 1
    layer = result.layers[0]
    assert layer.variant and layer.seconds > 0
    assert layer.variant.split()[0] in repr(result)
    assert "<table>" in result._repr_html_()
    context = kiln.Context(driver="emulator", cache=database)
    why = context.explain(REQUEST)
    assert why.stored and f"{why.chosen.algorithm} {why.chosen.config}" == layer.variant
    assert "modelled on this device" in repr(why)
    assert "<td>" in why._repr_html_()


def test_a_context_that_tunes_by_itself(tmp_path):
    database = tmp_path / "tuning.db"
    tuning = kiln.Tuning("within_budget", budget=60, candidates=1)
    context = kiln.Context(driver="emulator", cache=database, tuning=tuning)
    assert context.tuning is tuning
    kiln.softmax_forward(np.zeros((4, 16), np.float32), context=context)
    assert context.explain(REQUEST).stored


def test_tuning_that_cannot_begin_raises_what_the_program_said():
    with pytest.raises(kiln.ParseError, match="softmax_forwrd"):
        kiln.tune("softmax_forwrd x=f32:4x16", driver="emulator", progress=False)


def test_importing_needs_no_framework_and_no_device():
    code = "import sys, kiln; assert not {'numpy', 'torch'} & set(sys.modules); print(kiln.__version__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == kiln.__version__


def test_a_default_context_for_each_device(monkeypatch):
    monkeypatch.setenv("KILN_DRIVER", "emulator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kiln.Warning)
        assert kiln.default_context() is kiln.default_context(0)
