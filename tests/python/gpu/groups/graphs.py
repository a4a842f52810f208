"""Calls that are captured into CUDA graphs."""

import copy
import threading

import torch
import torch.nn.functional as F

import kiln
import kiln.torch as kt
import kiln.torch.functional as K

from checks import DEVICE, check, refusal
from networks import network
from tensors import compare, drawn, exact, synchronize, tensor


def warm_up(function):
    """As PyTorch asks for before a capture: on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    synchronize()


def captured(function, inputs, expected):
    """Captures a call, and replays it with new inputs."""
    warm_up(function)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = function()
    for _ in range(3):
        for t in inputs:
            t.copy_(drawn(t.shape).to(t.dtype))
        graph.replay()
        synchronize()
        notes = compare(("y", y, expected()))
    return notes


@check("capture of kiln.conv_forward into out, and with a result of the graph's pool", cuda=True)
def _():
    x, w = tensor((2, 8, 16, 16), "f16", "nhwc"), tensor((8, 8, 3, 3), "f16")
    out = torch.empty(2, 8, 16, 16, dtype=torch.float16, device=DEVICE)

    def expected():
        return F.conv2d(exact(x), exact(w), padding=1)

    notes = captured(lambda: kiln.conv_forward(x, w, pad=1, out=out), [x], expected)
    return notes + "; " + captured(lambda: kiln.conv_forward(x, w, pad=1), [x], expected)


@check("capture of several: conv, pool, softmax, gemm, expression", cuda=True)
def _():
    x, w, v = tensor((2, 8, 16, 16), "f32"), tensor((8, 8, 3, 3), "f32"), tensor((8 * 64, 10), "f32")
    code = kiln.expression("acc * s", s=0.05)

    def net():
        h = kiln.pool_forward(kiln.conv_forward(x, w, pad=1, epilogue="relu"), window=2, stride=2)
        h = kiln.gemm(h.view(2, -1), v, epilogue=code)
        return kiln.softmax_forward(h, axis=1)

    def expected():
        h = F.max_pool2d(F.conv2d(exact(x), exact(w), padding=1).relu(), 2)
        return (h.flatten(1) @ exact(v) * 0.05).softmax(1)

    return captured(net, [x, w], expected)


@check("capture of a call with workspace: kiln.torch yes, plain kiln refuses and leaves the capture intact", cuda=True)
def _():
    a, b = tensor((2, 20000), "f32"), tensor((20000, 3), "f32")
    for _ in range(3):
        K.matmul(a, b)
        kiln.gemm(a, b)
    assert kiln.plan("gemm a=f32:2x20000 b=f32:20000x3").workspace_bytes > 0
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = K.matmul(a, b)
        message = refusal(lambda: kiln.gemm(a, b), kiln.Unsupported)
        u = y + 1
    a.copy_(drawn(a.shape))
    graph.replay()
    synchronize()
    expected = exact(a) @ exact(b)
    return compare(("y", y, expected, 1e-4), ("y + 1", u, expected + 1, 1e-4)) + "; " + message


@check("a shape that never ran is refused in a capture, which goes on", cuda=True)
def _():
    x = tensor((3, 77), "f32")
    torch.relu(x)
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        message = refusal(lambda: kiln.softmax_forward(x), kiln.Unsupported)
        y = torch.relu(x)
    graph.replay()
    synchronize()
    compare(("y", y, exact(x).relu()))
    return message


@check("capture while another thread compiles other shapes", cuda=True)
def _():
    x, w = tensor((2, 8, 16, 16), "f32"), tensor((8, 8, 3, 3), "f32")
    stop, faults, plans = threading.Event(), [], []

    def compile_others():
        try:
            while not stop.is_set():
                plans.append(f"softmax_forward x=f32:{7 + len(plans)}x{900 + len(plans)}")
                kiln.default_context(0).prepare(plans[-1])
        except Exception as error:
            faults.append(repr(error))

    thread = threading.Thread(target=compile_others)
    thread.start()
    try:
        for _ in range(3):
            notes = captured(
                lambda: kiln.conv_forward(x, w, pad=1), [x], lambda: F.conv2d(exact(x), exact(w), padding=1)
            )
    finally:
        stop.set()
        thread.join()
    assert not faults, faults
    return f"{notes}; {len(plans)} plans made meanwhile"


@check("capture of a whole training step of an optimized model", cuda=True)
def _():
    net, x = network("residual")
    ref = copy.deepcopy(net).double()
    net, x = kt.optimize(net.to(DEVICE), strict=True), x.to(DEVICE)
    before = copy.deepcopy(net.state_dict())

    def step(model, optimizer, given):
        optimizer.zero_grad(set_to_none=True)
        loss = model(given).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    ours, pytorchs = (torch.optim.SGD(model.parameters(), lr=0.05) for model in (net, ref))
    warm_up(lambda: step(net, ours, x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(net, ours, x)
    net.load_state_dict(before)  # in place
    for _ in range(3):
        x.copy_(drawn(x.shape))
        graph.replay()
        expected_loss = step(ref, pytorchs, exact(x))
    synchronize()
    expected = ref.state_dict()
    floating = ((key, value) for key, value in net.state_dict().items() if value.dtype.is_floating_point)
    return compare(("loss", loss, expected_loss, 1e-4), *((key, t, expected[key], 1e-3) for key, t in floating))


@check("plan with workspace of PyTorch's, and prepared weights; capture of the plan", cuda=True)
def _():
    plan = kiln.plan("conv_forward x=f32:16x40x12x12 w=f32:40x40x3x3 pad=1 fast constant_weights")
    x, w, y = tensor((16, 40, 12, 12), "f32"), tensor((40, 40, 3, 3), "f32"), torch.empty(16, 40, 12, 12, device=DEVICE)
    prepared = torch.empty(max(plan.prepared_bytes, 1), dtype=torch.uint8, device=DEVICE)
    work = torch.empty(max(plan.prepared_workspace_bytes, 1), dtype=torch.uint8, device=DEVICE)
    plan.prepare_weights(prepared, w=w)

    def run():
        plan.run_prepared(prepared, workspace=work, x=x, w=w, y=y)

    run()
    notes = compare(("y", y, F.conv2d(exact(x), exact(w), padding=1), 1e-3))
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    x.copy_(drawn(x.shape))
    graph.replay()
    synchronize()
    replayed = compare(("replayed", y, F.conv2d(exact(x), exact(w), padding=1), 1e-3))
    return f"{plan.variant}, {plan.prepared_bytes} bytes prepared; {notes}; {replayed}"
