"""Recurrent layers: whole networks of layers and directions, and single steps, as torch.nn's modules call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._autocast import autocast_dtype, autocasting, cast_by_autocast, has_a_type
from ..operators import contraction, moves, recurrent
from ._arguments import INT32, flag, integer, needs_gradient, number, of_first, require, require_served
from .activation import dropout as dropped

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

Result = tuple[torch.Tensor, ...]


class _Weights(NamedTuple):
    """The weights of one layer and direction."""

    input: torch.Tensor
    state: torch.Tensor
    input_bias: torch.Tensor | None = None
    state_bias: torch.Tensor | None = None


class _Rows(NamedTuple):
    """Where the elements of images stand among the rows of a layer's input and result: each row is an image's step.

    `outside`: steps are the outer dimension. Of packed sequences the rest is there: the lengths of images, and the
    places of rows among those of images of equal length, and back.
    """

    images: int
    steps: int
    outside: bool
    lengths: torch.Tensor | None = None
    padded: torch.Tensor | None = None
    packed: torch.Tensor | None = None

    def apart(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows as images and their steps."""
        if self.padded is not None:
            rows = moves.take_rows(rows, self.padded, self.packed)
        if not self.outside:
            return rows.view(self.images, self.steps, rows.shape[1])
        return rows.view(self.steps, self.images, rows.shape[1]).transpose(0, 1)

    def joined(self, images: torch.Tensor) -> torch.Tensor:
        """The rows of images and their steps."""
        rows = (images.transpose(0, 1) if self.outside else images).flatten(0, 1).flatten(1)
        return rows if self.packed is None else moves.take_rows(rows, self.packed, self.padded)


def _packed_rows(batch_sizes: torch.Tensor, rows: int, device: torch.device) -> _Rows:
    """Rows of packed sequences: the first step of all images, then the second one of those that have it, and so on."""
    require(batch_sizes.dim() == 1 and batch_sizes.is_cpu, "batch_sizes is no vector on the CPU", "give a PackedSequence")
    sizes = batch_sizes.tolist()
    require(len(sizes) > 0 and sizes[0] > 0, "batch_sizes has no image", "give one or more")
    falls = all(0 < after <= before for before, after in zip(sizes, sizes[1:]))
    require(falls and sum(sizes) == rows, f"batch_sizes are {sizes} for {rows} rows", "give a PackedSequence")
    steps, images = len(sizes), sizes[0]
    require_served(steps * images <= INT32.max, f"{steps} steps of {images} images")
    if sizes[-1] == images:
        return _Rows(images, steps, True)
    there = torch.arange(images) < batch_sizes.unsqueeze(1)  # steps, images
    packed = there.flatten().nonzero().flatten()
    padded = torch.full((steps * images,), rows)  # none of the rows: its elements are 0
    padded[packed] = torch.arange(rows)
    lengths = there.sum(0)
    return _Rows(images, steps, True, *(each.to(device, torch.int32) for each in (lengths, padded, packed)))


def _layer(
    cell: str, rows: torch.Tensor, places: _Rows, h0: Any, c0: Any, sides: Sequence[_Weights]
) -> Result:
    """The rows of the result, and the states behind the last step."""
    count, direction = len(sides), "both" if len(sides) == 2 else "forward"
    weights = [side.input for side in sides]
    biases, state_biases = [side.input_bias for side in sides], [side.state_bias for side in sides]
    state_bias: Any = None
    if biases[0] is not None:
        if cell == "gru":  # its new gate multiplies the one by the reset gate
            state_bias = torch.stack(state_biases)  # type: ignore[arg-type]
        else:
            biases = [a + b for a, b in zip(biases, state_biases, strict=True)]  # type: ignore[operator]
    bias = biases[0] if count == 1 or biases[0] is None else torch.cat(biases)  # type: ignore[arg-type]
    weight = weights[0] if count == 1 else torch.cat(weights)
    products = contraction.gemm(rows, weight.t(), bias, None, None, 1.0, 1.0, "", [])
    r = sides[0].state.unsqueeze(0) if count == 1 else torch.stack([side.state for side in sides])
    r, state_bias = (None if each is None else each.to(products.dtype) for each in (r, state_bias))
    gates = places.apart(products).unflatten(2, (count, r.shape[1]))
    save = needs_gradient(gates, r, state_bias, h0, c0)
    y, hn, cn, _ = recurrent.recurrent(gates, r, state_bias, h0, c0, places.lengths, cell, direction, save)
    return (places.joined(y), hn) if c0 is None else (places.joined(y), hn, cn)


def _require_weights(cell: str, features: int, hidden: int, weights: _Weights) -> None:
    gates = recurrent.GATES[cell] * hidden
    expected = ((gates, features), (gates, hidden), (gates,), (gates,))
    for each, shape in zip(weights, expected, strict=True):
        if each is not None:
            require(each.shape == shape, f"a weight of {cell} is of {tuple(each.shape)}", f"give {shape}")


def _states_of(cell: str, hx: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The state, and an lstm's cell state."""
    if cell != "lstm":
        require(isinstance(hx, torch.Tensor), f"hx is {type(hx).__name__}", "give a tensor")
        return hx, None
    pair = isinstance(hx, (tuple, list)) and len(hx) == 2 and all(isinstance(each, torch.Tensor) for each in hx)
    require(pair, f"hx is {type(hx).__name__}", "give the state and the cell state")
    require(hx[0].dtype == hx[1].dtype, f"hx is of {hx[0].dtype} and {hx[1].dtype}", "convert one of them")
    return hx[0], hx[1]


def _require_states(expected: tuple[int, ...], h0: torch.Tensor, c0: torch.Tensor | None) -> None:
    """`expected`: the extents in front of the hidden size."""
    fits = h0.dim() == len(expected) + 1 and h0.shape[:-1] == expected and h0.shape[-1] > 0
    require(fits, f"hx is of {tuple(h0.shape)}", f"give ({', '.join(map(str, expected))}, hidden size)")
    require(c0 is None or c0.shape == h0.shape, "the cell state has other extents than the state", "give the same")


# From PyTorch 2 on oneDNN computes an lstm on the CPU, in autocast's type.
_lower_lstm = has_a_type("mkldnn_rnn_layer", "CPU")


def _autocast_states(
    cell: str, packed: bool, input: torch.Tensor, *states: torch.Tensor | None
) -> list[torch.Tensor | None]:
    """States in the type of the result under autocast: on the CPU PyTorch's gru and most lstms keep theirs."""
    keeps = cell == "gru" or (cell == "lstm" and (packed or not _lower_lstm))
    if not autocasting(input) or (input.is_cpu and keeps):
        return list(states)
    dtype = autocast_dtype(input.device.type)
    return [each if each is None or not cast_by_autocast(each) else each.to(dtype) for each in states]


def _require_types(input: torch.Tensor, others: Sequence[torch.Tensor | None]) -> None:
    require(input.dtype.is_floating_point, f"the input is {input.dtype}", "convert it")
    for each in others:
        same = each is None or each.dtype == input.dtype or autocasting(input)
        require(same, f"a weight or state is {None if each is None else each.dtype}, the input {input.dtype}", "convert it")


def _sides(cell: str, params: Sequence[torch.Tensor], has_biases: bool, layers: int, directions: int) -> list[_Weights]:
    """Weights of all layers, and of each its directions."""
    each = 4 if has_biases else 2
    require_served(len(params) != layers * directions * (each + 1), f"{cell} with projections")
    require(len(params) == layers * directions * each, f"{len(params)} weights", f"give {layers * directions * each}")
    return [_Weights(*params[i : i + each]) for i in range(0, len(params), each)]


class _Network(NamedTuple):
    """The layers of a network in their order, of each its directions; states are of all layers."""

    cell: str
    sides: list[_Weights]
    directions: int
    dropout: float  # 0 but in training

    def __call__(self, rows: torch.Tensor, places: _Rows, h0: torch.Tensor, c0: torch.Tensor | None) -> Result:
        ends: list[Result] = []
        for first in range(0, len(self.sides), self.directions):
            rows = rows if first == 0 else dropped(rows, self.dropout)
            own = slice(first, first + self.directions)
            h, c = (None if each is None else each[own].transpose(0, 1) for each in (h0, c0))
            rows, *end = _layer(self.cell, rows, places, h, c, self.sides[own])
            ends.append(tuple(each.transpose(0, 1) for each in end))
        return rows, *(each[0] if len(each) == 1 else torch.cat(each) for each in zip(*ends, strict=True))

    def require_weights(self, features: int, hidden: int) -> None:
        for i, weights in enumerate(self.sides):
            _require_weights(self.cell, features if i < self.directions else self.directions * hidden, hidden, weights)


def _layers(
    cell: str,
    input: torch.Tensor,
    hx: torch.Tensor | Sequence[torch.Tensor],
    params: torch.Tensor | Sequence[torch.Tensor],
    has_biases: bool | Sequence[torch.Tensor],
    num_layers: int,
    dropout: float,
    train: bool | float,
    bidirectional: bool,
    batch_first: bool,
) -> Result:
    """torch.lstm and those like it, of images of equal length, or of packed ones, which have (data, batch_sizes, hx,
    params, ..., bidirectional) in these places."""
    given: tuple[Any, ...] = (
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
    )  # fmt: skip
    packed = isinstance(given[3], (list, tuple))
    input, hx, params, *words = (given[0], *given[2:]) if packed else given
    layers, p = integer("num_layers", words[1]), number("dropout", words[2])
    has_biases, train, both = (flag(name, words[i]) for name, i in (("has_biases", 0), ("train", 3), ("bidirectional", 4)))
    require(layers > 0, f"num_layers is {layers}", "give 1 or more")
    sides = _sides(cell, params, has_biases, layers, 2 if both else 1)
    network = _Network(cell, sides, len(sides) // layers, p if train else 0.0)
    h0, c0 = _states_of(cell, hx)
    _require_types(input, [h0, *params])
    require(input.dim() == (2 if packed else 3), f"the input has {input.dim()} dimensions", "give images and steps")
    batch_first = not packed and flag("batch_first", words[5])
    if packed:
        places, rows = _packed_rows(given[1], input.shape[0], input.device), input
    else:
        images = input if batch_first else input.transpose(0, 1)
        places = _Rows(images.shape[0], images.shape[1], images.stride(1) >= images.stride(0))
        require(places.steps > 0, "the input has no step", "give one or more")
        rows = places.joined(images)
    _require_states((len(sides), places.images), h0, c0)
    network.require_weights(rows.shape[1], h0.shape[2])
    rows, *ends = network(rows, places, *_autocast_states(cell, packed, input, h0, c0))
    if packed:
        return rows, *ends
    images = places.apart(rows)
    return images if batch_first else images.transpose(0, 1), *ends


lstm = of_first(
    "lstm",
    _layers,
    "lstm",
    """torch.lstm, which nn.LSTM calls: the result, and the states behind the last step. `hx`: state and cell state. Of
    packed sequences by place: data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional.
    Projections are not served.""",
)
gru = of_first(
    "gru",
    _layers,
    "gru",
    """torch.gru, which nn.GRU calls: the result, and the state behind the last step. `hx`: the state; the rest is as
    lstm()'s.""",
)
rnn_tanh = of_first("tanh", _layers, "rnn_tanh", "torch.rnn_tanh, which nn.RNN calls; the arguments are gru()'s.")
rnn_relu = of_first("relu", _layers, "rnn_relu", "torch.rnn_relu, which nn.RNN calls; the arguments are gru()'s.")


def _step(cell: str, input: torch.Tensor, hx: Any, weights: Sequence[torch.Tensor | None]) -> Result:
    h0, c0 = _states_of(cell, hx)
    _require_types(input, [h0, *weights])
    require((weights[2] is None) == (weights[3] is None), "one of two biases is given", "give both or none")
    require(input.dim() == 2 and h0.dim() == 2, "a step takes images and their features", "give 2 dimensions")
    _require_states((input.shape[0],), h0, c0)
    h, c = (None if each is None else each.unsqueeze(0) for each in (h0, c0))
    network = _Network(cell, [_Weights(*weights)], 1, 0.0)  # type: ignore[arg-type]
    network.require_weights(input.shape[1], h0.shape[1])
    dtype = autocast_dtype(input.device.type) if autocasting(input) else input.dtype
    h, c = (None if each is None else each.to(dtype) for each in (h, c))
    _, *ends = network(input, _Rows(input.shape[0], 1, True), h, c)  # type: ignore[arg-type]
    return tuple(each[0] for each in ends)


def lstm_cell(
    input: torch.Tensor,
    hx: Sequence[torch.Tensor],
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
) -> Result:
    """torch.lstm_cell, one step, which nn.LSTMCell calls: the state and the cell state behind it."""
    return _step("lstm", input, hx, (w_ih, w_hh, b_ih, b_hh))


def gru_cell(
    input: torch.Tensor,
    hx: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
) -> torch.Tensor:
    """torch.gru_cell, one step, which nn.GRUCell calls."""
    return _step("gru", input, hx, (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: torch.Tensor,
    hx: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
) -> torch.Tensor:
    """torch.rnn_tanh_cell, one step, which nn.RNNCell calls."""
    return _step("tanh", input, hx, (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: torch.Tensor,
    hx: torch.Tensor,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None,
    b_hh: torch.Tensor | None = None,
) -> torch.Tensor:
    """torch.rnn_relu_cell, one step, which nn.RNNCell calls."""
    return _step("relu", input, hx, (w_ih, w_hh, b_ih, b_hh))[0]
