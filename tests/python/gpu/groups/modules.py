"""Models under kiln.torch.optimize and kiln.torch.enabled, against the same models in f64."""

import contextlib
import copy

import torch

import kiln.torch as kt

from checks import DEVICE, ON_GPU, Skip, check
from networks import NETWORKS, network
from tensors import TOLERANCES, TYPES, compare, error_of


def on_device(name, dtype=torch.float32):
    """A network on the device with the same one in f64, which has its numbers, and an input."""
    net, x = network(name)
    net.to(dtype)
    return net.to(DEVICE), copy.deepcopy(net).cpu().double(), x.to(dtype)


def training(name):
    net, ref, x = on_device(name)
    kt.optimize(net, strict=True)
    for model, given in ((net, x.to(DEVICE)), (ref, x.double())):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            model(given).square().mean().backward()
            optimizer.step()
    expected = ref.state_dict()
    floating = ((key, value) for key, value in net.state_dict().items() if value.dtype.is_floating_point)
    notes = compare(*((key, value, expected[key], 1e-4) for key, value in floating))
    return f"{str(kt.report(net)).splitlines()[0]}; {notes}"


def inference(name, dt):
    net, ref, x = on_device(name, TYPES[dt])
    net.eval()
    ref.eval()
    kt.optimize(net)
    with torch.no_grad():
        try:
            y = net(x.to(DEVICE))
        except RuntimeError as error:
            if ON_GPU or "not implemented for 'Half'" not in str(error):
                raise
            raise Skip("this PyTorch has no product of f16 on the CPU") from None
        return compare((dt, y, ref(x.double()), 3 * TOLERANCES[TYPES[dt]]))


for name in NETWORKS:
    check(f"optimize(): three training steps of {name}")(lambda name=name: training(name))
    for dt in TYPES:
        check(f"optimize(): inference of {name} {dt}")(lambda name=name, dt=dt: inference(name, dt))


@check("autocast, enabled(), channels last: gradients as near as PyTorch's")
def _():
    net, ref, x = on_device("residual")
    net = net.to(memory_format=torch.channels_last)
    given = x.to(DEVICE).contiguous(memory_format=torch.channels_last)
    ref(x.double()).square().mean().backward()
    errors = []
    for context in (kt.enabled(), contextlib.nullcontext()):
        net.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16), context:
            y = net(given)
        y.float().square().mean().backward()
        errors.append(max(error_of(p.grad, q.grad) for p, q in zip(net.parameters(), ref.parameters())))
    assert errors[0] < max(2 * errors[1], 0.02), errors
    return f"largest error of a gradient {errors[0]:.1e}, PyTorch's {errors[1]:.1e}"


@check("training after inference_mode and no_grad")
def _():
    net, _, x = on_device("residual")
    kt.optimize(net)
    with torch.inference_mode():
        net(x.to(DEVICE))
    net.eval()
    with torch.no_grad():
        assert bool(net(x.to(DEVICE)).isfinite().all())
    net.train()
    net(x.to(DEVICE)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@check("record() gives requests")
def _():
    net, _, x = on_device("residual")
    with kt.record() as requests:
        net(x.to(DEVICE)).sum().backward()
    assert any("conv_backward_filter" in line for line in requests), list(requests)
    return f"{len(list(requests))} requests"
