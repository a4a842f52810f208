#!/usr/bin/env python3
"""Prints which layers fall off a cliff: the time of their default over the larger of their roofline and 4 us.

usage: run.py [--estimates] [--cards a100,t4] [--requests FILE] [--sample N] [--known FILE] KILN

For each card, the layers with a ratio above 5, worst first, then the number of layers, of those above 5, and the geometric
mean, for each group of the file and for all. Times are those of the card's machine-code clock, or with --estimates Kiln's
estimates. --sample takes every N-th layer.

With --known, a file of lines CARD RATIO REQUEST, the exit status says whether these are the layers above 5: each
other layer that is above, or one of them that is 5% above its ratio, or that is no longer above 5, is named.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

LEAST_SECONDS, LIMIT = 4e-6, 5
ROOT = Path(__file__).resolve().parents[2]


def groups_of(text: str, sample: int) -> dict[str, list[str]]:
    """The requests below each comment."""
    groups: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# "):
            name = line[2:]
        elif line:
            groups.setdefault(name, []).append(line)
    return {name: lines[::sample] for name, lines in groups.items()}


def seconds_of(kiln: str, card: str, requests: list[str], estimates: bool) -> list[tuple[str, str, float, float]]:
    """(request, variant, seconds, seconds of the roofline) of each."""
    environment = {**os.environ, "KILN_DRIVER": "emulator", "KILN_EMULATOR_DEVICE": card, "KILN_CACHE": "off"}
    command = [kiln, "explain", "--brief"] if estimates else [kiln, "run"]
    if not estimates:
        environment["KILN_EMULATOR_CLOCK"] = "machine"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(requests) + "\n")
        file.flush()
        said = subprocess.run([*command, file.name, "--json"], env=environment, capture_output=True, text=True)
    if not said.stdout:
        raise SystemExit(said.stderr)
    rows = []
    for layer in json.loads(said.stdout)["layers"]:
        chosen = layer["chosen"] if estimates else layer
        seconds = chosen["seconds"] if chosen else None
        variant = "nothing" if not chosen else chosen["algorithm"] if estimates else layer["variant"] or layer["error"]
        rows.append((layer["request"], variant, seconds or math.inf, layer["roofline_seconds"] or 0))
    return rows


def faults_of(known: str, card: str, ratios: dict[str, float]) -> list[str]:
    """Differences of a card's ratios, by request, from what is known."""
    allowed = {}
    for line in known.splitlines():
        if line and not line.startswith("#"):
            of_card, ratio, request = line.split(maxsplit=2)
            if of_card == card:
                allowed[request] = float(ratio)
    faults = [f"{card}: {request} is at {ratio:.1f}, {allowed.get(request, LIMIT):g} permitted"
              for request, ratio in ratios.items() if ratio > max(LIMIT, 1.05 * allowed.get(request, 0))]
    return faults + [f"{card}: {request} is no longer above {LIMIT}: take it from the file"
                     for request in allowed if ratios.get(request, math.inf) <= LIMIT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kiln")
    parser.add_argument("--estimates", action="store_true")
    parser.add_argument("--cards", default="a100,t4")
    parser.add_argument("--requests", type=Path, default=ROOT / "examples/requests/cliffs.txt")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--known", type=Path)
    options = parser.parse_args()
    groups = groups_of(options.requests.read_text(), options.sample)
    faults = []
    for card in options.cards.split(","):
        worst, lines, whole, every = [], [], [], {}
        for name, requests in groups.items():
            rows = seconds_of(options.kiln, card, requests, options.estimates)
            ratios = [seconds / max(roofline, LEAST_SECONDS) for _, _, seconds, roofline in rows]
            whole += ratios
            lines.append((name, ratios))
            worst += [(ratio, row) for ratio, row in zip(ratios, rows) if ratio > LIMIT]
            every.update({row[0]: ratio for ratio, row in zip(ratios, rows)})
        for ratio, (request, variant, seconds, _) in sorted(worst, reverse=True):
            print(f"{card}\t{ratio:.1f}\t{1e6 * seconds:.1f} us\t{variant}\t{request}")
        for name, ratios in [*lines, ("all", whole)]:
            finite = [max(ratio, 1e-3) for ratio in ratios if math.isfinite(ratio)]
            mean = math.exp(sum(map(math.log, finite)) / max(len(finite), 1))
            print(f"{card}\t{len(ratios)} layers, {sum(ratio > LIMIT for ratio in ratios)} above {LIMIT}, mean {mean:.2f}\t{name}")
        if options.known:
            faults += faults_of(options.known.read_text(), card, every)
    if faults:
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
