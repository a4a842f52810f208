"""Recurrent layers of PyTorch as calls of Kiln, forward and backward."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import kiln  # noqa: E402

PAGE = pathlib.Path(__file__).parents[3] / "docs/request-syntax.md"


def test_the_snippet_of_the_page_runs():
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(snippets) == 1 and "recurrent_forward" in snippets[0]
    exec(compile(snippets[0], str(PAGE), "exec"), {})


@pytest.mark.parametrize(
    "cell, module, rows, parts", [("lstm", torch.nn.LSTM, 4, 5), ("gru", torch.nn.GRU, 3, 4), ("tanh", torch.nn.RNN, 1, 1)]
)
def test_gradients_are_those_of_pytorch(cell, module, rows, parts):
    torch.manual_seed(1)
    images, steps, features, hidden = 2, 4, 3, 5
    layer = module(features, hidden, batch_first=True, bidirectional=True)
    x = torch.randn(images, steps, features, requires_grad=True)
    ends = ("", "_reverse")

    def joined(name):
        return torch.stack([getattr(layer, f"{name}_l0{end}").detach() for end in ends])

    w, r = joined("weight_ih"), joined("weight_hh")
    gates = torch.einsum("nti,dgi->ntdg", x.detach(), w) + joined("bias_ih")
    saved = torch.empty(images, steps, 2, parts * hidden)
    y = kiln.recurrent_forward(gates, r, r_bias=joined("bias_hh"), cell=cell, direction="both", saved=saved)
    expected, _ = layer(x)
    torch.testing.assert_close(y.reshape(images, steps, 2 * hidden), expected.detach())

    dy = torch.randn_like(expected)
    expected.backward(dy)
    dproducts = torch.empty(images, steps, 2, rows * hidden)
    of_gru = {"y": y, "dproducts": dproducts} if cell == "gru" else {}
    dgates = kiln.recurrent_backward(
        dy.reshape(images, steps, 2, hidden), r, saved, cell=cell, direction="both", **of_gru
    )
    if cell != "gru":
        dproducts = dgates
    before = torch.zeros_like(y)  # the state before each step
    before[:, 1:, 0], before[:, :-1, 1] = y[:, :-1, 0], y[:, 1:, 1]
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(torch.einsum("ntdg,dgi->nti", dgates, w), x.grad, **close)
    for name, gradient in (
        ("weight_ih", torch.einsum("ntdg,nti->dgi", dgates, x.detach())),
        ("weight_hh", torch.einsum("ntdg,ntdh->dgh", dproducts, before)),
        ("bias_ih", dgates.sum((0, 1))),
        ("bias_hh", dproducts.sum((0, 1))),
    ):
        for d, end in enumerate(ends):
            torch.testing.assert_close(gradient[d], getattr(layer, f"{name}_l0{end}").grad, **close)
