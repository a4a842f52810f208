"""Recurrent layers of PyTorch: as calls of Kiln, and as modules and functions of kiln.torch."""

import copy
import inspect
import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

from torch import nn  # noqa: E402
from torch.nn.utils.rnn import PackedSequence, pack_sequence  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402


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


CELLS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *given, **words: nn.RNN(*given, nonlinearity="relu", **words),
}
STEPS, IMAGES, FEATURES, HIDDEN = 4, 3, 5, 6


def optimized(net, **words):
    """A copy on Kiln, in which every layer has to be."""
    return kt.optimize(copy.deepcopy(net), strict=True, **words)


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, PackedSequence):
        return [value.data]
    return [each for part in value if part is not None for each in tensors(part)]


def same_with_gradients(net, *given, mine=None):
    """Results and gradients of all inputs and parameters are PyTorch's."""
    mine = optimized(net) if mine is None else mine

    def run(of):
        of.zero_grad()
        inputs = [each.detach().clone().requires_grad_(each.is_floating_point()) for each in tensors(given)]
        again = iter(inputs)
        results = tensors(of(*(rebuilt(each, again) for each in given)))
        torch.manual_seed(5)
        sum((each * torch.randn(each.shape)).sum() for each in results).backward()
        return results, [each.grad for each in (*inputs, *of.parameters())]

    for one, other in zip(run(mine), run(net)):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def rebuilt(value, parts):
    if isinstance(value, PackedSequence):
        return PackedSequence(next(parts), value.batch_sizes, value.sorted_indices, value.unsorted_indices)
    if isinstance(value, tuple):
        return tuple(rebuilt(each, parts) for each in value)
    return next(parts)


def states(cell, images, layers=1, *others):
    h = torch.randn(layers, images, HIDDEN)
    return (h, torch.randn_like(h)) if cell == "lstm" else h


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "words", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}], ids=("plain", "deep", "rows")
)
def test_modules_are_pytorch_s(cell, words):
    torch.manual_seed(2)
    net = CELLS[cell](FEATURES, HIDDEN, **words)
    extents = (IMAGES, STEPS) if words.get("batch_first") else (STEPS, IMAGES)
    x = torch.randn(*extents, FEATURES)
    if words:
        layers = 4 if "num_layers" in words else 1
        same_with_gradients(net, x, states(cell, IMAGES, layers))
    else:
        same_with_gradients(net, x)
        mine = optimized(net)
        y, h = mine(x[:, 0])  # without images
        torch.testing.assert_close((y, h), net(x[:, 0]), rtol=1e-4, atol=1e-5)
        assert mine(x)[0].is_contiguous()
        assert "4 of 4" in str(kt.report(mine)) or "1 of 1" in str(kt.report(mine))


@pytest.mark.parametrize("cell", CELLS)
def test_packed_sequences_are_pytorch_s(cell):
    torch.manual_seed(3)
    net = CELLS[cell](FEATURES, HIDDEN, num_layers=2, bidirectional=True)
    images = [torch.randn(length, FEATURES) for length in (2, 4, 1, 4)]
    packed = pack_sequence(images, enforce_sorted=False)
    same_with_gradients(net, packed, states(cell, 4, 4))
    same_with_gradients(net, pack_sequence([images[1], images[3]]))  # of equal length


@pytest.mark.parametrize("module", (nn.LSTMCell, nn.GRUCell, nn.RNNCell))
def test_steps_are_pytorch_s(module):
    torch.manual_seed(4)
    net = module(FEATURES, HIDDEN)
    h = torch.randn(IMAGES, HIDDEN)
    same_with_gradients(net, torch.randn(IMAGES, FEATURES), (h, torch.randn_like(h)) if module is nn.LSTMCell else h)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_gradients(cell):
    torch.manual_seed(6)
    net = CELLS[cell](FEATURES, HIDDEN, bidirectional=True)
    packed = pack_sequence([torch.randn(3, FEATURES), torch.randn(2, FEATURES)])

    def penalty(of):
        data = packed.data.clone().requires_grad_()
        h0 = torch.full((2, 2, HIDDEN), 0.25, requires_grad=True)
        given = (h0, h0 * 2) if cell == "lstm" else h0
        y, end = of(PackedSequence(data, packed.batch_sizes), given)
        value = y.data.square().sum() + sum(each.sum() for each in tensors((end,)))
        first = torch.autograd.grad(value, (data, h0, *of.parameters()), create_graph=True)
        sum(each.square().sum() for each in first).backward()
        return [*first, data.grad, h0.grad, *(each.grad for each in of.parameters())]

    for mine, theirs in zip(penalty(optimized(net)), penalty(net)):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("cell", ("lstm", "gru"))
def test_states_alone_have_gradients(cell):
    torch.manual_seed(10)
    net, x = CELLS[cell](FEATURES, HIDDEN).requires_grad_(False), torch.randn(STEPS, IMAGES, FEATURES)

    def gradients(of):
        h0 = [torch.full((1, IMAGES, HIDDEN), 0.25 + i, requires_grad=True) for i in range(2 if cell == "lstm" else 1)]
        y, _ = of(x, tuple(h0) if cell == "lstm" else h0[0])
        return torch.autograd.grad(y.square().sum(), h0)

    torch.testing.assert_close(gradients(optimized(net)), gradients(net), rtol=1e-4, atol=1e-5)


def test_autocast_of_packed_sequences_keeps_types_as_pytorch_does():
    torch.manual_seed(11)
    net, packed = nn.LSTM(FEATURES, HIDDEN), pack_sequence([torch.randn(length, FEATURES) for length in (3, 2)])
    given = torch.randn(1, 2, HIDDEN), torch.randn(1, 2, HIDDEN)
    with torch.autocast("cpu", torch.bfloat16), kt.record() as requests:
        results, expected = tensors(optimized(net)(packed, given)), tensors(net(packed, given))
    assert [each.dtype for each in results] == [each.dtype for each in expected]
    (line,) = (each for each in requests if each.startswith("recurrent"))
    assert " gates=bf16:" in line and " r=bf16:" in line


def test_half_precision_and_autocast():
    torch.manual_seed(7)
    x = torch.randn(STEPS, IMAGES, FEATURES)
    net = nn.LSTM(FEATURES, HIDDEN, num_layers=2, bidirectional=True)
    expected = net(x)[0]
    for dtype in (torch.bfloat16, torch.float16):
        y, (h, c) = optimized(net).to(dtype)(x.to(dtype))
        assert {y.dtype, h.dtype, c.dtype} == {dtype}
        torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.03)
    for each in (net, nn.GRU(FEATURES, HIDDEN), nn.RNN(FEATURES, HIDDEN), nn.LSTMCell(FEATURES, HIDDEN)):
        given = x[0] if isinstance(each, nn.LSTMCell) else x
        mine = optimized(each)
        with torch.autocast("cpu", torch.bfloat16):
            results, pytorch_s = tensors(mine(given)), tensors(each(given))
        types = [a.dtype for a in pytorch_s]
        if isinstance(each, nn.LSTMCell):  # of which autocast on a CPU does not know
            types = [torch.bfloat16, torch.bfloat16]
        assert [a.dtype for a in results] == types
        for a, b in zip(results, pytorch_s):
            torch.testing.assert_close(a.float(), b.float(), rtol=0, atol=0.03)
        sum(a.float().sum() for a in results).backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in mine.parameters())


def test_dropout_stands_between_layers():
    torch.manual_seed(8)
    net = nn.GRU(FEATURES, HIDDEN, num_layers=2, dropout=0.5)
    x = torch.randn(STEPS, IMAGES, FEATURES)
    mine = optimized(net)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(mine(x)[0])
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    same_with_gradients(net.eval(), x, mine=mine.eval())
    net.train().dropout = 1.0  # the second layer gets nothing but its states
    whole = optimized(net)
    whole.dropout = 1.0
    same_with_gradients(net, x, mine=whole)


def test_a_model_around_a_layer_runs_without_gradients():
    torch.manual_seed(9)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.rnn = nn.Embedding(10, FEATURES), nn.LSTM(FEATURES, HIDDEN, batch_first=True)
            self.first, self.last = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, 2)

        def forward(self, words):
            x = self.embedding(words)
            h = self.first(x[:, 0]).unsqueeze(0)  # waits in a chain when the layer gets it
            return self.last(torch.relu(self.rnn(x, (h, h))[0]))

    net, words = Net(), torch.randint(0, 10, (IMAGES, STEPS))
    mine = optimized(net, fold=True)
    with torch.no_grad():
        torch.testing.assert_close(mine(words), net(words), rtol=1e-4, atol=1e-5)


def test_what_is_not_served_is_computed_by_pytorch():
    x = torch.randn(STEPS, IMAGES, FEATURES)
    for net, given in (
        (nn.LSTM(FEATURES, HIDDEN, proj_size=3), x),
        (nn.GRU(FEATURES, HIDDEN).double(), x.double()),
    ):
        mine = kt.optimize(copy.deepcopy(net))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kiln.Warning)
            torch.testing.assert_close(mine(given), net(given))
        with pytest.raises((kiln.Unsupported, kiln.InvalidArgument), match="projections|float64"):
            optimized(net)(given)


def test_wrong_arguments_raise_pytorch_s_errors():
    x, net = torch.randn(STEPS, IMAGES, FEATURES), nn.LSTM(FEATURES, HIDDEN)
    h, mine = torch.randn(1, IMAGES, HIDDEN), kt.optimize(copy.deepcopy(net))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kiln.Warning)
        for given in ((x[:0],), (x[..., :2],), (x, (h, h[:, :1])), (x, (h[..., :2], h)), (x.double(),), (x.int(),)):
            with pytest.raises((RuntimeError, ValueError)) as expected:
                net(*given)
            with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
                mine(*given)
    weights = list(net.parameters())
    words = (True, 1, 0.0, False, False, False)
    for given, message in (
        ((x[0], (h, h), weights, *words), "dimensions"),
        ((x, h, weights, *words), "hx is Tensor"),
        ((x, (h, h.half()), weights, *words), "hx is of"),
        ((x, (h[:, :1], h[:, :1]), weights, *words), rf"hx is of \(1, 1, {HIDDEN}\) .give \(1, {IMAGES}, hidden size\)"),
        ((x, (h, h), weights[:3], *words), "3 weights"),
        ((x, (h, h), [weights[1], *weights[1:]], *words), "a weight of lstm is of"),
        ((x.int(), (h, h), weights, *words), "the input is torch.int32"),
        ((x[:0], (h, h), weights, *words), "no step"),
        ((x.flatten(0, 1), torch.tensor([1, 2]), (h, h), weights, *words[:-1]), "batch_sizes"),
        ((x.flatten(0, 1), torch.tensor([3, 3]), (h, h), weights, *words[:-1]), "batch_sizes"),
        ((x[0], torch.tensor([3, 0]), (h, h), weights, *words[:-1]), r"batch_sizes are \[3, 0\]"),
        ((x[0, :0], torch.tensor([0]), (h, h), weights, *words[:-1]), "batch_sizes has no image"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=message):
            K.lstm(*given)
    with pytest.raises(TypeError, match="batch_first"):
        K.lstm(x, (h, h), weights, *words[:-1])
    with pytest.raises(kiln.InvalidArgument, match="one of two biases is given"):
        K.lstm_cell(x[0], (h[0], h[0]), *weights[:3])


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn_tanh"])
def test_a_wrong_state_of_a_step_is_reported_as_the_caller_gave_it(cell):
    x, weights = torch.randn(3, 4), [torch.randn(4, 4)] * 2
    state = torch.randn(2, 6)
    with pytest.raises(kiln.InvalidArgument, match=r"hx is of \(2, 6\) .give \(3, hidden size\)"):
        getattr(K, f"{cell}_cell")(x, (state, state) if cell == "lstm" else state, *weights)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_the_layers_functions_name_their_arguments(name):
    """As PyTorch's names are: those of packed sequences are given by place."""
    names = "input hx params has_biases num_layers dropout train bidirectional batch_first"
    assert list(inspect.signature(getattr(K, name)).parameters) == names.split()


def test_requests_of_a_layer_are_recorded():
    net, x = nn.LSTM(FEATURES, HIDDEN, bidirectional=True), torch.randn(STEPS, IMAGES, FEATURES)
    with kt.record() as requests:
        net(x)[0].sum().backward()
    names = [each.split()[0] for each in requests]
    assert names.count("recurrent_forward") == names.count("recurrent_backward") == 1
    assert names.count("gemm") >= 3
    with kt.record() as own:
        optimized(net)(x)[0].sum().backward()
    assert list(own) == list(requests)


def test_requests_of_packed_sequences_are_recorded():
    net, recorded = nn.LSTM(FEATURES, HIDDEN), []
    packed = pack_sequence([torch.randn(each, FEATURES) for each in (2, 4)], enforce_sorted=False)
    for each in (net, optimized(net)):
        with kt.record() as requests:
            each(packed)[0].data.sum().backward()
        recorded.append(sorted(requests))
    assert recorded[0] == recorded[1] and any(" lengths=i32:2" in line for line in recorded[0])
