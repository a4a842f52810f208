"""Matrix products, softmax, activations and pooling, against PyTorch's in f64."""

import torch
import torch.nn.functional as F

import kiln

from checks import DEVICE, ON_GPU, Skip, check, each
from tensors import ARRANGEMENTS, DTYPES, TOLERANCES, TYPES, Arranged, compare, drawn, exact, tensor


@each("gemm odd", ARRANGEMENTS)
def _(dt, arranged):
    arranged = "reversed" if arranged == "nhwc" else arranged
    a, bias = tensor((37, 65), dt, arranged), tensor((129,), dt)
    b = tensor((65, 129), dt, "packed" if arranged == "reversed" else arranged)
    c = Arranged((37, 129), TYPES[dt], arranged)
    kiln.gemm(a, b, bias, epilogue="bias+relu", out=c.view)
    c.check_guards()
    r = tensor((37, 129), dt)
    return compare(
        ("product", c.view, (exact(a) @ exact(b) + exact(bias)).relu()),
        ("residual", kiln.gemm(a, b, residual=r, alpha=0.5), 0.5 * (exact(a) @ exact(b)) + exact(r)),
    )


@each("gemm batched and broadcast", [(dt,) for dt in DTYPES])
def _(dt):
    a, b = tensor((3, 1, 20, 33), dt), tensor((1, 4, 50, 33), dt).transpose(2, 3)
    q, k = tensor((2, 8, 64, 32), dt), tensor((2, 64, 8, 32), dt).permute(0, 2, 3, 1)
    return compare(
        ("broadcast", kiln.gemm(a, b), exact(a) @ exact(b)), ("attention", kiln.gemm(q, k), exact(q) @ exact(k))
    )


@each("gemm tensor cores", [("f16", False), ("bf16", False), ("f32", True)])
def _(dt, tf32):
    m, n, k = (1024, 768, 512) if ON_GPU else (128, 96, 64)
    a, b = tensor((m, k), dt), tensor((n, k), dt).t()
    row, column = tensor((1, k), dt), tensor((k, 1), dt)
    permitted, bound = ({"tf32": True}, 2e-3) if tf32 else ({}, TOLERANCES[TYPES[dt]])
    operands = {"matrices": (a, b), "row": (row, b), "column": (a, column)}
    products = ((name, kiln.gemm(p, q, **permitted), exact(p) @ exact(q)) for name, (p, q) in operands.items())
    return compare(*((*product, bound) for product in products))


@check("gemm of long sums, with workspace, and of empty operands")
def _():
    a, b = tensor((2, 20000), "f32"), tensor((20000, 3), "f32")
    y = kiln.gemm(torch.empty(5, 0, device=DEVICE), torch.empty(0, 7, device=DEVICE))
    assert y.shape == (5, 7) and bool((y == 0).all())
    assert kiln.gemm(torch.empty(0, 4, device=DEVICE), torch.empty(4, 7, device=DEVICE)).shape == (0, 7)
    return compare(("long", kiln.gemm(a, b), exact(a) @ exact(b), 1e-4))


@each("gemm", [("float8_e4m3fn",), ("float8_e5m2",)])
def _(name):
    if not hasattr(torch, name):
        raise Skip(f"PyTorch {torch.__version__} has no {name}")
    a, b = (drawn(extents).to(getattr(torch, name)) for extents in ((17, 48), (48, 9)))
    c = torch.empty(17, 9, device=DEVICE)
    kiln.gemm(a.to(DEVICE), b.to(DEVICE), out=c)
    return compare(("product", c, a.double() @ b.double()))


@each("softmax", [case for case in ARRANGEMENTS if case[1] not in ("nhwc", "offset")])
def _(dt, arranged):
    notes = []
    for shape, axis in (((37, 1000), 1), ((5, 7, 9, 11), 1), ((4, 50257 if ON_GPU else 5000), -1), ((130, 3), 0)):
        x = tensor(shape, dt, arranged, 3.0)
        y, log_y = kiln.softmax_forward(x, axis=axis), kiln.softmax_forward(x, axis=axis, mode="log")
        dy = tensor(shape, dt, arranged)
        dx = kiln.softmax_backward(y, dy, axis=axis)
        Y = exact(y)
        notes.append(
            compare(
                (f"{shape}", y, exact(x).softmax(axis)),
                ("log", log_y, exact(x).log_softmax(axis)),
                ("dx", dx, Y * (exact(dy) - (Y * exact(dy)).sum(axis, keepdim=True))),
            )
        )
    x = tensor((6, 40), dt)
    x[1, 3], x[2, 4], x[3], x[4, 5:] = float("nan"), float("inf"), float("-inf"), float("-inf")
    notes.append(compare(("special", kiln.softmax_forward(x), exact(x).softmax(1))))
    return ", ".join(notes)


ACT = {
    "identity": (lambda x: x, {}),
    "relu": (lambda x: x.relu(), {}),
    "clipped_relu": (lambda x: x.clamp(0, 1.5), {"high": 1.5}),
    "clip": (lambda x: x.clamp(-0.5, 0.75), {"low": -0.5, "high": 0.75}),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), {"slope": 0.1}),
    "sigmoid": (torch.sigmoid, {}),
    "tanh": (torch.tanh, {}),
    "elu": (lambda x: F.elu(x, 0.7), {"slope": 0.7}),
    "selu": (F.selu, {}),
    "softplus": (lambda x: F.softplus(x, 2.0, 1e9), {"slope": 2.0}),
    "swish": (lambda x: x * (1.5 * x).sigmoid(), {"slope": 1.5}),
    "gelu": (F.gelu, {}),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), {}),
    "hard_swish": (F.hardswish, {}),
    "hard_sigmoid": (F.hardsigmoid, {"slope": 1 / 6, "offset": 0.5}),
    "mish": (F.mish, {}),
}


@each(
    "activation",
    [("f32", mode) for mode in ACT]
    + [(dt, mode) for dt in ("f16", "bf16") for mode in ("relu", "gelu", "swish", "tanh")],
)
def _(dt, mode):
    function, numbers = ACT[mode]
    x, dy = tensor((5, 7, 33), dt, "packed", 2.0), tensor((5, 7, 33), dt)
    X = exact(x).requires_grad_()
    Y = function(X)
    Y.backward(exact(dy))
    y = kiln.activation_forward(x, mode=mode, **numbers)
    dx = kiln.activation_backward(dy, x, mode=mode, **numbers)
    return compare(("y", y, Y.detach()), ("dx", dx, X.grad))


@each("activation layouts", ARRANGEMENTS)
def _(dt, arranged):
    x = tensor((3, 5, 6, 9), dt, arranged)
    y = Arranged(x.shape, TYPES[dt], arranged)
    kiln.activation_forward(x, mode="relu", out=y.view)
    y.check_guards()
    z = kiln.activation_forward(x.expand(3, 5, 6, 9)[:, :1].expand(3, 5, 6, 9), mode="relu")  # stride 0
    return compare(("y", y.view, exact(x).relu()), ("repeated", z, exact(x)[:, :1].expand(3, 5, 6, 9).relu()))


@each(
    "pool",
    [
        (dt, arranged, mode)
        for dt, arranged in (("f32", "packed"), ("f16", "nhwc"), ("bf16", "region"))
        for mode in ("max", "avg", "avg_padded")
    ],
)
def _(dt, arranged, mode):
    notes = []
    for shape, window, stride, pad in (
        ((2, 9, 17, 13), (3, 2), (2, 1), (1, 1)),
        ((2, 5, 31), (4,), (3,), (2,)),
        ((1, 6, 7, 8, 9), (2, 3, 2), (2, 2, 1), (1, 1, 0)),
    ):
        n = len(window)
        x = tensor(shape, dt, arranged if n == 2 else "packed")
        X = exact(x).requires_grad_()
        if mode == "max":
            Y, I = getattr(F, f"max_pool{n}d")(X, window, stride, pad, return_indices=True)
        else:
            Y = getattr(F, f"avg_pool{n}d")(X, window, stride, pad, count_include_pad=mode == "avg_padded")
        words = dict(window=window, stride=stride, pad=pad, mode=mode)
        dy = tensor(Y.shape, dt)
        Y.backward(exact(dy))
        if mode == "max":
            y, i = kiln.pool_forward(x, indices=True, **words)
            same = exact(x).flatten(2).gather(2, i.cpu().long().flatten(2)).view(y.shape)
            assert torch.equal(same, exact(y)), "indices do not name the maxima"
            dx2 = kiln.pool_backward(dy, indices=i, out=torch.empty_like(x), **words)
            dx = kiln.pool_backward(dy, x, **words)
            if dt == "f32":  # half precision has equal maxima
                notes.append(compare(("dx by indices", dx2, X.grad)))
                assert torch.equal(i.cpu().long(), I)
                back = kiln.unpool_backward(x, i, window=window, stride=stride, pad=pad)
                notes.append(compare(("unpool_backward", back, exact(y))))
                notes.append(compare(("dx", dx, X.grad)))
            else:
                notes.append(compare(("sum of dx", exact(dx).sum().float()[None], exact(dy).sum()[None], 0.05)))
        else:
            y = kiln.pool_forward(x, **words)
            dx = kiln.pool_backward(dy, out=torch.empty_like(x), **words)
            notes.append(compare(("dx", dx, X.grad)))
        notes.append(compare((f"y{n}d", y, Y.detach())))
    x = tensor((2, 7, 14, 15), dt, arranged)
    g = kiln.pool_forward(x, window="global", mode=mode)
    notes.append(
        compare(
            ("global", g, exact(x).amax((2, 3), keepdim=True) if mode == "max" else exact(x).mean((2, 3), keepdim=True))
        )
    )
    return ", ".join(notes)


@check("pool of integers, dilation, ceil, padding alone")
def _():
    x = torch.randint(-100, 100, (2, 3, 9, 9), dtype=torch.int32)
    y = kiln.pool_forward(x.to(DEVICE), window=3, stride=2, dilation=2, ceil=1)
    assert torch.equal(y.cpu(), F.max_pool2d(x.double(), 3, 2, 0, 2, ceil_mode=True).int())
    y = kiln.pool_forward(x.to(torch.int8).to(DEVICE), window=2, stride=2)
    assert torch.equal(y.cpu().double(), F.max_pool2d(x.double(), 2, 2))
