"""Numbers and words as texts, and what the command `kiln` of an installed package is given."""

import json
import types

import pytest

import kiln
from kiln import _arguments, _library, _tables
from kiln._explanation import Explanation


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


def test_an_explanation_has_what_the_library_says():
    chosen = {"algorithm": "fast", "config": "A=1", "seconds": 2e-6, "source": "measured"}
    other = {"algorithm": "slow", "config": "-", "seconds": 0, "source": "estimate"}
    data = {
        "request": "reduce <x>",
        "device": "a card",
        "roofline_seconds": 1e-6,
        "roofline_of": "memory traffic",
        "chosen": chosen,
        "stored": [chosen],
        "estimated": [other],
        "withheld": [{"algorithm": "wrong", "config": "B=2", "reason": "a failed check"}],
        "not_believed": [{"algorithm": "odd", "config": "C=3", "reason": "too quick"}],
        "refused": [{"algorithm": "never", "reason": "x is f16"}],
    }
    found = Explanation(json.dumps(data))
    assert (found.request, found.device, found.roofline_seconds, found.roofline_of) == ("reduce <x>", "a card", 1e-6, "memory traffic")
    assert found.chosen == found.stored[0] and found.chosen.seconds == 2e-6 and found.estimated[0].source == "estimate"
    assert [each.config for each in (*found.withheld, *found.not_believed, *found.refused)] == ["B=2", "C=3", ""]
    assert [line.split() for line in repr(found).splitlines()] == [
        ["reduce", "<x>"],
        "roofline 1 us, by memory traffic".split(),
        "algorithm config time of roofline source".split(),
        "* fast A=1 2 us 50% measured".split(),
        "slow - 0 us 0% estimate".split(),
        "not used: wrong B=2: a failed check".split(),
    ]
    assert found._repr_html_().startswith("<p>reduce &lt;x&gt;\nroofline 1 us, by memory traffic</p><table>")
    assert "fast" in found._repr_html_() and "slow" in found._repr_html_()
    assert Explanation(json.dumps({**data, "chosen": None})).chosen is None


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
