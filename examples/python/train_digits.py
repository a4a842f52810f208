#!/usr/bin/env python3
"""Trains a small network on scikit-learn's digits, on Kiln.

    python train_digits.py --compare

The model and the loop are PyTorch's. One line puts them on Kiln: kiln.torch.optimize(net). With --compare PyTorch
trains the same network beside it, from the same seed and on the same batches, in f32 and in f64, and the losses are
compared step by step. Runs on a GPU, or on the emulated device where there is none, there for some minutes. Needs
PyTorch, scikit-learn, tqdm and matplotlib.
"""

import argparse
import copy
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import kiln.torch

# How far losses may be from those of PyTorch. Training makes any difference of rounding grow: once the loss falls, the
# losses of single steps of PyTorch in f32 and in f64 differ by as much as 0.3. So single losses are held to a bound
# while the loss stands still, in the first 300 steps, and from then on their means.
FIRST, BOUND_OF_FIRST = 300, 1e-5
WINDOW, BOUND_OF_MEANS = 50, 0.05


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def digits(device):
    """Pictures [N, 1, 32, 32] from -1 to 1 and their classes: to train on, then those held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    pictures = torch.from_numpy(data.images[order]).float().unsqueeze(1) / 8 - 1
    pictures = F.interpolate(pictures, size=(32, 32), mode="bilinear", align_corners=False).to(device)
    classes = torch.from_numpy(data.target[order]).to(device)
    return (pictures[:1497], classes[:1497]), (pictures[1497:], classes[1497:])


class Training:
    """A network with its loss function and optimizer."""

    def __init__(self, net):
        self.net = net
        self.dtype = net.fc3.weight.dtype
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
        self.losses, self.accuracies, self.seconds = [], [], 0.0

    def step(self, inputs, labels):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        outputs = self.net(inputs.to(self.dtype))
        loss = self.criterion(outputs, labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        self.seconds += time.perf_counter() - begin

    def test(self, inputs, labels):
        self.net.eval()
        with torch.no_grad():
            right = sum((self.net(x.to(self.dtype)).argmax(1) == y).sum() for x, y in zip(inputs.split(100), labels.split(100)))
        self.net.train()
        self.accuracies.append(right.item() / len(labels))


def means(losses):
    return np.convolve(losses, np.ones(WINDOW) / WINDOW, "valid") if len(losses) >= WINDOW else np.array([])


def differences(trainings, name):
    """From PyTorch in f32: the largest of the first steps, of means, and of any step."""
    expected, losses = trainings["PyTorch"].losses, trainings[name].losses
    each = np.abs(np.subtract(losses, expected))
    return each[:FIRST].max(), np.abs(means(losses) - means(expected)).max(initial=0), each.max()


def compare(trainings):
    """Prints how far losses are from those of PyTorch in f32; whether Kiln's are within the bounds."""
    print(f"largest difference of losses from PyTorch's: first {FIRST} steps, means of {WINDOW}, any step")
    for name in ("Kiln", "PyTorch in f64"):
        print(f"  {name}: " + ", ".join(f"{value:.1e}" for value in differences(trainings, name)))
    print(f"  bounds: {BOUND_OF_FIRST:.1e}, {BOUND_OF_MEANS:.1e}")
    first, of_means, _ = differences(trainings, "Kiln")
    return bool(first <= BOUND_OF_FIRST and of_means <= BOUND_OF_MEANS)


def plot(path, trainings):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, training in trainings.items():
        left.plot(means(training.losses), label=name, linestyle="-" if name == "Kiln" else ":")
        right.plot(range(1, len(training.accuracies) + 1), training.accuracies, marker="o", label=name)
    left.set(xlabel="step", ylabel=f"loss, mean of {WINDOW} steps", yscale="log")
    right.set(xlabel="epoch", ylabel="accuracy on held-out digits")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path)


def main(arguments=None):
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, help="end after so many steps")
    parser.add_argument("--compare", action="store_true", help="train by PyTorch beside it")
    parser.add_argument("--plot", default="train_digits.png", help="where the plot goes; none: no plot")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    device = "cpu" if kiln.default_context().emulated else "cuda"
    (pictures, classes), held_out = digits(device)
    net = Net().to(device)
    trainings = {}
    if options.compare:
        trainings["PyTorch"] = Training(copy.deepcopy(net))
        trainings["PyTorch in f64"] = Training(copy.deepcopy(net).double())
    kiln.torch.optimize(net)
    trainings["Kiln"] = Training(net)

    batches = len(classes) // 4
    left = options.epochs * batches if options.steps is None else options.steps
    for epoch in range(options.epochs):
        order = torch.randperm(len(classes), device=device)
        bar = tqdm(order[: 4 * min(batches, left)].split(4), desc=f"epoch {epoch + 1}/{options.epochs}", unit="step")
        for batch in bar:
            for training in trainings.values():
                training.step(pictures[batch], classes[batch])
            bar.set_postfix(loss=f"{np.mean(training.losses[-WINDOW:]):.4f}", refresh=False)
        left -= min(batches, left)
        for name, training in trainings.items():
            training.test(*held_out)
            print(f"  {name}: {training.accuracies[-1]:.1%} of {len(held_out[1])} held-out digits")
        if not left:
            break
    for name, training in trainings.items():
        print(f"{name}: {training.seconds / len(training.losses) * 1e3:.2f} ms a step")
    within = compare(trainings) if options.compare else True
    if options.plot != "none":
        plot(options.plot, trainings)
        print(f"plot: {options.plot}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
