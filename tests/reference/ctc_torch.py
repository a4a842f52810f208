#!/usr/bin/python3
"""Writes ctc_torch.txt: CTC loss by PyTorch's function, and gradients by its autograd, in double, for
torch_table_test.cpp. Prefixes, which PyTorch keeps to itself, are by their definition.

    /usr/bin/python3 tests/reference/ctc_torch.py > tests/reference/ctc_torch.txt
"""
import math

import torch
import torch.nn.functional as F

from torch_table import call, draw, extents

OF_INTEGERS = ("targets", "input_lengths", "target_lengths")


def prefixes_of(log_probabilities, labels, blank, steps, states):
    """Logarithms of the probability of all paths in a state, less the largest of the step; -inf behind what counts."""
    classes = [blank, *(c for label in labels for c in (label, blank))]
    result = torch.full((steps, states), -math.inf, dtype=torch.float64)
    last = None
    for step, of_classes in enumerate(log_probabilities):
        now = []
        for state, c in enumerate(classes):
            ways = [0.0 if state < 2 else -math.inf]
            if last is not None:
                skips = state > 2 and state % 2 == 1 and c != classes[state - 2]
                ways = [last[state - i] for i in range(3 if skips else 2) if state >= i]
            now.append(torch.logsumexp(torch.tensor(ways, dtype=torch.float64), 0).item() + of_classes[c].item())
        result[step, :len(classes)] = torch.tensor(now, dtype=torch.float64) - max(now)
        last = now
    return result


def loss(labels, steps, classes, blank=0, inputs=None, most=None, infinite="keep", scores=True, has_dloss=True):
    """A loss and its gradient. `labels`: of each image. `inputs`: its steps; more than `steps` count as that. `most`:
    labels that there is room for."""
    images, counts = len(labels), [len(each) for each in labels]
    most = max(counts) if most is None else most
    x = draw(images, steps, classes)
    if not scores:
        x = x.log_softmax(2).to(torch.float32).to(torch.float64)
    x.requires_grad_()
    taken = [min(each, steps) for each in inputs or [steps] * images]
    log_probabilities = x.log_softmax(2) if scores else x
    joined = torch.tensor([each for of in labels for each in of], dtype=torch.int64)
    losses = F.ctc_loss(log_probabilities.transpose(0, 1), joined, tuple(taken), tuple(counts), blank, "none",
                        infinite == "zero")
    dloss = draw(images) if has_dloss else torch.ones(images, dtype=torch.float64)
    losses.backward(dloss)
    states = 2 * most + 1
    prefixes = torch.stack([prefixes_of(of_steps[:count], of, blank, steps, states)
                            for of_steps, count, of in zip(log_probabilities.detach(), taken, labels)])

    # Behind the labels that count stands what is no label.
    rows = [[*each, *[(99, -1, blank)[i % 3] for i in range(most - len(each))]] for each in labels]
    operands = {"x": x.detach(), "targets": torch.tensor(rows, dtype=torch.int64).view(images, most)}
    if inputs:
        operands["input_lengths"] = torch.tensor(inputs)
    if any(count != most for count in counts):
        operands["target_lengths"] = torch.tensor([count if count else -3 for count in counts])
    words = f" blank={blank}" + ("" if scores else " input=log_probabilities")
    words += "" if infinite == "keep" else " infinite=zero"
    results = {"loss": losses.detach(), "prefixes": prefixes}
    call(f"ctc_loss_forward {written(operands | results)}{words}", operands, results)
    given = operands | ({"dloss": dloss} if has_dloss else {}) | {"prefixes": prefixes}
    results = {"dx": x.grad}
    # Prefixes are rounded to f32.
    call(f"ctc_loss_backward {written(given | results)}{words}", given, results, tolerance=1e-5)


def written(operands):
    return " ".join(f"{name}={'i32' if name in OF_INTEGERS else 'f32'}:{extents(tensor)}"
                    for name, tensor in operands.items())


for scores in (True, False):
    loss([[1, 2], [3, 1]], 5, 4, scores=scores, has_dloss=False)
    loss([[1, 1, 2, 2], [3], [], [2, 2, 2]], 8, 4, inputs=[8, 2, 99, 5], scores=scores)
    loss([[0, 2], [4, 4]], 6, 5, blank=3, inputs=[4, 6], scores=scores)
    loss([[1], [0]], 1, 3, blank=2, scores=scores)
    for infinite in ("keep", "zero"):  # by one step for two of them
        loss([[1, 2, 3], [1, 1, 2], [2, 1, 2]], 3, 4, inputs=[2, 3, 3], infinite=infinite, scores=scores)
loss([[], []], 4, 3, most=2)
loss([[0, 0, 0]], 7, 2, blank=1)
loss([[0] * 5 + [2] * 4, [2, 0] * 4], 17, 3, blank=1, most=11, inputs=[17, 9])
