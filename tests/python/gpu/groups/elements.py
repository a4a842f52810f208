"""Resizing, copies, element-wise operations, gather and reductions, against PyTorch's in f64."""

import torch
import torch.nn.functional as F

import kiln

from checks import DEVICE, ON_GPU, each
from tensors import DTYPES, TOLERANCES, TYPES, Arranged, compare, exact, tensor


@each("resize", [("f32", "packed"), ("f16", "nhwc"), ("bf16", "region")])
def _(dt, arranged):
    x, notes = tensor((2, 5, 7, 9), dt, arranged), []
    for size in ((11, 4), (14, 18), (3, 30)):
        for mode, words, theirs in (
            ("nearest", dict(coordinates="asymmetric", rounding="floor"), dict(mode="nearest")),
            ("nearest", dict(rounding="prefer_ceil"), dict(mode="nearest-exact")),
            ("linear", {}, dict(mode="bilinear")),
            ("linear", dict(coordinates="align_corners"), dict(mode="bilinear", align_corners=True)),
            ("cubic", {}, dict(mode="bicubic")),
        ):
            y = kiln.resize(x, mode=mode, size=size, **words)
            notes.append(compare((f"{theirs['mode']}{size}", y, F.interpolate(exact(x), size, **theirs))))
    return ", ".join(notes)


@each("tensor_transform, tensor_set", [("f32", "f16"), ("f16", "bf16"), ("bf16", "f32")])
def _(dt, other):
    x, notes = tensor((3, 5, 7, 8), dt, "region"), []
    y = Arranged(x.shape, TYPES[other], "nhwc")
    kiln.tensor_transform(x, out=y.view)
    assert torch.equal(y.view.cpu(), x.cpu().to(TYPES[other])), "conversion"
    p = kiln.tensor_transform(x, pad=(0, 1, 2, 0, 0, 0, 1, 3), value=1.5)
    notes.append(compare(("pad", p, F.pad(exact(x), (0, 3, 2, 1, 1, 0), value=1.5))))
    q = kiln.tensor_transform(x, alpha=40.0, out=torch.empty(3, 5, 7, 8, dtype=torch.int8, device=DEVICE))
    f = (x.float().cpu() * 40).round().clamp(-128, 127)
    assert torch.equal(q.cpu().float(), f), "int8"
    s = Arranged((4, 5, 6), TYPES[dt], "region")
    kiln.tensor_set(out=s.view, value=-2.5)
    s.check_guards()
    assert bool((s.view == -2.5).all())
    return ", ".join(notes)


@each("tensor_op", [("f32", "packed"), ("f16", "region"), ("bf16", "nhwc")])
def _(dt, arranged):
    a, b, notes = tensor((3, 5, 6, 7), dt, arranged), tensor((1, 5, 1, 7), dt), []
    A, B = exact(a), exact(b)
    for mode, ref in (
        ("add", A + B),
        ("sub", A - B),
        ("mul", A * B),
        ("min", torch.minimum(A, B)),
        ("lt", (A < B).double()),
        ("div", A / B),
    ):
        notes.append(compare((mode, kiln.tensor_op(a, b, mode=mode), ref)))
    notes.append(
        compare(
            ("abs", kiln.tensor_op(a, mode="abs"), A.abs()),
            ("exp", kiln.tensor_op(a, mode="exp"), A.exp()),
            (
                "select",
                kiln.tensor_op(kiln.tensor_op(a, b, mode="gt"), b, a, mode="select"),
                torch.where(A > B, B + A * 0, A),
            ),
            ("sqrt", kiln.tensor_op(kiln.tensor_op(a, mode="abs"), mode="sqrt"), A.abs().sqrt()),
        )
    )
    y = a.clone()
    kiln.tensor_op(y, b, mode="add", out=y)
    notes.append(compare(("in place", y, A + B)))
    return ", ".join(notes)


@each("gather", [(dt,) for dt in DTYPES])
def _(dt):
    x = tensor((4, 9, 6), dt)
    i = torch.tensor([0, 8, -1, -9, 9, 100, -10], dtype=torch.int32, device=DEVICE).view(1, 7, 1)
    y = kiln.gather(x, i, axis=1)
    ref = exact(x)[:, [0, 8, 8, 0, 0, 0, 0]].clone()
    ref[:, 4:] = 0
    j = torch.randint(0, 9, (4, 3, 6), dtype=torch.int32)
    z = kiln.gather(x, j.to(DEVICE), axis=1)
    return compare(("rows", y, ref), ("elements", z, exact(x).gather(1, j.long())))


@each("reduce", [("f32", "packed"), ("f16", "nhwc"), ("bf16", "region"), ("f32", "reversed")])
def _(dt, arranged):
    x, notes = tensor((6, 17, 13, 30), dt, arranged), []
    X = exact(x)
    for axes in ((0, 2, 3), (1,), (3,), (0, 1, 2, 3)):
        for mode, ref in (
            ("add", X.sum(axes, keepdim=True)),
            ("mean", X.mean(axes, keepdim=True)),
            ("max", X.amax(axes, keepdim=True)),
            ("norm2", X.square().sum(axes, keepdim=True).sqrt()),
        ):
            t = TOLERANCES[TYPES[dt]] if mode != "add" else 3 * TOLERANCES[TYPES[dt]]
            notes.append(compare((f"{mode}{axes}", kiln.reduce(x, axes=axes, mode=mode), ref, t)))
    v, i = kiln.reduce(x, axes=3, mode="max", indices=True)
    assert torch.equal(X.gather(3, i.cpu().long()), exact(v))
    big = tensor((1, 3_000_001 if ON_GPU else 100_001), "f32")
    notes.append(compare(("long", kiln.reduce(big, mode="norm1"), exact(big).abs().sum()[None, None])))
    return ", ".join(notes)
