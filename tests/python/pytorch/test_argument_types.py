"""Types of numbers, integers and bools that functions take: each of them in each function of kiln.torch.functional.

PyTorch's own parser of arguments is the measure. What it refuses Kiln refuses too, so that PyTorch raises its error in an
optimized model.
"""

import fractions
import inspect
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

SPACES = {1: torch.randn(2, 4, 8), 2: torch.randn(2, 4, 8, 8), 3: torch.randn(2, 4, 4, 4, 4)}
X, SQUARE, CLASSES = SPACES[2], torch.randn(4, 4), torch.tensor([0, 1, 2, 3])
STATISTICS = {"running_mean": torch.zeros(4), "running_var": torch.ones(4)}
TABLE = {"target": CLASSES}


def attention():
    rows = {"query": X[:, 0], "key": X[:, 0], "value": X[:, 0]}
    weights = {"in_proj_weight": torch.ones(24, 8), "in_proj_bias": None, "out_proj_weight": torch.ones(8, 8), "out_proj_bias": None}
    words = {"embed_dim_to_check": 8, "num_heads": 2, "add_zero_attn": False, "dropout_p": 0.0, "bias_k": None, "bias_v": None}
    return {"scaled_dot_product_attention": rows, "multi_head_attention_forward": {**rows, **weights, **words}}


def sequences():
    given = {"targets": SQUARE[:2].long().clamp(1, 1), "input_lengths": (4, 4), "target_lengths": (1, 2)}
    return {"ctc_loss": {"log_probs": SPACES[1].permute(1, 0, 2), **given}}


def samples():
    grid = SPACES[2][..., :2].tanh()
    return {"grid_sample": {"input": X, "grid": grid}, "affine_grid": {"theta": torch.ones(2, 2, 3), "size": (2, 1, 3, 4)}}


def columns():
    return {"unfold": {"input": X, "kernel_size": 2}, "fold": {"input": SPACES[1], "output_size": (3, 5), "kernel_size": 2}}


def recurrent():
    """Calls with 3 hidden elements."""
    words = {"num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False, "batch_first": True}
    state, rows = torch.zeros(1, 2, 3), {"input": SPACES[1], "has_biases": False, **words}
    calls = {name: {**rows, "hx": state, "params": [torch.ones(3, 8), torch.ones(3, 3)]} for name in ("rnn_tanh", "rnn_relu")}
    calls["gru"] = {**rows, "hx": state, "params": [torch.ones(9, 8), torch.ones(9, 3)]}
    return calls | {"lstm": {**rows, "hx": (state, state), "params": [torch.ones(12, 8), torch.ones(12, 3)]}}


def calls():
    """Arguments of a call of each function that has numbers, integers or bools."""
    of = {
        "celu": {},
        "elu": {},
        "leaky_relu": {},
        "gelu": {},
        "hardshrink": {},
        "hardtanh": {},
        "softplus": {},
        "softshrink": {},
        "threshold": {"threshold": 0.5, "value": 1.0},
        "dropout": {},
        "softmax": {"dim": 1},
        "log_softmax": {"dim": 1},
        "cross_entropy": {"input": SQUARE, **TABLE},
        "nll_loss": {"input": SQUARE, **TABLE},
        "batch_norm": STATISTICS,
        "instance_norm": STATISTICS,
        "group_norm": {"num_groups": 2},
        "layer_norm": {"normalized_shape": (8,)},
        "rms_norm": {"normalized_shape": (8,)},
        "local_response_norm": {"size": 3},
        "divisive_norm": {"size": 3},
        "interpolate": {"size": 4, "mode": "bilinear"},
        "pad": {"pad": (1, 1)},
        "pixel_shuffle": {"upscale_factor": 2},
        "pixel_unshuffle": {"downscale_factor": 2},
        "embedding": {"input": CLASSES, "weight": SQUARE},
        "addmm": {"input": SQUARE, "mat1": SQUARE, "mat2": SQUARE},
        "baddbmm": {"input": SQUARE[None], "batch1": SQUARE[None], "batch2": SQUARE[None]},
    }
    of = {name: {"input": X, **given} for name, given in of.items()} | attention() | recurrent() | sequences() | samples() | columns()
    for axes, x in SPACES.items():
        maxima, places = getattr(F, f"max_pool{axes}d")(x, 2, return_indices=True)
        window = torch.ones(4, 4, *[3] * axes)
        of |= {f"{kind}_pool{axes}d": {"input": x, "kernel_size": 2} for kind in ("max", "avg")}
        of |= {f"adaptive_{kind}_pool{axes}d": {"input": x, "output_size": 2} for kind in ("max", "avg")}
        of[f"max_unpool{axes}d"] = {"input": maxima, "indices": places, "kernel_size": 2}
        of[f"conv{axes}d"] = of[f"conv_transpose{axes}d"] = {"input": x, "weight": window}
        of[f"local_conv{axes}d"] = {"input": x, "weight": torch.ones(1, *window.shape), "grid": 1}
    return of


CALLS = calls()
# Arguments that PyTorch's functions look at in Python, whatever their type, and those that Kiln does not serve at all.
FREE = ("inplace", "return_indices", "antialias", "recompute_scale_factor", "norm_type", "max_norm", "size_average", "reduce")
KINDS = {"float": "number", "int": "integer", "bool": "flag", "Ints": "integers", "Scales": "scales"}
KINDS |= {"Sequence[int]": "integers", "int | Sequence[int]": "integers", "Ints | str": "integers"}
KINDS |= {"bool | float": "flag", "bool | Sequence[torch.Tensor]": "flag"}  # of packed sequences something else
WRONG = {
    "number": ("1", b"1", [1.0], 1j, fractions.Fraction(1), torch.tensor([1.0]), torch.tensor(1.0, requires_grad=True)),
    "integer": ("1", True, 1.0, [1], torch.tensor(1.0), torch.tensor(True), fractions.Fraction(1)),
    "flag": (0, 1, "yes", torch.tensor(True)),
    "integers": ("1", True, 1.0, (True,), (True, 1), ("1", "1"), (1.0, 1.0), torch.tensor(1.0)),
    "scales": ("2", ("2", "2"), torch.tensor(2.0), fractions.Fraction(2)),
}


def kind_of(parameter):
    if parameter.name in FREE:
        return None
    if parameter.name == "output_size":  # Any
        return "integers"
    return KINDS.get(str(parameter.annotation).removesuffix(" | None"))


PLACES = [
    (name, parameter.name, kind_of(parameter))
    for name in K.__all__
    for parameter in inspect.signature(getattr(K, name)).parameters.values()
    if kind_of(parameter) is not None
]


def with_argument(name, argument, value):
    given = {**CALLS[name], argument: value}
    if argument == "scale_factor":
        del given["size"]
    return given


def test_each_function_with_numbers_has_a_call():
    assert {name for name, _, _ in PLACES} <= set(CALLS)
    assert len(PLACES) > 120
    for name, given in CALLS.items():
        getattr(K, name)(**given)


@pytest.mark.parametrize("name, argument, kind", PLACES, ids=[f"{name}-{argument}" for name, argument, _ in PLACES])
def test_a_type_that_pytorch_refuses_is_refused(name, argument, kind):
    for wrong in WRONG[kind]:
        with pytest.raises(kiln.InvalidArgument):
            print(name, argument, repr(wrong), getattr(K, name)(**with_argument(name, argument, wrong)))


class Calls(torch.nn.Module):
    def __init__(self, function, first=None):
        super().__init__()
        self.function, self.first = function, first

    def forward(self, given):
        if self.first is not None:
            given = {**given, "input": F.conv2d(given["input"], self.first)}
        return self.function(**given)


def outcome(function):
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - of whatever class PyTorch has for it
        return type(error)


def same(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-3)
    return one is other or (isinstance(one, tuple) and isinstance(other, tuple) and all(map(same, one, other)))


def pytorchs(name):
    return getattr(F, name, None) or getattr(torch, name, None)


OF_PYTORCH = [place for place in PLACES if pytorchs(place[0]) is not None]


@pytest.mark.parametrize("name, argument, kind", OF_PYTORCH, ids=[f"{name}-{argument}" for name, argument, _ in OF_PYTORCH])
def test_an_optimized_model_gives_what_pytorch_gives(name, argument, kind):
    function = pytorchs(name)
    warnings.simplefilter("ignore")
    for value in (*WRONG[kind], 1, 2, True, torch.tensor(1), (1, 1), None):
        given = with_argument(name, argument, value)
        torch.manual_seed(3)
        expected = outcome(lambda: function(**given))
        if name == "dropout" and isinstance(expected, torch.Tensor):
            continue  # the mask is not PyTorch's
        torch.manual_seed(3)
        actual = outcome(lambda: kiln.torch.optimize(Calls(function), fold=False)(given))
        assert same(actual, expected), (value, actual, expected)


CHAINED = [place for place in PLACES if CALLS[place[0]].get("input") is X and place[0] in (*kiln.torch._folding._names_of_stages,)]


@pytest.mark.parametrize("name, argument, kind", CHAINED, ids=[f"{name}-{argument}" for name, argument, _ in CHAINED])
def test_a_chain_gives_what_pytorch_gives(name, argument, kind):
    function, window = pytorchs(name), torch.ones(4, 4, 1, 1)
    warnings.simplefilter("ignore")
    for value in (*WRONG[kind], 1, True, torch.tensor(1), -1.0, 0.0, None):
        given = with_argument(name, argument, value)
        with torch.no_grad():
            expected = outcome(lambda: Calls(function, window)(given))
            actual = outcome(lambda: kiln.torch.optimize(Calls(function, window), fold=True)(given))
        assert same(actual, expected), (value, actual, expected)


def test_the_words_of_a_chain_are_looked_at():
    given, window = {"input": X, "approximate": "tan"}, torch.ones(4, 4, 1, 1)
    with torch.no_grad(), pytest.raises(RuntimeError, match="tan") as error:
        kiln.torch.optimize(Calls(F.gelu, window), fold=True)(given)
    assert not isinstance(error.value, kiln.Error)


NUMBERS = (True, 2, torch.tensor(2), torch.tensor(0.5), torch.tensor(0.5, dtype=torch.float64), torch.tensor(True))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_a_number_may_be_of_any_type_that_pytorch_takes(number):
    torch.testing.assert_close(K.leaky_relu(X, number), F.leaky_relu(X, float(number)), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(K.addmm(SQUARE, SQUARE, SQUARE, beta=number), torch.addmm(SQUARE, SQUARE, SQUARE, beta=number))


def test_an_integer_may_be_a_tensor():
    two = torch.tensor(2, dtype=torch.int32)
    torch.testing.assert_close(K.max_pool2d(X, (two, 2)), F.max_pool2d(X, 2))
    torch.testing.assert_close(K.softmax(X, two), F.softmax(X, 2))
    torch.testing.assert_close(K.group_norm(X, two), F.group_norm(X, 2), rtol=1e-4, atol=1e-4)


def test_scalars_of_numpy_are_numbers_and_integers():
    numpy = pytest.importorskip("numpy")
    for made in (numpy.float32, numpy.float64, numpy.int64, numpy.uint8):
        torch.testing.assert_close(K.elu(X, made(2)), F.elu(X, 2.0), rtol=1e-5, atol=1e-6)
    for made in (numpy.int32, numpy.uint8):
        torch.testing.assert_close(K.max_pool2d(X, made(2), stride=(made(1), 2)), F.max_pool2d(X, 2, stride=(1, 2)))
    for wrong in (numpy.float32(2), numpy.float64(2), numpy.bool_(True), numpy.array(2), numpy.complex64(2)):
        with pytest.raises(kiln.InvalidArgument, match="kernel_size is"):
            K.max_pool2d(X, wrong)
    with pytest.raises(kiln.InvalidArgument, match="alpha is"):
        K.elu(X, numpy.complex64(2))


def test_messages_name_the_argument():
    for message, call in {
        r"negative_slope is '0\.1' \(give a number\)": lambda: K.leaky_relu(X, "0.1"),
        r"kernel_size is True \(give an integer\)": lambda: K.max_pool2d(X, True),
        r"ceil_mode is 1 \(give True or False\)": lambda: K.max_pool2d(X, 2, ceil_mode=1),
        "batch_norm: eps is '1e-5'": lambda: K.batch_norm(X, **STATISTICS, eps="1e-5"),
        "slope is '0.1'": lambda: K.conv2d(X, torch.ones(4, 4, 1, 1), activation=("leaky_relu", "0.1")),
        "alpha is an integer that no float is near to": lambda: K.elu(X, 10**400),
        "dtype is 'cpu'": lambda: K.softmax(X, 1, dtype="cpu"),
    }.items():
        with pytest.raises(kiln.InvalidArgument, match=message):
            call()
