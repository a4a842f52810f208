"""Convolutions in JAX on Kiln, and their gradients, against JAX's own."""

import os
import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
LIBRARY = os.environ["EXAMPLE_LIBRARY"]
sys.path.append(str(ROOT / "examples/jax"))
import kiln_jax  # noqa: E402

kiln_jax.load(LIBRARY)
jax.config.update("jax_platforms", "cpu")

CASES = {
    "of an image": ((1, 3, 17, 19), (8, 3, 3, 3), {"pad": 1}),
    "with strides": ((2, 5, 13, 13), (7, 5, 3, 3), {"stride": (2, 3), "pad": (1, 2)}),
    "dilated": ((1, 4, 15, 11), (6, 4, 3, 2), {"dilation": (2, 3)}),
    "in groups": ((3, 6, 9, 9), (9, 2, 3, 3), {"groups": 3}),
    "depthwise": ((1, 13, 8, 8), (13, 1, 5, 5), {"groups": 13, "pad": 2}),
    "1x1": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "1-D": ((2, 3, 31), (5, 3, 4), {"stride": 3, "pad": 2}),
    "3-D": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), {"pad": (1, 0, 0)}),
}


def normal(*extents, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(sum(extents)).standard_normal(extents), dtype)


def stock(x, w, bias, relu=False, stride=1, pad=0, dilation=1, groups=1):
    """The same by JAX."""
    axes = x.ndim - 2
    y = jax.lax.conv_general_dilated(
        x,
        w,
        kiln_jax._axes(stride, axes),
        [(p, p) for p in kiln_jax._axes(pad, axes)],
        rhs_dilation=kiln_jax._axes(dilation, axes),
        feature_group_count=groups,
        precision=jax.lax.Precision.HIGHEST,
    )
    y = y if bias is None else y + bias.reshape(-1, *[1] * axes)
    return jnp.maximum(y, 0) if relu else y


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_is_jaxs(case, relu):
    extents, filters, window = CASES[case]
    x, w, bias = normal(*extents), normal(*filters), normal(filters[0])
    got = jax.jit(lambda *tensors: kiln_jax.conv(*tensors, relu=relu, **window))(x, w, bias)
    expected = stock(x, w, bias, relu, **window)
    sums = stock(jnp.abs(x), jnp.abs(w), jnp.abs(bias), **window)
    assert got.shape == expected.shape
    # Either side adds up so many products, whose roundings the sum of their sizes bounds.
    assert np.all(np.abs(got - expected) <= 2 * (np.prod(filters[1:]) + 1) * 2.0**-24 * sums)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_jaxs(case):
    extents, filters, window = CASES[case]
    tensors = normal(*extents), normal(*filters), normal(filters[0])

    def gradients(conv):
        return jax.jit(jax.grad(lambda *t: jnp.sum(conv(*t, relu=True, **window) ** 2), argnums=(0, 1, 2)))(*tensors)

    for got, expected in zip(gradients(kiln_jax.conv), gradients(stock)):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        # The gradient of squares: a sum of products of sums. Their size bounds what cancels.
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-5 * float(jnp.max(jnp.abs(expected))))


@pytest.mark.parametrize("dtype, rounding", [(jnp.float16, 2.0**-11), (jnp.bfloat16, 2.0**-8)])
def test_half_precision_is_rounded_once(dtype, rounding):
    extents, filters, window = CASES["of an image"]
    x, w = normal(*extents, dtype=dtype), normal(*filters, dtype=dtype)
    got = kiln_jax.conv(x, w, **window)
    expected = stock(x.astype(jnp.float32), w.astype(jnp.float32), None, **window)
    assert got.dtype == dtype
    assert np.allclose(got.astype(jnp.float32), expected, rtol=1.01 * rounding, atol=1e-5)
    dw = jax.grad(lambda w: jnp.sum(kiln_jax.conv(x, w, **window).astype(jnp.float32)))(w)
    assert dw.dtype == dtype and np.all(np.isfinite(dw.astype(jnp.float32)))


def test_without_a_bias_there_is_no_gradient_of_it():
    x, w = normal(1, 3, 8, 8), normal(4, 3, 3, 3)
    got = jax.grad(lambda x: jnp.sum(kiln_jax.conv(x, w)))(x)
    assert np.allclose(got, jax.grad(lambda x: jnp.sum(stock(x, w, None)))(x), rtol=1e-5, atol=1e-5)


def test_any_operation_is_called_by_its_name():
    x = normal(4, 9)
    soft = jax.jit(lambda x: kiln_jax.call("softmax_forward axis=1", {"y": kiln_jax.like(x)}, x=x))(x)
    assert np.allclose(soft, jax.nn.softmax(x, axis=1), rtol=1e-5, atol=1e-7)
    image = normal(1, 2, 6, 6)
    results = {"y": kiln_jax.like(image, (1, 2, 3, 3)), "indices": jax.ShapeDtypeStruct((1, 2, 3, 3), jnp.int32)}
    y, indices = kiln_jax.call("pool_forward mode=max window=2,2 stride=2,2", results, x=image)
    assert np.array_equal(y, image.reshape(1, 2, 3, 2, 3, 2).max((3, 5)))
    assert np.array_equal(np.take_along_axis(image.reshape(1, 2, 36), indices.reshape(1, 2, 9), 2), y.reshape(1, 2, 9))


def test_one_buffer_may_be_several_operands():
    x, w = normal(1, 3, 5, 5), normal(3, 3, 1, 1)
    got = kiln_jax.call("conv_forward epilogue=add", {"y": kiln_jax.like(x)}, x=x, w=w, residual=x)
    assert np.allclose(got, stock(x, w, None) + x, rtol=1e-5, atol=1e-5)


def test_a_batch_of_calls_by_vmap():
    x, w = normal(2, 1, 3, 8, 8), normal(4, 3, 3, 3)
    got = jax.vmap(lambda x: kiln_jax.conv(x, w, pad=1))(x)
    assert np.allclose(got, stock(x[:, 0], w, None, pad=1)[:, None], rtol=1e-5, atol=1e-5)


def test_shapes_that_do_not_fit_raise_kilns_message():
    with pytest.raises(Exception, match="INVALID_ARGUMENT: kiln: conv_forward: w has 3 channels per filter, expected 5"):
        kiln_jax.conv(normal(1, 5, 9, 9), normal(4, 3, 3, 3)).block_until_ready()
    with pytest.raises(Exception, match="kiln: conv_forward: the filter does not fit into the padded input"):
        kiln_jax.conv(normal(1, 3, 2, 9), normal(4, 3, 3, 3)).block_until_ready()
    assert kiln_jax.conv(normal(1, 3, 9, 9), normal(4, 3, 3, 3)).shape == (1, 4, 7, 7)


def test_a_type_that_kiln_does_not_have_is_named():
    x = jnp.ones((1, 2, 3, 3), jnp.int16)
    with pytest.raises(Exception, match="x is of type .*16, which Kiln does not have"):
        kiln_jax.call("pool_forward mode=max window=2,2", {"y": kiln_jax.like(x, (1, 2, 2, 2))}, x=x).block_until_ready()


def test_text_that_is_no_request_is_an_error():
    x = normal(2, 3)
    with pytest.raises(Exception, match="kiln: .*soft_max"):
        kiln_jax.call("soft_max axis=1", {"y": kiln_jax.like(x)}, x=x).block_until_ready()


def test_the_snippet_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("build/jax").mkdir(parents=True)
    pathlib.Path("build/jax/libkiln_jax.so").symlink_to(LIBRARY)
    section = (ROOT / "docs/engines.md").read_text().split("## JAX")[1]
    (snippet,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(snippet, "docs/engines.md", "exec"), names)
    assert names["y"].shape == (1, 8, 8, 8) and float(names["y"][0, 0, 4, 4]) == 27
    assert names["dw"].shape == (8, 3, 3, 3) and float(names["dw"][0, 0, 1, 1]) == 256
    assert np.allclose(names["p"], 1 / 3)
