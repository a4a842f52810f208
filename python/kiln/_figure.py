"""The figure of a tuning result, by matplotlib: where the time goes, the layers on the device's roofline, the gains."""

from __future__ import annotations

import dataclasses
import functools
import io
import math
from typing import TYPE_CHECKING, Any

from ._tables import rate_text, time_text
from .errors import MissingLibrary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .tuning import TunedLayer, TuneResult

LEAST_SHARE = 0.025  # of the time: what is less stands together, as in `kiln tune --report`
MOST_ALONE = 12
COLOUR_OF_OTHERS = "0.6"


@dataclasses.dataclass(frozen=True)
class Layer:
    """One that has a time, or the estimate of the default choice that it keeps."""

    number: int  # from 1, in the order of the result
    found: TunedLayer
    seconds: float  # of one run

    @property
    def operation(self) -> str:
        return self.found.request.partition(" ")[0]

    @property
    def tuned(self) -> float:
        """Seconds with its count."""
        return float(self.found.data["count"] * self.seconds)

    @property
    def untuned(self) -> float:
        """Seconds with its count by default; a default without a time counts as no gain."""
        return float(self.found.data["count"] * (self.found.default_seconds or self.seconds))


def layers_of(result: TuneResult) -> list[Layer]:
    times = [layer.seconds or layer.estimate for layer in result.layers]
    return [Layer(i, layer, time) for i, (layer, time) in enumerate(zip(result.layers, times), 1) if time]


def parts_of(layers: list[Layer]) -> list[list[Layer]]:
    """Groups that have a part of a stacked bar: layers, the longest first; several of one operation; the rest, still
    too short."""
    least = LEAST_SHARE * _time(layers)
    order = sorted(layers, key=lambda layer: -layer.tuned)
    alone = [[layer] for layer in order[:MOST_ALONE] if layer.tuned >= least]
    by_operation: dict[str, list[Layer]] = {}
    for layer in order[len(alone) :]:
        by_operation.setdefault(layer.operation, []).append(layer)
    groups = [group for group in by_operation.values() if len(group) > 1 and _time(group) >= least]
    others = [layer for group in by_operation.values() if group not in groups for layer in group]
    return [*alone, *sorted(groups, key=lambda group: -_time(group)), *([others] if others else [])]


def _time(layers: list[Layer]) -> float:
    return sum(layer.tuned for layer in layers)


def _name(part: list[Layer], whole: float) -> str:
    """For the legend: "3: conv ... (12.5%)", "12 of conv_forward (20.0%)", "5 others (3.1%)"."""
    operations = {layer.operation for layer in part}
    what = f"of {operations.pop()}" if len(operations) == 1 else "others"
    name = f"{part[0].number}: {part[0].found.label}" if len(part) == 1 else f"{len(part)} {what}"
    return f"{name} ({_time(part) / whole:.1%})"


def draw(result: TuneResult, heading: str) -> Figure:
    """Raises MissingLibrary without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingLibrary("a figure needs matplotlib, which is not installed", "pip install matplotlib") from error

    layers = layers_of(result)
    parts = parts_of(layers)
    tints = matplotlib.colormaps["tab20"].colors
    colours = {part[0].number: tints[i] for i, part in enumerate(parts) if len(part) == 1}
    figure = Figure(figsize=(12, 10), layout="constrained")
    figure.suptitle(heading)
    bars, roofline, gains = figure.subplots(3, 1, height_ratios=[1.2, 3, 1])
    drawn = _draw_bars(bars, parts, colours)
    _draw_roofline(roofline, layers, colours, result.data["peak_bytes_per_second"])
    _draw_gains(gains, layers, colours)
    if drawn:
        names = [_name(part, _time(layers)) for part in parts]
        figure.legend(drawn, names, loc="outside lower center", ncols=2, fontsize="small")
    setattr(figure, "_repr_png_", functools.partial(_png_of, figure))  # notebooks show figures of pyplot only
    return figure


def _png_of(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _draw_bars(axes: Axes, parts: list[list[Layer]], colours: dict[int, Any]) -> list[Any]:
    """One pass through all layers: with what tuning found, below it by default. Returns the parts of the first."""
    rows = {
        "tuned": [sum(layer.tuned for layer in part) for part in parts],
        "default": [sum(layer.untuned for layer in part) for part in parts],
    }
    longest = max(sum(times) for times in rows.values())
    greys = ["0.55", "0.65", "0.75", "0.85"]
    drawn: dict[str, list[Any]] = {name: [] for name in rows}
    for name, times in rows.items():
        left = 0.0
        for part, seconds in zip(parts, times):
            colour = colours.get(part[0].number, greys[len(drawn[name]) % len(greys)])
            drawn[name] += axes.barh(name, seconds, left=left, color=colour, edgecolor="white")
            left += seconds
            if len(part) == 1 and seconds >= LEAST_SHARE * longest:
                axes.text(left - seconds / 2, name, str(part[0].number), ha="center", va="center")
    axes.set_yticks([0, 1], [f"{name}\n{time_text(sum(times))}" for name, times in rows.items()])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda seconds, _: time_text(seconds) if seconds > 0 else "0")
    axes.set_title("Where the time goes: one pass through all layers")
    return drawn["tuned"]


def _draw_roofline(axes: Axes, layers: list[Layer], colours: dict[int, Any], bandwidth: float) -> None:
    """A dot for each layer that computes anything, below the lines of memory and arithmetic."""
    axes.set(xscale="log", yscale="log", xlabel="FLOP for each byte", ylabel="FLOP/s", title="Roofline")
    computing = [layer for layer in layers if layer.found.data["flops"] > 0 and layer.found.data["peak_flops_per_second"] > 0]
    if not computing or not bandwidth > 0:
        axes.text(0.5, 0.5, "no layer computes anything", transform=axes.transAxes, ha="center")
        return
    whole = sum(layer.tuned for layer in layers)
    roofs = {layer.found.data["arithmetic"]: layer.found.data["peak_flops_per_second"] for layer in computing}
    across = [layer.found.data["flops"] / layer.found.data["bytes"] for layer in computing]
    low = min([*across, *(peak / bandwidth / 4 for peak in roofs.values())]) / 1.5
    high = max([*across, *(peak / bandwidth * 4 for peak in roofs.values())]) * 1.5
    ridge = max(roofs.values()) / bandwidth
    axes.plot([low, ridge], [low * bandwidth, ridge * bandwidth], "k--", label="memory")
    axes.annotate(f"memory {rate_text(bandwidth, 'B/s')}", (ridge, ridge * bandwidth), (-4, 16),
                  textcoords="offset points", ha="right")  # fmt: skip
    above = math.inf
    for name, peak in sorted(roofs.items(), key=lambda roof: -roof[1]):
        axes.plot([peak / bandwidth, high], [peak, peak], "k--", label=name)
        place = (0, 4) if above > 4 * peak else (0, -12)  # below its line where another is close
        axes.annotate(f"{name} {rate_text(peak, 'FLOP/s')}", (high, peak), place, textcoords="offset points", ha="right")
        above = peak
    for layer, x in zip(computing, across):
        colour, rate = colours.get(layer.number, COLOUR_OF_OTHERS), layer.found.data["flops"] / layer.seconds
        if layer.found.default_seconds is not None:
            axes.plot([x, x], [layer.found.data["flops"] / layer.found.default_seconds, rate], color=colour, linewidth=1.2)
        axes.scatter([x], [rate], s=30 + 500 * layer.tuned / whole, color=[colour], edgecolors="black", linewidths=0.6, zorder=3)
        if layer.number in colours:
            size = 4 + math.sqrt(30 + 500 * layer.tuned / whole) / 2
            axes.annotate(str(layer.number), (x, rate), (size, 0), textcoords="offset points", va="center", fontsize="small", zorder=4)
    axes.set_xlim(low, high)
    axes.set_ylim(top=5 * max(roofs.values()))
    axes.grid(alpha=0.3)


def _draw_gains(axes: Axes, layers: list[Layer], colours: dict[int, Any]) -> None:
    """Speed of each layer over its default choice."""
    known = [(layer, layer.found.default_seconds / layer.seconds) for layer in layers if layer.found.default_seconds is not None]
    for layer, gain in known:
        axes.bar(layer.number, gain - 1, bottom=1, color=colours.get(layer.number, COLOUR_OF_OTHERS))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.yaxis.set_major_formatter(lambda gain, _: f"{gain:.3g}x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="Gains by tuning", xlabel="layer", ylim=(min([0.9, *(gain for _, gain in known)]), None))
