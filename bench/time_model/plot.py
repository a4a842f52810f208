"""Draws modelled against measured times: plot.py rows.csv time-model.svg, of what `bench_time_model --csv` writes."""

import csv
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "kiln"  # the same file for the same rows
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator

within = 1.2  # the band that is drawn: modelled within 20% of measured


def panel(axes, name, rows):
    measured = [float(row["measured_ms"]) for row in rows]
    modelled = [float(row["modelled_ms"]) for row in rows]
    ends = [min(measured + modelled) / 1.3, max(measured + modelled) * 1.3]
    axes.fill_between(ends, [x / within for x in ends], [x * within for x in ends], color="0.9", label="within 20%")
    axes.plot(ends, ends, color="0.6", linewidth=0.8)
    for raised, marker, label in (("0", "o", "row"), ("1", "x", "row at a raised clock")):
        points = [(x, y) for x, y, row in zip(measured, modelled, rows) if row["raised"] == raised]
        if points:
            axes.plot(*zip(*points), marker, markersize=4, color="C0" if raised == "0" else "C3", label=label)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal", title=name)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter("")
    axes.set(xlabel="measured, ms", ylabel="modelled, ms")
    axes.legend(frameon=False, fontsize=8)


def main():
    source, target = sys.argv[1:]
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    tables = list(dict.fromkeys((row["table"], row["card"]) for row in rows))
    figure, panels = plt.subplots(1, len(tables), figsize=(4 * len(tables), 4), squeeze=False)
    for axes, (table, card) in zip(panels[0], tables):
        panel(axes, f"{table} on {card}", [row for row in rows if (row["table"], row["card"]) == (table, card)])
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


main()
