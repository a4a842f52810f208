"""Where the parts of the package are that are no Python."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import sys

_here = pathlib.Path(__file__).parent

# The packages of PyPI that hold NVRTC, newest first, and the name of its library in each.
_nvrtc_packages = (
    ("nvidia.cu13.lib", "libnvrtc.so.13"),
    ("nvidia.cuda_nvrtc.lib", "libnvrtc.so.12"),
    ("nvidia.cuda_nvrtc.lib", "libnvrtc.so.11.2"),
)


@functools.cache
def nvrtc() -> str | None:
    """The path of NVRTC where a package of PyPI holds it; without one, Kiln looks for it itself."""
    for package, library in _nvrtc_packages:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (found.submodule_search_locations or ()) if found else ():
            path = pathlib.Path(folder) / library
            if path.exists():
                return str(path)
    return None


def program() -> str:
    """The path of the `kiln` program."""
    return str(_here / "bin" / "kiln")


def environment() -> dict[str, str]:
    """The environment of the `kiln` program: this process's, with the NVRTC that a Context here uses."""
    variables = dict(os.environ)
    library = nvrtc()
    if library is not None:
        variables.setdefault("KILN_NVRTC", library)
    return variables


def main() -> None:
    """The command `kiln` of an installed package."""
    os.execve(program(), ["kiln", *sys.argv[1:]], environment())
