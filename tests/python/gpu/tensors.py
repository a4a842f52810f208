"""Tensors in every arrangement, and comparison with exact ones: in f64, on the CPU. Capitals name exact tensors."""

import math

import torch

from checks import DEVICE, ON_GPU

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
DTYPES = tuple(TYPES)
# Largest error, relative to the largest element of the expected result.
TOLERANCES = {torch.float32: 1e-5, torch.float16: 1.5e-3, torch.bfloat16: 1.1e-2}

ARRANGEMENTS = [
    ("f32", "packed"), ("f16", "packed"), ("bf16", "packed"), ("f32", "nhwc"), ("f16", "nhwc"), ("bf16", "nhwc"),
    ("f32", "region"), ("f16", "region"), ("f32", "every_second"), ("f16", "offset"), ("bf16", "reversed"),
]  # fmt: skip
THREE = [("f32", "packed"), ("f16", "nhwc"), ("bf16", "region")]

GUARD = 7.25  # in elements around an output

# PyTorch's f32 products are in f32, as Kiln's.
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False
generator = torch.Generator().manual_seed(7)


def synchronize():
    if ON_GPU:
        torch.cuda.synchronize()


def sleep_on_device(ms):
    """Keeps the current stream busy for some `ms` milliseconds, at 1.6 GHz."""
    torch.cuda._sleep(int(ms * 1.6e6))


def exact(t):
    return t.detach().to("cpu").to(torch.float64)


def drawn(shape, scale=1.0):
    """Normally distributed, on the CPU."""
    return torch.randn(*shape, generator=generator) * scale


def leaf(t):
    return t.detach().clone(memory_format=torch.preserve_format).to(DEVICE).requires_grad_()


def exact_leaf(t):
    return t.detach().clone(memory_format=torch.preserve_format).double().requires_grad_()


class Arranged:
    """A view with the extents `shape` into a buffer of guard elements."""

    def __init__(self, shape, dtype, arranged):
        shape, count = list(shape), math.prod(shape)
        dimensions = len(shape)

        def full(extents):
            return torch.full(extents, GUARD, dtype=dtype, device=DEVICE)

        if arranged == "region":
            self.buffer = full([extent + 3 for extent in shape])
            self.view = self.buffer[tuple(slice(1, 1 + extent) for extent in shape)]
        elif arranged == "every_second":
            self.buffer = full([*shape[:-1], 2 * shape[-1] + 1])
            self.view = self.buffer[..., 1::2]
        elif arranged == "offset":
            self.buffer = full([count + 3])
            self.view = self.buffer[1 : 1 + count].view(shape)
        elif arranged == "reversed":
            self.buffer = full(shape[::-1])
            self.view = self.buffer.permute(*reversed(range(dimensions)))
        elif arranged == "nhwc" and dimensions >= 3:
            self.buffer = full([shape[0], *shape[2:], shape[1]])
            self.view = self.buffer.permute(0, dimensions - 1, *range(1, dimensions - 1))
        else:
            self.buffer = self.view = full(shape)
        assert list(self.view.shape) == shape

    def check_guards(self):
        """Raises if an element outside of the view was written."""
        outside = torch.ones_like(self.buffer, dtype=torch.bool)
        outside.as_strided(self.view.shape, self.view.stride(), self.view.storage_offset()).fill_(False)
        written = int((self.buffer.float()[outside] != GUARD).sum())
        assert written == 0, f"{written} elements outside of the output were written"


def tensor(shape, dtype, arranged="packed", scale=1.0):
    """An input. Elements around it are NaN, so that a kernel that uses one is noticed."""
    made = Arranged(shape, TYPES[dtype], arranged)
    values = drawn(shape, scale).to(TYPES[dtype])
    if arranged in ("region", "every_second", "offset"):
        made.buffer.fill_(float("nan"))
    made.view.copy_(values)
    return made.view


def error_of(result, expected):
    """The largest difference, relative to the largest element; infinity where NaN or infinities differ."""
    result, expected = exact(result), expected.to(torch.float64)
    assert result.shape == expected.shape, f"extents {tuple(result.shape)}, expected {tuple(expected.shape)}"
    special = ~expected.isfinite() | ~result.isfinite()
    same = (result == expected) | (result.isnan() & expected.isnan())
    if bool((special & ~same).any()):
        return float("inf")
    if bool(special.all()):
        return 0.0
    return float((result - expected)[~special].abs().max() / expected[~special].abs().max().clamp_min(1e-6))


def compare(*results):
    """Takes (name, result, expected[, tolerance]), raises if one is off, and returns the errors as text."""
    errors, wrong = [], []
    for name, result, expected, *tolerance in results:
        bound = tolerance[0] if tolerance else TOLERANCES[result.dtype]
        error = error_of(result, expected)
        errors.append(f"{name} {error:.1e}")
        if not error <= bound:
            at = (exact(result) - expected).abs().nan_to_num(1e300).argmax().item()
            got, right = exact(result).flatten()[at], expected.flatten()[at]
            wrong.append(f"{name}: error {error:.3e} > {bound:.1e}; element {at} is {got:.6g}, expected {right:.6g}")
    if wrong:
        raise AssertionError("; ".join(wrong))
    return ", ".join(errors)
