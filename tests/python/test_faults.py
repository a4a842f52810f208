"""What kernels do wrong on the emulated device: the call that ran them says so. Each in a process of its own, as a fault
is the end of a device."""

import subprocess
import sys


def test_a_fault_is_an_exception_of_the_call():
    program = """
import numpy as np, kiln
context = kiln.Context(driver="emulator", cache="off")
leaves = kiln.expression("acc + ((const float*)0)[1000]")
try:
    kiln.activation_forward(np.ones(4, np.float32), epilogue=leaves, context=context)
except kiln.DriverError as error:
    assert "ILLEGAL_ADDRESS" in str(error), error
    print("raised")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "raised\n", done.stderr
