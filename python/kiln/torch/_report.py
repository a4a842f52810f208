"""Where the layers of a model run, and why."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import threading
import weakref
from collections.abc import Iterator

from .._tables import html_table, text_table


@dataclasses.dataclass
class Placed:
    """A function at a place, which is a module's name or a line of the program.

    `reason`: why PyTorch computes it; "" where Kiln does. `operations`: of its products, or elements of its results.
    """

    place: str
    function: str
    reason: str = ""
    calls: int = 0
    calls_by_kiln: int = 0
    joined: bool = False  # computed in the kernel of the layer before it
    compiled: bool = False  # a call is one of a compiled program, which runs any number of times
    operations: int = 0
    operations_by_kiln: int = 0

    @property
    def by_kiln(self) -> bool:
        """Whether Kiln computed it each time."""
        return self.calls == self.calls_by_kiln

    def _runs_on(self) -> str:
        if self.by_kiln:
            return "Kiln"
        by_pytorch = self.calls - self.calls_by_kiln
        return f"Kiln {self.calls_by_kiln}, PyTorch {by_pytorch}" if self.calls_by_kiln else "PyTorch"

    def row(self) -> list[str]:
        said = [self.reason, *(["in the kernel before it"] if self.joined else []), *(["compiled"] if self.compiled else [])]
        return [self.place, self.function, self._runs_on(), str(self.calls), "; ".join(filter(None, said))]


class Places:
    """Places that have run so far, on Kiln or PyTorch: a line that sums it up, and a table in its repr and in
    notebooks. All threads may share it."""

    _numbers = itertools.count()
    _by_number: weakref.WeakValueDictionary[str, Places] = weakref.WeakValueDictionary()

    _most_uncounted = 1024

    def __init__(self) -> None:
        self._all_rows: dict[tuple[str, str], Placed] = {}
        self._lock = threading.Lock()
        self._uncounted: collections.deque[tuple[str, str, int, bool]] = collections.deque()
        self.number = str(next(self._numbers))  # a text, which a compiler takes for a constant in each model
        self._by_number[self.number] = self

    @classmethod
    def numbered(cls, number: str) -> Places | None:
        """For a compiler, which knows constants: those of that number, if they are still there."""
        return cls._by_number.get(number)

    def add_by_kiln(self, place: str, function: str, operations: int, joined: bool = False) -> None:
        """A call that Kiln computes. Calls of models take no lock: they are counted when there are many, or somebody
        asks."""
        self._uncounted.append((place, function, operations, joined))
        if len(self._uncounted) > self._most_uncounted:
            self._rows()

    def add_by_pytorch(self, place: str, function: str, reason: str, operations: int) -> bool:
        """Returns whether it is the first of its place, whose reason is kept."""
        with self._lock:
            self._count()
            row = self._row(place, function)
            row.calls += 1
            row.operations += operations
            row.reason = row.reason or reason
            return row.calls - row.calls_by_kiln == 1

    def add_compiled(self, place: str, function: str, reason: str) -> None:
        """A call of a program that a compiler records, by Kiln if there is no `reason`."""
        with self._lock:
            self._count()
            row = self._row(place, function)
            row.calls += 1
            row.calls_by_kiln += not reason
            row.compiled = True
            row.reason = row.reason or reason

    def _row(self, place: str, function: str) -> Placed:
        row = self._all_rows.get((place, function))
        if row is None:
            row = self._all_rows[(place, function)] = Placed(place, function)
        return row

    def _count(self) -> None:
        """Adds up the calls that are not counted yet. With the lock."""
        while self._uncounted:
            place, function, operations, joined = self._uncounted.popleft()
            row = self._row(place, function)
            row.calls += 1
            row.calls_by_kiln += 1
            row.operations += operations
            row.operations_by_kiln += operations
            row.joined |= joined

    def _rows(self) -> list[Placed]:
        with self._lock:
            self._count()
            return list(self._all_rows.values())

    def __iter__(self) -> Iterator[Placed]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    @property
    def on_kiln(self) -> list[Placed]:
        return [row for row in self if row.by_kiln]

    @property
    def on_pytorch(self) -> list[Placed]:
        """Places that PyTorch computed at least once."""
        return [row for row in self if not row.by_kiln]

    def summary(self) -> str:
        """ "51 of 52 places on Kiln, 97% of the arithmetic": multiplications and additions of products, and for other
        functions one operation for each element of a result."""
        if not len(self):
            return "nothing has run yet"
        rows = list(self)
        text = f"{len(self.on_kiln)} of {len(rows)} places on Kiln"
        operations = sum(row.operations for row in rows)
        if not operations or any(row.compiled for row in rows):
            return text
        share = sum(row.operations_by_kiln for row in rows) / operations
        return f"{text}, {_percent(share)} of the arithmetic"

    _headings = ("place", "function", "runs on", ">calls", "why")

    def __repr__(self) -> str:
        if not len(self):
            return self.summary()
        return f"{self.summary()}\n{text_table(self._headings, [row.row() for row in self])}"

    def _repr_html_(self) -> str:
        return f"<p>{self.summary()}</p>" + html_table(self._headings, [row.row() for row in self])

    def __reduce__(self) -> tuple[type[Places], tuple[()]]:
        return Places, ()  # a copy of a model, and one that is loaded, has run nothing yet


def _percent(share: float) -> str:
    """Rounded towards the middle: 100% is all, and 0% nothing."""
    percent = round(100 * share)
    if percent == 100 and share < 1:
        return f"{min(100 * share, 99.99):.2f}%"
    return f"{max(percent, 1) if share > 0 else 0}%"
