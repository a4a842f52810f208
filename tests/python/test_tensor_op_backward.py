"""Gradients of tensor functions, against PyTorch's."""

import kiln
import pytest

# The function, and which inputs its gradients by a, and by b, read.
MODES = {
    "add": (lambda torch, a, b: a + b, "", ""),
    "sub": (lambda torch, a, b: a - b, "", ""),
    "mul": (lambda torch, a, b: a * b, "b", "a"),
    "div": (lambda torch, a, b: a / b, "b", "ab"),
    "min": (lambda torch, a, b: torch.minimum(a, b), "ab", "ab"),
    "max": (lambda torch, a, b: torch.maximum(a, b), "ab", "ab"),
    "pow": (lambda torch, a, b: a**b, "ab", "ab"),
    "sqrt": (lambda torch, a, b: a.sqrt(), "a"),
    "exp": (lambda torch, a, b: a.exp(), "a"),
    "log": (lambda torch, a, b: a.log(), "a"),
    "abs": (lambda torch, a, b: a.abs(), "a"),
    "neg": (lambda torch, a, b: -a, ""),
}
GRADIENTS = [(mode, by) for mode, (_, *reads) in MODES.items() for by in "ab"[: len(reads)]]


@pytest.mark.parametrize(("mode", "by"), GRADIENTS)
@pytest.mark.parametrize("own", [(4, 5, 3), (1, 5, 1), (4, 1, 3), (1, 1, 1)], ids=str)
def test_gradients_are_pytorchs(context, torch, mode, own, by):
    function, *reads = MODES[mode]
    torch.manual_seed(1)
    inputs = {"a": torch.rand(4, 5, 3) + 0.5, "b": torch.rand(4, 5, 3) + 0.5}
    if mode in ("min", "max"):
        inputs["b"][:, ::2] = inputs["a"][:, ::2]  # equal ones
    if mode in ("abs", "neg"):
        inputs["a"] -= 1
    inputs[by] = inputs[by][tuple(slice(extent) for extent in own)].contiguous()
    doubles = {name: tensor.double().requires_grad_(name == by) for name, tensor in inputs.items()}
    y = function(torch, doubles["a"], doubles["b"])
    dy = torch.randn(y.shape)
    y.backward(dy.double())
    given = {name: inputs[name] for name in reads["ab".index(by)]}
    dx = torch.empty_like(inputs[by])
    kiln.tensor_op_backward(dy, **given, out=dx, mode=mode, input=by, context=context)
    torch.testing.assert_close(dx.double(), doubles[by].grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["b", "c"])
def test_selections(context, torch, by):
    a = torch.tensor([[1.0, 0.0, float("nan"), -2.0]])
    dy = torch.randn(3, 4)
    dx = kiln.tensor_op_backward(dy, a=a, out=torch.empty(3, 4), mode="select", input=by, context=context)
    is_b = a != 0
    assert torch.equal(dx, torch.where(is_b if by == "b" else ~is_b, dy, torch.zeros_like(dy)))
