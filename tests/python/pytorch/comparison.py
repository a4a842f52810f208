"""Holds functions of kiln.torch and their gradients against PyTorch's own."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

# Both sum in f32 in orders of their own, over some hundred products of numbers of about 1. In f16 and bf16 each rounds
# its results, and PyTorch what it has in between: some units in the last place (2^-10, 2^-7) of the largest.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def copies(tensors):
    """Copies with the strides of `tensors`, of which those of floats require gradients."""
    made = []
    for tensor in tensors:
        copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)
        made.append(copy.requires_grad_(tensor.dtype.is_floating_point))
    return made


def close(actual, expected, said):
    tolerance = TOLERANCES.get(expected.dtype, 0)
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{said}: {text}"
    )


def compare(function, reference, *tensors, in_f32=False):
    """Compares results and, for random gradients, the gradients with respect to all `tensors` of floats.

    `in_f32`: PyTorch computes in f32 what it has no half precision for on the CPU, or rounds in between.
    """
    ours = copies(tensors)
    theirs = copies([each.float() if in_f32 and each.dtype.is_floating_point else each for each in tensors])
    y, expected = function(*ours), reference(*theirs)
    assert y.shape == expected.shape
    dtype = tensors[0].dtype
    close(y, expected.to(dtype) if in_f32 else expected, "result")
    assert y.is_contiguous() == expected.is_contiguous()
    dy = torch.randn_like(expected)
    y.backward(dy.to(y.dtype))
    expected.backward(dy)
    for place, (mine, other) in enumerate(zip(ours, theirs)):
        if mine.requires_grad and other.grad is not None:
            close(mine.grad, other.grad.to(mine.dtype), f"gradient {place}")
