"""Wrong arguments end in a clear error, and leave the device usable."""

import subprocess
import sys

import numpy as np
import torch

import kiln
import kiln.torch.functional as K

from checks import DEVICE, ON_GPU, check, refusal
from tensors import compare, exact, synchronize, tensor


class Shown:
    """4 KiB of device memory, shown as 1 MiB at its address or another one."""

    def __init__(self, address=None):
        self.memory = kiln.DeviceMemory(kiln.default_context(0), 4096)
        data = (address or self.memory.data, False)
        self.__cuda_array_interface__ = {"shape": (512, 512), "typestr": "<f4", "data": data, "version": 3}


def empty(*shape):
    return torch.empty(*shape, device=DEVICE)


# The wrong thing, the class of the error, and a call; x is 2x3x6x6, w is 4x3x3x3.
CALLS = [
    ("f64", kiln.InvalidArgument, lambda x, w: kiln.conv_forward(x.double(), w)),
    ("int64", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x.long())),
    ("booleans", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x > 0)),
    ("complex numbers", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x.to(torch.complex64))),
    ("a sparse tensor", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x[0, 0].to_sparse())),
    ("channels of the filter", kiln.InvalidArgument, lambda x, w: kiln.conv_forward(x, w[:, :2])),
    ("a filter larger than the input", kiln.InvalidArgument, lambda x, w: kiln.conv_forward(x[:, :, :2], w)),
    ("extents of out", kiln.InvalidArgument, lambda x, w: kiln.conv_forward(x, w, out=empty(2, 4, 4, 3))),
    ("out overlaps an input", kiln.Error, lambda x, w: kiln.conv_forward(x, w, pad=1, out=x[:1].expand(2, 3, 6, 6))),
    ("out is an input", kiln.InvalidArgument, lambda x, w: kiln.pool_forward(x, window=1, out=x)),
    ("stride 0 of out", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x, out=empty(1).expand(2, 3, 6, 6))),
    ("stride 0 of a window", kiln.Error, lambda x, w: kiln.conv_forward(x, w, stride=0)),
    ("an axis", kiln.Error, lambda x, w: kiln.softmax_forward(x, axis=9)),
    ("an epilogue", kiln.Error, lambda x, w: kiln.conv_forward(x, w, epilogue="rellu")),
    ("a keyword", TypeError, lambda x, w: kiln.conv_forward(x, w, padding=1)),
    ("None", kiln.InvalidArgument, lambda x, w: kiln.gemm(x[0, 0], None)),
    ("user code", kiln.CompileFailed,
     lambda x, w: kiln.activation_forward(x, epilogue=kiln.expression("acc * no_name"))),
    ("a request", kiln.Error, lambda x, w: kiln.plan("conv_forward x=f32:1x3")),
    ("a context", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x, context="cuda")),
    ("mixed types", kiln.InvalidArgument, lambda x, w: K.linear(x.half(), w[0, 0])),
    ("too much memory", kiln.Error, lambda x, w: kiln.DeviceMemory(kiln.default_context(0), 1 << 50)),
    ("a device", kiln.Error, lambda x, w: kiln.Context(1000)),
    ("another plan", kiln.InvalidArgument, lambda x, w: kiln.plan("softmax_forward x=f32:4x8").run(x=x, y=x)),
]  # fmt: skip
CALLS_ON_A_GPU = [
    ("a tensor on the CPU", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x.cpu())),
    ("a filter on the CPU", kiln.InvalidArgument, lambda x, w: kiln.conv_forward(x, w.cpu())),
    ("a filter on the CPU, K", Exception, lambda x, w: K.conv2d(x, w.cpu())),
    ("NumPy's array", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(np.ones((2, 3), np.float32))),
    ("out on the CPU", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(x, out=torch.empty(2, 3, 6, 6))),
    ("a meta tensor", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(torch.empty(2, 3, device="meta"))),
    ("an emulated context", kiln.InvalidArgument,
     lambda x, w: kiln.softmax_forward(x, context=kiln.Context(driver="emulator", cache="off"))),
    ("more than the allocation", kiln.InvalidArgument, lambda x, w: kiln.softmax_forward(Shown(), out=empty(512, 512))),
    ("no allocation", kiln.Error, lambda x, w: kiln.softmax_forward(Shown(0x1234560000), out=empty(512, 512))),
]  # fmt: skip


def wrong(kind, call):
    message = refusal(lambda: call(tensor((2, 3, 6, 6), "f32"), tensor((4, 3, 3, 3), "f32")), kind)
    x = tensor((3, 50), "f32")
    compare(("a call after it", kiln.softmax_forward(x), exact(x).softmax(1)))
    return message


for name, kind, call in CALLS:
    check(f"wrong: {name}")(lambda kind=kind, call=call: wrong(kind, call))
for name, kind, call in CALLS_ON_A_GPU:
    check(f"wrong: {name}", cuda=True)(lambda kind=kind, call=call: wrong(kind, call))


@check("the default Context is on the chosen device")
def _():
    context = kiln.default_context(0)
    assert context.emulated == (not ON_GPU)
    return context.device_description


@check("tensors that require gradients are read; results do not")
def _():
    x = tensor((3, 5), "f32").requires_grad_()
    y = kiln.softmax_forward(x)
    assert not y.requires_grad
    return compare(("y", y, exact(x).softmax(1)))


@check("a target of cross_entropy that is no class: a loss of NaN, and no fault")
def _():
    targets = torch.tensor([0, 9, -3, 2], dtype=torch.int32, device=DEVICE)
    loss = kiln.cross_entropy_forward(tensor((4, 5), "f32"), targets, reduction="none")
    synchronize()
    assert loss.isnan().tolist() == [False, True, True, False]


FAULT = """
import torch, kiln
x = torch.ones(64, device="cuda")
try:
    kiln.activation_forward(x, epilogue=kiln.expression("acc + ((const float*)0)[1000]"))
    torch.cuda.synchronize()
except Exception as error:
    print("torch:", type(error).__name__, str(error).splitlines()[0])
try:
    kiln.activation_forward(x)
except kiln.Error as error:
    print("kiln:", type(error).__name__, error)
"""


@check("user code that faults is reported by PyTorch and by Kiln", cuda=True)
def _():
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, check=False)
    assert "torch:" in done.stdout and "kiln: DriverError" in done.stdout, done.stdout + done.stderr[-600:]
    return done.stdout
