"""Calls of several threads."""

import contextlib
import ctypes
import threading
import traceback

import torch
import torch.nn.functional as F

import kiln
import kiln.torch.functional as K

from checks import ON_GPU, check
from tensors import compare, exact, synchronize, tensor


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@check("8 threads, a shape each, compiling and calling on streams of their own")
def _():
    faults = []

    def work(i):
        try:
            x, w = tensor((2, 3 + i, 10 + i, 12), "f32"), tensor((5 + i, 3 + i, 3, 3), "f32")
            ref, soft = F.conv2d(exact(x), exact(w), padding=1), exact(x).softmax(1)
            stream = torch.cuda.stream(torch.cuda.Stream()) if ON_GPU else contextlib.nullcontext()
            synchronize()
            with stream:
                for n in range(40 if ON_GPU else 3):
                    y = kiln.conv_forward(x, w, pad=1)
                    z = K.softmax(x, 1)
                    v = x.clone().requires_grad_()
                    K.conv2d(v, w, padding=1).sum().backward()
                    if n % 8 == 0:
                        if ON_GPU:
                            torch.cuda.current_stream().synchronize()
                        compare(("y", y, ref), ("z", z, soft))
        except Exception:
            faults.append(traceback.format_exc()[-700:])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    run_all(threads)
    assert not faults, f"{len(faults)} threads failed: {faults[0]}"


@check("8 threads ask for the same new shape at once")
def _():
    x = tensor((11, 333), "f32")
    results, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        results.append(kiln.softmax_forward(x))

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert len(results) == 8
    return compare(*(("y", r, exact(x).softmax(1)) for r in results))


@check("a fresh thread without a CUDA context; its current context stays as it was", cuda=True)
def _():
    x = tensor((5, 44), "f32")
    y = torch.empty_like(x)
    driver = ctypes.CDLL("libcuda.so.1")
    seen = []

    def see_current_context():
        context = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(context))
        seen.append(context.value)

    def work():
        see_current_context()
        kiln.call("softmax_forward", x=x, y=y)
        see_current_context()

    run_all([threading.Thread(target=work)])
    synchronize()
    assert seen[0] == seen[1], f"current context {seen[0]} before, {seen[1]} after"
    return compare(("y", y, exact(x).softmax(1)))
