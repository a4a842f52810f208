"""Faults of kernels on the emulated device: the call that ran them reports them. Each in a process of its own, as a
fault is the end of a device."""

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


def test_the_end_of_the_interpreter_waits_for_what_a_daemon_thread_makes(tmp_path):
    program = f"""
import pathlib, threading, time
import kiln
context = kiln.Context(driver="emulator", cache="off", kernel_store={str(tmp_path)!r})
threading.Thread(target=lambda: context.prepare("softmax_forward x=f32:64x4000"), daemon=True).start()
while not list(pathlib.Path({str(tmp_path)!r}).iterdir()):  # the store's lock is there when the thread compiles
    time.sleep(0.001)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.entry")), "the process ended while its thread compiled"


def test_a_child_that_a_callback_forks_waits_for_its_threads_too(tmp_path):
    program = f"""
import os, pathlib, threading, time
import numpy as np, kiln
context = kiln.Context(driver="emulator", cache="off", kernel_store={str(tmp_path)!r})
memory = kiln.DeviceMemory(context, 1 << 22)
child = None
def allocate(size, stream):
    global child
    if child is None:
        child = os.fork()
        if child != 0:  # whose device memory is that of the child: they take turns
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return memory.data
forking = kiln.Context(driver="emulator", cache="off", kernel_store="off",
                       workspace_allocator=(allocate, lambda *_: None))
x, w = np.ones((1, 512, 7, 7), np.float32), np.ones((64, 512, 3, 3), np.float32)
kiln.conv_forward(x, w, pad=1, context=forking)
assert child is not None, "the call had no workspace"
threading.Thread(target=lambda: context.prepare("softmax_forward x=f32:64x4000"), daemon=True).start()
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.entry")), "the child ended while its thread compiled"
