"""examples/python/train_digits.py: its network trains on Kiln as on PyTorch."""

import copy
import importlib.util
import pathlib
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import kiln.torch  # noqa: E402

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples/python/train_digits.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_few_steps_have_the_losses_of_pytorch(example):
    torch.manual_seed(0)
    net = example.Net()
    trainings = {"PyTorch": example.Training(copy.deepcopy(net)), "Kiln": example.Training(net)}
    kiln.torch.optimize(net, strict=True)
    x, labels = torch.rand(16, 1, 32, 32) * 2 - 1, torch.randint(10, (16,))
    for batch in torch.arange(16).split(4):
        for training in trainings.values():
            training.step(x[batch], labels[batch])
    for training in trainings.values():
        training.test(x[:4], labels[:4])
    first, _, largest = example.differences(trainings, "Kiln")
    assert first == largest <= example.BOUND_OF_FIRST
    assert trainings["Kiln"].accuracies == trainings["PyTorch"].accuracies
    rows = kiln.torch.report(net)
    assert len(rows.on_kiln) >= 7 and not rows.on_pytorch


def with_losses(example, step, differences):
    """Trainings whose losses are equal, except for `differences` of Kiln's from `step` on."""
    equal = np.linspace(2.3, 0.5, example.FIRST + 2 * example.WINDOW)
    losses = equal.copy()
    losses[step : step + len(differences)] += differences
    names = {"PyTorch": equal, "PyTorch in f64": equal, "Kiln": losses}
    return {name: types.SimpleNamespace(losses=list(each)) for name, each in names.items()}


def test_losses_are_held_to_both_bounds(example, capsys):
    first, window = example.FIRST, example.WINDOW
    within, beyond = 0.9 * example.BOUND_OF_FIRST, 1.1 * example.BOUND_OF_FIRST
    assert example.compare(with_losses(example, 0, [within, -within]))
    assert not example.compare(with_losses(example, first - 1, [-beyond]))
    assert example.compare(with_losses(example, first, [beyond])), "later steps may differ more"
    assert example.compare(with_losses(example, first, [0.9 * window * example.BOUND_OF_MEANS])), "one step in a mean"
    assert not example.compare(with_losses(example, first, [-1.1 * example.BOUND_OF_MEANS] * window))
    assert f"bounds: {example.BOUND_OF_FIRST:.1e}, {example.BOUND_OF_MEANS:.1e}" in capsys.readouterr().out


def test_differences_are_the_largest_of_steps_and_of_means(example):
    first, window = example.FIRST, example.WINDOW
    trainings = with_losses(example, first, [-0.25] * window)
    assert example.differences(trainings, "Kiln") == pytest.approx((0, 0.25, 0.25))
    assert example.differences(trainings, "PyTorch in f64") == (0, 0, 0)
    few = with_losses(example, 1, [0.5, -2])
    for training in few.values():
        training.losses = training.losses[: window - 1]
    assert example.differences(few, "Kiln") == pytest.approx((2, 0, 2)), "there is no mean of so few steps"


def test_the_program_trains_and_plots(example, tmp_path, capsys):
    for module in ("sklearn", "tqdm", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    plot = tmp_path / "plot.png"
    assert example.main(["--compare", "--steps", "3", "--plot", str(plot)]) == 0
    said = capsys.readouterr().out
    assert "Kiln: " in said and "of 300 held-out digits" in said
    assert plot.stat().st_size > 1000
