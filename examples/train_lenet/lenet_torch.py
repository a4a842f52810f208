#!/usr/bin/python3
"""Writes the losses of the same network, the same weights and the same batches by PyTorch, in double.

    /usr/bin/python3 examples/train_lenet/lenet_torch.py > tests/examples/lenet_torch.txt
"""

import pathlib
import re

import torch
import torch.nn.functional as F

STEPS = 60
BATCH = 4
HERE = pathlib.Path(__file__).parent
# The same pictures: read from the source, so that there is one copy.
ROWS = re.findall(r'"([.#]{5})"', (HERE / "digits.cpp").read_text())
FONT = [ROWS[7 * digit : 7 * digit + 7] for digit in range(10)]
SHAPES = [(6, 1, 5, 5), (16, 6, 5, 5), (120, 16, 5, 5), (84, 120, 1, 1), (10, 84, 1, 1)]


def single(value):
    """Rounded to f32, as the example computes."""
    return torch.tensor(value, dtype=torch.float32).item()


class Random:
    """SplitMix64, as in digits.cpp."""

    WORD = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.WORD
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & self.WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & self.WORD
        return mixed ^ (mixed >> 31)

    def uniform(self):
        return (self.bits() >> 40) * 2.0**-24

    def below(self, count):
        return (self.bits() >> 32) * count >> 32


def image(random):
    digit = random.below(10)
    left, top = 5 + random.below(8), 2 + random.below(8)
    ink = 0.5 + 0.5 * random.uniform()
    pixels = [[0.25 * random.uniform() for _ in range(32)] for _ in range(32)]
    for row in range(21):
        for column in range(15):
            if FONT[digit][row // 3][column // 3] == "#":
                pixels[top + row][left + column] = ink
    return digit, [[single(4 * pixel - 2) for pixel in row] for row in pixels]


def batch(random):
    images = [image(random) for _ in range(BATCH)]
    pixels = torch.tensor([pixels for _, pixels in images], dtype=torch.float64)
    return pixels.unsqueeze(1), torch.tensor([digit for digit, _ in images])


def parameters(random):
    drawn = []
    for shape in SHAPES:
        limit = single((6.0 / (shape[1] * shape[2] * shape[3])) ** 0.5)
        for extents in (shape, shape[:1]):
            count = torch.Size(extents).numel()
            values = [single((2 * random.uniform() - 1) * limit) for _ in range(count)]
            drawn.append(torch.tensor(values, dtype=torch.float64).reshape(extents).requires_grad_())
    return drawn


def logits(p, x):
    x = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1])), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p[2], p[3])), 2).flatten(1)
    x = F.relu(F.linear(x, p[4].flatten(1), p[5]))
    x = F.relu(F.linear(x, p[6].flatten(1), p[7]))
    return F.linear(x, p[8].flatten(1), p[9])


def losses(optimizer_of):
    p = parameters(Random(1))
    digits = Random(2)
    optimizer = optimizer_of(p)
    for _ in range(STEPS):
        x, labels = batch(digits)
        loss = F.cross_entropy(logits(p, x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    torch.set_num_threads(1)
    sgd = losses(lambda p: torch.optim.SGD(p, lr=single(0.001), momentum=single(0.9)))
    adam = losses(lambda p: torch.optim.Adam(p, lr=single(0.001), betas=(single(0.9), single(0.999)), eps=1e-8))
    print("# step, loss with SGD, loss with Adam; by examples/train_lenet/lenet_torch.py")
    for step, (first, second) in enumerate(zip(sgd, adam)):
        print(f"{step} {first:.12g} {second:.12g}")


main()
