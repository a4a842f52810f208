"""ONNX's Attention, by the node tests that the package onnx makes."""

import numpy as np
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
