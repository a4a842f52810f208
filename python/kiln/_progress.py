"""How far tuning is: what a caller's function is told, and a bar with tqdm's look on a terminal, plain lines elsewhere."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from typing import Any, TextIO

from ._tables import time_text

LINE_INTERVAL = 10.0  # seconds between plain lines of one layer
BAR_WIDTH = 24


@dataclasses.dataclass(frozen=True)
class TuneProgress:
    """Progress of a tuning session. Layers count from 1, in the order of tuning; candidates are variants to check and time."""

    layer: int
    layers: int
    request: str
    candidates: int  # finished of this layer
    planned: int
    all_candidates: int  # finished of all layers
    all_planned: int
    elapsed_seconds: float
    remaining_seconds: float | None  # an estimate; None before there is one
    best_seconds: float | None  # of this layer so far
    waiting_for: str  # the task at work; "" between two
    waiting_seconds: float
    device: str = ""  # of several, the one that tells; all_... and remaining_seconds are of all of them

    @classmethod
    def of(cls, data: dict[str, Any]) -> TuneProgress:
        """Progress from a line of `kiln tune --progress-json`, which later versions may add names to."""
        known = {field.name: data[field.name] for field in dataclasses.fields(cls) if field.name in data}
        return cls(**known)


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _device(progress: TuneProgress) -> str:
    return f"device {progress.device}: " if progress.device else ""


def _best(progress: TuneProgress) -> str:
    return "" if progress.best_seconds is None else f", best {time_text(progress.best_seconds)}"


def bar(progress: TuneProgress) -> str:
    """A line: softmax_forward 2/3:  45%|██████████▊             | 9/20 [00:12<00:15, best 1.2 us]."""
    done, whole = progress.all_candidates, max(progress.all_planned, progress.all_candidates)
    share = done / whole if whole else 0.0
    eighths = round(share * BAR_WIDTH * 8)
    blocks = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    name = f"{progress.request.partition(' ')[0]} {progress.layer}/{progress.layers}"
    times = f"{_clock(progress.elapsed_seconds)}<{_clock(progress.remaining_seconds)}{_best(progress)}"
    return f"{_device(progress)}{name}: {share:4.0%}|{blocks:<{BAR_WIDTH}}| {done}/{whole} [{times}]"


def _notebook() -> Any:
    """IPython.display in a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return ipython.display if ipython is not None and hasattr(shell, "kernel") else None  # a terminal has no kernel


class Display:
    """Shows progress: a bar on a terminal and in a notebook, plain lines elsewhere. A context manager: it clears the bar."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = sys.stderr if file is None else file
        self._terminal = self._file.isatty()
        self._notebook: Any = None if self._terminal else _notebook()
        self._output: Any = None  # of the notebook's cell
        self._lines: dict[str, tuple[int, float]] = {}  # by device: its layer, and when a line was written of it

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._file.write("\r\033[K")
            self._file.flush()
        elif self._output is not None:
            self._output.update({"text/plain": ""}, raw=True)

    def __call__(self, progress: TuneProgress) -> None:
        if self._notebook is not None:
            self._show_in_cell({"text/plain": bar(progress)})
        elif self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._file.write(f"\r\033[K{bar(progress)[:width]}")
            self._file.flush()
        elif line := self._line(progress):
            self._file.write(line + "\n")
            self._file.flush()

    def _show_in_cell(self, line: dict[str, str]) -> None:
        if self._output is None:
            self._output = self._notebook.display(line, raw=True, display_id=True)
        else:
            self._output.update(line, raw=True)

    def _line(self, progress: TuneProgress) -> str:
        """Line for a layer that begins, and for one that takes long; else nothing."""
        layer, shown = self._lines.get(progress.device, (0, 0.0))
        if progress.layer == layer and progress.elapsed_seconds - shown < LINE_INTERVAL:
            return ""
        self._lines[progress.device] = (progress.layer, progress.elapsed_seconds)
        if progress.layer != layer:
            return f"{_device(progress)}layer {progress.layer}/{progress.layers}: {progress.request}"
        left = "" if progress.remaining_seconds is None else f", {_clock(progress.remaining_seconds)} left"
        return f"  {_device(progress)}candidate {progress.candidates}/{progress.planned}{left}{_best(progress)}"
