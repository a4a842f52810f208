"""Makes a wheel by scripts/wheel, installs it into an environment of its own, and tests what is there.

usage: run_wheel_tests.py PYTHON CMAKE BUILD_FOLDER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

from reports import run_pytest, skip

TESTS = pathlib.Path(__file__).parent
ROOT = TESTS.parents[1]
# The shared libraries that Kiln links to are those of the wheel.
LIBRARIES = """
import kiln.onnx
maps = open("/proc/self/maps").read().split()
names = ("libfmt", "libsqlite3", "libonnx", "libprotobuf", "libkiln")
loaded = [path for path in maps if any(name in path for name in names)]
assert any("libonnx" in path for path in loaded)
assert loaded and all("/kiln.libs/" in path or "/site-packages/kiln/" in path for path in loaded), loaded
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def main():
    python, cmake, build = sys.argv[1:]
    if subprocess.run([python, "-c", "import auditwheel, scikit_build_core"], capture_output=True).returncode != 0:
        return skip("wheel_test", "what packs a wheel is missing (scripts/setup)")
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    folder = pathlib.Path(build) / "wheel_test"  # always the same, so that ccache knows what is compiled there
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder / "env")
    bin = folder / "env/bin"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pip = [bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        run(*pip, "numpy", "pytest", *needed)
    except subprocess.CalledProcessError:
        return skip("wheel_test", "pip cannot install what the wheel depends on")
    run(cmake, "--install", build, "--prefix", folder / "prefix", "--strip", stdout=subprocess.DEVNULL)
    wrong = subprocess.run([ROOT / "scripts/wheel", "--python", cmake], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "--python takes a Python" in wrong.stderr, wrong.stderr
    run(ROOT / "scripts/wheel", "--installed", folder / "prefix", folder)
    (wheel,) = folder.glob("kiln-*-manylinux_*.whl")
    run(*pip, wheel)
    run(bin / "kiln", "explain", "softmax_forward x=f32:4x16", env=environment, stdout=subprocess.DEVNULL)
    run(bin / "python", "-c", LIBRARIES, env=environment)
    tests = [TESTS / name for name in ("test_calls.py", "test_plan.py", "test_onnx.py")]
    return run_pytest("wheel_test", bin / "python", tests, environment)


sys.exit(main())
