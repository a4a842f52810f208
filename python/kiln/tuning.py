"""Tuning from Python: the `kiln tune` command, and what it found as objects."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO, overload

from . import _kiln, _library
from ._context import Path, forget_default_contexts
from ._progress import Display, TuneProgress
from ._tables import html_table, text_table, time_text
from .errors import Error, InvalidArgument, codes, error_of, warn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class TunedLayer:
    """Result of tuning one request. `data`: all of it, as `kiln tune --json` has it."""

    request: str
    status: str
    variant: str  # "" if none was found
    seconds: float | None  # of one run
    default_seconds: float | None  # of one run with the default choice
    estimate: float | None  # of the default choice, in seconds, where the layer keeps it because nothing was timed
    data: dict[str, Any] = dataclasses.field(repr=False)

    @property
    def label(self) -> str:
        """The request in few words."""
        return str(self.data["label"])


class TuneResult:
    """Result of a tuning session: `layers`, and in `data` all of it, as `kiln tune --json` has it.

    Times are modelled where the device is the emulated one (`modelled`), and measured on a GPU. figure() draws them.
    `devices`: where several were given, the numbers of those of this kind, which shared the layers.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.device: str = data["device"]
        self.devices = [int(device) for device in data.get("devices", [])]
        self.modelled = "emulated=yes" in self.device
        self.layers = [_layer(layer) for layer in data["layers"]]

    def figure(self) -> Figure:
        """Where the time of one pass through all layers goes, tuned and by default; the layers on the roofline; gains.

        The figures of `kiln tune --report`, as a matplotlib Figure: `result.figure().savefig("tuning.png")`. Raises
        MissingLibrary where matplotlib is not installed.
        """
        from . import _figure

        return _figure.draw(self, self._heading())

    _headings = ("layer", ">count", ">time", ">of roofline", ">over default", "algorithm")

    def _heading(self) -> str:
        """The device by its name, which its line begins with, in quotes."""
        name = self.device.partition('"')[2].partition('" cc=')[0]
        several = f", {'device' if len(self.devices) == 1 else 'devices'} {', '.join(map(str, self.devices))}" if self.devices else ""
        return f"{name}{several}, times {'modelled' if self.modelled else 'measured'}"

    def _clock(self) -> str:
        """The clock that modelled the times, with its accuracy; "" for measured ones."""
        clock = self.data.get("modelled_by")
        return f"modelled by {clock['clock']}: {clock['accuracy']}" if clock else ""

    def _rows(self) -> list[list[str]]:
        return [_row(layer) for layer in self.layers]

    def _sums(self) -> str:
        """Sums over all layers with their counts; "" if none has a time."""
        totals = self.data["totals"]
        best = totals["best_seconds"]
        if not best > 0:
            return ""
        shares = f"{totals['roofline_seconds'] / best:.0%} of roofline, {totals['default_seconds'] / best:.2f}x over default"
        return f"all layers: {time_text(best)}, {shares}"

    def __repr__(self) -> str:
        lines = [self._heading(), self._clock(), text_table(self._headings, self._rows()), self._sums()]
        return "\n".join(line for line in lines if line)

    def _repr_html_(self) -> str:
        lines = [html.escape(line) for line in (self._heading(), self._clock()) if line]
        return f"<p>{'<br>'.join(lines)}</p>" + html_table(self._headings, self._rows())


def _layer(data: dict[str, Any]) -> TunedLayer:
    best = data["best"] or {}
    variant = f"{best['algorithm']} {best['config']}".strip() if best else ""
    by_default = (data["default"] or {}).get("seconds") or None
    kept = data["fallback"] if data["status"] in ("out of time", "stopped") and not (best or data["default"]) else None
    estimate = kept["estimate_seconds"] if kept else None
    return TunedLayer(data["request"], data["status"], variant, best.get("seconds"), by_default, estimate, data)


def _row(layer: TunedLayer) -> list[str]:
    start = [layer.label, str(layer.data["count"])]
    if layer.estimate is not None:
        kept = layer.data["fallback"]
        algorithm = f"{kept['algorithm']} (default, {layer.status})"
        share = f"{layer.data['roofline_seconds'] / layer.estimate:.0%}"
        return [*start, f"~{time_text(layer.estimate)}", share, "-", algorithm]
    if layer.seconds is None:
        return [*start, "-", "-", "-", f"none: {layer.status}"]
    share = f"{layer.data['roofline_seconds'] / layer.seconds:.0%}"
    gain = "-" if layer.default_seconds is None else f"{layer.default_seconds / layer.seconds:.2f}x"
    return [*start, time_text(layer.seconds), share, gain, layer.data["best"]["algorithm"]]


# Exit codes of docs/command-line.md with which there is a result; of several devices some may be lost.
_with_result = (0, 1, 5, 130)
_lost_device = 3


@overload
def tune(
    work: str | Path | Iterable[str],
    *,
    budget: float | None = None,
    candidates: int | None = None,
    cache: Path | None = None,
    driver: str | None = None,
    device: int = 0,
    progress: bool | Callable[[TuneProgress], object] = True,
) -> TuneResult: ...


@overload
def tune(
    work: str | Path | Iterable[str],
    *,
    budget: float | None = None,
    candidates: int | None = None,
    cache: Path | None = None,
    driver: str | None = None,
    device: Literal["all"] | Sequence[int],
    progress: bool | Callable[[TuneProgress], object] = True,
) -> list[TuneResult]: ...


def tune(
    work: str | Path | Iterable[str],
    *,
    budget: float | None = None,
    candidates: int | None = None,
    cache: Path | None = None,
    driver: str | None = None,
    device: int | Literal["all"] | Sequence[int] = 0,
    progress: bool | Callable[[TuneProgress], object] = True,
) -> TuneResult | list[TuneResult]:
    """Check and time variants of every layer, and keep the results in the tuning database.

    `work`: a request, requests, or the path of a requests file or an ONNX model. `budget`: the most seconds in all.
    `candidates`: variants to time for each layer. `cache`: the database. `progress`: a bar on standard error, or plain
    lines where that is no terminal; False: nothing; a function: it is called with each TuneProgress.

    `device`: a device's number; several numbers, or "all", tune on all of these at once. Devices of one kind share the
    layers, and there is a result for each kind, in a list. One that is lost on the way is a kiln.Warning; the others
    go on.

    What is finished is stored at once: an interrupted session goes on when it is called again. Contexts that are made
    later, default_context() among them, use what was found. Raises what the program reports; what it says besides its
    result is a kiln.Warning.
    """
    _require_sense(budget, candidates)
    devices = _devices(device)
    with tempfile.TemporaryDirectory() as folder:
        command = [_library.program(), "tune", "--json", "--progress-json"]
        if budget is not None:
            command += ["--budget", str(budget)]
        if candidates is not None:
            command += ["--candidates", str(candidates)]
        if cache is not None:
            command += ["--db", os.fspath(cache)]
        command += ["--device", devices]
        given, lines_before = _as_input(work, folder)
        command += ["--", given]
        variables = _library.environment()
        if driver is not None:
            variables["KILN_DRIVER"] = driver
        with open(os.path.join(folder, "result.json"), "w+", encoding="utf-8") as result:
            if callable(progress):
                status, said = _run(command, variables, result, progress)
            elif progress:
                with Display() as display:
                    status, said = _run(command, variables, result, display)
            else:
                status, said = _run(command, variables, result, lambda _: None)
            result.seek(0)
            found = result.read()
    forget_default_contexts()
    several = not isinstance(device, int)
    if not (status in _with_result or (several and status == _lost_device)) or not found.strip():
        raise _error_of(status, _with_places(said, os.path.join(folder, _requests_file), lines_before))
    if said:
        warn(said)
    data = json.loads(found)
    if not several:
        return TuneResult(data)
    return [TuneResult(card) for card in data.get("cards", [data])]  # a list of one is a device for the program


def _run(
    command: list[str], variables: dict[str, str], result: TextIO, show: Callable[[TuneProgress], object]
) -> tuple[int, str]:
    """Runs the program; returns its exit code, and what it said on standard error besides its progress."""
    said = []
    with subprocess.Popen(command, env=variables, stdout=result, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        try:
            for line in running.stderr:
                if line.startswith("{"):
                    show(TuneProgress.of(json.loads(line)))
                else:
                    said.append(line)
        except BaseException:
            running.terminate()
            raise
    return running.returncode, "".join(said).strip()


def _require_sense(budget: object, candidates: object) -> None:
    """Said here in words of Python; the program would name its options."""
    if budget is not None and not (isinstance(budget, (int, float)) and budget > 0):
        raise InvalidArgument(f"budget is {budget!r}", "give the most seconds, a number above 0")
    if candidates is not None and not (isinstance(candidates, int) and candidates > 0):
        raise InvalidArgument(f"candidates is {candidates!r}", "give how many variants to time, 1 or more")


def _devices(device: object) -> str:
    """As --device takes them."""
    if device == "all":
        return "all"
    numbers = list(device) if isinstance(device, (list, tuple, range)) else [device]
    if not numbers or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise InvalidArgument(f"device is {device!r}", "give a device's number, from 0, several in a list, or \"all\"")
    return ",".join(map(str, numbers))


_requests_file = "requests.txt"


def _as_input(work: str | Path | Iterable[str], folder: str) -> tuple[str, int]:
    """Argument of the program for `work`: a request, a path, or a file of requests that is written into `folder`.

    Code of this process that requests name goes into the file before them, in the number of lines that is returned too.
    """
    if isinstance(work, os.PathLike) or (isinstance(work, str) and not _kiln.definitions_of(work)):
        return os.fspath(work), 0
    requests = [work] if isinstance(work, str) else list(work) if isinstance(work, Iterable) else None
    if requests is None or not all(isinstance(request, str) for request in requests):
        raise InvalidArgument(f"work is {work!r}", "give a request, several, or the path of a requests file or model")
    if not requests:
        raise InvalidArgument("no request is given", "give one at least")
    text = "\n".join(requests) + "\n"
    definitions = _kiln.definitions_of(text)
    path = os.path.join(folder, _requests_file)
    with open(path, "w", encoding="utf-8") as file:
        file.write(definitions + text)
    return path, definitions.count("\n")


def _with_places(said: str, path: str, lines_before: int) -> str:
    """Names a line of the file at `path` as the request that it is."""
    return re.sub(re.escape(path) + r": line (\d+)", lambda line: f"request {int(line[1]) - lines_before}", said)


def _error_of(status: int, said: str) -> Error:
    """Error from the program's message: "kiln: input/output error: there is no file x", and a hint on a line of its
    own."""
    message, _, hint = said.removeprefix("kiln: ").partition("\n")
    code, colon, rest = message.partition(": ")
    if colon and code in codes:
        return error_of(code, rest, hint.strip())
    return error_of("invalid argument" if status == 2 else "internal error", message, hint.strip())
