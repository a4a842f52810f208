"""Modes, tracers and transforms of PyTorch that Kiln does not know: results are PyTorch's own."""

import contextlib
import copy
import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
import torch.autograd.forward_ad as forward_ad  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import kiln  # noqa: E402
import kiln.torch  # noqa: E402
from kiln.torch import _active  # noqa: E402

try:  # functorch until PyTorch 2.0
    from torch.func import functional_call, functionalize, grad, hessian, jacfwd, jacrev, jvp, vmap
except ImportError:
    from functorch import functionalize, grad, hessian, jacfwd, jacrev, jvp, vmap

    functional_call = torch.nn.utils.stateless.functional_call

# As in test_optimize.py. Second derivatives add up more products.
TOLERANCE = 2e-5


def close(actual, expected, tolerance=TOLERANCE):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def convolutions():
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2))


def products():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(-1))


NETWORKS = {"convolutions": (convolutions, (2, 2, 6, 6)), "products": (products, (5, 4))}


@pytest.fixture(params=NETWORKS)
def pair(request):
    """A network in evaluation, the same one optimized, and an input."""
    made, shape = NETWORKS[request.param]
    torch.manual_seed(0)
    net = made()
    for module in net:
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    net.eval()
    return net, kiln.torch.optimize(copy.deepcopy(net), fold=True), torch.randn(shape)


def by_pytorch(net):
    rows = kiln.torch.report(net)
    return rows.on_pytorch and not rows.on_kiln


@pytest.mark.parametrize("gradients", [False, True])
def test_a_traced_model_is_that_of_pytorch(pair, gradients):
    plain, net, x = pair
    with torch.set_grad_enabled(gradients):
        traced = torch.jit.trace(net, x, check_trace=True)
        close(traced(x + 1), plain(x + 1))
        assert "kiln::" not in str(traced.inlined_graph)
        if not gradients:
            close(torch.jit.freeze(traced)(x + 2), plain(x + 2))


def test_a_scripted_part_takes_results_of_a_chain(pair):
    _, net, x = pair
    scripted = torch.jit.script(nn.ReLU())
    with torch.no_grad():
        expected = scripted(F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)))

        class Uses(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.scripted = nn.Conv2d(1, 1, 3, bias=False), scripted
                self.conv.weight.data.fill_(1)

            def forward(self, x):
                return self.scripted(self.conv(x))

        close(kiln.torch.optimize(Uses(), fold=True)(torch.ones(1, 1, 3, 3)), expected)


@pytest.mark.parametrize("tracing", ["real", "fake", "symbolic"])
def test_make_fx_records_what_pytorch_computes(pair, tracing):
    from torch.fx.experimental.proxy_tensor import make_fx

    plain, net, x = pair
    options = {} if torch.__version__.startswith("1.") else {"_allow_non_fake_inputs": True}
    try:
        with torch.no_grad():
            make_fx(plain, tracing_mode=tracing, **options)(x)
    except Exception as error:
        pytest.skip(f"PyTorch {torch.__version__} does not trace this: {error}")
    with torch.no_grad():
        graph = make_fx(net, tracing_mode=tracing, **options)(x)
    assert "kiln" not in graph.code
    close(graph(x + 1), plain(x + 1))


def tangents(pair, call):
    plain, net, x = pair
    return call(net, x), call(plain, x)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: jvp(f, (x,), (x.cos(),)),
        lambda f, x: jacfwd(f)(x),
        lambda f, x: jacrev(f)(x),
        lambda f, x: grad(lambda x: f(x).square().sum())(x),
        lambda f, x: hessian(lambda x: f(x).square().sum())(x),
        lambda f, x: vmap(lambda x: f(x.unsqueeze(0)).square())(x),
        lambda f, x: functionalize(f)(x),
        lambda f, x: vmap(grad(lambda x: f(x.unsqueeze(0)).square().sum()))(x),
    ],
    ids=["jvp", "jacfwd", "jacrev", "grad", "hessian", "vmap", "functionalize", "vmap_of_grad"],
)
def test_transforms_are_those_of_pytorch(pair, transform):
    plain, net, x = pair
    if isinstance(plain[0], nn.Conv2d):
        plain, net = plain[:3], kiln.torch.optimize(copy.deepcopy(plain[:3]), fold=True)
    try:
        expected = transform(plain, x)
    except Exception as error:
        with pytest.raises(type(error)):
            transform(net, x)
        return
    close(transform(net, x), expected, 1e-4)
    with torch.no_grad():
        close(transform(net, x), transform(plain, x), 1e-4)
    assert by_pytorch(net)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("gradients", [False, True])
def test_forward_mode_keeps_tangents(pair, frozen, gradients):
    plain, net, x = pair
    outcomes = []
    for each in (plain, net):
        each.requires_grad_(not frozen)
        with torch.set_grad_enabled(gradients), forward_ad.dual_level():
            outcomes.append(tuple(forward_ad.unpack_dual(each(forward_ad.make_dual(x, x.sin())))))
    close(outcomes[1], outcomes[0])


def test_parameters_given_by_functional_call(pair):
    plain, net, x = pair
    given = {name: each.detach() + 1 for name, each in plain.named_parameters()}
    with torch.no_grad():
        close(functional_call(net, given, (x,)), functional_call(plain, given, (x,)))


class Counts(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class Doubles(TorchFunctionMode):
    """Doubles what an activation gives, as a mode of somebody else may."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function in (F.relu, F.gelu) else result


@pytest.mark.parametrize("mode", [Counts, Doubles])
@pytest.mark.parametrize("gradients", [False, True])
def test_modes_of_others_see_pytorch_s_functions(pair, mode, gradients):
    plain, net, x = pair
    with torch.set_grad_enabled(gradients):
        results = []
        for each in (plain, net):
            with mode() as active:
                results.append((each(x), getattr(active, "seen", [])))
    close(results[1][0], results[0][0])
    assert results[1][1] == results[0][1]


def test_fake_and_meta_tensors_have_pytorch_s_shapes(pair):
    plain, net, x = pair
    y = copy.deepcopy(net).to("meta")(x.to("meta"))
    assert y.is_meta and y.shape == plain(x).shape
    if torch.__version__.startswith("1."):
        pytest.skip("fake tensors of PyTorch 1 do not meet real parameters")
    fake = torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    with torch.no_grad(), fake:
        y = net(fake.from_tensor(x))
    assert y.shape == plain(x).shape and type(y).__name__ == "FakeTensor"
    assert not kiln.torch.report(net)


@pytest.mark.parametrize("mode", [
    torch.inference_mode, torch.no_grad, torch.autograd.detect_anomaly, torch.autograd.graph.save_on_cpu,
    lambda: torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_modes_that_kiln_knows_change_nothing(pair, mode):
    plain, net, x = pair
    results = []
    for each in (plain, net):
        with mode():
            y = each(x)
        if y.requires_grad:
            y.square().sum().backward()
        results.append((y.detach().clone(), [p.grad for p in each.parameters() if p.grad is not None]))
    close(results[1], results[0], 1e-4)
    assert kiln.torch.report(net).on_kiln and not kiln.torch.report(net).on_pytorch


def test_checkpoints_change_nothing(pair):
    from torch.utils.checkpoint import checkpoint

    plain, net, x = pair
    gradients = []
    for each in (plain, net):
        checkpoint(each, x.requires_grad_(), use_reentrant=False).square().sum().backward()
        gradients.append([p.grad for p in each.parameters()])
    close(gradients[1], gradients[0], 1e-4)


class Checkpointed(nn.Module):
    """Functions that a checkpoint runs again outside of the model's forward."""

    def __init__(self, reentrant):
        super().__init__()
        self.a, self.reentrant = nn.Linear(3, 3), reentrant

    def body(self, x):
        return F.layer_norm(F.silu(F.linear(x, self.a.weight)), (3,))

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        return self.a(checkpoint(self.body, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("within", ["optimize", "enabled"])
def test_functions_in_a_checkpoint_are_pytorch_s(within, reentrant):
    torch.manual_seed(3)
    plain, x = Checkpointed(reentrant), torch.randn(3, 3)
    net = copy.deepcopy(plain) if within == "enabled" else kiln.torch.optimize(copy.deepcopy(plain), fold=True)
    gradients = []
    for each in (plain, net):
        given = x.clone().requires_grad_()
        with kiln.torch.enabled() if within == "enabled" and each is net else contextlib.nullcontext():
            loss = each(given).square().sum()
        loss.backward()
        gradients.append([given.grad, *(p.grad for p in each.parameters())])
    close(gradients[1], gradients[0], 1e-4)


class OfAutograd(torch.autograd.Function):
    @staticmethod
    def forward(context, x, part):
        return part(x)

    @staticmethod
    def backward(context, dy):
        return dy, None


def test_a_function_of_autograd_that_ends_in_a_chain_has_a_gradient():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

        def forward(self, x):
            return OfAutograd.apply(x, self.part)

    x = torch.randn(2, 3, requires_grad=True)
    kiln.torch.optimize(Net(), fold=True)(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(2, 3))


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
def test_each_of_several_models_compiles():
    x = torch.randn(2, 3)
    for _ in range(3):
        net = kiln.torch.optimize(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
        close(torch.compile(net, backend="eager", fullgraph=True)(x), net(x), 1e-5)


def test_a_refusal_in_strict_names_the_module_and_the_function():
    net = kiln.torch.optimize(nn.Sequential(nn.Linear(2, 2), nn.PReLU()), strict=True)
    with pytest.raises(kiln.Unsupported, match="1: prelu: Kiln has no layer prelu"):
        net(torch.ones(1, 2))
    for wrong in (None, [1] * 1000):
        with pytest.raises(kiln.InvalidArgument, match=r"model is .{1,60} \(give a torch.nn.Module\)"):
            kiln.torch.report(wrong)


def test_deterministic_mode_demands_kernels_that_are(pair):
    _, net, x = pair
    torch.use_deterministic_algorithms(True)
    try:
        with kiln.torch.record() as requests:
            net(x).square().sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    products = [line for line in requests if line.split()[0] in ("conv_forward", "gemm", "conv_backward_filter")]
    assert products and all(" deterministic" in line for line in products)


def lazily_negated(x):
    return torch.complex(torch.zeros_like(x), x).conj().imag


@pytest.mark.parametrize("made", [
    lazily_negated, torch._efficientzerotensor, lambda x: x.double(), lambda x: x.to(torch.complex64),
    lambda x: x.to_sparse(), lambda x: torch.nested.nested_tensor([x]),
], ids=["negated", "zero", "f64", "complex", "sparse", "nested"])  # fmt: skip
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_kinds_are_pytorch_s(made, gradients):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    x = torch.randn(2, 4)
    given = made(x.shape) if made is torch._efficientzerotensor else made(x)
    if given.dtype != torch.float32:
        plain = plain.to(given.dtype)
    net = kiln.torch.optimize(copy.deepcopy(plain), fold=True)

    def outcome(call):
        with torch.set_grad_enabled(gradients):
            try:
                result = call(given)
            except Exception as error:
                return type(error)
            return result.to_padded_tensor(0.0) if result.is_nested else result.to_dense() if result.is_sparse else result

    for part in (lambda net: net, lambda net: net[0]):  # complex numbers have no relu
        expected, actual = outcome(part(plain)), outcome(part(net))
        assert expected is actual if isinstance(expected, type) else close(actual, expected) is None


@pytest.mark.skipif(not hasattr(torch._C, "_swap_tensor_impl"), reason="PyTorch has had _swap_tensor_impl since 2.3")
def test_results_that_a_model_keeps_are_plain_tensors():
    @dataclasses.dataclass
    class Result:
        first: torch.Tensor
        last: torch.Tensor

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2)

        def forward(self, x):
            self.first = self.conv(x)
            self.normed = [self.bn(self.first)]
            self.parameter = nn.Parameter(self.conv(x))
            return Result(self.first, F.relu(self.normed[0]))

    net = Keeps().eval()
    x = torch.randn(1, 2, 5, 5)
    with torch.no_grad():
        expected = net(x)
        kept = net.first, net.normed[0], net.parameter
        y = kiln.torch.optimize(net, strict=True)(x)
        for mine, other in zip((y.first, y.last, net.first, net.normed[0], net.parameter), (expected.first, expected.last, *kept)):
            assert type(mine) in (torch.Tensor, nn.Parameter)
            close(mine.detach(), other.detach())
        assert isinstance(net.parameter, nn.Parameter) and net.first is y.first


def test_strict_raises_where_a_mode_leaves_layers_to_pytorch(pair):
    _, net, x = pair
    kiln.torch.optimize(net, strict=True)
    with Counts(), pytest.raises(kiln.Unsupported, match="a dispatch mode is active"):
        net(x)
    with pytest.raises(kiln.Unsupported, match="torch.jit.trace records the program"):
        torch.jit.trace(net, x)


@pytest.mark.parametrize("target", [7, -1, 2**32 + 1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_target_that_is_no_class_is_pytorch_s_error(target, reduction):
    x, targets = torch.randn(2, 3), torch.tensor([0, target])
    with kiln.torch.enabled(), pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(x, targets, reduction=reduction)
    with pytest.raises(kiln.InvalidArgument, match="the target -?[0-9]+ is no class of 3"):
        kiln.torch.functional.cross_entropy(x, targets, reduction=reduction)
    with kiln.torch.enabled(strict=True):
        close(F.cross_entropy(x, targets, ignore_index=target), F.cross_entropy(x[:1], targets[:1]))


def test_an_exported_model_is_that_of_pytorch_or_kiln_s_by_choice(pair):
    if not hasattr(torch.compiler if hasattr(torch, "compiler") else torch, "is_exporting"):
        pytest.skip("PyTorch says whether it exports from 2.7 on")
    plain, net, x = pair
    for strict in (False, True):
        program = torch.export.export(net, (x,), strict=strict)
        assert "kiln" not in str(program.graph)
        close(program.module()(x), plain(x))
        with kiln.torch.enabled():
            program = torch.export.export(net, (x,), strict=strict)
        assert "kiln" in str(program.graph)
        close(program.module()(x), plain(x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [False, True])
def test_an_onnx_model_is_that_of_pytorch(pair, dynamo, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    if torch.__version__.startswith("1."):
        pytest.skip("PyTorch 1 writes ONNX by torch.jit.trace alone")
    if dynamo:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    plain, net, x = pair
    written = []
    for name, each in (("plain", plain), ("kiln", net)):
        torch.onnx.export(each, (x,), str(tmp_path / name), dynamo=dynamo)
        written.append([node.op_type for node in onnx.load(str(tmp_path / name)).graph.node])
    assert written[0] == written[1]


def test_gradient_penalties_are_kiln_s(pair):
    plain, net, x = pair
    penalties = []
    for each in (plain, net):
        given = x.clone().requires_grad_()
        (dx,) = torch.autograd.grad(each(given).square().sum(), given, create_graph=True)
        each.zero_grad()
        dx.square().sum().backward()
        penalties.append([given.grad] + [p.grad for p in each.parameters() if p.grad is not None])
    close(penalties[1], penalties[0], 1e-3)
    assert kiln.torch.report(net).on_kiln and not kiln.torch.report(net).on_pytorch


class Sub(torch.Tensor):
    """Tensors of somebody else."""


class FakeTensor(torch.Tensor):
    """Named as the compilers' are."""


def test_tensors_that_are_not_plain_are_named():
    plain, complex_numbers = torch.ones(2, 2), torch.ones(2, dtype=torch.cfloat)
    for tensor, said in (
        (plain, ""),
        (nn.Parameter(plain), ""),
        (plain.as_subclass(Sub), "a tensor is a Sub"),
        (plain.to_sparse(), "a tensor has the layout sparse_coo"),
        (plain.to("meta"), "a tensor is on the device meta"),
        (torch.quantize_per_tensor(plain, 1.0, 0, torch.qint8), "a tensor is quantized"),
        (complex_numbers.conj(), "a tensor is a lazy conjugate, negation or zero"),
        (complex_numbers.conj().imag, "a tensor is a lazy conjugate, negation or zero"),
    ):
        assert _active.foreign_tensor((1, "word", None, plain, tensor)) == said
        direct = not said or said.startswith("a tensor is quantized") or tensor.is_conj()
        assert _active.is_direct((1, 2.5, True, "word", (1, 2), [3], None, tensor)) == direct
    assert not _active.is_direct((object(),)) and not _active.is_direct((plain, {}))


def test_shapes_alone_are_told_from_elements():
    plain = torch.ones(2)
    for tensor in (plain.to("meta"), plain.to("meta").as_subclass(Sub), plain.as_subclass(FakeTensor)):
        assert _active.has_no_elements((1, plain, tensor))
    assert not _active.has_no_elements((1, "word", plain, plain.as_subclass(Sub), object()))


def test_what_is_active_is_named():
    class Foreign(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    assert (_active.transform(), _active.foreign_mode(), _active.checkpoint()) == ("", "", "") and _active.is_direct(())
    with Foreign():
        assert _active.foreign_mode() == "the function mode Foreign is active" and not _active.is_direct(())
        assert _active.foreign((torch.ones(2),)) == "the function mode Foreign is active"
    with Dispatch():
        assert _active.foreign_mode() == "a dispatch mode is active" and not _active.is_direct(())
    with kiln.torch.enabled():
        assert _active.foreign_mode() == ""
    with forward_ad.dual_level():
        assert _active.transform() == "forward-mode differentiation is active" and not _active.is_direct(())
        assert _active.foreign(()) == _active.transform()
    said = []
    torch.jit.trace(lambda x: said.append(_active.transform()) or x + 1, torch.ones(2), check_trace=False)
    vmap(lambda x: said.append(_active.transform()) or x + 1)(torch.ones(2))
    assert said == ["torch.jit.trace records the program", "a transform of torch.func is active"]
    with torch.autograd.profiler.profile():
        assert not _active.is_direct(())
    assert not _active.is_exporting() and not _active.is_compiling()
