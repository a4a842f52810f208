"""Gradients of reductions, against PyTorch's."""

import kiln
import pytest


def of_pytorch(torch, mode, x, axes):
    if mode == "mul":
        for axis in axes:
            x = x.prod(axis, keepdim=True)
        return x
    if mode == "mul_no_zeros":
        return of_pytorch(torch, "mul", torch.where(x == 0, torch.ones_like(x), x), axes)
    return {
        "add": lambda: x.sum(axes, keepdim=True),
        "mean": lambda: x.mean(axes, keepdim=True),
        "norm1": lambda: x.abs().sum(axes, keepdim=True),
        "norm2": lambda: torch.linalg.vector_norm(x, dim=axes, keepdim=True),
        "min": lambda: x.amin(axes, keepdim=True),
        "max": lambda: x.amax(axes, keepdim=True),
        "amax": lambda: x.abs().amax(axes, keepdim=True),
    }[mode]()


@pytest.mark.parametrize("mode", ["add", "mul", "min", "max", "amax", "mean", "norm1", "norm2", "mul_no_zeros"])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2)], ids=str)
def test_gradients_are_pytorchs(context, torch, mode, axes):
    torch.manual_seed(1)
    x = torch.randn(4, 5, 3)
    if "mul" in mode:  # rows with a zero, with several, without
        x[0, 2, 0] = x[1, 1, 1] = x[1, 4, 1] = x[3, 0, 2] = 0
    of_doubles = x.double().requires_grad_()
    y = of_pytorch(torch, mode, of_doubles, axes)
    dy = torch.randn(y.shape)
    y.backward(dy.double())

    given = {}
    if mode in ("min", "max", "amax"):
        indices = torch.empty(y.shape, dtype=torch.int32)
        kiln.reduce(x, indices=indices, axes=axes, mode=mode, context=context)
        given["indices"] = indices
    if mode in ("mul", "mul_no_zeros", "norm1", "norm2", "amax"):
        given["x"] = x
    if mode in ("mul", "mul_no_zeros", "norm2"):
        given["y"] = kiln.reduce(x, axes=axes, mode=mode, context=context)
    dx = kiln.reduce_backward(dy, **given, out=torch.empty_like(x), axes=axes, mode=mode, context=context)
    torch.testing.assert_close(dx.double(), of_doubles.grad, rtol=2e-6, atol=1e-6)


def test_operands_that_a_mode_does_not_read_are_refused(context, torch):
    dy, x = torch.randn(3, 1), torch.randn(3, 4)
    with pytest.raises(kiln.InvalidArgument, match="operand x is given .the gradient of add reads dy"):
        kiln.reduce_backward(dy, x=x, out=torch.empty_like(x), axes=1, context=context)
    with pytest.raises(kiln.InvalidArgument, match="operand y is missing .the gradient of norm2 reads dy, x, y"):
        kiln.reduce_backward(dy, x=x, out=torch.empty_like(x), axes=1, mode="norm2", context=context)
