"""Activations of PyTorch: as a mode of Kiln's own, or as user code where Kiln has none that does exactly the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..._expression import expression
from ...errors import InvalidArgument


@dataclasses.dataclass(frozen=True)
class Activation:
    """A function with its numbers.

    `value`: user code for it, of v. `mode`: Kiln's name, with the numbers that it takes by `names`; without one
    `gradient` is user code for its gradient, of input and of acc, which is dy. `of_result`: its gradient needs the result
    alone.
    """

    value: str
    defaults: Mapping[str, float] = dataclasses.field(default_factory=dict)
    mode: str = ""
    fixed: Mapping[str, float] = dataclasses.field(default_factory=dict)
    gradient: str = ""
    of_result: bool = False

    def numbers(self, given: Sequence[float]) -> dict[str, float]:
        return dict(zip(self.defaults, given, strict=True))


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation("relu(v)", mode="relu", of_result=True),
    "relu6": Activation("clamp(v, 0.0f, 6.0f)", mode="clipped_relu", fixed={"high": 6.0}),
    "leaky_relu": Activation("leaky_relu(v, slope)", {"slope": 0.01}, mode="leaky_relu"),
    "elu": Activation("elu(v, slope)", {"slope": 1.0}, mode="elu"),
    "selu": Activation("1.0507009873554804934f * elu(v, 1.6732632423543772848f)", mode="selu"),
    "celu": Activation(
        "v > 0.0f ? v : alpha * expm1f(v / alpha)",
        {"alpha": 1.0},
        gradient="input > 0.0f ? acc : acc * expf(input / alpha)",
    ),
    "gelu": Activation("gelu(v)", mode="gelu"),
    "gelu_tanh": Activation(
        "v * sigmoid(1.5957691216057308f * (v + 0.044715f * v * v * v))", mode="gelu_tanh"
    ),
    "silu": Activation("silu(v)", mode="swish", fixed={"slope": 1.0}),
    "sigmoid": Activation("sigmoid(v)", mode="sigmoid", of_result=True),
    "tanh": Activation("tanhf(v)", mode="tanh", of_result=True),
    "mish": Activation("v * tanhf(softplus(v))", mode="mish"),
    "hardswish": Activation("hard_swish(v)", mode="hard_swish"),
    "hardsigmoid": Activation(
        "clamp(v / 6.0f + 0.5f, 0.0f, 1.0f)", mode="hard_sigmoid", fixed={"slope": 1 / 6, "offset": 0.5}
    ),
    "hardtanh": Activation(
        "clamp(v, low, high)",
        {"low": -1.0, "high": 1.0},
        gradient="input <= low || input >= high ? 0.0f : acc",
    ),
    "softplus": Activation(
        "v * beta > threshold ? v : softplus(v * beta) / beta",
        {"beta": 1.0, "threshold": 20.0},
        gradient="input * beta > threshold ? acc : acc * sigmoid(input * beta)",
    ),
    "softsign": Activation("v / (1.0f + fabsf(v))", gradient="acc / ((1.0f + fabsf(input)) * (1.0f + fabsf(input)))"),
    "logsigmoid": Activation("fminf(v, 0.0f) - log1pf(expf(-fabsf(v)))", gradient="acc * sigmoid(-input)"),
    "tanhshrink": Activation("v - tanhf(v)", gradient="acc * tanhf(input) * tanhf(input)"),
    "softshrink": Activation(
        "v > lambda ? v - lambda : v < -lambda ? v + lambda : 0.0f * v",
        {"lambda": 0.5},
        gradient="input >= -lambda && input <= lambda ? 0.0f : acc",
    ),
    "hardshrink": Activation(
        "v >= -lambda && v <= lambda ? 0.0f : v",
        {"lambda": 0.5},
        gradient="input >= -lambda && input <= lambda ? 0.0f : acc",
    ),
    "threshold": Activation(
        "v <= threshold ? value : v",
        {"threshold": 0.0, "value": 0.0},
        gradient="input <= threshold ? 0.0f : acc",
    ),
}


def activation_of(name: str) -> Activation:
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    raise InvalidArgument(f"there is no activation {name!r}", f"it is one of {', '.join(ACTIVATIONS)}")


def epilogue(
    bias: Any, scale: Any, residual: Any, activation: str, numbers: Sequence[float], beta: float = 1.0
) -> dict[str, Any]:
    """Arguments of a call for activation(scale * result + bias + beta * residual); what is None is left out."""
    if scale is None and activation in ("", "relu") and beta == 1:
        stages = [("bias", bias is not None), ("add", residual is not None), ("relu", activation == "relu")]
        text = "+".join(stage for stage, there in stages if there)
        return {"epilogue": text or None, "bias": bias, "residual": residual}
    value = "acc" if scale is None else "acc * scale"
    reads: dict[str, Any] = {"scale": scale, "bias": bias, "residual": residual}
    if bias is not None:
        value += " + bias"
    if residual is not None:
        value += " + residual" if beta == 1 else " + beta * residual"
        reads |= {} if beta == 1 else {"beta": beta}
    code = value
    if activation:
        function = activation_of(activation)
        reads |= function.numbers(numbers)
        code = f"const float v = {value};\nreturn {function.value};"
    return {"epilogue": expression(code, **{name: each for name, each in reads.items() if each is not None})}
