"""kiln.torch under torch.compile."""

import copy

import torch
import torch.nn.functional as F

import kiln.torch as kt
import kiln.torch.functional as K

from checks import DEVICE, Skip, check
from networks import network
from tensors import compare, drawn, exact, exact_leaf, leaf


def require_compiler(backend):
    """Skips where PyTorch cannot compile its own functions: Inductor needs Triton and a C compiler."""
    if not hasattr(torch, "compile"):
        raise Skip(f"PyTorch {torch.__version__} has no torch.compile")
    try:
        torch.compile(lambda x: torch.relu(x) * 2 + 1, backend=backend)(torch.ones(5, device=DEVICE))
    except Exception as error:
        raise Skip(f"PyTorch's own function fails: {type(error).__name__} {str(error)[:200]}") from None


def forward_and_backward(backend):
    require_compiler(backend)

    def block(x, w, b):
        return K.gelu(K.conv2d(x, w, b, padding=1)) * 2 + 1

    tensors = [drawn(shape) for shape in ((2, 3, 8, 8), (4, 3, 3, 3), (4,))]
    ours, refs = [leaf(t) for t in tensors], [exact_leaf(t) for t in tensors]
    y = torch.compile(block, fullgraph=True, backend=backend)(*ours)
    Y = F.gelu(F.conv2d(*refs, padding=1)) * 2 + 1
    y.sum().backward()
    Y.sum().backward()
    gradients = ((f"gradient {i}", t.grad, ref.grad, 1e-4) for i, (t, ref) in enumerate(zip(ours, refs)))
    return compare(("y", y, Y.detach()), *gradients)


for backend in ("aot_eager", "inductor"):
    check(f"torch.compile backend={backend}, forward and backward")(
        lambda backend=backend: forward_and_backward(backend)
    )


@check("torch.compile of an optimized model", cuda=True)
def _():
    require_compiler("inductor")
    net, x = network("residual")
    ref = copy.deepcopy(net).double()
    kt.optimize(net.to(DEVICE))
    y, Y = torch.compile(net)(x.to(DEVICE)), ref(x.double())
    y.sum().backward()
    Y.sum().backward()
    return compare(("y", y, Y.detach(), 1e-4), ("gradient", net.conv1.weight.grad, ref.conv1.weight.grad, 1e-3))


@check("torch.compile mode=reduce-overhead: CUDA graphs of PyTorch", cuda=True)
def _():
    require_compiler("inductor")
    w = drawn((4, 3, 3, 3)).to(DEVICE)
    function = torch.compile(lambda x: K.relu(K.conv2d(x, w, padding=1)), mode="reduce-overhead")
    for _ in range(4):
        x = drawn((2, 3, 8, 8))
        with torch.no_grad():
            y = function(x.to(DEVICE)).clone()
        notes = compare(("y", y, F.conv2d(x.double(), exact(w), padding=1).relu()))
    return notes
