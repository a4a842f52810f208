"""The default Contexts serve new sizes at once, by open kernels, and the results are right before and after."""

import numpy as np
import onnx_files as files
import pytest
from conftest import conv_reference

import kiln
import kiln.onnx
from kiln._context import forget_default_contexts


@pytest.fixture
def at_once(monkeypatch, tmp_path):
    """Default Contexts of a program that says nothing of first calls."""
    monkeypatch.delenv("KILN_FIRST_CALL", raising=False)
    monkeypatch.setenv("KILN_KERNEL_STORE", str(tmp_path))
    forget_default_contexts()
    yield
    forget_default_contexts()


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_further_sizes_are_served_by_open_kernels_until_their_own_are_there(at_once, random):
    context = kiln.default_context()
    assert context.compiles == (0, 0)
    for rows, source in ((5, "estimate"), (6, "open kernel"), (9, "open kernel")):
        x = random.standard_normal((rows, 37), np.float32)
        np.testing.assert_allclose(kiln.softmax_forward(x), softmax(x), rtol=1e-5)
        assert kiln.plan(f"softmax_forward x=f32:{rows}x37").source == source
        context.wait_until_tuned()
        np.testing.assert_allclose(kiln.softmax_forward(x), softmax(x), rtol=1e-5)
        assert kiln.plan(f"softmax_forward x=f32:{rows}x37").source == "estimate"
    assert context.compiles.kernels == 4  # three sizes and an open kernel
    assert context.compiles.seconds > 0


def test_the_variable_decides_where_it_is_set(at_once, monkeypatch):
    monkeypatch.setenv("KILN_FIRST_CALL", "exact")
    forget_default_contexts()
    for rows in (5, 6):
        assert kiln.plan(f"softmax_forward x=f32:{rows}x37").source == "estimate"
        kiln.default_context().wait_until_tuned()
    monkeypatch.setenv("KILN_FIRST_CALL", "soon")
    forget_default_contexts()
    with pytest.raises(kiln.errors.InvalidArgument, match="KILN_FIRST_CALL"):
        kiln.default_context()


def test_contexts_of_the_program_are_exact_unless_they_say_otherwise(at_once):
    exact = kiln.Context(driver="emulator", cache="off")
    for rows in (5, 6):
        assert kiln.plan(f"softmax_forward x=f32:{rows}x37", context=exact).source == "estimate"
        exact.wait_until_tuned()


def test_an_optimized_model_takes_new_batches_and_images(at_once, torch):
    import kiln.torch as kt

    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 4, 1),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(4, 3),
    )
    shapes = [(2, 3, 16, 16), (3, 3, 16, 16), (1, 3, 21, 18)]
    inputs = [torch.randn(shape) for shape in shapes]
    expected = []
    for x in inputs:
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        expected.append((y.detach(), [p.grad.clone() for p in model.parameters()]))
    optimized = kt.optimize(model)
    for wait in (False, True, False):
        for x, (y, gradients) in zip(inputs, expected, strict=True):
            optimized.zero_grad()
            for module in optimized.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.reset_running_stats()
            result = optimized(x)
            result.square().sum().backward()
            torch.testing.assert_close(result.detach(), y, rtol=1e-4, atol=1e-5)
            for parameter, gradient in zip(optimized.parameters(), gradients, strict=True):
                torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-4)
            if wait:
                kiln.default_context().wait_until_tuned()


def test_a_loss_takes_sequences_of_other_lengths(at_once, torch):
    import kiln.torch as kt

    for steps, labels, source in ((20, 5, "estimate"), (33, 9, "open kernel"), (26, 14, "open kernel")):
        x = torch.randn(steps, 3, 11).log_softmax(2).requires_grad_()
        given = torch.randint(1, 11, (3, labels)), [steps] * 3, [labels] * 3
        with kt.record() as requests:
            loss = kt.functional.ctc_loss(x, *given)
            (gradient,) = torch.autograd.grad(loss, x)
        assert [kiln.plan(line).source for line in requests] == [source] * 2
        expected = torch.nn.functional.ctc_loss(x, *given)
        torch.testing.assert_close((loss, gradient), (expected, torch.autograd.grad(expected, x)[0]), rtol=1e-4, atol=1e-5)
        kiln.default_context().wait_until_tuned()


def test_a_deterministic_model_gets_its_own_kernels_at_once(at_once, torch):
    import kiln.torch as kt

    model = kt.optimize(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Softmax(1)))
    at_once_context = kt.default_context()
    torch.use_deterministic_algorithms(True)
    try:
        context = kt.default_context()
        assert context is not at_once_context
        for batch in (1, 2, 3):
            x = torch.randn(batch, 3, 9, 9)
            first = model(x).detach().clone()
            context.wait_until_tuned()
            assert torch.equal(model(x), first)
            # An operation whose requests have no word for it.
            assert kiln.plan(f"softmax_forward x=f32:{batch}x8x7x7", context=context).source == "estimate"
        assert at_once_context.compiles == (0, 0)
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_model_of_onnx_takes_new_sizes(at_once, random, tmp_path):
    weights = random.standard_normal((4, 2, 3, 3), np.float32)
    nodes = [files.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), files.node("Relu", ["c"], ["y"])]
    inputs, outputs = ([files.value(name, "float", ["n", extent, "h", "w"])] for name, extent in (("x", 2), ("y", 4)))
    path = tmp_path / "model.onnx"
    path.write_bytes(files.model(nodes, inputs, outputs, [files.tensor("w", weights)]))
    model = kiln.onnx.load(path)
    for wait in (True, False, True):
        for shape, is_first in (((3, 2, 5, 6), True), ((1, 2, 7, 6), False), ((2, 2, 12, 9), False)):
            x = random.standard_normal(shape, np.float32)
            result = model(x)
            np.testing.assert_allclose(result, np.maximum(conv_reference(x, weights, 1), 0), rtol=1e-4, atol=1e-5)
            if is_first:
                assert all(step.source != "open kernel" for step in model.steps)
            if wait:
                kiln.default_context().wait_until_tuned()
    assert all(step.source != "open kernel" for step in model.steps)
    deterministic = kiln.onnx.load(path, deterministic=True)
    for shape in ((3, 2, 5, 7), (2, 2, 8, 6)):
        deterministic(random.standard_normal(shape, np.float32))
        assert all(step.source == "estimate" for step in deterministic.steps)


def test_prepared_open_kernels_serve_the_first_call_of_every_size(random, tmp_path):
    context = kiln.Context(driver="emulator", cache="off", first_call="at_once", kernel_store=tmp_path)
    context.prepare_open(["softmax_forward x=f32:?40x?90"])
    for rows, columns in ((1, 1), (7, 33), (40, 90), (13, 64)):
        assert kiln.plan(f"softmax_forward x=f32:{rows}x{columns}", context=context).source == "open kernel"
        x = random.standard_normal((rows, columns), np.float32)
        np.testing.assert_allclose(kiln.softmax_forward(x, context=context), softmax(x), rtol=1e-5)


def test_lines_that_no_open_kernel_serves_are_refused():
    context = kiln.Context(driver="emulator", cache="off", first_call="at_once")
    with pytest.raises(kiln.errors.Unsupported, match="has no open kernels"):
        context.prepare_open("local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2")
    with pytest.raises(kiln.errors.InvalidArgument, match="axis"):
        context.prepare_open("softmax_forward x=f32:?x? axis=7")
    with pytest.raises(kiln.errors.InvalidArgument, match="lines"):
        context.prepare_open(7)
    exact = kiln.Context(driver="emulator", cache="off")
    with pytest.raises(kiln.errors.Unsupported, match="exact plan first") as refused:
        exact.prepare_open("softmax_forward x=f32:?x?")
    assert 'first_call="at_once"' in str(refused.value) and "Context.prepare()" in str(refused.value)
