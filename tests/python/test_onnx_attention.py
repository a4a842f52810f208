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


def attention_file(path, mask, lengths):
    """3 queries and 5 keys, and a mask of `mask` keys."""
    extents = {"q": (1, 2, 3, 8), "k": (1, 2, 5, 8), "v": (1, 2, 5, 8), "m": (3, mask)}
    inputs = [files.value(name, "float", given) for name, given in extents.items()]
    names = list(extents)
    if lengths:
        inputs.append(files.value("n", "int64", (1,)))
        names += ["", "", "n"]
    outputs = [files.value("y", "float", (1, 2, 3, 8))]
    path.write_bytes(files.model([files.node("Attention", names, ["y"])], inputs, outputs, opset=24))
    return path


def test_a_mask_of_fewer_keys_than_there_are_needs_the_keys_that_count(tmp_path, context):
    """docs/onnx.md says so; a mask of one key repeats."""
    path = tmp_path / "attention.onnx"
    for mask, lengths in ((5, False), (1, False), (3, True)):
        assert kiln.onnx.load(attention_file(path, mask, lengths), context=context)
    with pytest.raises(kiln.Unsupported, match="its mask has 3 keys of 5"):
        kiln.onnx.load(attention_file(path, 3, False), context=context)
