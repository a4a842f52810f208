"""examples/python/train_digits.py: its network trains on Kiln as on PyTorch."""

import copy
import importlib.util
import pathlib

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


def test_the_program_trains_and_plots(example, tmp_path, capsys):
    for module in ("sklearn", "tqdm", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    plot = tmp_path / "plot.png"
    assert example.main(["--compare", "--steps", "3", "--plot", str(plot)]) == 0
    said = capsys.readouterr().out
    assert "Kiln: " in said and "of 300 held-out digits" in said
    assert plot.stat().st_size > 1000
