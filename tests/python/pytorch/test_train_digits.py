"""examples/python/train_digits.py: its network trains on Kiln as on PyTorch."""

import copy
import importlib.util
import pathlib
import sys
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


class Bar:
    """A stand-in for tqdm's."""

    def __init__(self, items, desc, unit):
        self.items, self.said = items, (desc, unit)

    def __iter__(self):
        return iter(self.items)

    def set_postfix(self, **values):
        self.values = values


@pytest.fixture
def data(monkeypatch):
    """A stand-in for scikit-learn's digits: the first pixel of each picture tells its class."""
    images = np.random.default_rng(3).integers(0, 17, (1797, 8, 8)).astype(float)
    images[:, 0, 0] = np.arange(1797) % 10
    made = types.SimpleNamespace(images=images, target=np.arange(1797) % 10)
    datasets = types.SimpleNamespace(load_digits=lambda: made)
    monkeypatch.setitem(sys.modules, "sklearn", types.SimpleNamespace(datasets=datasets))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(torch, "from_numpy", lambda array: torch.tensor(array.tolist()))  # that knows this NumPy
    return made


@pytest.fixture
def steps(example, data, monkeypatch):
    """Pictures and classes of each step, of trainings that only count."""
    taken = []

    def step(training, inputs, labels):
        taken.append((inputs, labels))
        training.losses.append(1.0)
        training.seconds += 0.25

    monkeypatch.setattr(example.Training, "step", step)
    monkeypatch.setattr(example.Training, "test", lambda training, inputs, labels: training.accuracies.append(len(labels)))
    return taken


def test_the_program_trains_and_plots(example, data, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plot = tmp_path / "plot.png"
    assert example.main(["--compare", "--steps", "3", "--plot", str(plot)]) == 0
    said = capsys.readouterr().out
    assert "Kiln: " in said and said.count("of 300 held-out digits") == 3, "one epoch of three networks"
    assert plot.stat().st_size > 1000


def test_the_program_goes_through_all_pictures_each_epoch(example, steps, capsys):
    assert example.main(["--epochs", "2", "--plot", "none"]) == 0
    said = capsys.readouterr().out
    assert len(steps) == 2 * 374 and all(x.shape == (4, 1, 32, 32) and y.shape == (4,) for x, y in steps)
    assert said.count("Kiln: 30000.0% of 300 held-out digits") == 2, "of the stand-in, which counts them"
    assert "Kiln: 250.00 ms a step" in said and "plot: " not in said
    (pictures, classes), _ = example.digits("cpu")
    first = [torch.cat([y for _, y in part]) for part in (steps[:374], steps[374:])]
    assert not torch.equal(*first), "in another order"
    assert abs(len(classes) - len(first[0])) < 4 and all(torch.equal(each.unique(), torch.arange(10)) for each in first)


def test_the_program_ends_after_so_many_steps(example, steps, capsys):
    for wanted, epochs in ((3, 1), (374, 1), (400, 2)):
        steps.clear()
        example.main(["--steps", str(wanted), "--plot", "none"])
        assert len(steps) == wanted and capsys.readouterr().out.count("held-out digits") == epochs


def test_the_digits_are_pictures_from_minus_1_to_1(example, data):
    (pictures, classes), (others, of_others) = example.digits("cpu")
    assert pictures.shape == (1497, 1, 32, 32) and others.shape == (300, 1, 32, 32)
    assert pictures.dtype == torch.float32 and classes.shape == (1497,) and of_others.shape == (300,)
    for each, numbers in ((pictures, classes), (others, of_others)):
        assert each.min() == -1 and each.max() == 1
        assert torch.equal(((each[:, 0, 0, 0] + 1) * 8).long(), numbers)
    everything = torch.cat([classes, of_others])
    assert (everything.bincount() == torch.tensor(data.target.tolist()).bincount()).all(), "each once"
    assert not torch.equal(everything, torch.tensor(data.target.tolist())), "in another order"


def test_accuracy_is_the_share_of_right_answers_without_training(example):
    net = example.Net()
    training = example.Training(net)
    x = torch.rand(250, 1, 32, 32)
    with torch.no_grad():
        answers = net(x).argmax(1)
    labels = answers.clone()
    labels[:25] = (labels[:25] + 1) % 10
    training.test(x, labels)
    assert training.accuracies == [0.9] and net.training
    seen = []
    net.register_forward_hook(lambda module, given, result: seen.append((module.training, torch.is_grad_enabled())))
    training.test(x, labels)
    assert set(seen) == {(False, False)} and len(seen) == 3


def test_means_are_of_whole_windows(example):
    losses = list(range(example.WINDOW + 2))
    assert example.means(losses) == pytest.approx([sum(losses[i : i + 50]) / 50 for i in range(3)])
    assert len(example.means(losses[: example.WINDOW])) == 1 and len(example.means(losses[: example.WINDOW - 1])) == 0


def test_a_comparison_beyond_the_bounds_is_a_failure(example, steps, monkeypatch):
    for within, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(example, "compare", lambda trainings: within)
        assert example.main(["--steps", "1", "--compare", "--plot", "none"]) == code
