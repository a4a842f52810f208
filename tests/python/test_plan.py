"""Plans: made once, run often, with memory of the caller's."""

import numpy as np
import pytest
from conftest import conv_reference

import kiln

# By its estimate Winograd, whose weights are transformed first.
WITH_WEIGHTS = "conv_forward x=f32:8x32x8x8 w=f32:32x32x3x3 pad=1 fast constant_weights"


def test_a_plan_of_a_call_runs_with_numbers_by_name(context, random):
    x = random.standard_normal((3, 8), dtype=np.float32)
    y = np.empty_like(x)
    plan = kiln.plan_of_call("activation_forward", mode="leaky_relu", x=x, y=y, context=context)
    assert plan.request.startswith("activation_forward x=f32:3x8:nc")
    assert plan.variant and plan.source
    assert [(each.name, each.role) for each in plan.operands] == [("x", "input"), ("y", "output")]
    plan.run(x=x, y=y, slope=0.5, workspace=kiln.DeviceMemory(context, max(plan.workspace_bytes, 1)))
    np.testing.assert_allclose(y, np.where(x > 0, x, 0.5 * x))


def test_prepared_weights(context, random):
    plan = kiln.plan(WITH_WEIGHTS, context=context)
    x = random.standard_normal((8, 32, 8, 8), dtype=np.float32)
    w = random.standard_normal((32, 32, 3, 3), dtype=np.float32)
    y = np.empty((8, 32, 8, 8), np.float32)
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


def test_a_dynamic_batch_is_for_calls(context):
    with pytest.raises(kiln.Unsupported, match="fixed batch"):
        kiln.plan("softmax_forward x=f32:4x8 n=?", context=context)
    x = np.zeros((4, 8), np.float32)
    with pytest.raises(kiln.Unsupported, match="fixed batch"):
        kiln.plan_of_call("softmax_forward", x=x, y=x, dynamic_batch=True, context=context)


def test_user_code_is_for_calls(context):
    x = np.zeros((4, 8), np.float32)
    with pytest.raises(kiln.Unsupported, match="no user code"):
        kiln.plan_of_call("softmax_forward", x=x, y=x, epilogue=kiln.expression("acc + 1"), context=context)


def test_memory_of_a_run_has_to_be_enough(context):
    plan = kiln.plan(WITH_WEIGHTS, context=context)
    w = np.zeros((32, 32, 3, 3), np.float32)
    with pytest.raises(kiln.InvalidArgument, match="prepared has 0 bytes .give kiln.DeviceMemory.context, "):
        plan.prepare_weights(None, w=w)
    with pytest.raises(kiln.InvalidArgument, match="prepared is a ndarray .give a kiln.DeviceMemory"):
        plan.prepare_weights(w, w=w)


def test_a_plan_keeps_its_context(random):
    plan = kiln.plan("tensor_set y=f32:5", context=kiln.Context(driver="emulator", cache="off"))
    y = np.empty(5, np.float32)
    plan.run(y=y, value=3.0)
    assert (y == 3).all()
