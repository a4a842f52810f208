"""Operators of kiln.torch as PyTorch's compiler, exporter and autocast see them."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

from comparison import close  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402
from kiln._calls import calls_taken  # noqa: E402
from kiln.torch import operators  # noqa: E402

compiled = pytest.mark.skipif(
    not hasattr(torch, "export"), reason=f"PyTorch {torch.__version__} has no torch.export, which 2.1 has"
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


class Net(torch.nn.Module):
    """A small network with running statistics, of Kiln's functions."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(64, 5)

    def forward(self, x, targets=None):
        norm = self.norm
        y = K.conv2d(x, self.conv.weight, self.conv.bias, padding=1)
        y = K.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, self.training)
        y = K.max_pool2d(K.relu(y), 2)
        y = K.linear(y.flatten(1), self.linear.weight, self.linear.bias)
        return K.softmax(y, 1) if targets is None else K.cross_entropy(y, targets)


@compiled
def test_a_compiled_step_of_training_is_the_same():
    net = Net()
    other = copy.deepcopy(net)
    x, targets = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])
    loss = torch.compile(net, fullgraph=True, backend="aot_eager")(x, targets)
    expected = other(x, targets)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for mine, theirs in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    for mine, theirs in zip(net.buffers(), other.buffers()):
        torch.testing.assert_close(mine, theirs)


@compiled
def test_an_exported_network_takes_any_batch():
    net, x = Net().eval(), torch.randn(2, 3, 8, 8)
    program = torch.export.export(net, (x,), dynamic_shapes={"x": {0: torch.export.Dim("n", min=1, max=64)}})
    assert "kiln.conv" in str(program.graph)
    more = torch.randn(5, 3, 8, 8)
    torch.testing.assert_close(program.module()(more), net(more))


def arguments():
    """An operator with arguments for it, of each schema with something of its own."""
    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    window = ([1, 1, 1, 1], [1, 1], [1, 1], 1)
    statistics = torch.zeros(1, 3, 1, 1), torch.ones(1, 3, 1, 1)
    rows, targets = torch.randn(3, 4), torch.tensor([1, 2, 0], dtype=torch.int32)
    yield operators.contraction.conv, (x, w, None, None, None, *window, "relu", [])
    yield operators.contraction.gemm, (rows, rows.t(), None, None, None, 1.0, 1.0, "", [])
    yield operators.pooling.max_pool, (x, [2, 3, 4, 4], [2, 2], [0] * 4, [2, 2], [1, 1])
    yield operators.normalisation.norm, (x, None, None, None, *statistics, [0, 2, 3], False, 1e-5, 0.1, False)
    yield operators.rows.cross_entropy, (rows, targets, None, "mean", -100, 0.0)
    yield operators.rows.nll_loss, (rows, targets, torch.rand(4), "mean", 2)
    yield operators.rows.nll_loss_backward, (torch.randn(3), rows, targets, None, "none", -100)
    yield operators.moves.embedding_backward, (torch.randn(2, 3, 4), torch.tensor([[0, 2, 2], [4, 2, 1]]), 1, 5)
    positions, ends = torch.rand(2, 3, 2, 2) * 2 - 1, ("linear", "border", "edges")
    yield operators.sampling.grid_sample, (torch.randn(2, 3, 4, 5), positions, *ends)
    yield operators.sampling.grid_sample_backward_data, (torch.randn(2, 3, 3, 2), positions, (2, 3, 4, 5), *ends)
    yield operators.sampling.grid_sample_backward_grid, (torch.randn(2, 3, 3, 2), torch.randn(2, 3, 4, 5), positions, *ends)
    yield operators.sampling.affine_grid, (torch.randn(2, 2, 3), (3, 4), "edges")
    yield operators.sampling.affine_grid_backward, (torch.randn(2, 3, 4, 2), "edges")
    window = ([2, 3], [0, 1, 0, 1], [1, 2], [2, 1])
    yield operators.columns.im2col, (x, (*x.shape[:1], 6 * x.shape[1], x.shape[2] - 2, (x.shape[3] + 2 - 3) // 2 + 1), *window)
    yield operators.columns.col2im, (torch.randn(2, 12, 3, 2), (2, 2, 5, 4), *window)
    steps, labels = torch.randn(2, 5, 4).log_softmax(-1), torch.tensor([[1, 2], [3, 3]], dtype=torch.int32)
    lengths, counts = torch.tensor([5, 4], dtype=torch.int32), torch.tensor([2, 1], dtype=torch.int32)
    yield operators.ctc.ctc_loss, (steps, labels, lengths, counts, 0, False, True)
    of_steps = torch.zeros(2, 5, 5), steps.exp()  # without gradients, which PyTorch does not have
    yield operators.ctc.ctc_loss_backward, (torch.rand(2), *of_steps, labels, lengths, counts, 0, True)
    yield operators.elementwise.dropout, (rows, torch.tensor(3), 0.5)
    q, k = torch.randn(2, 3, 4, 4).transpose(1, 2), torch.randn(2, 2, 5, 4)
    bias, mask, lengths = torch.randn(1, 4, 1, 5), torch.ones(2, 1, 3, 5, dtype=torch.uint8), torch.tensor([5, 3], dtype=torch.int32)
    words = (bias, mask, lengths, 1, 0, "start", 0.5, 0.0, None)
    yield operators.attention.attention, (q, k, k[..., :2], *words, True)
    y = torch.randn(2, 4, 3, 2)
    given = (y, q, k, k[..., :2], y + 1, torch.rand(2, 4, 3), *words, True, False, True)
    yield operators.attention.attention_backward, given


@compiled
@pytest.mark.parametrize("operator, given", [pytest.param(*each, id=each[0].__name__) for each in arguments()])
def test_operators_are_what_pytorch_asks_of_them(operator, given):
    for each in given:
        if isinstance(each, torch.Tensor) and each.dtype.is_floating_point and each.min() < 0:
            each.requires_grad_()
    torch.library.opcheck(operator.overload, given)


@pytest.mark.parametrize("operator, given", [pytest.param(*each, id=each[0].__name__) for each in arguments()])
def test_shapes_without_elements_are_those_of_results(operator, given):
    result = operator(*given)
    shape = operator(*(each.to("meta") if isinstance(each, torch.Tensor) else each for each in given))
    for mine, theirs in zip(result if isinstance(result, tuple) else (result,), shape if isinstance(shape, tuple) else (shape,)):
        assert theirs.is_meta and mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype and mine.stride() == theirs.stride()


@pytest.mark.parametrize("records_gradients", [False, True])
@pytest.mark.parametrize("operator, given", [pytest.param(*each, id=each[0].__name__) for each in arguments()])
def test_operators_that_a_program_calls_itself_are_recorded_by_a_trace(operator, given, records_gradients):
    def first(x):  # the other results of normalisations are statistics
        result = operator.overload(x, *given[1:])
        return result[0] if isinstance(result, tuple) else result

    x = given[0].clone().requires_grad_(records_gradients)
    other = x.detach().flip(0) + 1
    with torch.set_grad_enabled(records_gradients):
        traced = torch.jit.trace(first, x)
        assert f"kiln::{operator.overload._schema.name.partition('::')[2]}" in str(traced.graph)
        torch.testing.assert_close(traced(other), first(other))
        assert not torch.equal(traced(other), first(x))


def test_autocast_computes_products_in_its_type_and_losses_in_f32():
    x, w = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = K.conv2d(x, w, padding=1)
        assert y.dtype == torch.bfloat16 and K.linear(y.flatten(1), torch.randn(5, 256)).dtype == torch.bfloat16
        assert K.conv_transpose2d(x, torch.randn(3, 2, 3, 3)).dtype == torch.bfloat16
        assert K.relu(y).dtype == torch.bfloat16
        loss = K.cross_entropy(y.flatten(1), torch.tensor([0, 7]))
    assert loss.dtype == torch.float32
    loss.backward()
    assert x.grad.dtype == w.grad.dtype == torch.float32
    with pytest.raises(kiln.InvalidArgument, match="weight is torch.bfloat16 and input is torch.float32"):
        K.conv2d(x, w.bfloat16())


ROWS = torch.randn(2, 4, 6)
IMAGES = torch.randn(2, 4, 6, 6)
VOLUMES = torch.randn(1, 2, 4, 4, 4)
OF_AUTOCAST = {
    "softmax": lambda L, dtype: L.softmax(ROWS.to(dtype), -1),
    "log_softmax": lambda L, dtype: L.log_softmax(ROWS.to(dtype), -1),
    "layer_norm": lambda L, dtype: L.layer_norm(ROWS.to(dtype), (6,), torch.rand(6).to(dtype), torch.rand(6).to(dtype)),
    "group_norm": lambda L, dtype: L.group_norm(ROWS.to(dtype), 2, torch.rand(4).to(dtype), torch.rand(4).to(dtype)),
    "local_response_norm": lambda L, dtype: L.local_response_norm(ROWS.to(dtype), 3),
    "local_response_norm of images": lambda L, dtype: L.local_response_norm(IMAGES.to(dtype), 3),
    "softplus": lambda L, dtype: L.softplus(ROWS.to(dtype)),
    "max_pool2d": lambda L, dtype: L.max_pool2d(IMAGES.to(dtype), 2),
    "max_pool3d": lambda L, dtype: L.max_pool3d(VOLUMES.to(dtype), 2),
    "avg_pool2d": lambda L, dtype: L.avg_pool2d(IMAGES.to(dtype), 2),
    "avg_pool3d": lambda L, dtype: L.avg_pool3d(VOLUMES.to(dtype), 2),
    "adaptive_avg_pool3d": lambda L, dtype: L.adaptive_avg_pool3d(VOLUMES.to(dtype), 2),
    "adaptive_max_pool3d": lambda L, dtype: L.adaptive_max_pool3d(VOLUMES.to(dtype), 2),
    "reflect": lambda L, dtype: L.pad(ROWS.to(dtype), (1, 1), mode="reflect"),
    "replicate": lambda L, dtype: L.pad(IMAGES.to(dtype), (1, 1, 1, 1), mode="replicate"),
    "constant": lambda L, dtype: L.pad(ROWS.to(dtype), (1, 1)),
    "nearest": lambda L, dtype: L.interpolate(IMAGES.to(dtype), size=(3, 3)),
    "bilinear": lambda L, dtype: L.interpolate(IMAGES.to(dtype), size=(9, 9), mode="bilinear"),
}

if not torch.__version__.startswith("1."):  # parameters of a normalisation may be float32 beside an input that is not
    OF_AUTOCAST["layer_norm of types"] = lambda L, dtype: L.layer_norm(ROWS.to(dtype), (6,), torch.rand(6), torch.rand(6))
    OF_AUTOCAST["group_norm of types"] = lambda L, dtype: L.group_norm(ROWS.to(dtype), 2, torch.rand(4), torch.rand(4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", OF_AUTOCAST)
def test_autocast_gives_the_types_that_it_gives_pytorch_s_functions_on_that_device(name, dtype):
    of = {}
    for L in (K, torch.nn.functional):
        torch.manual_seed(1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            of[L] = OF_AUTOCAST[name](L, dtype)
    close(of[K], of[torch.nn.functional], name)  # which holds types too


def test_autocast_computes_softmax_in_f32_on_a_gpu():
    in_f32 = kiln.torch._autocast.IN_F32
    assert {"softmax.int", "log_softmax.int", "layer_norm", "group_norm", "softplus"} <= in_f32["cuda"]
    assert "avg_pool3d" in in_f32["cpu"] and not {"avg_pool2d", "softmax.int", "layer_norm"} & in_f32["cpu"]


def test_autocast_of_pytorch_2_4_is_asked_for_a_device(monkeypatch):
    on = {"cpu": torch.bfloat16}
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device in on)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda device: on[device], raising=False)
    autocast = kiln.torch._autocast
    monkeypatch.setattr(autocast, "_is_any_enabled", lambda: True)
    assert autocast.autocasting(torch.zeros(1)) and autocast.autocast_dtype("cpu") == torch.bfloat16
    on.clear()
    assert not autocast.autocasting(torch.zeros(1))


REFUSED = {
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4,), eps=-0.5),
    "group_norm": lambda x: torch.nn.functional.group_norm(x, 2, eps=-0.5),
    "instance_norm": lambda x: torch.nn.functional.instance_norm(x, torch.zeros(2), torch.ones(2), momentum=-0.5),
    "batch_norm": lambda x: torch.nn.functional.batch_norm(x, torch.zeros(2), torch.ones(2), training=True, momentum=-0.5),
    "softmax": lambda x: torch.nn.functional.softmax(x, 1, dtype=torch.float64),
}


@compiled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_kiln_refuses_pytorch_computes_in_a_compiled_program_too(name):
    x = 10 + torch.randn(2, 2, 4)

    def on_kiln(x):
        with kt.enabled():
            return REFUSED[name](x)

    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(on_kiln, backend="aot_eager")(x), REFUSED[name](x), equal_nan=True)


def test_gradients_of_gradients_of_what_is_bilinear():
    x, w = torch.randn(1, 2, 5, 5, requires_grad=True), torch.randn(3, 2, 3, 3, requires_grad=True)
    for L in (K, torch.nn.functional):
        (dw,) = torch.autograd.grad(L.conv2d(x, w).square().sum(), w, create_graph=True)
        second = torch.autograd.grad(dw.square().sum(), (x, w))
        if L is K:
            mine = second
    torch.testing.assert_close(mine, second, rtol=1e-4, atol=1e-2)
    for L in (K, torch.nn.functional):
        (dx,) = torch.autograd.grad(L.max_pool2d(x, 2).square().sum(), x, create_graph=True)
        second = torch.autograd.grad(dx.square().sum(), x)
        if L is K:
            mine = second
    torch.testing.assert_close(mine, second)


def test_functions_use_the_context_that_was_chosen():
    chosen = kiln.Context(driver="emulator", cache="off")
    assert kt.default_context() is not chosen
    kt.set_default_context(chosen)
    try:
        assert kt.default_context() is chosen
        calls = []
        with calls_taken(calls.append):
            K.relu(torch.ones(3))
        assert [call.context for call in calls] == [chosen]
    finally:
        kt.set_default_context(None)
    assert kt.default_context() is kiln.default_context()


def test_a_program_ends_while_the_context_that_was_chosen_compiles():
    import os
    import subprocess
    import sys

    program = """
import kiln, kiln.torch, torch
kiln.torch.set_default_context(kiln.Context(driver="emulator", cache="off", first_call="at_once"))
for rows in range(5, 12):
    kiln.torch.functional.softmax(torch.ones(rows, 37), 1)
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "KILN_KERNEL_STORE": "off"})


def test_workspace_on_a_gpu_is_pytorch_s(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "caching_allocator_alloc", lambda *given: calls.append(given) or 4096)
    monkeypatch.setattr(torch.cuda, "caching_allocator_delete", calls.append)
    allocate, release = kt.caching_allocator(3)
    assert allocate(512, 7) == 4096
    release(4096, 512, 7)
    assert calls == [(512, 3, 7), 4096]
    monkeypatch.setattr("kiln.torch._launch.default_context_with", lambda *given, first_call: (*given, first_call))
    assert kt.default_context("cuda:3") == (3, (allocate, release), "at_once")


def test_kiln_alone_does_not_import_pytorch():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "import sys, kiln; assert 'torch' not in sys.modules"], check=True)
