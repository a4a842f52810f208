"""kiln.torch.optimize() and enabled(): models run on Kiln and stay what they are."""

import copy
import inspect
import io
import pickle
import threading
import warnings

import pytest
from networks import NETWORKS, network

import kiln

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import torch.fx  # noqa: E402

import kiln.torch  # noqa: E402

# f32 sums of at most some hundred products of about 1, in another order, through at most eight layers.
TOLERANCE = 2e-5


def close(actual, expected, tolerance=TOLERANCE):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def step(net, x, optimizer):
    optimizer.zero_grad()
    loss = (net(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_as_pytorch_s(name):
    net, x = network(name)
    plain = copy.deepcopy(net)
    keys = list(net.state_dict())
    kiln.torch.optimize(net, strict=True)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (net, plain)]
    for _ in range(2):
        close(step(net, x, optimizers[0]), step(plain, x, optimizers[1]))
    assert list(net.state_dict()) == keys
    for key, value in plain.state_dict().items():
        close(net.state_dict()[key], value)
    assert kiln.torch.report(net).on_kiln and not kiln.torch.report(net).on_pytorch


def test_a_model_stays_what_it_is():
    net, x = network("residual")
    before = (type(net), repr(net), list(net.state_dict()), [id(each) for each in net.parameters()])
    assert kiln.torch.optimize(net) is net
    assert isinstance(net, before[0]) and isinstance(net.conv1, nn.Conv2d)
    assert (repr(net), list(net.state_dict()), [id(each) for each in net.parameters()]) == before[1:]
    assert net.training and not net.eval().training
    with pytest.warns(kiln.Warning, match="PyTorch computes"):
        y = net.double()(x.double())
    kiln.torch.restore(net)
    close(y, net(x.double()))
    assert type(net) is before[0] and type(net.conv1) is nn.Conv2d
    assert not any("_kiln" in vars(module) for module in net.modules())
    with pytest.raises(kiln.InvalidArgument, match="not optimized"):
        kiln.torch.report(net)


def stored(net):
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    options = {} if torch.__version__.startswith("1.") else {"weights_only": False}
    return torch.load(file, **options)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda net: pickle.loads(pickle.dumps(net)), stored])
def test_copies_are_optimized_too(copied):
    net, x = network("depthwise")
    kiln.torch.optimize(net.eval(), strict=True)
    expected = net(x)
    other = copied(net)
    close(other(x), expected, 0)
    assert type(other) is type(net)
    assert [row.function for row in kiln.torch.report(other).on_kiln].count("conv2d") == 3
    plain, _ = network("depthwise", seed=1)
    other.load_state_dict(plain.state_dict())
    close(other(x), plain.eval()(x))


class Locked(nn.Module):
    """Says by itself what of it is stored."""

    def __init__(self):
        super().__init__()
        self.linear, self.lock = nn.Linear(3, 3), threading.Lock()

    def forward(self, x):
        with self.lock:
            return F.relu(self.linear(x))

    def __getstate__(self):
        return {key: each for key, each in vars(self).items() if key != "lock"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.lock = threading.Lock()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net)), stored])
@pytest.mark.parametrize("made", [Locked, lambda: nn.Sequential(Locked()), lambda: nn.LSTM(3, 3)])
def test_modules_that_say_what_is_stored_are_copied(copied, made):
    net, x = made().eval(), torch.randn(2, 3)
    kiln.torch.optimize(net, strict=True)
    with torch.no_grad():
        expected, y = net(x), copied(net)(x)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (y, expected))):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("first", ["optimized", "parametrized"])
@pytest.mark.parametrize("last", ["restored", "plain"])
def test_parametrizations_come_and_go(first, last):
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU()).eval(), torch.randn(2, 2, 6, 6)
    if first == "optimized":
        kiln.torch.optimize(net)
    nn.utils.parametrizations.spectral_norm(net[0])
    expected = F.relu(F.conv2d(x, net[0].weight, net[0].bias))
    kiln.torch.optimize(net, strict=True)
    close(net(x), expected)
    assert [row.function for row in kiln.torch.report(copy.deepcopy(net))] == []
    assert "conv2d" in [row.function for row in kiln.torch.report(net).on_kiln]
    if last == "restored":
        kiln.torch.restore(net)
        close(net(x), expected)
    nn.utils.parametrize.remove_parametrizations(net[0], "weight")
    assert "weight" in dict(net[0].named_parameters())
    close(net(x), expected)
    kiln.torch.restore(net)
    assert type(net[0]) is nn.Conv2d
    close(net(x), expected)


@pytest.mark.parametrize("size", [1, 2])
def test_an_input_smaller_than_the_window_is_pytorch_s_error(size):
    net, x = kiln.torch.optimize(nn.Conv2d(1, 1, 3)), torch.zeros(1, 1, 5, size)
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        net(x)
    with torch.no_grad(), pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        net(x)
    close(net(torch.zeros(1, 1, 3, 3)), net.bias.view(1, 1, 1, 1))


def test_classes_of_modules_stay():
    net, x = network("depthwise")
    expected = net.eval()(x)
    kinds = [type(module) for module in net.modules()]
    kiln.torch.optimize(net)
    assert [type(module) for module in net.modules()] == kinds
    assert list(inspect.signature(net.forward).parameters) == ["x"]
    mixer, rows = network("mixer")
    quantized = torch.ao.quantization.quantize_dynamic(kiln.torch.optimize(mixer.eval()), {nn.Linear}, torch.qint8)
    assert "quantized" in type(quantized.up).__module__ and quantized(rows).shape == rows.shape
    scripted = torch.jit.script(kiln.torch.optimize(nn.Sequential(nn.Linear(4, 4), nn.ReLU())))
    assert scripted(torch.ones(1, 4)).shape == (1, 4) and "kiln" not in scripted.code
    close(net(x), expected)


def test_copies_use_their_own_parameters_and_flags():
    class Scaled(nn.Linear):
        factor = 1

        def forward(self, x):
            return super().forward(x) * self.factor

    net, x = kiln.torch.optimize(Scaled(3, 3)), torch.randn(2, 3)
    shallow, replica, deep = copy.copy(net), net._replicate_for_data_parallel(), copy.deepcopy(net)
    shallow.factor = replica.factor = deep.factor = 2
    replica.weight, replica.bias = net.weight, net.bias
    for other in (shallow, replica, deep):
        close(other(x), 2 * net(x))
    deep.weight.data.zero_()
    close(deep(x), 2 * net.bias.expand(2, 3))
    assert len(kiln.torch.report(deep)) == 1


def test_a_forward_that_an_instance_has_is_kept():
    net, x = nn.Linear(3, 3), torch.randn(2, 3)
    net.forward = lambda x: nn.Linear.forward(net, x) + 1
    expected, own = net(x), net.forward
    kiln.torch.optimize(net, strict=True)
    close(net(x), expected)
    assert kiln.torch.report(net).on_kiln
    kiln.torch.restore(net)
    assert net.forward is own


def test_parts_of_a_model_run_on_kiln_by_themselves():
    net, x = network("depthwise")
    kiln.torch.optimize(net)
    net.body[0](x)
    assert [(row.place, row.function) for row in kiln.torch.report(net)] == [("body.0", "conv2d")]


def test_hooks_see_what_they_would():
    net, x = network("residual")
    seen = {}
    for each in (net, kiln.torch.optimize(copy.deepcopy(net))):
        values = seen[each] = []
        for module in (each.conv1, each.bn1, each.downsample, each.conv2):
            module.register_forward_hook(lambda module, inputs, output, values=values: values.append(output))
            module.register_forward_pre_hook(lambda module, inputs, values=values: values.append(inputs[0]))
        each.eval()
        with torch.no_grad():
            each(x)
    plain, ours = seen.values()
    assert len(plain) == len(ours)
    for mine, expected in zip(ours, plain):
        close(mine + 0, expected)


class Unusual(nn.Module):
    """Layers that Kiln does not serve, next to one that it does."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3)
        self.head = nn.Linear(2, 2).double()

    def forward(self, x):
        x = F.normalize(self.conv(x)).flatten(2)
        return self.head(x.mean(2).double())


def test_what_is_not_served_pytorch_computes_and_says_so_once():
    torch.manual_seed(0)
    net = Unusual()
    x = torch.randn(1, 2, 5, 5)
    expected = net(x)
    kiln.torch.optimize(net)
    with pytest.warns(kiln.Warning, match="head: PyTorch computes linear: .*float64") as said:
        close(net(x), expected)
    assert len(said) == 1 and said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(x)
    rows = {row.function: row for row in kiln.torch.report(net)}
    assert rows["conv2d"].by_kiln and rows["conv2d"].calls == 2
    assert "float64" in rows["linear"].reason and not rows["linear"].by_kiln
    assert rows["normalize"].reason == "Kiln has no such layer"
    assert "head" in repr(kiln.torch.report(net)) and ">PyTorch</td>" in kiln.torch.report(net)._repr_html_()
    kiln.torch.optimize(net.head, strict=True)
    with pytest.raises(kiln.InvalidArgument, match="float64"):
        net(x)


def test_strict_lets_no_layer_by():
    x = torch.randn(1, 2, 5, 5)
    for layer in (lambda: F.normalize(x), lambda: F.cosine_similarity(x, x)):
        with kiln.torch.enabled(strict=True), pytest.raises(kiln.Unsupported, match="Kiln has no layer (norm|cosine)"):
            layer()


def test_wrong_arguments_raise_what_pytorch_raises():
    net = kiln.torch.optimize(nn.Conv2d(2, 2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="channels"):
            net(torch.zeros(1, 3, 5, 5))
    assert not kiln.torch.report(net)


def test_enabled_takes_models_and_losses_that_are_not_optimized():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2, return_indices=False), nn.Flatten(), nn.Linear(8, 3))
    x, target = torch.randn(2, 1, 6, 6), torch.tensor([0, 2])
    expected = torch.autograd.grad(nn.CrossEntropyLoss()(net(x), target), tuple(net.parameters()))
    with kiln.torch.enabled(strict=True) as places:
        gradients = torch.autograd.grad(nn.CrossEntropyLoss()(net(x), target), tuple(net.parameters()))
    net(x)
    close(gradients, expected)
    assert [row.function for row in places] == ["conv2d", "relu", "max_pool2d", "linear", "cross_entropy"]
    assert all(row.place.startswith("test_optimize.py:") and row.calls == 1 for row in places)
    with kiln.torch.enabled(strict=True), pytest.raises(kiln.InvalidArgument, match="float64"):
        F.relu(x.double())


def test_functions_of_torch_and_methods_are_taken_as_well():
    x = torch.randn(3, 4)
    calls = {"relu": (), "sigmoid": (), "tanh": (), "softmax": (1,), "log_softmax": (1,), "hardshrink": ()}
    expected = [getattr(torch, name)(x, *words) for name, words in calls.items()]
    with kiln.torch.enabled(strict=True) as places:
        for (name, words), value in zip(calls.items(), expected):
            of_torch, of_tensor = getattr(torch, name)(x, *words), getattr(x, name)(*words)
            close((of_torch, of_tensor), (value, value))
    assert [(row.function, row.calls) for row in places] == [(name, 2) for name in calls]


def test_indices_of_maxima_are_kiln_s():
    x = torch.randn(1, 2, 4, 4)
    expected = F.max_pool2d(x, 2, return_indices=True)
    with kiln.torch.enabled(strict=True) as places:
        close(nn.MaxPool2d(2, return_indices=True)(x), expected, 0)
    assert [row.function for row in places.on_kiln] == ["max_pool2d"]


@pytest.mark.filterwarnings("ignore")
def test_arguments_that_kiln_does_not_have_are_pytorch_s():
    x, target = torch.randn(2, 3), torch.tensor([0, 2])
    total, rows = F.cross_entropy(x, target, reduction="sum"), F.softmax(x, 1)
    with kiln.torch.enabled() as places:
        close(F.cross_entropy(x, target, size_average=False), total)
        close(F.softmax(x), rows)
        torch.sigmoid(x, out=x)
    assert [row.function for row in places.on_pytorch] == ["cross_entropy", "softmax", "sigmoid"]
    assert "call PyTorch's function" in places.on_pytorch[2].reason


def test_a_part_that_is_optimized_by_itself_has_its_own_report():
    net = kiln.torch.optimize(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    kiln.torch.optimize(net[0])
    net(torch.zeros(2, 3))
    assert [row.function for row in kiln.torch.report(net[0])] == ["linear"]
    assert [row.function for row in kiln.torch.report(net)] == ["relu"]


def test_what_comes_behind_a_part_is_at_the_whole():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(3, 3)

        def forward(self, x):
            return F.relu(self.part(x))

    net = kiln.torch.optimize(Whole())
    net(torch.zeros(2, 3))
    assert [(row.place, row.function) for row in kiln.torch.report(net)] == [("part", "linear"), ("Whole", "relu")]


@pytest.mark.filterwarnings("ignore")
def test_scripted_and_lazy_parts_stay_pytorch_s():
    net = nn.Sequential(torch.jit.script(nn.Linear(3, 4)), nn.ReLU(), nn.LazyLinear(2))
    kinds = type(net[0]), type(net[2])
    kiln.torch.optimize(net, strict=True)
    assert (type(net[0]), type(net[2])) == kinds
    assert net(torch.zeros(2, 3)).shape == (2, 2)


def test_an_error_in_a_model_leaves_nothing_behind():
    class Wrong(nn.Module):
        def forward(self, x):
            raise KeyError("wrong")

    net = kiln.torch.optimize(Wrong())
    for _ in range(2):
        with pytest.raises(KeyError):
            net(torch.zeros(2))
    x = torch.zeros(2)
    assert torch.relu(x) is not None and not kiln.torch.report(net)


@pytest.mark.parametrize("model", [3, nn.Conv2d, None])
def test_what_is_no_module_is_refused(model):
    for function in (kiln.torch.optimize, kiln.torch.restore):
        with pytest.raises(kiln.InvalidArgument, match="model is .*give a torch.nn.Module"):
            function(model)


def test_torch_fx_traces_an_optimized_model():
    net, x = network("up_and_down")
    kiln.torch.optimize(net, strict=True)
    graph = torch.fx.symbolic_trace(net)
    assert "leaky_relu" in graph.code and "self.up(" in graph.code
    close(graph(x), net(x))


def test_a_compiled_model_holds_kiln_s_operators():
    if not hasattr(torch, "compile") or torch.__version__ < "2.6":
        pytest.skip("torch.compile follows functions' modes from PyTorch 2.6 on")
    net, x = network("depthwise")
    plain = copy.deepcopy(net)
    kiln.torch.optimize(net, strict=True)
    graphs = []

    def backend(graph, inputs):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph

    compiled = torch.compile(net, backend=backend)
    close(compiled(x), plain(x))
    for each in (net, plain):
        each.eval()
    with torch.no_grad():
        close(compiled(x), plain(x))
    for targets in graphs:
        assert len(graphs) == 2 and targets.count("kiln.conv.default") == 3
