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
    for given in ({"opset": 23}, {"past": True, "is_causal": 1}):
        with pytest.raises(kiln.Unsupported, match="its mask has 3 keys of 5"):
            kiln.onnx.load(attention_file(path, 3, **given), context=context)
