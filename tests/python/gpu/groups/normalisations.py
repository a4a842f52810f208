"""Normalisations, losses and dropout, against PyTorch's in f64."""

import torch
import torch.nn.functional as F

import kiln

from checks import DEVICE, check, each
from tensors import DTYPES, TOLERANCES, TYPES, compare, exact, tensor

MASK = 0xFFFFFFFF


@each("cross entropy", [(dt, reduction) for dt in DTYPES for reduction in ("mean", "none")])
def _(dt, reduction):
    notes = []
    for shape in ((33, 1000), (2, 21, 8, 9)):
        x = tensor(shape, dt, "packed", 3.0)
        t = torch.randint(0, shape[1], (shape[0], *shape[2:]), dtype=torch.int32)
        t.view(-1)[::5] = -100
        wt = tensor((shape[1],), "f32").abs()
        X = exact(x).requires_grad_()
        L = F.cross_entropy(X, t.long(), exact(wt), reduction=reduction, label_smoothing=0.1)
        L.sum().backward()
        more = dict(reduction=reduction, smoothing=0.1)
        loss = kiln.cross_entropy_forward(x, t.to(DEVICE), wt, **more)
        dx = kiln.cross_entropy_backward(x, t.to(DEVICE), wt, **more)
        notes.append(compare(("loss", loss, L.detach().view(loss.shape), TOLERANCES[loss.dtype]), ("dx", dx, X.grad)))
    return ", ".join(notes)


@each("norm", [(dt, what) for dt in DTYPES for what in ("layer", "rms", "batch", "group", "instance")])
def _(dt, what):
    arranged = "nhwc" if dt == "bf16" and what in ("batch", "instance") else "packed"
    if what in ("layer", "rms"):
        x, ext, axes = tensor((9, 5, 257), dt), (257,), (-1,)
    elif what == "group":
        x, ext, axes = tensor((3, 4, 5, 6, 7), dt), (1, 4, 5, 1, 1), (2, 3, 4)
    else:
        x, ext, axes = tensor((4, 10, 9, 7), dt, arranged), (1, 10, 1, 1), (0, 2, 3) if what == "batch" else (2, 3)
    full = ext if len(ext) == x.dim() else (*[1] * (x.dim() - len(ext)), *ext)
    w, b = tensor(full, dt), tensor(full, dt)
    X, W, B = (exact(t).requires_grad_() for t in (x, w, b))
    mean = X.mean(axes, keepdim=True)
    var = ((X - mean) ** 2).mean(axes, keepdim=True)
    if what == "rms":
        inv = (X.square().mean(axes, keepdim=True) + 1e-5).rsqrt()
        Y = X * inv * W + B
    else:
        inv = (var + 1e-5).rsqrt()
        Y = (X - mean) * inv * W + B
    dy = tensor(Y.shape, dt, arranged)
    Y.backward(exact(dy))
    mode = dict(mode="rms") if what == "rms" else {}
    asked = dict(inv_deviation=True) if what == "rms" else dict(mean=True, inv_deviation=True)
    y, *saved = kiln.norm_forward(x, w, b, axes=axes, **mode, **asked)
    given = dict(inv_deviation=saved[-1]) if what == "rms" else dict(mean=saved[0], inv_deviation=saved[1])
    dx, dw, db = kiln.norm_backward(dy, x, w, axes=axes, dw=True, db=True, **given, **mode)
    scale, shift = kiln.norm_affine(x, w, b, axes=axes, shift=True, **mode)
    factor = W * inv
    t = TOLERANCES[TYPES[dt]]
    notes = [
        compare(
            ("y", y, Y.detach(), 2 * t),
            ("scale", scale, factor.detach(), 1e-5),
            ("shift", shift, (B - factor * (0 if what == "rms" else mean)).detach(), 1e-5),
            ("inv", saved[-1], inv.detach(), 1e-5),
            ("dx", dx, X.grad, 3 * t),
            ("dw", dw, W.grad, 3 * t),
            ("db", db, B.grad, 3 * t),
        )
    ]
    if what == "batch":
        rm, rv = (torch.rand(1, 10, 1, 1, device=DEVICE) + 0.5 for _ in range(2))
        RM, RV = exact(rm), exact(rv)
        kiln.norm_forward(x, w, b, axes=axes, running_mean=rm, running_variance=rv, momentum=0.3, activation="relu")
        n = x.numel() / 10
        notes.append(
            compare(
                ("running mean", rm, 0.7 * RM + 0.3 * mean.detach()),
                ("running variance", rv, 0.7 * RV + 0.3 * var.detach() * n / (n - 1)),
            )
        )
        z = kiln.norm_inference(x, w, b, rm, rv, activation="relu")
        notes.append(
            compare(
                (
                    "inference",
                    z,
                    ((exact(x) - exact(rm)) * (exact(rv) + 1e-5).rsqrt() * exact(w) + exact(b)).relu(),
                    2 * t,
                )
            )
        )
    return ", ".join(notes)


def philox(elements, seed, offset):
    """The words of Philox4x32-10 that belong to the elements, in Python's integers."""
    words = []
    for block in range((elements + 3) // 4):
        counter, key = [block & MASK, block >> 32, offset, 0], [seed & MASK, seed >> 32]
        for _ in range(10):
            first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
            counter = [
                (second >> 32) ^ counter[1] ^ key[0],
                second & MASK,
                (first >> 32) ^ counter[3] ^ key[1],
                first & MASK,
            ]
            key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
        words += counter
    return words[:elements]


@check("dropout keeps the elements that Philox draws")
def _():
    x, seed, offset, p = tensor((7, 1001), "f32"), 0x123456789ABCDEF, 5, 0.3
    drops = torch.tensor([word >> 8 for word in philox(x.numel(), seed, offset)]) < p * 2**24
    expected = torch.where(drops.view(x.shape), torch.zeros((), dtype=torch.float64), exact(x) / (1 - p))
    return compare(("y", kiln.dropout(x, p=p, seed=seed, offset=offset), expected))


@each("local norm", [("f32", "packed"), ("f16", "nhwc"), ("bf16", "packed")])
def _(dt, arranged):
    x, dy = tensor((2, 12, 6, 7), dt, arranged, 3.0), tensor((2, 12, 6, 7), dt, arranged)
    X = exact(x).requires_grad_()
    Y = F.local_response_norm(X, 5, 0.5, 0.75, 2.0)
    Y.backward(exact(dy))
    words = dict(size=5, lrn_alpha=0.5, lrn_beta=0.75, lrn_k=2.0)
    return compare(
        ("y", kiln.local_norm_forward(x, **words), Y.detach()),
        ("dx", kiln.local_norm_backward(x, dy=dy, **words), X.grad),
    )
