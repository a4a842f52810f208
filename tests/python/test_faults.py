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


def test_a_daemon_thread_at_work_does_not_disturb_the_end_of_the_interpreter():
    program = """
import threading, time
import numpy as np, kiln
context = kiln.Context(driver="emulator", cache="off")
x = np.ones((64, 4000), np.float32)
kiln.softmax_forward(x, context=context)
def work():
    while True:
        kiln.softmax_forward(x, context=context)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("the end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
