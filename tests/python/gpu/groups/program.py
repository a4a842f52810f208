"""The program kiln of the package."""

import pathlib
import subprocess
import sys
import tempfile

from checks import ON_GPU, Skip, check, run_kiln

DEVICE = [] if ON_GPU else ["--device", "emulator"]
REQUESTS = """
conv_forward x=f16:2x64x14x14:nhwc w=f16:64x64x3x3:nhwc pad=1 epilogue=relu
gemm a=bf16:128x256 b=bf16:256x64
softmax_forward x=f32:64x1000
"""


@check("kiln devices")
def _():
    return "\n" + run_kiln("devices")


@check("kiln run --check of three layers")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "requests.txt"
        path.write_text(REQUESTS)
        return "\n" + run_kiln("run", "--check", path, *DEVICE)


@check("kiln explain")
def _():
    request = "conv_forward x=f16:8x64x56x56:nhwc w=f16:64x64x3x3:nhwc pad=1"
    return "\n" + run_kiln("explain", request, *DEVICE)[:2500]


@check("the command `kiln` that pip installs")
def _():
    places = [pathlib.Path(folder) / "bin/kiln" for folder in sys.path] + [pathlib.Path(sys.prefix) / "bin/kiln"]
    command = next((place for place in places if place.is_file()), None)
    if command is None:
        raise Skip("pip did not install the package")
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
