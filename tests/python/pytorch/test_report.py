"""Texts of report(): a line that sums up, one row a place, compiled models, and modules that two models share."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
from kiln.torch import Places  # noqa: E402
from kiln.torch._arithmetic import operations_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::kiln.Warning")


class Mixed(nn.Module):
    """A convolution, and a product of float64 that PyTorch computes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.head = nn.Linear(4, 5).double()

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean((2, 3)).double())


def test_it_begins_with_how_much_runs_on_kiln():
    net = kiln.torch.optimize(Mixed(), fold=False)
    assert repr(kiln.torch.report(net)) == "nothing has run yet"
    net(torch.ones(1, 2, 5, 5))
    text = repr(kiln.torch.report(net))
    # 36 outputs of 18 products, 36 elements, 5 outputs of 4 products.
    share = round(100 * (36 * 36 + 36) / (36 * 36 + 36 + 40))
    assert text.splitlines()[0] == f"2 of 3 places on Kiln, {share}% of the arithmetic"
    assert text.splitlines()[1].split() == ["place", "function", "runs", "on", "calls", "why"]
    assert f"{share}% of the arithmetic</p>" in kiln.torch.report(net)._repr_html_()


def test_a_place_has_one_row_whatever_computed_it():
    places = Places()
    for _ in range(2):
        places.add_by_kiln("conv", "conv2d", 0)
    assert places.add_by_pytorch("conv", "conv2d", "elements of float64", 0)
    assert not places.add_by_pytorch("conv", "conv2d", "another reason", 0)
    places.add_by_kiln("act", "relu", 3)
    places.add_by_kiln("act", "relu", 3, joined=True)
    conv, act = places
    assert (conv.calls, conv.calls_by_kiln, conv.by_kiln, conv.reason) == (4, 2, False, "elements of float64")
    assert conv.row() == ["conv", "conv2d", "Kiln 2, PyTorch 2", "4", "elements of float64"]
    assert act.row() == ["act", "relu", "Kiln", "2", "in the kernel before it"]
    assert places.on_kiln == [act] and places.on_pytorch == [conv]
    assert places.summary() == "1 of 2 places on Kiln, 100% of the arithmetic"


@pytest.mark.parametrize("by_kiln, of, said", [(1, 1, "100%"), (0, 9, "0%"), (9999, 10000, "99.99%"), (1, 9999, "1%")])
def test_a_share_is_all_or_nothing_only_if_it_is(by_kiln, of, said):
    places = Places()
    places.add_by_kiln("a", "linear", by_kiln)
    places.add_by_pytorch("b", "matmul", "no layer", of - by_kiln)
    assert places.summary() == f"1 of 2 places on Kiln, {said} of the arithmetic"


def test_joined_layers_and_those_that_run_by_themselves_are_one_place():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU())
    kiln.torch.optimize(net, fold=True)
    x = torch.ones(1, 2, 5, 5)
    net(x)
    with torch.no_grad():
        net(x)
    rows = [(row.place, row.function, row.calls, row.by_kiln) for row in kiln.torch.report(net)]
    assert rows == [("0", "conv2d", 2, True), ("1", "relu", 2, True)]


def test_products_that_no_layer_is_are_places_of_pytorch():
    class Attention(nn.Module):
        def forward(self, q, k):
            return torch.softmax(q @ k.transpose(1, 2), -1).bmm(k)

    net = kiln.torch.optimize(Attention(), strict=True)
    q = torch.randn(2, 3, 4)
    net(q, q)
    report = kiln.torch.report(net)
    assert [row.function for row in report.on_pytorch] == ["matmul", "bmm"]
    assert report.on_pytorch[0].reason == "a product that is no linear layer"
    assert report.summary() == f"1 of 3 places on Kiln, {round(100 * 18 / (18 + 2 * 144))}% of the arithmetic"


class Transposed(nn.Module):
    """A linear layer whose weight is not transposed, as GPT-2's, on labels that are moved by a place."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))
        self.bias = nn.Parameter(torch.randn(6))

    def forward(self, x, labels):
        y = torch.addmm(self.bias, x.flatten(0, -2), self.weight)
        labels = F.pad(labels, (0, 1), value=-100)[..., 1:]
        return F.cross_entropy(self.bias.addmm(y, torch.eye(6)), labels.flatten())


def test_addmm_with_a_bias_is_a_linear_layer_and_padding_of_labels_is_none():
    torch.manual_seed(0)
    x, labels = torch.randn(2, 3, 4), torch.randint(0, 6, (2, 3))
    plain = Transposed()
    net = kiln.torch.optimize(copy.deepcopy(plain), strict=True)
    for each in (plain, net):
        loss = each(x, labels)
        loss.backward()
    report = kiln.torch.report(net)
    assert [(row.function, row.calls) for row in report] == [("addmm", 2), ("cross_entropy", 1)]
    assert report.summary() == "2 of 2 places on Kiln, 100% of the arithmetic"
    for ours, theirs in zip((loss, *(each.grad for each in net.parameters())), (plain(x, labels), *(each.grad for each in plain.parameters()))):
        torch.testing.assert_close(ours, theirs)
    with torch.no_grad():
        torch.testing.assert_close(net(x, labels), plain(x, labels))


def test_addmm_of_a_matrix_or_with_scales_stays_a_product():
    x = torch.randn(3, 3)
    with kiln.torch.enabled() as places:
        torch.addmm(x, x, x)
        torch.addmm(x[0], x, x, beta=0.5)
        torch.addmm(input=x[0], mat1=x, mat2=x, alpha=2)
        assert not places.on_kiln
        y = torch.addmm(input=x[0], mat1=x, mat2=x)
        z = torch.addmm(x[0, :1], x, x)  # a number for all features
    assert [row.function for row in places.on_kiln] == ["addmm"] * 2
    torch.testing.assert_close(y, torch.addmm(x[0], x, x))
    torch.testing.assert_close(z, torch.addmm(x[0, :1], x, x))


def test_arithmetic_of_layers():
    x, w = torch.ones(2, 6, 5, 5), torch.ones(4, 3, 3, 3)
    assert operations_of("conv2d", (x, w), {"groups": 2}, torch.ones(2, 4, 3, 3)) == 2 * 72 * 27
    assert operations_of("conv_transpose2d", (x[:, :4], w), {}, torch.ones(2, 3, 7, 7)) == 2 * 200 * 27
    assert operations_of("linear", (torch.ones(7, 3),), {"weight": torch.ones(2, 3)}, torch.ones(7, 2)) == 2 * 14 * 3
    assert operations_of("addmm", (torch.ones(2), torch.ones(4, 3), torch.ones(3, 2)), {}, torch.ones(4, 2)) == 48
    q, v = torch.ones(2, 3, 4), torch.ones(2, 5, 6)
    assert operations_of("scaled_dot_product_attention", (q, torch.ones(2, 5, 4), v), {}, torch.ones(2, 3, 6)) == 2 * 6 * 5 * 10
    assert operations_of("relu", (x,), {}, x) == x.numel()
    assert operations_of("conv2d", (), {}, x) == 0


def test_modules_that_two_models_share_are_places_of_the_one_that_runs():
    shared = nn.Linear(3, 3)
    first, second = nn.Sequential(shared, nn.ReLU()), nn.Sequential(nn.Tanh(), nn.Sequential(shared))
    kiln.torch.optimize(first)
    kiln.torch.optimize(second, strict=True)
    x = torch.ones(2, 3)
    first(x)
    assert [(row.place, row.function) for row in kiln.torch.report(first)] == [("0", "linear"), ("1", "relu")]
    assert not len(kiln.torch.report(second))
    second(x)
    second(x)
    assert [(row.place, row.calls) for row in kiln.torch.report(second)] == [("0", 2), ("1.0", 2)]
    assert [row.calls for row in kiln.torch.report(first)] == [1, 1]
    kiln.torch.optimize(first)
    first(x)
    assert len(kiln.torch.report(first)) == 2 and [row.calls for row in kiln.torch.report(second)] == [2, 2]
    kiln.torch.restore(second)
    first(x)
    assert [row.calls for row in kiln.torch.report(first)] == [2, 2]
    kiln.torch.restore(first)
    assert not any("_kiln" in vars(module) for module in (*first.modules(), *second.modules()))


def test_a_part_of_an_optimized_model_is_restored_alone():
    net = kiln.torch.optimize(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    kiln.torch.restore(net[0])
    net(torch.ones(2, 3))
    assert "_kiln" not in vars(net[0])
    # The layer without a mode of its own runs in that of the whole.
    assert {row.function for row in kiln.torch.report(net)} >= {"relu"}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_of_models_that_share_has_a_report_of_its_own(copied):
    shared = nn.Linear(3, 3)
    first, second = kiln.torch.optimize(nn.Sequential(shared)), kiln.torch.optimize(nn.Sequential(nn.Tanh(), shared))
    other, another = copied((first, second))
    another(torch.ones(2, 3))
    assert [row.place for row in kiln.torch.report(another)] == ["0", "1"]
    assert not len(kiln.torch.report(other)) and not len(kiln.torch.report(second))
    kiln.torch.optimize(other)
    other(torch.ones(2, 3))
    assert [row.calls for row in kiln.torch.report(other)] == [1]


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch's compiler is in 2.x")
def test_a_compiled_model_has_the_places_that_its_program_holds():
    net = kiln.torch.optimize(Mixed())
    compiled = torch.compile(net, backend="aot_eager")
    x = torch.randn(2, 2, 5, 5)
    for _ in range(3):
        compiled(x)
    report = kiln.torch.report(compiled)
    assert {(row.place, row.function, row.by_kiln) for row in report} >= {
        ("conv", "conv2d", True),
        ("Mixed", "relu", True),
        ("head", "linear", False),
    }
    assert report.summary() == "2 of 3 places on Kiln"
    assert "float64" in report.on_pytorch[0].reason and all(row.row()[4].endswith("compiled") for row in report)
