"""Results of tuning: the table and the figure."""

import math
import sys

import pytest

import kiln
from kiln import _tables

GEMM = {"flops": 2e9, "bytes": 1e8, "arithmetic": "f32 arithmetic", "peak_flops_per_second": 6e13}


def layer(label, seconds, default=None, count=1, **more):
    """As `kiln tune --json` has it, as far as tables and figures read it."""
    trial = {"algorithm": "fast", "config": "A=1", "seconds": seconds}
    return {
        "request": label,
        "label": label,
        "count": count,
        "status": "finished",
        "error": "",
        "roofline_seconds": 1e-6,
        "best": trial,
        "default": None if default is None else {**trial, "seconds": default},
        "fallback": {"algorithm": "usual", "config": "-", "estimate_seconds": 7e-6},
        **GEMM,
        **more,
    }


def result(*layers):
    best = sum(each["count"] * each["best"]["seconds"] for each in layers if each["best"])
    totals = {"best_seconds": best, "default_seconds": 2 * best, "roofline_seconds": best / 4}
    device = 'name="Kiln emulated NVIDIA H200" cc=9.0 sms=132 emulated=yes'
    return kiln.TuneResult(
        {"device": device, "peak_bytes_per_second": 4.8e12, "layers": list(layers), "totals": totals}
    )


def left(label):
    return layer(label, 1, best=None, status="out of time")


def unserved(label):
    return layer(label, 1, best=None, status="failed", fallback=None)


@pytest.fixture(scope="module")
def matplotlib():
    return pytest.importorskip("matplotlib", reason="matplotlib is not installed (scripts/setup)")


def widths(figure, row):
    """Widths of the parts of a stacked bar: 0 tuned, 1 default."""
    return [patch.get_width() for patch in figure.axes[0].patches if round(patch.get_y() + patch.get_height() / 2) == row]


def dots(figure):
    return [tuple(collection.get_offsets()[0]) for collection in figure.axes[1].collections]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_table_has_names_times_and_gains():
    lines = str(result(layer("conv", 2e-6, 4e-6, count=3), layer("gemm", 1e-5), left("pool"), unserved("sum"))).splitlines()
    assert lines[0] == "Kiln emulated NVIDIA H200, times modelled"
    assert [line.split() for line in lines[1:-1]] == [
        "layer count time of roofline over default algorithm".split(),
        "conv 3 2 us 50% 2.00x fast".split(),
        "gemm 1 10 us 10% - fast".split(),
        "pool 1 ~7 us 14% - usual (default, out of time)".split(),
        "sum 1 - - - none: failed".split(),
    ]
    assert lines[-1] == "all layers: 16 us, 25% of roofline, 2.00x over default"
    assert len({line.index("us") for line in lines[2:5]}) == 1, "numbers end in one column"


def test_sums_are_of_layers_with_a_time():
    assert "all layers" not in repr(result(unserved("sum"))) and "all layers" not in repr(result())


def test_tables_are_text_or_html():
    rows = [["conv", "12"], ["a", "3"]]
    assert _tables.text_table(["name", ">n"], rows) == "name   n\nconv  12\na      3"
    assert _tables.text_table(["a long name", ">number", ""], [["x", "1", "y"]]) == "a long name  number\nx                 1  y"
    assert _tables.html_table(["name", ">n"], [["<conv>", "1"]]) == (
        '<table><tr><th style="text-align: left">name</th><th style="text-align: right">n</th></tr>'
        '<tr><td style="text-align: left">&lt;conv&gt;</td><td style="text-align: right">1</td></tr></table>'
    )
    plain = '<tr><td style="text-align: left">a</td></tr>'
    assert _tables.html_table((), [["a"], ["a"]]) == f"<table><tr></tr>{plain}{plain}</table>"
    assert _tables.html_table((), []) == "<table><tr></tr></table>"
    assert ">b<" in _tables.html_table((), [["a"], ["a", "b"]]), "a line may be longer than others"


def test_the_clock_of_modelled_times_stands_below_the_device():
    by_clock = result(layer("conv", 2e-6, 4e-6))
    by_clock.data["modelled_by"] = {"clock": "machine-code clock 1", "accuracy": "rank correlation 0.9 <on a card>"}
    lines = repr(by_clock).splitlines()
    assert lines[1] == "modelled by machine-code clock 1: rank correlation 0.9 <on a card>"
    assert lines[2].startswith("layer ")
    assert "<br>modelled by machine-code clock 1: rank correlation 0.9 &lt;on a card&gt;</p>" in by_clock._repr_html_()
    by_clock.data["modelled_by"] = None  # of measured times
    assert repr(by_clock).splitlines()[1].startswith("layer ") and "<br>" not in by_clock._repr_html_()


def test_notebooks_show_the_figure(matplotlib):
    assert result(layer("conv", 2e-6, 4e-6)).figure()._repr_png_().startswith(b"\x89PNG")


def test_the_figure_stacks_times_with_their_counts(matplotlib):
    figure = result(layer("conv", 2e-6, 4e-6, count=3), layer("gemm", 1e-5)).figure()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert widths(figure, 0) == pytest.approx([1e-5, 6e-6]), "the longest first"
    assert widths(figure, 1) == pytest.approx([1e-5, 1.2e-5]), "without a time: no gain"
    assert legend(figure) == ["2: gemm (62.5%)", "1: conv (37.5%)"]
    assert "times modelled" in figure.get_suptitle()


def test_the_figure_puts_dots_on_the_roofline(matplotlib):
    figure = result(layer("conv", 1e-4, 2e-4), layer("copy", 1e-4, flops=0)).figure()
    assert dots(figure) == [pytest.approx((20, 2e13))], "what computes nothing has no place"
    lines = {line.get_label(): line.get_data() for line in figure.axes[1].lines}
    assert lines["memory"][1][-1] == pytest.approx(6e13) and lines["memory"][0][-1] == pytest.approx(12.5)
    assert list(lines["f32 arithmetic"][1]) == [6e13, 6e13]
    assert figure.axes[1].get_xscale() == figure.axes[1].get_yscale() == "log"
    low, high = figure.axes[1].get_xlim()
    assert low < 12.5 < 20 < high
    lowest, highest = figure.axes[1].get_ylim()
    assert lowest < 2e13 < 6e13 < highest


def test_dots_are_as_large_as_their_shares_of_the_time(matplotlib):
    figure = result(layer("conv", 2e-6, 4e-6, count=3), layer("gemm", 1e-5)).figure()
    sizes = sorted(float(collection.get_sizes()[0]) for collection in figure.axes[1].collections)
    assert sizes == pytest.approx([30 + 500 * 6 / 16, 30 + 500 * 10 / 16])


def test_the_figure_of_many_layers_groups_the_short_ones(matplotlib, tmp_path):
    layers = [layer(f"copy <{i}> & more", 1e-6, 1e-6) for i in range(299)]
    figure = result(layer("conv", 3e-4, 3e-4), *layers).figure()
    assert widths(figure, 0) == pytest.approx([3e-4, 2.99e-4])
    assert legend(figure) == ["1: conv (50.1%)", "299 of copy (49.9%)"]
    assert len(dots(figure)) == 300 and len(figure.axes[2].patches) == 300
    figure.savefig(tmp_path / "many.png")
    assert (tmp_path / "many.png").stat().st_size > 10_000


def test_bars_that_are_short_beside_the_longer_row_have_no_number(matplotlib):
    figure = result(layer("conv", 1e-6, 1e-6), layer("gemm", 1e-6, 1e-3)).figure()
    assert [text.get_text() for text in figure.axes[0].texts] == ["2"], "by default the second is long"
    same = result(layer("conv", 1e-6, 1e-6), layer("gemm", 1e-6, 1e-6)).figure()
    assert sorted(text.get_text() for text in same.axes[0].texts) == ["1", "1", "2", "2"]


def test_what_is_short_stands_together_by_operation(matplotlib):
    layers = [layer(f"{operation} {i}", 1e-6) for operation, count in (("gemm", 60), ("copy", 90), ("sum", 1)) for i in range(count)]
    assert legend(result(*layers, layer("mean 1", 1e-6)).figure()) == [
        "90 of copy (59.2%)",
        "60 of gemm (39.5%)",
        "2 others (1.3%)",
    ]


def test_the_figure_takes_estimates_and_layers_without_any_time(matplotlib, tmp_path):
    figure = result(left("pool"), unserved("sum")).figure()
    assert widths(figure, 0) == [7e-6] and legend(figure) == ["1: pool (100.0%)"]
    nothing = result(unserved("sum")).figure()
    assert not nothing.axes[0].patches and not nothing.legends
    for each in (figure, nothing):
        each.savefig(tmp_path / "few.png")


def test_the_figure_of_real_layers(matplotlib, tmp_path):
    tuned = kiln.tune(
        ["gemm a=f32:32x64 b=f32:64x32", "softmax_forward x=f32:64x100"],
        candidates=2,
        cache="off",
        driver="emulator",
        progress=False,
    )
    figure = tuned.figure()
    assert sum(widths(figure, 0)) == pytest.approx(tuned.data["totals"]["best_seconds"])
    assert sum(widths(figure, 1)) == pytest.approx(tuned.data["totals"]["default_seconds"])
    x, y = dots(figure)[0]
    assert x == pytest.approx(2 * 32 * 32 * 64 / (4 * (2 * 32 * 64 + 32 * 32)))
    assert y == pytest.approx(2 * 32 * 32 * 64 / tuned.layers[0].seconds)
    roof = min(tuned.data["layers"][0]["peak_flops_per_second"], x * tuned.data["peak_bytes_per_second"])
    assert math.isclose(y / roof, tuned.data["layers"][0]["roofline_seconds"] / tuned.layers[0].seconds, rel_tol=1e-9)
    figure.savefig(tmp_path / "tuning.png")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(kiln.MissingLibrary, match="matplotlib") as raised:
        result(layer("conv", 1e-6)).figure()
    assert raised.value.hint == "pip install matplotlib"
