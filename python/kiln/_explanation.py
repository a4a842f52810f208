"""Explanation: why a request runs as it does."""

from __future__ import annotations

import dataclasses
import html
import json
from typing import Any

from ._tables import html_table, text_table, time_text


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A variant that could serve the request. `source`: where its time comes from."""

    algorithm: str
    config: str
    seconds: float
    source: str


@dataclasses.dataclass(frozen=True)
class Refusal:
    """An algorithm or variant that is not used, and why."""

    algorithm: str
    config: str
    reason: str


def _candidates(found: list[dict[str, Any]]) -> list[Candidate]:
    return [Candidate(each["algorithm"], each["config"], each["seconds"], each["source"]) for each in found]


def _refusals(found: list[dict[str, Any]]) -> list[Refusal]:
    return [Refusal(each["algorithm"], each.get("config", ""), each["reason"]) for each in found]


class Explanation:
    """Why a request runs as it does: the variant in use, those behind it, and what is against the others.

    `request`, `device`: which. `roofline_seconds`, `roofline_of`: the least time that anything can take, and what sets
    it. `chosen`: what a plan would use, or None. `stored`, `estimated`: candidates with a stored time in order of
    precedence, then the best predictions. `withheld`, `not_believed`, `refused`: what is not used, and why. `data`: all
    of it, as `kiln explain --json` has it.
    """

    def __init__(self, text: str) -> None:
        self.data: dict[str, Any] = json.loads(text)
        self.request: str = self.data["request"]
        self.device: str = self.data["device"]
        self.roofline_seconds: float = self.data["roofline_seconds"]
        self.roofline_of: str = self.data["roofline_of"]
        self.chosen = _candidates([self.data["chosen"]])[0] if self.data["chosen"] else None
        self.stored = _candidates(self.data["stored"])
        self.estimated = _candidates(self.data["estimated"])
        self.withheld = _refusals(self.data["withheld"])
        self.not_believed = _refusals(self.data["not_believed"])
        self.refused = _refusals(self.data["refused"])

    def _rows(self) -> list[list[str]]:
        rows = []
        for candidate in [*self.stored, *self.estimated]:
            mark = "*" if candidate == self.chosen else ""
            share = self.roofline_seconds / candidate.seconds if candidate.seconds > 0 else 0
            rows.append(
                [
                    mark,
                    candidate.algorithm,
                    candidate.config,
                    time_text(candidate.seconds),
                    f"{share:.0%}",
                    candidate.source,
                ]
            )
        return rows

    _headings = ("", "algorithm", "config", "time", "of roofline", "source")

    def _heading(self) -> str:
        return f"{self.request}\nroofline {time_text(self.roofline_seconds)}, by {self.roofline_of}"

    def __repr__(self) -> str:
        lines = [self._heading(), text_table(self._headings, self._rows())]
        lines += [f"not used: {each.algorithm} {each.config}: {each.reason}" for each in self.withheld]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>" + html_table(self._headings, self._rows())
