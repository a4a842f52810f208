"""Convolutions and their gradients, against PyTorch's in f64."""

import torch
import torch.nn.functional as F

import kiln

from checks import DEVICE, ON_GPU, check, each
from tensors import ARRANGEMENTS, THREE, TOLERANCES, TYPES, Arranged, compare, exact, tensor


def with_gradients(n, dt, arranged, x, w, stride, pad, dilation, groups=1, tolerance=1, **words):
    """A convolution of `n` axes with its gradients, against PyTorch's in f64."""
    conv = getattr(F, f"conv{n}d")
    filters = "packed" if arranged == "nhwc" else arranged
    x, w = tensor(x, dt, arranged), tensor(w, dt, "nhwc" if arranged == "nhwc" else "packed")
    ref = conv(exact(x), exact(w), None, stride, pad, dilation, groups)
    same = dict(stride=stride, pad=pad, dilation=dilation, groups=groups, **words)
    y = Arranged(ref.shape, TYPES[dt], arranged)
    assert kiln.conv_forward(x, w, out=y.view, **same) is y.view
    dy = tensor(ref.shape, dt, arranged)
    dx, dw = Arranged(x.shape, TYPES[dt], arranged), Arranged(w.shape, TYPES[dt], filters)
    kiln.conv_backward_data(dy, w, out=dx.view, **same)
    kiln.conv_backward_filter(x, dy, out=dw.view, **same)
    grad = torch.nn.grad
    ref_dx = getattr(grad, f"conv{n}d_input")(x.shape, exact(w), exact(dy), stride, pad, dilation, groups)
    ref_dw = getattr(grad, f"conv{n}d_weight")(exact(x), w.shape, exact(dy), stride, pad, dilation, groups)
    t = tolerance * TOLERANCES[TYPES[dt]]
    notes = compare(("y", y.view, ref, t), ("dx", dx.view, ref_dx, t), ("dw", dw.view, ref_dw, 2 * t))
    for out in (y, dx, dw):
        out.check_guards()
    return notes


@each("conv2d+gradients odd", ARRANGEMENTS)
def _(dt, arranged):
    return with_gradients(2, dt, arranged, (2, 13, 17, 19), (11, 13, 3, 5), (2, 1), (1, 2), (1, 2))


@each("conv2d+gradients groups", THREE)
def _(dt, arranged):
    return with_gradients(2, dt, arranged, (2, 12, 9, 14), (18, 4, 3, 3), (1, 2), (0, 1), (2, 1), 3)


@each("depthwise+gradients", [(dt, arranged, s) for dt, arranged in (*THREE, ("f16", "packed")) for s in (1, 2)])
def _(dt, arranged, s):
    return with_gradients(2, dt, arranged, (2, 40, 21, 23), (40, 1, 5, 3), (s, s), (2, 1), (1, 1), 40)


@each("depthwise multiplier", THREE)
def _(dt, arranged):
    return with_gradients(2, dt, arranged, (1, 16, 15, 13), (32, 1, 3, 3), (1, 1), (1, 1), (1, 1), 16)


@each("conv1d+gradients", THREE)
def _(dt, arranged):
    return with_gradients(1, dt, arranged, (3, 7, 101), (10, 7, 5), (3,), (2,), (2,))


@each("conv3d+gradients", THREE)
def _(dt, arranged):
    return with_gradients(3, dt, arranged, (1, 6, 7, 9, 11), (8, 6, 3, 2, 3), (2, 1, 1), (1, 0, 1), (1, 2, 1))


@each(
    "conv2d+gradients tensor cores",
    [
        ("f16", "nhwc", 3, 1),
        ("bf16", "nhwc", 3, 2),
        ("f16", "packed", 3, 1),
        ("bf16", "nhwc", 1, 1),
        ("f16", "nhwc", 1, 2),
    ],
)
def _(dt, arranged, r, s):
    c, k, n = (128, 192, 8) if ON_GPU else (32, 48, 2)
    return with_gradients(2, dt, arranged, (n, c, 28, 28), (k, c, r, r), (s, s), (r // 2, r // 2), (1, 1))


@each("stem 7x7 C=3", [("f32", "packed"), ("f16", "nhwc"), ("bf16", "packed")])
def _(dt, arranged):
    n, h = (8, 112) if ON_GPU else (1, 32)
    return with_gradients(2, dt, arranged, (n, 3, h, h), (64, 3, 7, 7), (2, 2), (3, 3), (1, 1))


@each("conv tf32", [("f32", "nhwc"), ("f32", "packed")])
def _(dt, arranged):
    return with_gradients(
        2, dt, arranged, (4, 64, 28, 28), (64, 64, 3, 3), (1, 1), (1, 1), (1, 1), tolerance=150, tf32=True
    )


@each("conv fast (winograd)", [("f32", "packed"), ("f16", "nhwc")])
def _(dt, arranged):
    return with_gradients(
        2, dt, arranged, (4, 48, 28, 28), (48, 48, 3, 3), (1, 1), (1, 1), (1, 1), tolerance=20, fast=True
    )


@each("conv deterministic twice", [("f32", "packed"), ("f16", "nhwc")])
def _(dt, arranged):
    x, dy = tensor((8, 16, 30, 30), dt, arranged), tensor((8, 24, 30, 30), dt, arranged)
    dw = [torch.empty(24, 16, 3, 3, dtype=TYPES[dt], device=DEVICE) for _ in range(4)]
    for out in dw:
        kiln.conv_backward_filter(x, dy, pad=1, deterministic=True, out=out)
    assert all(torch.equal(dw[0], other) for other in dw[1:])


@each("conv epilogues", THREE)
def _(dt, arranged):
    x, w, b = tensor((2, 5, 9, 8), dt, arranged), tensor((7, 5, 3, 3), dt), tensor((7,), dt)
    plain = F.conv2d(exact(x), exact(w), None, 1, 1)
    full = plain + exact(b)[:, None, None]
    r = tensor(plain.shape, dt, arranged)
    notes = [
        compare(
            ("bias", kiln.conv_forward(x, w, b, pad=1), full),
            ("bias+add+relu", kiln.conv_forward(x, w, b, r, pad=1, epilogue="bias+add+relu"), (full + exact(r)).relu()),
            ("clip", kiln.conv_forward(x, w, b, pad=1, clip_lo=-0.5, clip_hi=1.5), full.clamp(-0.5, 1.5)),
        )
    ]
    y = tensor(plain.shape, dt, arranged)
    before = exact(y)
    kiln.conv_forward(x, w, pad=1, alpha=0.5, beta=-2.0, out=y)
    notes.append(compare(("alpha, beta", y, 0.5 * plain - 2 * before)))
    y = tensor(plain.shape, dt, arranged)
    before = exact(y)
    kiln.conv_forward(x, w, pad=1, residual=y, out=y, epilogue="add+relu")
    notes.append(compare(("in place", y, (plain + before).relu())))
    gate = tensor(plain.shape, dt)
    code = kiln.expression("acc * sigmoid(acc) * s + gate + chan[k]", gate=gate, chan=b, s=2.0)
    y = kiln.conv_forward(x, w, pad=1, epilogue=code)
    notes.append(compare(("user code", y, plain * plain.sigmoid() * 2 + exact(gate) + exact(b)[:, None, None])))
    return ", ".join(notes)


@check("conv padding of four sides, mirrored, mixed types, dynamic batch")
def _():
    x, w = tensor((2, 4, 9, 10), "f32"), tensor((6, 4, 3, 2), "f32")
    notes = [
        compare(
            ("sides", kiln.conv_forward(x, w, pad=(1, 0, 2, 3)), F.conv2d(F.pad(exact(x), (0, 3, 1, 2)), exact(w))),
            ("mirrored", kiln.conv_forward(x, w, mode="convolution"), F.conv2d(exact(x), exact(w).flip(2, 3))),
        )
    ]
    h, v = x.half(), w.half()
    y = torch.empty(2, 6, 7, 9, device=DEVICE)
    kiln.conv_forward(h, v, out=y)
    notes.append(compare(("f16 to f32", y, F.conv2d(exact(h), exact(v)))))
    for n in (1, 3, 0, 7):
        x = tensor((n, 4, 9, 10), "f32")
        y = kiln.conv_forward(x, w, dynamic_batch=True)
        notes.append(compare((f"n={n}", y, F.conv2d(exact(x), exact(w)))))
    return ", ".join(notes)


@each("conv_backward_bias", [(dt, arranged) for dt, arranged in ARRANGEMENTS[:8]])
def _(dt, arranged):
    dy = tensor((5, 33, 17, 9), dt, arranged)
    return compare(("db", kiln.conv_backward_bias(dy), exact(dy).sum((0, 2, 3))))


@each("transposed conv with epilogue", THREE)
def _(dt, arranged):
    dy, w, b = tensor((2, 8, 7, 6), dt, arranged), tensor((8, 5, 4, 3), dt), tensor((5,), dt)
    y = kiln.conv_backward_data(dy, w, b, stride=(2, 3), pad=1, output_pad=(1, 2), epilogue="bias+relu")
    ref = F.conv_transpose2d(exact(dy), exact(w), exact(b), stride=(2, 3), padding=1, output_padding=(1, 2)).relu()
    return compare(("dx", y, ref))


@each("local conv+gradients", [("f32", "packed"), ("f16", "nhwc"), ("bf16", "packed")])
def _(dt, arranged):
    n, c, k, r = 3, 4, 6, 3
    x = tensor((n, c, 8, 7), dt, arranged)
    w = tensor((8 * 7, k, c, r, r), dt)

    def ref(x, w):
        columns = F.unfold(x, r, padding=1)  # n, c r r, places
        return torch.einsum("nql,lkq->nkl", columns, w.flatten(2)).unflatten(2, (8, 7))

    X, W = exact(x).requires_grad_(), exact(w).requires_grad_()
    expected = ref(X, W)
    dy = tensor(expected.shape, dt, arranged)
    expected.backward(exact(dy))
    y = kiln.local_conv_forward(x, w, pad=1)
    dx = kiln.local_conv_backward_data(dy, w, pad=1)
    dw = kiln.local_conv_backward_filter(x, dy, pad=1, out=torch.empty_like(w))
    return compare(("y", y, expected.detach()), ("dx", dx, X.grad), ("dw", dw, W.grad))
