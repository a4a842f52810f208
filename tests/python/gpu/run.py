#!/usr/bin/env python3
"""Checks the Python package, with PyTorch, on a GPU (docs/gpu.md). Needs nothing but both.

Each part of a group has a process of its own: a check that hangs, crashes or loses the device fails alone.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from process import DEVICE_LOST, read_log

HERE = pathlib.Path(__file__).resolve().parent
# Groups in the order of the report, and the processes that share the checks of each.
GROUPS = {
    "convolutions": 4, "layers": 3, "elements": 1, "normalisations": 1, "functional": 2, "modules": 1, "compiled": 1,
    "streams": 1, "graphs": 1, "interop": 1, "errors": 1, "threads": 1, "program": 1, "large": 1,
    "times": 1, "models": 1, "tuning": 1,
}  # fmt: skip
ALONE = ("times", "models", "tuning")  # they take times: they run last, one at a time
SHARE_ALONE = 0.4  # of the seconds, kept for these
DESCRIBE = """
import sys, kiln
print("Kiln", kiln.__version__, "on", kiln.default_context(0).device_description)
if sys.argv[1] == "cuda":
    import torch
    print("PyTorch", torch.__version__, "on", torch.cuda.get_device_name())
"""


class Run:
    def __init__(self, out, seconds, limit, jobs, environment):
        self.out, self.limit, self.environment = out, limit, environment
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.jobs = threading.Semaphore(jobs)
        self.running = set()

    def kill(self, process):
        """With what it started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def stop(self):
        for process in list(self.running):
            self.kill(process)

    def run_together(self, parts, end):
        """Runs parts (file, part, parts) at once, as many as there are jobs."""
        threads = [threading.Thread(target=self.run_part, args=(*part, end), daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_part(self, file, part, parts, end):
        log = self.out / f"{file.stem}.{part}.jsonl"
        log.touch()
        with self.jobs:
            while self.run_process(file, part, parts, end, log):
                pass

    def run_process(self, file, part, parts, end, log):
        """Whether checks are left for a further process."""
        left = end - time.monotonic()
        if left < 1:
            append(log, cut=True)
            return False
        errors = log.with_suffix(".err")
        command = [sys.executable, HERE / "process.py", file, part, parts, self.limit, log]
        with errors.open("w") as stream:
            process = subprocess.Popen(
                list(map(str, command)), stdout=stream, stderr=stream, stdin=subprocess.DEVNULL,
                env=self.environment, start_new_session=True,
            )  # fmt: skip
            self.running.add(process)
            try:
                status = process.wait(left)
            except subprocess.TimeoutExpired:
                self.kill(process)
                append(log, cut=True)
                return False
            finally:
                self.running.discard(process)
        events = read_log(log)
        if events and "end" in events[-1] and status == 0:
            return False
        if status == DEVICE_LOST:
            return True
        unfinished = events and "check" in events[-1] and "outcome" not in events[-1]
        name = events[-1]["check"] if unfinished else f"(process {part})"
        append(log, check=name, outcome="FAIL", note=f"the process ended with {status}: {errors.read_text()[-2000:]}")
        return unfinished


def describe(device, environment):
    """Versions and the device; ends this program if they cannot be had."""
    command = [sys.executable, "-c", DESCRIBE, device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"run.py: Kiln, PyTorch and a device are needed: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()


def append(log, **event):
    with log.open("a") as stream:
        stream.write(json.dumps(event) + "\n")


def report(run, files, say):
    """Prints all outcomes, group by group, then failures and counts; the exit status."""
    counts, failures, warnings, cut = {"PASS": 0, "FAIL": 0, "SKIP": 0}, [], [], []
    for file in files:
        say(f"\n{file.stem}")
        for log in sorted(run.out.glob(f"{file.stem}.*.jsonl")):
            for event in read_log(log):
                if "outcome" in event:
                    counts[event["outcome"]] += 1
                    note = event["note"].rstrip().replace("\n", "\n      ")
                    line = f"{event['outcome']} {event['check']}: {note}"
                    failures += [f"{file.stem}: {line}"] if event["outcome"] == "FAIL" else []
                    say(f"  {line} ({event['seconds']} s)" if "seconds" in event else f"  {line}")
                elif "warning" in event:
                    warnings.append(f"{file.stem}: {event['warning']}")
                elif "cut" in event:
                    cut.append(log.stem)
    for title, lines in (("warnings", dict.fromkeys(warnings)), ("failures", failures)):
        if lines:
            say(f"\n{title}")
            for line in lines:
                say(f"  {line[:500]}")
    if cut:
        say(f"\nout of time: {', '.join(cut)} (--seconds gives more)")
    took = time.monotonic() - run.start
    say(f"\n{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, in {took:.0f} s")
    return 0 if counts["PASS"] and not failures and not cut else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"names ({', '.join(GROUPS)}) or files of checks; all without any")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for results.txt and a log of each part")
    parser.add_argument("--models", type=pathlib.Path, help="folder of ONNX models to compare with ONNX Runtime")
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    parser.add_argument("--seconds", type=float, default=180, help="most time (%(default)s)")
    parser.add_argument("--limit", type=float, default=45, help="most seconds of a check (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (%(default)s)")
    return parser.parse_args()


def main():
    given = arguments()
    if given.out.exists() and any(given.out.iterdir()):
        sys.exit(f"run.py: {given.out} holds files: name a new folder")
    files = [
        HERE / "groups" / f"{name}.py" if name in GROUPS else pathlib.Path(name) for name in given.groups or GROUPS
    ]
    environment = {"OMP_NUM_THREADS": "2", **os.environ}  # of PyTorch's expected results, beside the other processes
    if given.device == "emulator":
        environment |= {"CHECKS_DEVICE": "cpu", "KILN_DRIVER": "emulator"}
    if given.models:
        environment["CHECKS_MODELS"] = str(given.models.resolve())
    description = describe(given.device, environment)
    given.out.mkdir(parents=True, exist_ok=True)
    run = Run(given.out, given.seconds, given.limit, given.jobs, environment)
    alone = [file for file in files if file.stem in ALONE]
    together = [file for file in files if file not in alone]
    parts = [(file, part, n) for file in together for n in [GROUPS.get(file.stem, 1)] for part in range(n)]
    share = SHARE_ALONE if alone and together else 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run.run_together(parts, run.end - share * given.seconds)
        for file in alone:
            run.run_part(file, 0, 1, run.end)
    finally:
        run.stop()
    with (given.out / "results.txt").open("w") as results:

        def say(text):
            print(text, flush=True)
            results.write(text + "\n")

        say(f"{description}\nPython {sys.version.split()[0]}")
        return report(run, files, say)


if __name__ == "__main__":
    sys.exit(main())
