"""Makes the checks of a part of a group and writes a line of JSON for each event; run.py starts it.

usage: process.py GROUP_FILE PART PARTS LIMIT LOG

Checks that the log names already are left out, so that a further process goes on behind one that ended.
"""

import faulthandler
import importlib.util
import json
import os
import pathlib
import sys
import threading
import time
import traceback
import warnings

import checks

DEVICE_LOST = 3  # status: the log has the check, and further checks need a process of their own
TOO_LONG = 4


def read_log(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def outcome_of(run):
    """PASS, SKIP or FAIL, and a note."""
    try:
        return "PASS", run() or ""
    except checks.Skip as reason:
        return "SKIP", str(reason)
    except Exception as error:
        frames = reversed(traceback.extract_tb(error.__traceback__)[-5:])
        where = " < ".join(f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in frames)
        return "FAIL", f"{type(error).__name__}: {str(error)[:6000]} [{where}]"


def lost_device():
    """The driver's message if no call on the GPU succeeds any more, as after a fault of a kernel."""
    if not checks.ON_GPU:
        return ""
    import torch

    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
    except Exception as error:
        return str(error).splitlines()[0]
    return ""


def end_too_long():
    """Shows where every thread is."""
    faulthandler.dump_traceback()
    os._exit(TOO_LONG)


def main():
    group, part, parts, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    begun = {event["check"] for event in read_log(pathlib.Path(sys.argv[5])) if "check" in event}
    log = open(sys.argv[5], "a", buffering=1)

    def write(**event):
        log.write(json.dumps(event) + "\n")

    faulthandler.enable()
    warnings.simplefilter("default")
    warnings.showwarning = lambda message, category, *_: write(warning=f"{category.__name__}: {str(message)[:300]}")
    spec = importlib.util.spec_from_file_location(f"group_{group.stem}", group)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    for name, run in checks.CHECKS[part::parts]:
        if name in begun:
            continue
        write(check=name)
        watch = threading.Timer(limit, end_too_long)
        watch.daemon = True
        watch.start()
        start = time.perf_counter()
        outcome, note = outcome_of(run)
        watch.cancel()
        if lost := lost_device():
            outcome, note = "FAIL", f"{note} | the device is lost to this process: {lost}"
        write(check=name, outcome=outcome, seconds=round(time.perf_counter() - start, 2), note=note)
        if lost:
            os._exit(DEVICE_LOST)
    write(end=True)


if __name__ == "__main__":
    main()
