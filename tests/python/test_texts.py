"""Numbers and words as texts, and what the command `kiln` of an installed package is given."""

import types

import pytest

import kiln
from kiln import _arguments, _library, _tables


@pytest.mark.parametrize(
    "seconds, text",
    [(2.5, "2.5 s"), (1.0, "1 s"), (0.9994, "999 ms"), (1e-3, "1 ms"), (9.99e-4, "999 us"), (1.234e-8, "0.0123 us")],
)
def test_times_have_the_unit_that_suits_them(seconds, text):
    assert _tables.time_text(seconds) == text


@pytest.mark.parametrize(
    "rate, text",
    [
        (2e15, "2 PB/s"),
        (1e12, "1 TB/s"),
        (9.99e11, "999 GB/s"),
        (1e9, "1 GB/s"),
        (1e6, "1 MB/s"),
        (1e3, "1 kB/s"),
        (999, "999 B/s"),
    ],
)
def test_rates_have_the_unit_that_suits_them(rate, text):
    assert _tables.rate_text(rate, "B/s") == text


def test_words_are_those_of_a_request():
    words = {"pad": (1, 2), "mode": "max", "tf32": True, "fast": False, "axis": 1, "dynamic_batch": True}
    assert _arguments.text_of_words(words) == " pad=1,2 mode=max tf32 axis=1 n=?"


def test_a_plan_and_an_explanation_say_what_runs(context):
    request = "softmax_forward x=f32:4x8"
    plan = kiln.plan(request, context=context)
    assert repr(plan) == f"<kiln.Plan of {plan.request}: {plan.variant} ({plan.source})>"
    assert plan.deterministic is True
    assert repr(kiln.explain(request, context=context)) == repr(context.explain(request))


def test_the_program_has_the_nvrtc_of_an_installed_package(tmp_path, monkeypatch):
    """A stand-in for a package of PyPI, which may have no such library, or not be there."""
    found = {"first": types.SimpleNamespace(submodule_search_locations=[str(tmp_path)]), "second": None}

    def find_spec(name):
        if name == "missing":
            raise ModuleNotFoundError(name)
        return found[name]

    monkeypatch.setattr(_library.importlib.util, "find_spec", find_spec)
    packages = [("missing", "libnvrtc.so.13"), ("second", "libnvrtc.so.13"), ("first", "libnvrtc.so.12")]
    monkeypatch.setattr(_library, "_nvrtc_packages", packages)
    monkeypatch.delenv("KILN_NVRTC", raising=False)
    _library.nvrtc.cache_clear()
    try:
        assert _library.nvrtc() is None and "KILN_NVRTC" not in _library.environment()
        (tmp_path / "libnvrtc.so.12").touch()
        _library.nvrtc.cache_clear()
        assert _library.environment()["KILN_NVRTC"] == str(tmp_path / "libnvrtc.so.12")
        monkeypatch.setenv("KILN_NVRTC", "one of mine")
        assert _library.environment()["KILN_NVRTC"] == "one of mine"
        started = []
        monkeypatch.setattr(_library.os, "execve", lambda *arguments: started.append(arguments))
        monkeypatch.setattr(_library.sys, "argv", ["anything", "tune", "x.txt"])
        _library.main()
        ((path, arguments, environment),) = started
        assert path.endswith("bin/kiln") and arguments == ["kiln", "tune", "x.txt"]
        assert environment["KILN_NVRTC"] == "one of mine"
    finally:
        _library.nvrtc.cache_clear()
