"""Where the layers of a model run, and why."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

from .._tables import html_table, text_table


@dataclasses.dataclass
class Placed:
    """A function at a place, which is a module's name or a line of the program."""

    place: str
    function: str
    by_kiln: bool
    reason: str  # why PyTorch computes it; "" on Kiln
    calls: int = 0


class Places:
    """What has run where so far. A table in its repr and in notebooks; all threads may share it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, bool], Placed] = {}
        self._lock = threading.Lock()

    def add(self, place: str, function: str, reason: str, *, by_kiln: bool) -> bool:
        """Counts a call; returns whether it is the first of its kind, whose reason is kept."""
        key = (place, function, by_kiln)
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = Placed(place, function, by_kiln, reason)
            row.calls += 1
            return row.calls == 1

    def __iter__(self) -> Iterator[Placed]:
        with self._lock:
            return iter(list(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def on_kiln(self) -> list[Placed]:
        return [row for row in self if row.by_kiln]

    @property
    def on_pytorch(self) -> list[Placed]:
        return [row for row in self if not row.by_kiln]

    _headings = ("place", "function", "runs on", "calls", "why")

    def _table(self) -> list[list[str]]:
        return [
            [row.place, row.function, "Kiln" if row.by_kiln else "PyTorch", str(row.calls), row.reason] for row in self
        ]

    def __repr__(self) -> str:
        return text_table(self._headings, self._table()) if len(self) else "nothing has run yet"

    def _repr_html_(self) -> str:
        return html_table(self._headings, self._table())

    def __reduce__(self) -> tuple[type[Places], tuple[()]]:
        return Places, ()  # a copy of a model, and one that is loaded, has run nothing yet
