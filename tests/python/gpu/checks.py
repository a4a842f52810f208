"""A check is a function that raises if something is wrong; what it returns is printed. A group is a file of checks."""

import os
import subprocess
import sys

# "cuda", or "cpu" for tensors of the emulated device (run.py --device emulator).
DEVICE = os.environ.get("CHECKS_DEVICE", "cuda")
ON_GPU = DEVICE == "cuda"

CHECKS = []  # (name, function), in the order of the file


class Skip(Exception):
    """Raised by a check that cannot be made here, with the reason."""


def check(name, cuda=False):
    """Registers a function as a check; `cuda`: one that needs tensors on a GPU."""

    def register(function):
        def run():
            if cuda and not ON_GPU:
                raise Skip("needs a GPU")
            return function()

        CHECKS.append((name, run))
        return function

    return register


def each(name, cases):
    """Registers a check for each of `cases`, tuples of arguments."""

    def register(function):
        for case in cases:
            check(f"{name} {' '.join(map(str, case))}")(lambda case=case: function(*case))
        return function

    return register


def refusal(call, kind):
    """The message of the error of class `kind` that `call` ends in."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"was served, expected {kind.__name__}")


def run_kiln(*arguments):
    """The output of the program `kiln` of the package."""
    code = "import kiln._library; kiln._library.main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"kiln {arguments[0]} ended with {done.returncode}: {done.stderr[-1500:]}"
    return done.stdout
