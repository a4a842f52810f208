"""The activations as PyTorch has them, with the numbers of Operation::scalars()."""
import torch
import torch.nn.functional as F

SLOPE, OFFSET, LOW, HIGH = 0.375, 0.5, -1.0, 1.0

FUNCTIONS = {
    "identity": lambda x: x * 1.0,
    "relu": F.relu,
    "clipped_relu": lambda x: F.hardtanh(x, 0.0, HIGH),
    "clip": lambda x: torch.clamp(x, LOW, HIGH),
    "leaky_relu": lambda x: F.leaky_relu(x, SLOPE),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "elu": lambda x: F.elu(x, SLOPE),
    "selu": F.selu,
    "softplus": lambda x: F.softplus(x, SLOPE, 1e6),
    "swish": lambda x: x * torch.sigmoid(SLOPE * x),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hard_swish": F.hardswish,
    "hard_sigmoid": lambda x: torch.clamp(SLOPE * x + OFFSET, 0.0, 1.0),
    "mish": F.mish,
}
