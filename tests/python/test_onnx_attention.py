"""ONNX's Attention, by the node tests that the package onnx makes."""

import numpy as np
import onnx_files as files
import pytest

import kiln
import kiln.onnx

pytest.importorskip("onnx", reason="the module onnx is not installed (scripts/setup)")
node = pytest.importorskip("onnx.backend.test.case.node", reason="this onnx has no node tests")

REFUSED = ("limits scores", "gives its products", "its window has keys of earlier steps")
TOLERANCES = {"float16": 2e-3, "bfloat16": 1e-2}


@pytest.fixture(scope="module")
def cases():
    found = [each for each in node.collect_testcases("Attention") if not each.name.endswith("_expanded")]
    if not found:
        pytest.skip("this onnx has no Attention")
    return found


def test_node_tests(cases, tmp_path, context):
    """All that are read are right. The others say which attribute is not served."""
    right = refused = 0
    for case in cases:
        path = tmp_path / f"{case.name}.onnx"
        path.write_bytes(case.model.SerializeToString())
        try:
            model = kiln.onnx.load(path, context=context)
        except kiln.Unsupported as refusal:
            assert any(reason in str(refusal) for reason in REFUSED), f"{case.name}: {refusal}"
            refused += 1
            continue
        names = [each.name for each in case.model.graph.input]
        for inputs, outputs in case.data_sets:
            results = model(**dict(zip(names, map(np.asarray, inputs), strict=True)))
            for result, expected in zip(results if isinstance(results, tuple) else (results,), outputs, strict=True):
                close = TOLERANCES.get(str(expected.dtype), 1e-5)
                given, wanted = (np.asarray(each, np.float64) for each in (result, expected))
                np.testing.assert_allclose(given, wanted, rtol=close, atol=close, err_msg=case.name)
        right += 1
    assert right >= 2 * refused, f"{right} are right, {refused} refused"


def attention_file(path, mask, opset=24, past=False, **attributes):
    """3 queries and 5 keys, and a mask of `mask` keys."""
    keys = (1, 2, 2, 8) if past else (1, 2, 5, 8)
    extents = {"q": (1, 2, 3, 8), "k": keys, "v": keys, "m": (3, mask)}
    if past:
        extents |= {"past_k": (1, 2, 3, 8), "past_v": (1, 2, 3, 8)}
    inputs = [files.value(name, "float", given) for name, given in extents.items()]
    outputs = [files.value("y", "float", (1, 2, 3, 8))]
    node = files.node("Attention", list(extents), ["y"], **attributes)
    path.write_bytes(files.model([node], inputs, outputs, opset=opset))
    return path


@pytest.mark.parametrize("keys, causal", [(5, 0), (3, 0), (1, 0), (4, 1)])
def test_a_mask_of_fewer_keys_hides_the_others(tmp_path, context, keys, causal):
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 2, each, 8), np.float32) for each in (3, 5, 5))
    mask = rng.standard_normal((3, keys), np.float32)
    model = kiln.onnx.load(attention_file(tmp_path / "attention.onnx", keys, is_causal=causal), context=context)
    scores = q @ k.transpose(0, 1, 3, 2) / 8**0.5
    scores += np.pad(mask, ((0, 0), (0, 5 - keys)), constant_values=-np.inf)
    if causal:
        scores[..., ~np.tri(3, 5, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(np.asarray(model(q=q, k=k, v=v, m=mask)), expected, rtol=1e-5, atol=1e-6)


def test_masks_of_fewer_keys_that_are_refused(tmp_path, context):
    """Before opset 24, where one of one key repeats; and where places count from the end of the keys."""
    path = tmp_path / "attention.onnx"
    assert kiln.onnx.load(attention_file(path, 1, opset=23), context=context)
    assert kiln.onnx.load(attention_file(path, 3, past=True), context=context)
    windows = ({"is_causal": 1}, {"left_window_size": 1}, {"right_window_size": 0})
    for given in ({"opset": 23}, *({"past": True, **window} for window in windows)):
        with pytest.raises(kiln.Unsupported, match="its mask has 3 keys of 5"):
            kiln.onnx.load(attention_file(path, 3, **given), context=context)
    with pytest.raises(kiln.Unsupported, match="its mask has 1 keys of 5"):
        kiln.onnx.load(attention_file(path, 1, past=True, is_causal=1), context=context)
    with pytest.raises(kiln.Unsupported, match="its mask has 7 keys of 5"):
        kiln.onnx.load(attention_file(path, 7), context=context)


def step_file(path, keys, **attributes):
    """3 queries behind 3 keys of earlier steps, and so many of this one."""
    now, past = (1, 2, keys, 8), (1, 2, 3, 8)
    extents = {"q": (1, 2, 3, 8), "k": now, "v": now, "past_k": past, "past_v": past}
    inputs = [files.value(name, "float", given) for name, given in extents.items()]
    node = files.node("Attention", ["q", "k", "v", "", "past_k", "past_v"], ["y"], **attributes)
    path.write_bytes(files.model([node], inputs, [files.value("y", "float", (1, 2, 3, 8))], opset=24))
    return path


@pytest.mark.parametrize("keys", [2, 3, 5])
def test_queries_stand_behind_the_keys_of_earlier_steps(tmp_path, context, keys):
    rng = np.random.default_rng(2)
    q, past_k, past_v = (rng.standard_normal((1, 2, 3, 8), np.float32) for _ in range(3))
    k, v = (rng.standard_normal((1, 2, keys, 8), np.float32) for _ in range(2))
    model = kiln.onnx.load(step_file(tmp_path / "step.onnx", keys, is_causal=1), context=context)
    scores = q @ np.concatenate([past_k, k], 2).transpose(0, 1, 3, 2) / 8**0.5
    scores[..., ~np.tri(3, 3 + keys, 3, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ np.concatenate([past_v, v], 2)
    result = model(q=q, k=k, v=v, past_k=past_k, past_v=past_v)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


def test_windows_over_earlier_steps_that_are_refused(tmp_path, context):
    for left in (0, 1):
        with pytest.raises(kiln.Unsupported, match="its window has keys of earlier steps"):
            kiln.onnx.load(step_file(tmp_path / "step.onnx", 2, left_window_size=left), context=context)


REFUSALS = {
    "its scale is 0": ("q k v", {"scale": 0.0}),
    "limits scores": ("q k v", {"softcap": 2.0}),
    "a window has fewer than no keys": ("q k v", {"left_window_size": -2}),
    "it has one of two pasts": ("q k v - past", {}),
    "past_k is not of this step": ("q k v - other other", {}),
    "q_num_heads is 3": ("rows k v", {"q_num_heads": 3}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(tmp_path, context, name):
    helper = pytest.importorskip("onnx.helper")
    given, attributes = REFUSALS[name]
    message = "input 4 is 2x2x3x8, and this step has 1x2x5x8" if "past_k" in name else name
    extents = {"q": (1, 2, 3, 8), "k": (1, 2, 5, 8), "v": (1, 2, 5, 8), "past": (1, 2, 3, 8), "other": (2, 2, 3, 8)}
    extents["rows"] = (1, 3, 16)
    names = ["" if each == "-" else each for each in given.split()]
    inputs = [helper.make_tensor_value_info(each, 1, extents[each]) for each in sorted({*names} - {""})]
    output = helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph([helper.make_node("Attention", names, ["y"], **attributes)], "refused", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    path = tmp_path / "refused.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises((kiln.Unsupported, kiln.InvalidArgument, kiln.ParseError), match=message):
        kiln.onnx.load(path, context=context)
