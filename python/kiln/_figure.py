"""The figure of a tuning result, by matplotlib: where the time goes, the layers on the device's roofline, the gains."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from ._tables import rate_text, time_text
from .errors import MissingLibrary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .tuning import TunedLayer, TuneResult

LEAST_SHARE = 0.025  # of the time: what is less stands together, as in `kiln tune --report`
MOST_PARTS = 12
COLOUR_OF_OTHERS = "0.6"


@dataclasses.dataclass(frozen=True)
class Layer:
    """One that has a time, or the estimate of the default choice that it keeps."""

    number: int  # from 1, in the order of the result
    found: TunedLayer
    seconds: float  # of one run

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


def parts_of(layers: list[Layer]) -> tuple[list[Layer], list[Layer]]:
    """Those that have a part of the bar to themselves, the longest first, and the others; never one other alone."""
    order = sorted(layers, key=lambda layer: -layer.tuned)
    least = LEAST_SHARE * sum(layer.tuned for layer in layers)
    own = [layer for layer in order[:MOST_PARTS] if layer.tuned >= least]
    return (order, []) if len(order) - len(own) == 1 else (own, order[len(own) :])


def draw(result: TuneResult, heading: str) -> Figure:
    """Raises MissingLibrary without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingLibrary("a figure needs matplotlib, which is not installed", "pip install matplotlib") from error

    layers = layers_of(result)
    own, others = parts_of(layers)
    tints = matplotlib.colormaps["tab20"].colors
    colours = {layer.number: tints[i % len(tints)] for i, layer in enumerate(own)}
    figure = Figure(figsize=(10, 10), layout="constrained")
    figure.suptitle(heading)
    bars, roofline, gains = figure.subplots(3, 1, height_ratios=[1.2, 3, 1])
    parts = _draw_bars(bars, own, others, colours)
    _draw_roofline(roofline, layers, colours, result.data["peak_bytes_per_second"])
    _draw_gains(gains, layers, colours)
    if parts:
        figure.legend(parts, _names(own, others), loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _names(own: list[Layer], others: list[Layer]) -> list[str]:
    """Of the parts of the tuned bar, for the legend."""
    rest = sum(layer.tuned for layer in others)
    whole = sum(layer.tuned for layer in own) + rest
    names = [f"{layer.number}: {layer.found.label} ({layer.tuned / whole:.1%})" for layer in own]
    return [*names, f"{len(others)} others ({rest / whole:.1%})"] if others else names


def _draw_bars(axes: Axes, own: list[Layer], others: list[Layer], colours: dict[int, Any]) -> list[Any]:
    """One pass through all layers: with what tuning found, below it by default. Returns the parts of the first."""
    rows = {
        "tuned": ([layer.tuned for layer in own], sum(layer.tuned for layer in others)),
        "default": ([layer.untuned for layer in own], sum(layer.untuned for layer in others)),
    }
    longest = max(sum(times) + rest for times, rest in rows.values())
    drawn: dict[str, list[Any]] = {name: [] for name in rows}
    for name, (times, rest) in rows.items():
        left = 0.0
        for layer, seconds in zip(own, times):
            drawn[name] += axes.barh(name, seconds, left=left, color=colours[layer.number], edgecolor="white")
            left += seconds
            if seconds >= LEAST_SHARE * longest:
                axes.text(left - seconds / 2, name, str(layer.number), ha="center", va="center")
        if others:
            drawn[name] += axes.barh(name, rest, left=left, color=COLOUR_OF_OTHERS, edgecolor="white")
    axes.set_yticks([0, 1], [f"{name}\n{time_text(sum(times) + rest)}" for name, (times, rest) in rows.items()])
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
    for name, peak in roofs.items():
        axes.plot([peak / bandwidth, high], [peak, peak], "k--", label=name)
        axes.annotate(f"{name} {rate_text(peak, 'FLOP/s')}", (high, peak), (0, 4), textcoords="offset points", ha="right")
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
    """How many times as fast each layer is as with its default choice."""
    known = [(layer, layer.found.default_seconds / layer.seconds) for layer in layers if layer.found.default_seconds is not None]
    for layer, gain in known:
        axes.bar(layer.number, gain - 1, bottom=1, color=colours.get(layer.number, COLOUR_OF_OTHERS))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.yaxis.set_major_formatter(lambda gain, _: f"{gain:.3g}x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="Gains by tuning", xlabel="layer", ylim=(min([0.9, *(gain for _, gain in known)]), None))
