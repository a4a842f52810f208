#!/usr/bin/python3
"""Writes recurrent_torch.txt: recurrent layers by PyTorch's modules, and gradients by its autograd through the formulas
of a step, in double, for torch_table_test.cpp.

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
    operands = {"gates": gates, **operands}
    direction = "both" if both else "forward"
    call(f"recurrent_forward {written(operands | results)} cell={cell} direction={direction}", operands, results)


def step(cell, before, gates, p_of, peepholes, h, c):
    """The state behind a step, and what is saved of it. Gates are in PyTorch's order. `p_of(rows, state)`: r state + bias."""
    hidden = h.shape[-1]
    part = [gates[..., i * hidden:(i + 1) * hidden] for i in range(gates.shape[-1] // hidden)]
    if cell == "lstm":
        p, u = p_of(slice(None), h).split(hidden, -1), peepholes.split(hidden, -1)
        i, f = torch.sigmoid(part[0] + p[0] + u[0] * c), torch.sigmoid(part[1] + p[1] + u[2] * c)
        n = torch.tanh(part[2] + p[2])
        c = f * c + i * n
        o = torch.sigmoid(part[3] + p[3] + u[1] * c)
        return o * torch.tanh(c), c, torch.cat([i, f, n, o, c], -1)
    if cell == "gru":
        p = p_of(slice(0, 2 * hidden), h).split(hidden, -1)
        q, z = torch.sigmoid(part[0] + p[0]), torch.sigmoid(part[1] + p[1])
        of_new = p_of(slice(2 * hidden, None), q * h if before else h)
        n = torch.tanh(part[2] + (of_new if before else q * of_new))
        h = (1 - z) * n + z * h
        return h, c, torch.cat([q, z, n, of_new], -1)
    h = {"tanh": torch.tanh, "relu": torch.relu}[cell](part[0] + p_of(slice(None), h))
    return h, c, h


def gradient(cell, images, steps, hidden, reverse=False, lengths=None, before=False, has_peepholes=False):
    """One direction. Each image by itself, because lengths differ."""
    rows = {"lstm": 4, "gru": 3}.get(cell, 1) * hidden
    lengths = [steps] * images if lengths is None else lengths
    gates, r, bias = draw(images, steps, rows).requires_grad_(), draw(rows, hidden) / 4, draw(rows)
    peepholes = draw(3 * hidden) if has_peepholes else torch.zeros(3 * hidden, dtype=torch.float64)
    h0, c0 = draw(images, hidden).requires_grad_(), draw(images, hidden).requires_grad_()
    products = []  # in the order in which they were made: image, place in time, rows, the product

    def p_of(image, t):
        def product(part, state):
            made = r[part] @ state + bias[part]
            made.requires_grad_()
            made.retain_grad()
            products.append((image, t, part, made))
            return made
        return product

    y = [[torch.zeros(hidden, dtype=torch.float64)] * steps for _ in range(images)]
    saved = torch.zeros(images, steps, {"lstm": 5, "gru": 4}.get(cell, 1) * hidden, dtype=torch.float64)
    last = []
    for image in range(images):
        h, c = h0[image], c0[image]
        for number in range(lengths[image]):
            t = lengths[image] - 1 - number if reverse else number
            h, c, parts = step(cell, before, gates[image, t], p_of(image, t), peepholes, h, c)
            y[image][t] = h
            saved[image, t] = parts.detach()
        last.append((h, c))
    y = torch.stack([torch.stack(each) for each in y])
    hn, cn = torch.stack([h for h, _ in last]), torch.stack([c for _, c in last])
    dy, dhn, dcn = draw(*y.shape), draw(*hn.shape), draw(*cn.shape)
    ((y * dy).sum() + (hn * dhn).sum() + (cn * dcn).sum()).backward()
    dproducts = torch.zeros_like(gates)
    for image, t, part, made in products:
        dproducts[image, t, part] = made.grad

    def with_direction(tensor):  # behind images and steps, or images
        return tensor.detach().unsqueeze(-2)
    operands = {"dy": dy, "r": r.unsqueeze(0), "saved": saved}
    results = {"dgates": gates.grad, "dh0": h0.grad}
    if cell == "gru":
        operands |= {"y": y, "h0": h0}
        results |= {} if before else {"dproducts": dproducts}
    if cell == "lstm":
        operands |= {"c0": c0, "dcn": dcn}
        operands |= {"peepholes": peepholes.unsqueeze(0)} if has_peepholes else {}
        results["dc0"] = c0.grad
    operands["dhn"] = dhn
    shown = {name: tensor if name in ("r", "peepholes") else with_direction(tensor) for name, tensor in operands.items()}
    shown["lengths"] = torch.tensor(lengths)
    results = {name: with_direction(tensor) for name, tensor in results.items()}
    words = f"cell={cell} direction={'reverse' if reverse else 'forward'}{' reset=before' if before else ''}"
    # Saved numbers are rounded to f32.
    call(f"recurrent_backward {written(shown | results)} {words}", shown, results, tolerance=1e-5)
    layer = {"gates": with_direction(gates), "r": shown["r"], "r_bias": bias.unsqueeze(0), "h0": with_direction(h0)}
    layer |= {name: shown[name] for name in ("c0", "peepholes", "lengths") if name in shown}
    results = {"y": with_direction(y), "hn": with_direction(hn), "saved": with_direction(saved)}
    call(f"recurrent_forward {written(layer | results)} {words}", layer, results)


def written(operands):
    return " ".join(f"{name}={'i32' if name == 'lengths' else 'f32'}:{extents(tensor)}"
                    for name, tensor in operands.items())


for cell in LAYERS:
    gradient(cell, 2, 4, 3)
    gradient(cell, 3, 5, 2, reverse=True, lengths=[5, 0, 3])
gradient("gru", 2, 4, 3, lengths=[4, 2], before=True)
gradient("lstm", 2, 4, 3, has_peepholes=True)

with torch.no_grad():
    for cell in LAYERS:
        layer(cell, 2, 4, 3, False)
        layer(cell, 3, 5, 2, True, lengths=torch.tensor([5, 1, 3]), has_states=True)
        layer(cell, 1, 3, 5, True, has_bias=False)
