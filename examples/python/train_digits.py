#!/usr/bin/env python3
"""Trains a small network on scikit-learn's digits, on Kiln.

    python train_digits.py --compare

The model and the loop are PyTorch's. One line puts them on Kiln: kiln.torch.optimize(net). With --compare PyTorch
trains the same network beside it, from the same seed and on the same batches, and the losses are compared step by step.
Runs on a GPU, or on the emulated device where there is none. Needs PyTorch, scikit-learn, tqdm and matplotlib.
"""

import argparse
import copy
import time

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from tqdm import tqdm

import kiln.torch

# Losses of the two may differ by so much in one step: sums are rounded in another order, and a step passes the
# difference on to all that follow.
BOUND = 1e-3


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
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
        self.losses, self.accuracies, self.seconds = [], [], 0.0

    def step(self, inputs, labels):
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        outputs = self.net(inputs)
        loss = self.criterion(outputs, labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        self.seconds += time.perf_counter() - begin

    def test(self, inputs, labels):
        self.net.eval()
        with torch.no_grad():
            right = sum((self.net(x).argmax(1) == y).sum() for x, y in zip(inputs.split(100), labels.split(100)))
        self.net.train()
        self.accuracies.append(right.item() / len(labels))


def plot(path, trainings):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, training in trainings.items():
        means = np.convolve(training.losses, np.ones(50) / 50, "valid") if len(training.losses) > 50 else training.losses
        left.plot(means, label=name, linestyle="-" if name == "Kiln" else ":")
        right.plot(range(1, len(training.accuracies) + 1), training.accuracies, marker="o", label=name)
    left.set(xlabel="step", ylabel="loss, mean of 50 steps", yscale="log")
    right.set(xlabel="epoch", ylabel="accuracy on held-out digits")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--steps", type=int, help="end after so many steps")
    parser.add_argument("--compare", action="store_true", help="train by PyTorch beside it")
    parser.add_argument("--plot", default="train_digits.png", help="where the plot goes; none: no plot")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    device = "cpu" if kiln.default_context().emulated else "cuda"
    (pictures, classes), held_out = digits(device)
    net = Net().to(device)
    trainings = {"PyTorch": Training(copy.deepcopy(net))} if options.compare else {}
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
            bar.set_postfix(loss=f"{np.mean(training.losses[-50:]):.4f}", refresh=False)
        left -= min(batches, left)
        for name, training in trainings.items():
            training.test(*held_out)
            print(f"  {name}: {training.accuracies[-1]:.1%} of {len(held_out[1])} held-out digits")
        if not left:
            break
    for name, training in trainings.items():
        print(f"{name}: {training.seconds / len(training.losses) * 1e3:.2f} ms a step")
    if options.compare:
        differences = np.abs(np.subtract(trainings["Kiln"].losses, trainings["PyTorch"].losses))
        worst = int(differences.argmax())
        print(f"largest difference of losses: {differences[worst]:.2e} at step {worst + 1}, bound {BOUND:.0e}")
    if options.plot != "none":
        plot(options.plot, trainings)
        print(f"plot: {options.plot}")
    return trainings


if __name__ == "__main__":
    main()
