"""Small networks of the kinds that people have."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


class ResidualBlock(nn.Module):
    """As ResNet's: a stride, and a shortcut of its own; then one that is the input."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.downsample = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        again = self.bn2(self.conv2(out))
        again += out
        return self.relu(again)


class Depthwise(nn.Module):
    """As MobileNet's inverted residual."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 8, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(inplace=True),
            nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.Conv2d(8, 4, 1, bias=False),
            nn.BatchNorm2d(4),
        )

    def forward(self, x):
        return x + self.body(x)


class UpAndDown(nn.Module):
    """As U-Net: a transposed convolution, and what was there before beside its result."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ELU(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 3, padding=1))
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        up = F.leaky_relu(self.up(F.silu(self.down(x))), 0.1)
        return torch.sigmoid(self.head(torch.cat([x, up], dim=1)))


class Mixer(nn.Module):
    """As a transformer's blocks: layer normalisation, linear layers, GELU, softmax."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)
        self.gate = nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return x * self.gate(x).softmax(-1)


NETWORKS = {
    "residual": (ResidualBlock, (2, 4, 8, 8)),
    "depthwise": (Depthwise, (2, 4, 6, 6)),
    "up_and_down": (UpAndDown, (2, 4, 8, 8)),
    "mixer": (Mixer, (2, 5, 8)),
}


def network(name, seed=0):
    """A network with statistics that are not the first ones, and an input."""
    made, shape = NETWORKS[name]
    torch.manual_seed(seed)
    net = made()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return net, torch.randn(shape)
