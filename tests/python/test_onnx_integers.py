"""ONNX's quantised nodes against the integers and numbers that their definitions give in NumPy."""

import numpy as np
import onnx_files as files
import pytest

import kiln
import kiln.onnx

RANGES = {"int8": (-128, 127), "uint8": (0, 255)}
rng = np.random.default_rng(7)


def integers(dtype, *extents):
    least, most = RANGES[dtype]
    return rng.integers(least, most + 1, extents).astype(dtype)


def stored(numbers, dtype):
    """Rounded to the nearest, ties to even, and saturated."""
    return np.clip(np.rint(numbers), *RANGES[dtype]).astype(dtype)


def run(tmp_path, context, nodes, inputs, constants, outputs, opset=21):
    """The outputs, by their names and types, of nodes that read inputs and constants by their names."""
    path = tmp_path / "model.onnx"
    ports = [files.value(name, str(array.dtype).replace("float32", "float"), array.shape) for name, array in inputs.items()]
    path.write_bytes(
        files.model(
            nodes,
            ports,
            [files.value(name, kind, None) for name, kind in outputs.items()],
            [files.tensor(name, np.asarray(array)) for name, array in constants.items()],
            opset=opset,
        )
    )
    result = kiln.onnx.load(path, context=context)(**inputs)
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def convolution(x, w, pads, strides, groups):
    """Sums of a 2-D convolution, of numbers that float64 holds."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))).astype(np.float64)
    height, width = (x.shape[2] - w.shape[2]) // strides[0] + 1, (x.shape[3] - w.shape[3]) // strides[1] + 1
    y = np.zeros((x.shape[0], w.shape[0], height, width))
    per_group, channels = w.shape[0] // groups, w.shape[1]
    for k in range(w.shape[0]):
        first = k // per_group * channels
        for r in range(w.shape[2]):
            for s in range(w.shape[3]):
                part = x[:, first : first + channels, r :: strides[0], s :: strides[1]][:, :, :height, :width]
                y[:, k] += np.einsum("nchw,c->nhw", part, w[k, :, r, s].astype(np.float64))
    return y


CONVOLUTIONS = [
    # x, w, pads, strides, groups, zero of x, zeros of w
    ((2, 3, 7, 9), (5, 3, 3, 3), (1, 1, 1, 1), (1, 1), 1, 0, 0),
    ((2, 3, 7, 9), (5, 3, 3, 3), (1, 0, 2, 1), (2, 1), 1, 131, 0),
    ((1, 16, 8, 8), (32, 16, 3, 3), (1, 1, 1, 1), (1, 1), 1, 128, 7),
    ((1, 24, 8, 8), (32, 24, 3, 3), (1, 1, 1, 1), (1, 1), 1, 128, 0),
    ((2, 24, 7, 8), (12, 24, 3, 3), (0, 1, 1, 0), (1, 2), 1, 131, -3),
    ((1, 16, 8, 8), (32, 16, 1, 1), (0, 0, 0, 0), (1, 1), 1, 77, 5),
    ((1, 6, 5, 7), (6, 1, 3, 3), (1, 1, 1, 1), (1, 1), 6, 200, 3),
    ((1, 6, 5, 7), (4, 3, 2, 3), (0, 1, 0, 0), (1, 2), 2, 1, -7),
    ((1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0), (1, 1), 1, 255, -128),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("weights", ["int8", "uint8"])
def test_convolutions_have_the_exact_sums(case, weights, tmp_path, context):
    """Sums, requantised sums with a bias and a scale for each filter, and the same by numbers between Q and DQ."""
    x_extents, w_extents, pads, strides, groups, x_zero, w_zero = case
    x, w = integers("uint8", *x_extents), integers(weights, *w_extents)
    x_zero, w_zero = np.uint8(x_zero), np.array(w_zero + (0 if weights == "int8" else 128), weights)
    sums = convolution(x - float(x_zero), w - w_zero.astype(np.float64), pads, strides, groups)
    attributes = {"pads": pads, "strides": strides, "group": groups}
    zeros = {"w": w, "xz": x_zero, "wz": w_zero}
    node = files.node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **attributes)
    (found,) = run(tmp_path, context, [node], {"x": x}, zeros, {"y": "int32"})
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, sums)

    x_scale, y_scale = np.float32(0.04), np.float32(max(np.abs(sums).max(), 1) * 0.04 * 0.011 / 100)
    w_scale = rng.uniform(0.004, 0.012, w.shape[0]).astype(np.float32)
    bias, y_zero = rng.integers(-2000, 2000, w.shape[0]).astype(np.int32), np.uint8(119)
    w_zeros = np.full(w.shape[0], w_zero)
    constants = {"xs": x_scale, "xz": x_zero, "w": w, "ws": w_scale, "wz": w_zeros, "ys": y_scale, "yz": y_zero}
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"]
    node = files.node("QLinearConv", names, ["y"], **attributes)
    (found,) = run(tmp_path, context, [node], {"x": x}, {**constants, "bias": bias}, {"y": "uint8"})
    each = (1, -1, 1, 1)
    scale = (x_scale * w_scale / y_scale).reshape(each)
    np.testing.assert_array_equal(found, stored(np.rint((sums + bias.reshape(each)).astype(np.float32) * scale) + 119.0, "uint8"))

    nodes = [
        files.node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        files.node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
        files.node("Conv", ["xf", "wf", "bias"], ["yf"], **attributes),
        files.node("Relu", ["yf"], ["yr"]),
        files.node("QuantizeLinear", ["yr", "ys", "yz"], ["y"]),
    ]
    bias = (bias * (x_scale * w_scale)).astype(np.float32)
    (found,) = run(tmp_path, context, nodes, {"x": x}, {**constants, "bias": bias}, {"y": "uint8"})
    real = sums * (x_scale * w_scale.astype(np.float64)).reshape(each) + bias.reshape(each)
    expected = np.rint(np.maximum(real, 0) / y_scale) + 119
    assert np.abs(found.astype(np.float64) - np.clip(expected, 0, 255)).max() <= 1  # ties


PRODUCTS = [
    # a, b, zero of a, zeros of b: one, or one for each column
    ((4, 3), (3, 5), 0, 0),
    ((33, 64), (64, 40), 131, 0),
    ((7, 64), (64, 16), 3, np.arange(-8, 8)),
    ((2, 5, 7), (7, 6), 250, 1),
    ((2, 5, 7), (2, 7, 6), 250, 1),
    ((1, 1), (1, 1), 255, -128),
]


@pytest.mark.parametrize("case", PRODUCTS)
@pytest.mark.parametrize("is_constant", [True, False])
def test_products_have_the_exact_sums(case, is_constant, tmp_path, context):
    a_extents, b_extents, a_zero, b_zero = case
    a, b = integers("uint8", *a_extents), integers("int8", *b_extents)
    a_zero, b_zero = np.uint8(a_zero), np.asarray(b_zero).astype(np.int8)
    sums = np.matmul(a - float(a_zero), b - b_zero.astype(np.float64))
    inputs, constants = {"a": a}, {"az": a_zero, "bz": b_zero}
    (constants if is_constant else inputs)["b"] = b
    node = files.node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])
    (found,) = run(tmp_path, context, [node], inputs, constants, {"y": "int32"})
    np.testing.assert_array_equal(found, sums)

    scales = {"as": np.float32(0.02), "bs": np.float32(0.01), "ys": np.float32(max(np.abs(sums).max(), 1) * 2e-6)}
    names = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    node = files.node("QLinearMatMul", names, ["y"])
    (found,) = run(tmp_path, context, [node], inputs, {**constants, **scales, "yz": np.int8(-3)}, {"y": "int8"})
    scale = scales["as"] * scales["bs"] / scales["ys"]
    np.testing.assert_array_equal(found, stored(np.rint(sums.astype(np.float32) * scale) - 3.0, "int8"))


def test_residuals_are_added_where_the_convolution_ends(tmp_path, context):
    """Two convolutions, each quantised, and their sum, quantised: one call for each convolution."""
    x, w, v = integers("uint8", 1, 24, 8, 8), integers("int8", 16, 24, 3, 3), integers("int8", 16, 24, 1, 1)
    constants = {"w": w, "v": v, "s": np.float32(0.02), "xz": np.uint8(4), "wz": np.int8(0), "t": np.float32(3.0), "yz": np.uint8(90)}
    nodes = [files.node("DequantizeLinear", ["x", "s", "xz"], ["xf"])]
    for name, pads in (("w", (1, 1, 1, 1)), ("v", (0, 0, 0, 0))):
        nodes += [
            files.node("DequantizeLinear", [name, "s", "wz"], [f"{name}f"]),
            files.node("Conv", ["xf", f"{name}f"], [f"{name}y"], pads=pads),
            files.node("QuantizeLinear", [f"{name}y", "t", "yz"], [f"{name}q"]),
            files.node("DequantizeLinear", [f"{name}q", "t", "yz"], [f"{name}r"]),
        ]
    nodes += [files.node("Add", ["wr", "vr"], ["sum"]), files.node("QuantizeLinear", ["sum", "t", "yz"], ["y"])]
    (found,) = run(tmp_path, context, nodes, {"x": x}, constants, {"y": "uint8"})
    parts = [
        stored(convolution(x - 4.0, weights, pads, (1, 1), 1) * np.float32(0.02) ** 2 / 3 + 90, "uint8") - 90.0
        for weights, pads in ((w, (1, 1, 1, 1)), (v, (0, 0, 0, 0)))
    ]
    expected = stored(parts[0] + parts[1] + 90, "uint8")
    assert np.abs(found.astype(np.float64) - expected).max() <= 2  # a tie of each part
    assert (found != expected).mean() < 0.01
    steps = kiln.onnx.load(tmp_path / "model.onnx", context=context).steps
    assert len(steps) == 2, steps


@pytest.mark.parametrize("extents", [(), (1,), (3, 5), (2, 3, 4, 5), (4099,)])
@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])
def test_dynamic_quantisation_takes_the_range_of_its_input(extents, shift, tmp_path, context):
    x = (rng.standard_normal(extents) + shift).astype(np.float32) if extents else np.float32(shift)
    x = np.asarray(x)
    node = files.node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    y, scale, zero = run(tmp_path, context, [node], {"x": x}, {}, {"y": "uint8", "s": "float", "z": "uint8"})
    least, most = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    expected = np.float32(1) if most == least else (most - least) / np.float32(255)
    assert scale == expected
    assert zero == np.rint(np.clip(-least / expected, 0, 255))
    np.testing.assert_array_equal(y, stored(np.rint(x / expected) + float(zero), "uint8"))


@pytest.mark.parametrize("block", [2, 3, 4])
def test_scales_of_blocks_count_along_their_axis(block, tmp_path, context):
    x, blocks = integers("int8", 3, 8, 5), -(-8 // block)
    scale = rng.uniform(0.1, 1, (3, blocks, 5)).astype(np.float32)
    zero = integers("int8", 3, blocks, 5)
    node = files.node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1, block_size=block)
    (y,) = run(tmp_path, context, [node], {"x": x}, {"s": scale, "z": zero}, {"y": "float"})
    scale, zero = (np.repeat(each, block, 1)[:, :8] for each in (scale, zero))
    np.testing.assert_array_equal(y, (x.astype(np.float32) - zero) * scale)


def test_what_a_node_cannot_do_is_said(tmp_path, context):
    x, w = integers("uint8", 1, 3, 5, 5), integers("int8", 4, 3, 3, 3)
    node = files.node("ConvInteger", ["x", "w", "xz"], ["y"])
    with pytest.raises(kiln.Error, match="input 2 is of type int8, expected uint8 as input 0"):
        run(tmp_path, context, [node], {"x": x}, {"w": w, "xz": np.int8(1)}, {"y": "int32"})
    names = ["x", "s", "z", "w", "ws", "wz", "s", "z"]
    constants = {"s": np.float32(1), "z": np.uint8(0), "w": w, "ws": np.ones(3, np.float32), "wz": np.int8(0)}
    with pytest.raises(kiln.Error, match="an operand of 1x3x1x1 does not fit 1x4x3x3"):
        run(tmp_path, context, [files.node("QLinearConv", names, ["y"])], {"x": x}, constants, {"y": "uint8"})


@pytest.mark.parametrize("has_scales", [True, False])
def test_numbers_of_8_bits_are_multiplied_as_they_are(has_scales, tmp_path, context):
    """A product of two matrices that become float8 and numbers again: one call reads float8."""
    a, b = (rng.standard_normal(extents).astype(np.float32) for extents in ((32, 64), (64, 48)))
    scale = rng.uniform(0.01, 0.02, 48).astype(np.float32) if has_scales else np.full(48, 0.015, np.float32)
    constants = {"s": np.float32(0.02), "t": scale if has_scales else scale[0], "b": b}
    nodes = [
        files.node("QuantizeLinear", ["a", "s"], ["aq"], output_dtype=17),
        files.node("QuantizeLinear", ["b", "t"], ["bq"], output_dtype=17, axis=1),
        files.node("DequantizeLinear", ["aq", "s"], ["af"]),
        files.node("DequantizeLinear", ["bq", "t"], ["bf"], axis=1),
        files.node("MatMul", ["af", "bf"], ["y"]),
    ]
    (found,) = run(tmp_path, context, nodes, {"a": a}, constants, {"y": "float"}, opset=21)
    rounded = [np.asarray(e4m3(x / s)) * s for x, s in ((a, np.float32(0.02)), (b, scale))]
    np.testing.assert_allclose(found, rounded[0].astype(np.float64) @ rounded[1], rtol=2e-5, atol=2e-5)
    products = [step for step in kiln.onnx.load(tmp_path / "model.onnx", context=context).steps if "gemm" in str(step)]
    assert "a=f8e4m3" in str(products) and "b=f8e4m3" in str(products), products


def e4m3(x):
    """The nearest numbers of 3 bits of fraction, ties to even, that are at least 2^-6 and at most 448."""
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 2.0**-20))), -6)
    step = 2.0 ** (exponent - 3)
    return np.clip(np.rint(x / step) * step, -448, 448)
