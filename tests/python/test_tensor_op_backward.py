"""Gradients of tensor functions, against PyTorch's."""

import kiln
import pytest

MODES = {
    "add": lambda torch, a, b: a + b,
    "sub": lambda torch, a, b: a - b,
    "mul": lambda torch, a, b: a * b,
    "div": lambda torch, a, b: a / b,
    "min": lambda torch, a, b: torch.minimum(a, b),
    "max": lambda torch, a, b: torch.maximum(a, b),
    "pow": lambda torch, a, b: a**b,
    "sqrt": lambda torch, a, b: a.sqrt(),
    "exp": lambda torch, a, b: a.exp(),
    "log": lambda torch, a, b: a.log(),
    "abs": lambda torch, a, b: a.abs(),
    "neg": lambda torch, a, b: -a,
}
READS = {"mul": ("b", "a"), "div": ("b", "ab"), "min": ("ab", "ab"), "max": ("ab", "ab"), "pow": ("ab", "ab")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("own", [(4, 5, 3), (1, 5, 1), (4, 1, 3), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("by", ["a", "b"])
def test_gradients_are_pytorchs(context, torch, mode, own, by):
    is_of_two = mode in ("add", "sub", "mul", "div", "min", "max", "pow")
    if by == "b" and not is_of_two:
        pytest.skip(f"{mode} has one input")
    torch.manual_seed(1)
    inputs = {"a": torch.rand(4, 5, 3) + 0.5, "b": torch.rand(4, 5, 3) + 0.5}
    if mode in ("min", "max"):
        inputs["b"][:, ::2] = inputs["a"][:, ::2]  # equal ones
    if mode in ("abs", "neg"):
        inputs["a"] -= 1
    inputs[by] = inputs[by][tuple(slice(extent) for extent in own)].contiguous()
    doubles = {name: tensor.double().requires_grad_(name == by) for name, tensor in inputs.items()}
    y = MODES[mode](torch, doubles["a"], doubles["b"])
    dy = torch.randn(y.shape)
    y.backward(dy.double())
    reads = READS.get(mode, ("", ""))["ab".index(by)] if is_of_two else "" if mode == "neg" else "a"
    given = {name: inputs[name] for name in reads}
    dx = kiln.tensor_op_backward(
        dy, **given, out=torch.empty_like(inputs[by]), mode=mode, input=by, context=context
    )
    torch.testing.assert_close(dx.double(), doubles[by].grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["b", "c"])
def test_selections(context, torch, by):
    a = torch.tensor([[1.0, 0.0, float("nan"), -2.0]])
    dy = torch.randn(3, 4)
    dx = kiln.tensor_op_backward(dy, a=a, out=torch.empty(3, 4), mode="select", input=by, context=context)
    is_b = a != 0
    assert torch.equal(dx, torch.where(is_b if by == "b" else ~is_b, dy, torch.zeros_like(dy)))
