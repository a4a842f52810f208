"""Chains of nodes that are attention: one call, with the results of the nodes by themselves."""

import numpy as np
import onnx_files
import pytest

import kiln
import kiln.onnx

N, H, M, L, D = 2, 3, 4, 6, 8
LOWEST = float(np.finfo(np.float32).min)


class Chain:
    """Nodes of a model, and its inputs at random."""

    def __init__(self, random):
        self.random, self.nodes, self.tensors, self.values, self.inputs = random, [], [], [], {}

    def input(self, array):
        name = f"x{len(self.inputs)}"
        kind = {"float32": "float"}.get(str(array.dtype), str(array.dtype))
        self.values.append(onnx_files.value(name, kind, array.shape))
        self.inputs[name] = array
        return name

    def uniform(self, *extents):
        return self.input(self.random.standard_normal(extents).astype(np.float32))

    def flags(self, *extents):
        """Keys that queries see: the third query sees none."""
        seen = self.random.random(extents) < 0.6
        if extents[-2] > 2:
            seen[..., 2, :] = False
        return seen

    def op(self, kind, *operands, **attributes):
        names = []
        for operand in operands:
            if not isinstance(operand, str):
                name = f"c{len(self.tensors)}"
                self.tensors.append(onnx_files.tensor(name, np.asarray(operand)))
                operand = name
            names.append(operand)
        result = f"v{len(self.nodes)}"
        self.nodes.append(onnx_files.node(kind, names, [result], **attributes))
        return result

    def scores(self):
        q, k = self.uniform(N, H, M, D), self.uniform(N, H, L, D)
        return self.op("Mul", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), np.float32(D**-0.5))

    def weighted(self, scores, axis=3):
        return self.op("MatMul", self.op("Softmax", scores, axis=axis), self.uniform(N, H, L, D))

    def without_nan(self, scores):
        weights = self.op("Softmax", scores, axis=3)
        zeros = self.op("Where", self.op("IsNaN", weights), np.float32(0), weights)
        return self.op("MatMul", zeros, self.uniform(N, H, L, D))


def place(fill, first=L - M):
    """A bias that hides the keys behind each query's place."""
    return np.where(np.arange(L) <= np.arange(M)[:, None] + first, 0, fill).astype(np.float32)


def seen(fill, *extents):
    return lambda c: c.weighted(c.op("Where", c.input(c.flags(*extents)), c.scores(), np.float32(fill)))


def hidden(fill, *extents):
    return lambda c: c.weighted(c.op("Where", c.input(~c.flags(*extents)), np.float32(fill), c.scores()))


def two_biases(c):
    return c.weighted(c.op("Add", c.op("Add", c.scores(), c.uniform(1, H, M, L)), c.uniform(N, 1, 1, L)))


def causal_and_padding(c):
    causal = c.op("Where", place(1, 0) == 0, c.scores(), np.float32(LOWEST))
    return c.weighted(c.op("Add", causal, np.float32([0, -1e4, 0, 0, 0, 0])))


def causal_numbers_and_padding(c):
    """The first queries see keys in front of them that are as low as those behind."""
    return c.weighted(c.op("Add", c.op("Add", c.scores(), place(-1e9, 0)), c.input(np.float32([-1e9] * 3 + [0] * 3))))


def heads_in_images(c):
    def heads(rows):
        x = c.op("Reshape", c.uniform(N, rows, H * D), np.int64([N, rows, H, D]))
        return c.op("Reshape", c.op("Transpose", x, perm=[0, 2, 1, 3]), np.int64([N * H, rows, D]))

    scores = c.op("MatMul", heads(M), c.op("Transpose", heads(L), perm=[0, 2, 1]))
    scores = c.op("Add", c.op("Reshape", scores, np.int64([N, H, M, L])), c.uniform(N, 1, M, L))
    weights = c.op("Softmax", c.op("Reshape", scores, np.int64([N * H, M, L])), axis=2)
    y = c.op("Reshape", c.op("MatMul", weights, heads(L)), np.int64([N, H, M, D]))
    return c.op("Reshape", c.op("Transpose", y, perm=[0, 2, 1, 3]), np.int64([N, M, H * D]))


def heads_behind_elements(c):
    keys = c.op("Reshape", c.op("Transpose", c.uniform(N, L, H * D), perm=[0, 2, 1]), np.int64([N, H, D, L]))
    return c.weighted(c.op("MatMul", c.uniform(N, H, M, D), keys))


def windows(c):
    q, k, v = (c.uniform(4, H, 5, D) for _ in range(3))
    scores = c.op("Add", c.op("MatMul", q, c.op("Transpose", k, perm=[0, 1, 3, 2])), c.uniform(1, H, 5, 5))
    mask = np.where(c.flags(1, 4, 1, 5, 5), 0, -100).astype(np.float32)
    scores = c.op("Add", c.op("Reshape", scores, np.int64([1, 4, H, 5, 5])), mask)
    return c.op("MatMul", c.op("Softmax", c.op("Reshape", scores, np.int64([4, H, 5, 5])), axis=3), v)


def in_five_dimensions(c):
    q, k, v = (c.uniform(N, 2, H, rows, D) for rows in (M, L, L))
    return c.op("MatMul", c.op("Softmax", c.op("MatMul", q, c.op("Transpose", k, perm=[0, 1, 2, 4, 3])), axis=4), v)


FORMS = {
    "infinities where a mask is 0": seen(-np.inf, N, 1, M, L),
    "infinities where a mask of keys is 1": hidden(-np.inf, 1, 1, 1, L),
    "the lowest number where a mask is 0": seen(LOWEST, N, 1, M, L),
    "the lowest number where a mask of all heads is 1": hidden(LOWEST, N, H, M, L),
    "-1e9 where a mask of two dimensions is 0": seen(-1e9, M, L),
    "infinities and a bias": lambda c: c.without_nan(
        c.op("Where", c.input(c.flags(N, 1, M, L)), c.op("Add", c.scores(), c.uniform(L)), np.float32(-np.inf))
    ),
    "zeros for NaN": lambda c: c.without_nan(
        c.op("Add", c.scores(), c.input(np.where(c.flags(N, 1, M, L), 0, -np.inf).astype(np.float32)))
    ),
    "two biases": two_biases,
    "causal by infinities": lambda c: c.weighted(c.op("Add", c.scores(), place(-np.inf))),
    "causal by the lowest number": lambda c: c.weighted(c.op("Add", c.scores(), place(LOWEST, 0))),
    "causal by a mask": lambda c: c.weighted(c.op("Where", place(1) == 1, np.float32(-1e9), c.scores())),
    "causal, and padding": causal_and_padding,
    "causal by -1e9, and padding": causal_numbers_and_padding,
    "heads in the images": heads_in_images,
    "heads taken apart behind the elements": heads_behind_elements,
    "windows": windows,
    "five dimensions": in_five_dimensions,
}


def models_of(form, random, path, context, opset):
    chain = Chain(random)
    outputs = [onnx_files.value(form(chain), "float", None)]
    path.write_bytes(onnx_files.model(chain.nodes, chain.values, outputs, chain.tensors, opset))
    return chain, *(kiln.onnx.load(path, fuse=fuse, context=context) for fuse in (True, False))


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("form", FORMS)
def test_chains_are_attention(form, opset, random, tmp_path, context):
    """A query that sees no key has 0 in attention where its weights are NaN by themselves, and the mean of the values
    where a number hides all keys."""
    chain, fused, plain = models_of(FORMS[form], random, tmp_path / "chain.onnx", context, opset)
    assert str(fused).count("attention_forward") == 1 and "softmax_forward" not in str(fused)
    assert "attention_forward" not in str(plain)
    expected = np.nan_to_num(np.asarray(plain(**chain.inputs)))
    np.testing.assert_allclose(np.asarray(fused(**chain.inputs)), expected, rtol=2e-5, atol=2e-5)


def test_numbers_that_scores_may_be_stay(random, tmp_path, context):
    """Scores that a mask makes -1e4 have the weight where all others lie below."""
    for fill in (-1e4, 0.0):
        chain, fused, plain = models_of(seen(fill, N, 1, M, L), random, tmp_path / "chain.onnx", context, 17)
        assert "attention_forward" not in str(fused)
        for name, factor in (("x1", -1e5), ("x2", 1)):
            chain.inputs[name] = np.float32(factor) * np.abs(chain.inputs[name])
        expected = np.asarray(plain(**chain.inputs))
        np.testing.assert_allclose(np.asarray(fused(**chain.inputs)), expected, rtol=2e-5, atol=2e-5)
