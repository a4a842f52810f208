"""Tables of results: text for terminals, HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

Row = Sequence[str]


def text_table(headings: Row, rows: Sequence[Row]) -> str:
    """Columns as wide as what is in them, two spaces between them. Those whose heading begins with > are of numbers."""
    right = [heading.startswith(">") for heading in headings]
    table = [[heading.removeprefix(">") for heading in headings], *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]

    def line(row: Row) -> str:
        cells = (cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, right))
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in table)


def html_table(headings: Row, rows: Sequence[Row]) -> str:
    """As text_table(); lines may have no headings, and are text then."""
    right = [heading.startswith(">") for heading in headings] or [False] * max((len(row) for row in rows), default=0)
    headings = [heading.removeprefix(">") for heading in headings]

    def line(row: Row, tag: str) -> str:
        # Notebooks align to the right what does not say otherwise.
        sides = ("right" if number else "left" for number in right)
        cells = (f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>' for cell, side in zip(row, sides))
        return "<tr>" + "".join(cells) + "</tr>"

    return "<table>" + line(headings, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def time_text(seconds: float) -> str:
    """In the unit that suits it: "12.3 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def rate_text(rate: float, unit: str) -> str:
    """In the unit that suits it: "66.9 TFLOP/s"."""
    for prefix, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= scale:
            return f"{rate / scale:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"
