"""Tables of results: text for terminals, HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

Row = Sequence[str]


def text_table(headings: Row, rows: Sequence[Row]) -> str:
    """Columns as wide as what is in them, two spaces between them."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [headings, *rows]]
    return "\n".join(lines)


def html_table(headings: Row, rows: Sequence[Row]) -> str:
    def line(row: Row, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"

    return "<table>" + line(headings, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def time_text(seconds: float) -> str:
    """In the unit that suits it: "12.3 us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
