"""kiln.torch.functional with gradients, against PyTorch's functions in f64."""

import torch
import torch.nn.functional as F

import kiln.torch.functional as K

from checks import DEVICE, Skip, check
from tensors import TOLERANCES, TYPES, compare, drawn, exact_leaf, leaf

# Function, extents of the tensors, and other arguments.
# fmt: off
LAYERS = [
    ("conv2d", [(2, 4, 11, 9), (6, 2, 3, 3), (6,)], dict(groups=2, stride=(2, 1), padding=(0, 2))),
    ("conv2d", [(1, 3, 11, 5), (5, 3, 3, 2), (5,)], dict(padding="same", dilation=(2, 1))),
    ("conv1d", [(2, 3, 13), (4, 3, 5), (4,)], dict(stride=3)),
    ("conv3d", [(1, 2, 5, 6, 4), (3, 2, 2, 3, 1), (3,)], dict(padding=(1, 0, 0))),
    ("conv_transpose2d", [(2, 4, 5, 4), (4, 3, 3, 3), (3,)], dict(stride=2, padding=1, output_padding=1)),
    ("conv_transpose1d", [(2, 3, 7), (3, 2, 4), (2,)], dict(stride=3)),
    ("linear", [(3, 5, 33), (17, 33), (17,)], {}),
    ("max_pool2d", [(2, 5, 9, 11)], dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("avg_pool2d", [(2, 5, 9, 11)], dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    ("avg_pool3d", [(1, 3, 6, 7, 5)], dict(kernel_size=2)),
    ("adaptive_avg_pool2d", [(2, 5, 8, 12)], dict(output_size=(2, 3))),
    ("adaptive_max_pool2d", [(2, 5, 8, 12)], dict(output_size=(4, 1))),
    ("layer_norm", [(4, 6, 40), (40,), (40,)], dict(normalized_shape=(40,))),
    ("group_norm", [(3, 8, 5, 6), (8,), (8,)], dict(num_groups=4)),
    ("rms_norm", [(4, 6, 40), (40,)], dict(normalized_shape=(40,), eps=1e-5)),
    ("instance_norm", [(3, 4, 7, 6)], {}),
    ("local_response_norm", [(2, 9, 5, 5)], dict(size=5, alpha=0.5)),
    ("gelu", [(5, 6, 37)], {}),
    ("softmax", [(4, 7, 9)], dict(dim=1)),
    ("matmul", [(2, 5, 7), (7, 6)], {}),
]
OTHERS = [
    ("threshold", [(5, 6, 37)], dict(threshold=0.1, value=-2.0)),
    ("log_softmax", [(4, 7, 9)], dict(dim=-1)),
    ("interpolate", [(2, 3, 6, 7)], dict(scale_factor=2.0, mode="bilinear", align_corners=False)),
    ("interpolate", [(2, 3, 6, 7)], dict(size=(9, 5), mode="nearest")),
    ("pad", [(2, 3, 6, 7)], dict(pad=(1, 2, 3, 0), mode="reflect")),
    ("pad", [(2, 3, 6, 7)], dict(pad=(1, 2, -1, 3), value=0.5)),
    ("pixel_shuffle", [(2, 12, 5, 4)], dict(upscale_factor=2)),
    ("pixel_unshuffle", [(2, 3, 6, 4)], dict(downscale_factor=2)),
    ("bmm", [(3, 5, 7), (3, 7, 6)], {}),
    ("addmm", [(6,), (5, 7), (7, 6)], dict(alpha=0.5)),
] + [
    (name, [(5, 6, 37)], {})
    for name in (
        "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "sigmoid", "tanh", "hardtanh",
        "hardswish", "hardsigmoid", "softplus", "softsign", "logsigmoid", "tanhshrink", "softshrink", "hardshrink",
    )
]
# fmt: on
KEPT_NHWC = ("conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d")
BY_NAME = {"layer_norm": ("weight", "bias"), "group_norm": ("weight", "bias"), "rms_norm": ("weight",)}


def pytorchs(name):
    for module in (F, torch):
        if hasattr(module, name):
            return getattr(module, name)
    raise Skip(f"PyTorch {torch.__version__} has no {name}")


def with_gradients(name, shapes, words, dt, channels_last=False):
    dtype = TYPES[dt]
    tensors = [drawn(shape).to(dtype) for shape in shapes]
    if channels_last:
        tensors[0] = tensors[0].contiguous(memory_format=torch.channels_last)
    ours, refs = [leaf(t) for t in tensors], [exact_leaf(t) for t in tensors]

    def call(function, given):
        named = dict(zip(BY_NAME.get(name, ()), given[1:]))
        return function(*(given[:1] if named else given), **named, **words)

    Y = call(pytorchs(name), refs)
    y = call(getattr(K, name), ours)
    dy = drawn(Y.shape).to(dtype)
    y.backward(dy.to(DEVICE))
    Y.backward(dy.double())
    if channels_last:
        assert y.is_contiguous(memory_format=torch.channels_last), "channels do not stay last"
    bound = 3 * TOLERANCES[dtype]
    gradients = ((f"gradient {i}", t.grad, ref.grad, bound) for i, (t, ref) in enumerate(zip(ours, refs)))
    return compare(("y", y, Y.detach(), bound), *gradients)


for layer in LAYERS + OTHERS:
    words = " ".join(f"{key}={value}" for key, value in layer[2].items())
    for dt in ("f32", "bf16") if layer in LAYERS else ("f32",):
        check(f"K.{layer[0]} {dt} {words}")(lambda layer=layer, dt=dt: with_gradients(*layer, dt))
    if layer[0] in KEPT_NHWC:
        check(f"K.{layer[0]} f16 channels last {words}")(lambda layer=layer: with_gradients(*layer, "f16", True))


@check("K.cross_entropy, embedding, batch_norm")
def _():
    x, t, notes = drawn((9, 13)), torch.randint(0, 13, (9,)), []
    a, b = leaf(x), exact_leaf(x)
    l, L = K.cross_entropy(a, t.to(DEVICE), label_smoothing=0.1), F.cross_entropy(b, t, label_smoothing=0.1)
    (l * 3).backward()
    (L * 3).backward()
    notes.append(compare(("cross_entropy", l, L.detach()), ("dx", a.grad, b.grad)))
    w = drawn((50, 7))
    a, b = leaf(w), exact_leaf(w)
    i = torch.randint(0, 50, (4, 6))
    y, Y = K.embedding(i.to(DEVICE), a), F.embedding(i, b)
    y.square().sum().backward()
    Y.square().sum().backward()
    notes.append(compare(("embedding", y, Y.detach()), ("dw", a.grad, b.grad)))
    x, rm, rv = drawn((4, 6, 5, 5)), torch.zeros(6), torch.ones(6)
    a, b = leaf(x), exact_leaf(x)
    m, v, M, V = rm.to(DEVICE), rv.to(DEVICE), rm.double(), rv.double()
    y, Y = K.batch_norm(a, m, v, training=True), F.batch_norm(b, M, V, training=True)
    y.pow(3).sum().backward()
    Y.pow(3).sum().backward()
    notes.append(compare(("batch_norm", y, Y.detach()), ("dx", a.grad, b.grad, 1e-4), ("mean", m, M), ("var", v, V)))
    return ", ".join(notes)


@check("K.grid_sample, K.affine_grid")
def _():
    x, theta, notes = drawn((2, 3, 9, 11)), drawn((2, 2, 3)) / 2, []
    for mode, padding in (("bilinear", "zeros"), ("bicubic", "reflection"), ("bilinear", "border")):
        a, b = (leaf(x), leaf(theta)), (exact_leaf(x), exact_leaf(theta))
        words, size = dict(mode=mode, padding_mode=padding, align_corners=False), (2, 3, 7, 8)
        y = K.grid_sample(a[0], K.affine_grid(a[1], size, False), **words)
        Y = F.grid_sample(b[0], F.affine_grid(b[1], size, False), **words)
        dy = drawn(tuple(y.shape))
        y.backward(dy.to(DEVICE))
        Y.backward(dy.double())
        notes.append(compare(("y", y, Y.detach()), ("dx", a[0].grad, b[0].grad), ("dtheta", a[1].grad, b[1].grad)))
    return ", ".join(notes)


@check("K.unfold, K.fold")
def _():
    x, notes = drawn((2, 6, 9, 11)), []
    for words in (dict(kernel_size=3, padding=1), dict(kernel_size=(2, 3), dilation=(1, 2), stride=(2, 1))):
        a, b = leaf(x), exact_leaf(x)
        y, Y = K.unfold(a, **words), F.unfold(b, **words)
        z, Z = K.fold(y.sin(), (9, 11), **words), F.fold(Y.sin(), (9, 11), **words)
        dz = drawn(tuple(z.shape))
        z.backward(dz.to(DEVICE))
        Z.backward(dz.double())
        notes.append(compare(("y", y.detach(), Y.detach()), ("z", z.detach(), Z.detach()), ("dx", a.grad, b.grad)))
    return ", ".join(notes)


@check("K.ctc_loss")
def _():
    x, labels = drawn((60, 5, 23)).log_softmax(-1), torch.randint(1, 23, (5, 12))
    inputs, counts, notes = torch.tensor([60, 33, 60, 25, 40]), torch.tensor([12, 7, 0, 12, 9]), []
    for place in ("cpu", DEVICE):
        a, b = leaf(x), exact_leaf(x)
        l = K.ctc_loss(a, labels.to(DEVICE), inputs.to(place), counts.to(place), reduction="none")
        L = F.ctc_loss(b, labels, inputs, counts, reduction="none")
        dl = drawn((5,))
        l.backward(dl.to(DEVICE))
        L.backward(dl.double())
        notes.append(compare(("loss", l, L.detach()), ("dx", a.grad, b.grad)))
    return ", ".join(notes)


@check("second gradients of conv2d")
def _():
    x, w = drawn((1, 2, 6, 6)), drawn((3, 2, 3, 3))

    def penalty(L, x, w):
        first = torch.autograd.grad(L.conv2d(x, w, padding=1).square().sum(), (x, w), create_graph=True)
        return torch.autograd.grad(sum(f.square().sum() for f in first), (x, w))

    a = penalty(K, leaf(x), leaf(w))
    b = penalty(F, exact_leaf(x), exact_leaf(w))
    return compare(*((f"{i}", p, q, 1e-4) for i, (p, q) in enumerate(zip(a, b))))


@check("dropout: manual_seed repeats it, gradient has the mask")
def _():
    x = torch.ones(1000, device=DEVICE, requires_grad=True)
    torch.manual_seed(3)
    a = K.dropout(x, 0.25)
    torch.manual_seed(3)
    b = K.dropout(x, 0.25)
    a.sum().backward()
    assert torch.equal(a, b) and torch.equal(x.grad, a.detach()) and 0.6 < float((a != 0).float().mean()) < 0.9
