"""Networks of every kind of layer that kiln.torch replaces, with the extents of an input."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.shortcut = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))
        self.relu, self.head = nn.ReLU(inplace=True), nn.Linear(8, 5)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.shortcut(x)
        return self.head(self.relu(y).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.elu, self.down, self.silu = nn.ELU(), nn.AvgPool2d(2), nn.SiLU()
        self.up, self.head = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        y = self.up(self.silu(self.second(self.down(self.elu(self.first(x))))))
        return torch.sigmoid(self.head(torch.cat([x, y], 1)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


NETWORKS = {
    "residual": (Residual, (4, 4, 16, 16)),
    "unet": (UNet, (2, 4, 8, 12)),
    "attention": (Attention, (2, 20, 32)),
}


def network(name):
    """A network on the CPU, and an input; always the same."""
    make, shape = NETWORKS[name]
    torch.manual_seed(1)
    return make(), torch.randn(shape)
