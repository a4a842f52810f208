"""Plans: made once, run often, with memory of the caller's."""

import numpy as np
import pytest
from conftest import conv_reference

import kiln
from kiln._calls import memory_of

# By its estimate Winograd, whose weights are transformed first.
WITH_WEIGHTS = "conv_forward x=f32:16x40x12x12 w=f32:40x40x3x3 pad=1 fast constant_weights"


def test_a_plan_of_a_call_runs_with_numbers_by_name(context, random):
    x = random.standard_normal((3, 8), dtype=np.float32)
    y = np.empty_like(x)
    plan = kiln.plan_of_call("activation_forward", mode="leaky_relu", x=x, y=y, context=context)
    assert plan.request.startswith("activation_forward x=f32:3x8:nc")
    assert plan.variant and plan.source
    assert [(each.name, each.role) for each in plan.operands] == [("x", "input"), ("y", "output")]
    assert plan._context is context
    plan.run(x=x, y=y, slope=0.5, workspace=kiln.DeviceMemory(context, max(plan.workspace_bytes, 1)))
    np.testing.assert_allclose(y, np.where(x > 0, x, 0.5 * x))


def test_a_number_that_the_request_leaves_open_is_given_at_the_run(context, random):
    q = random.standard_normal((1, 2, 4, 8), dtype=np.float32)
    y, expected = np.empty_like(q), np.empty_like(q)
    line = "attention_forward q=f32:1x2x4x8 k=f32:1x2x4x8 v=f32:1x2x4x8"
    plan = kiln.plan(f"{line} dropout=any", context=context)
    for dropout in (0.0, 0.5):
        kiln.call("attention_forward", q=q, k=q, v=q, y=expected, dropout=dropout, seed=3, context=context)
        plan.run(q=q, k=q, v=q, y=y, dropout=dropout, seed=3)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    for wrong, said in ((1.5, "dropout is 1.5 .give 0 to 1"), ("any", "dropout is 'any' .give a number")):
        with pytest.raises(kiln.InvalidArgument, match=said):
            plan.run(q=q, k=q, v=q, y=y, dropout=wrong)
    without = kiln.plan(line, context=context)
    with pytest.raises(kiln.InvalidArgument, match="dropout is given, and the plan's request has no dropout=any"):
        without.run(q=q, k=q, v=q, y=y, dropout=0.5)


def test_prepared_weights(context, random):
    plan = kiln.plan(WITH_WEIGHTS, context=context)
    x = random.standard_normal((16, 40, 12, 12), dtype=np.float32)
    w = random.standard_normal((40, 40, 3, 3), dtype=np.float32)
    y = np.empty((16, 40, 12, 12), np.float32)
    prepared = kiln.DeviceMemory(context, plan.prepared_bytes)
    workspace = kiln.DeviceMemory(context, max(plan.prepared_workspace_bytes, 1))
    plan.prepare_weights(prepared, w=w)
    plan.run_prepared(prepared, workspace=workspace, x=x, w=w, y=y)
    np.testing.assert_allclose(y, conv_reference(x, w, 1), rtol=1e-3, atol=1e-3)


def test_a_run_takes_only_what_the_plan_is_for(context):
    plan = kiln.plan("softmax_forward x=f32:4x8", context=context)
    x = np.zeros((4, 8), np.float32)
    for wrong in (x.astype(np.float16), np.zeros((4, 9), np.float32), np.zeros((8, 4), np.float32).T):
        with pytest.raises(kiln.InvalidArgument, match="tensor x is .*the plan is for f32:4x8:nc"):
            plan.run(x=wrong, y=x)
    with pytest.raises(kiln.InvalidArgument, match="y is not given"):
        plan.run(x=x)
    with pytest.raises(kiln.InvalidArgument, match="a tensor is given that the plan does not have"):
        plan.run(x=x, y=np.zeros_like(x), z=x)
    with pytest.raises(kiln.InvalidArgument, match="axis is no tensor or number of a run"):
        plan.run(x=x, y=np.zeros_like(x), axis=0)


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_a_plan_with_a_dynamic_batch_takes_any_up_to_its_own(context, random, axes):
    def arranged(array):  # in memory as `axes` say
        return np.ascontiguousarray(array.transpose(axes)).transpose(np.argsort(axes))

    w = random.standard_normal((4, 3, 3, 3), dtype=np.float32)
    x, y = arranged(random.standard_normal((5, 3, 6, 7), dtype=np.float32)), arranged(np.empty((5, 4, 6, 7), np.float32))
    plan = kiln.plan_of_call("conv_forward", x=x, w=w, y=y, pad=1, dynamic_batch=True, context=context)
    workspace = kiln.DeviceMemory(context, max(plan.workspace_bytes, 1))
    for batch in (0, 1, 3, 8):
        x = arranged(random.standard_normal((batch, 3, 6, 7), dtype=np.float32))
        y = arranged(np.full((batch, 4, 6, 7), np.nan, np.float32))
        plan.run(x=x, w=w, y=y, workspace=workspace)
        np.testing.assert_allclose(y, conv_reference(x, w, 1) if batch else y, rtol=1e-4, atol=1e-4)
    wrong = np.zeros((9, 3, 6, 7), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="batch"):
        plan.run(x=arranged(wrong), w=w, y=arranged(np.empty((9, 4, 6, 7), np.float32)), workspace=workspace)
    with pytest.raises(kiln.InvalidArgument, match="tensor y has a batch of 2, and x one of 3"):
        plan.run(x=arranged(wrong[:3]), w=w, y=arranged(np.empty((2, 4, 6, 7), np.float32)), workspace=workspace)
    with pytest.raises(kiln.InvalidArgument, match="the plan is for f32:8x3x6x7:n.*and smaller batches"):
        plan.run(x=wrong[:3, :2], w=w, y=y, workspace=workspace)


def test_an_operand_that_repeats_has_no_batch(context):
    x, row, y = np.ones((4, 8), np.float32), np.full((1, 8), 2, np.float32), np.empty((4, 8), np.float32)
    plan = kiln.plan_of_call("tensor_op", mode="mul", a=x, b=row, y=y, dynamic_batch=True, context=context)
    plan.run(a=x[:3], b=row, y=y[:3])
    assert (y[:3] == 2).all()


def test_a_plan_with_user_code_takes_other_tensors_and_numbers(context, random):
    x = random.standard_normal((2, 2, 5, 5), dtype=np.float32)
    w = random.standard_normal((3, 2, 1, 1), dtype=np.float32)
    y, gate = np.empty((2, 3, 5, 5), np.float32), np.array([1, 2, 3], np.float32)
    code = "acc * s + gate"
    made = kiln.expression(code, gate=gate, s=2.0)
    plan = kiln.plan_of_call("conv_forward", x=x, w=w, y=y, epilogue=made, context=context)
    plan.run(x=x, w=w, y=y)
    plain = np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0])
    np.testing.assert_allclose(y, plain * 2 + gate[:, None, None], rtol=1e-5, atol=1e-5)
    plan.run(x=x, w=w, y=y, epilogue=kiln.expression(code, gate=-gate, s=0.5))
    np.testing.assert_allclose(y, plain * 0.5 - gate[:, None, None], rtol=1e-5, atol=1e-5)
    with pytest.raises(kiln.InvalidArgument, match="not the user code that the plan was made with"):
        plan.run(x=x, w=w, y=y, epilogue=kiln.expression("acc * s - gate", gate=gate, s=2.0))
    with pytest.raises(kiln.InvalidArgument, match="tensor epilogue.gate is f32:2x3x5x5.*the plan is for f32:3"):
        plan.run(x=x, w=w, y=y, epilogue=kiln.expression(code, gate=np.empty_like(y), s=2.0))
    without = kiln.plan_of_call("conv_forward", x=x, w=w, y=y, context=context)
    with pytest.raises(kiln.InvalidArgument, match="not the user code.*leave it out"):
        without.run(x=x, w=w, y=y, epilogue=made)


def test_tensors_of_user_code_have_the_batch_of_a_run(context, random):
    x = random.standard_normal((2, 3, 5), dtype=np.float32)
    y = np.empty_like(x)
    dynamic = kiln.plan_of_call(
        "activation_forward", x=x, y=y, dynamic_batch=True, epilogue=kiln.expression("acc + t", t=x), context=context
    )
    dynamic.run(x=x[:1], y=y[:1], epilogue=kiln.expression("acc + t", t=x[:1]))
    np.testing.assert_allclose(y[:1], np.maximum(x[:1], 0) + x[:1], rtol=1e-6)
    with pytest.raises(kiln.InvalidArgument, match="tensor epilogue.t has a batch of 2, and x one of 1"):
        dynamic.run(x=x[:1], y=y[:1])


def test_memory_of_a_run_has_to_be_enough(context):
    plan = kiln.plan(WITH_WEIGHTS, context=context)
    w = np.zeros((40, 40, 3, 3), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="prepared has 0 bytes .give kiln.DeviceMemory.context, "):
        plan.prepare_weights(None, w=w)
    with pytest.raises(kiln.InvalidArgument, match="prepared is a ndarray .give a kiln.DeviceMemory"):
        plan.prepare_weights(w, w=w)


class OnGpu:
    def __init__(self, **changed):
        self.__cuda_array_interface__ = {"shape": (4, 8), "typestr": "<f4", "data": (4096, False), **changed}


def test_memory_of_an_array_on_the_gpu_is_counted_in_bytes():
    assert memory_of(OnGpu(), "workspace") == (4096, 128, None)
    assert memory_of(OnGpu(strides=(32, 4), stream=None, mask=None), "workspace") == (4096, 128, None)
    assert memory_of(OnGpu(stream=2), "workspace") == (4096, 128, 2)


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"data": (4096, True)}, "workspace cannot be written: it is read-only"),
        ({"strides": (64, 4)}, "workspace has gaps"),
        ({"mask": OnGpu()}, "workspace has a mask"),
        ({"stream": 0}, "workspace has the stream 0 .*1 is the default stream"),
        ({"typestr": "|V0"}, "workspace has elements of .V0"),
    ],
    ids=["read-only", "gaps", "mask", "stream", "elements"],
)
def test_memory_that_a_kernel_cannot_write_is_refused(context, changed, said):
    x = np.ones((2, 4), np.float32)
    with pytest.raises(kiln.InvalidArgument, match=said):
        kiln.call("softmax_forward", x=x, y=x, workspace=OnGpu(**changed), context=context)


def test_a_plan_keeps_its_context(random):
    plan = kiln.plan("tensor_set y=f32:5", context=kiln.Context(driver="emulator", cache="off"))
    y = np.empty(5, np.float32)
    plan.run(y=y, value=3.0)
    assert (y == 3).all()
