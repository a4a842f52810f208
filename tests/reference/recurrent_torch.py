#!/usr/bin/python3
"""Writes recurrent_torch.txt: recurrent layers by PyTorch, in double, for torch_table_test.cpp.

    /usr/bin/python3 tests/reference/recurrent_torch.py > tests/reference/recurrent_torch.txt
"""
import torch
from torch.nn.utils import rnn

from torch_table import call, draw, extents

LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU,
          "tanh": lambda *sizes, **options: torch.nn.RNN(*sizes, nonlinearity="tanh", **options),
          "relu": lambda *sizes, **options: torch.nn.RNN(*sizes, nonlinearity="relu", **options)}


def layer(cell, images, steps, hidden, both, lengths=None, has_states=False, has_bias=True):
    """One layer: what its inputs give to the gates is an operand, exact in f32."""
    features, directions = 2, 2 if both else 1
    made = LAYERS[cell](features, hidden, batch_first=True, bidirectional=both, bias=has_bias).to(torch.float64)
    for parameter in made.parameters():
        parameter.data = draw(*parameter.shape)
    x = draw(images, steps, features)

    def joined(name):
        return torch.stack([getattr(made, f"{name}_l0{end}").data for end in ["", "_reverse"][:directions]])

    gates = torch.einsum("nti,dgi->ntdg", x, joined("weight_ih"))
    operands = {"r": joined("weight_hh")}
    if has_bias:
        gates = gates + joined("bias_ih")
        operands["r_bias"] = joined("bias_hh")
    states = []
    if has_states:
        for name in ["h0", "c0"][:2 if cell == "lstm" else 1]:
            states.append(draw(directions, images, hidden))
            operands[name] = states[-1].permute(1, 0, 2)
    given = (tuple(states) if cell == "lstm" else states[0]) if states else None
    if lengths is None:
        y, last = made(x, given)
    else:
        y, last = made(rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False), given)
        y = rnn.pad_packed_sequence(y, batch_first=True, total_length=steps)[0]
        operands["lengths"] = lengths
    results = {"y": y.reshape(images, steps, directions, hidden)}
    for name, state in zip(["hn", "cn"], last if cell == "lstm" else [last]):
        results[name] = state.permute(1, 0, 2)
    words = [f"gates=f32:{extents(gates)}"]
    words += [f"{name}={'i32' if name == 'lengths' else 'f32'}:{extents(tensor)}" for name, tensor in operands.items()]
    words += [f"{name}=f32:{extents(tensor)}" for name, tensor in results.items()]
    direction = "both" if both else "forward"
    call(f"recurrent_forward {' '.join(words)} cell={cell} direction={direction}", {"gates": gates, **operands}, results)


with torch.no_grad():
    for cell in LAYERS:
        layer(cell, 2, 4, 3, False)
        layer(cell, 3, 5, 2, True, lengths=torch.tensor([5, 1, 3]), has_states=True)
        layer(cell, 1, 3, 5, True, has_bias=False)
