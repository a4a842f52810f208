#!/usr/bin/env python3
"""Runs random ONNX graphs by Kiln and by ONNX Runtime, and compares.

Usage: fuzz_networks.py [--seed N] [--count N] [--findings FOLDER]   (needs numpy, onnx, onnxruntime, and kiln's package)

A graph has up to 14 nodes: convolutions, pools, normalisations, activations, arithmetic with broadcast, products,
reductions, and what moves elements. Each runs in layouts auto, nchw and nhwc, and without fusing. A result is right if no
element is further from ONNX Runtime's than 1e-4 of the largest, or than 30 times what ONNX Runtime's own result changes
by where inputs change by a millionth. Equal seeds give equal graphs: graph N is that of `--seed N --count 1`. Wrong
ones are stored in FOLDER. Ends with status 1 if there is one.
"""

import argparse
import pathlib
import sys
import tempfile

import kiln
import kiln.onnx
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 21
MODES = {
    "auto": {},
    "nchw": {"layout": "nchw"},
    "nhwc": {"layout": "nhwc"},
    "apart": {"fuse": False},
    "apart, nhwc": {"fuse": False, "layout": "nhwc"},
}
MOST_ELEMENTS = 20000  # of a value: the emulated device is slow


class Graph:
    """A graph that grows node by node; every value's extents are known, and all are f32."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs = [], [], []
        self.extents = {}  # of values
        for i in range(self.pick([1, 1, 1, 2])):
            extents = self.first_extents()
            self.inputs.append(helper.make_tensor_value_info(f"in/{i}", TensorProto.FLOAT, extents))
            self.extents[f"in/{i}"] = tuple(extents)

    def first_extents(self):
        rank = self.pick([2, 3, 4, 4, 4, 4, 4, 5])
        channels = self.pick([1, 2, 3, 4, 5, 7, 8, 12, 16])
        return [self.pick([1, 1, 2, 3]), channels, *(self.pick([1, 3, 4, 6, 7, 8, 11]) for _ in range(rank - 2))]

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, probability):
        return bool(self.random.random() < probability)

    def numbers(self, extents, low=-1.0, high=1.0):
        """A constant of the model."""
        return self.constant(self.random.uniform(low, high, extents).astype(numpy.float32))

    def integers(self, values):
        return self.constant(numpy.array(values, numpy.int64))

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, outputs=1, **attributes):
        """The first result; nothing is added if ONNX finds that it cannot be, or if it is empty or large."""
        names = [f"{kind} {len(self.nodes)}.{i}" for i in range(outputs)]
        added = helper.make_node(kind, inputs, names, name=f"/{kind}_{len(self.nodes)}", **attributes)
        self.nodes.append(added)
        try:
            inferred = shape_inference.infer_shapes(self.model([]), strict_mode=True, data_prop=True).graph.value_info
        except shape_inference.InferenceError:
            self.nodes.pop()
            return None
        found = {value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in inferred}
        extents = [found.get(name, self.extents.get(inputs[0])) for name in names]  # ONNX infers none for GroupNormalization
        if any(not 0 < numpy.prod(each, dtype=int) <= MOST_ELEMENTS or len(each) > 6 for each in extents):
            self.nodes.pop()
            return None
        self.extents.update(zip(names, extents))
        return names[0]

    def model(self, outputs):
        graph = helper.make_graph(self.nodes, "fuzz", self.inputs,
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.extents[name])
                                   for name in outputs], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


# ---- nodes: each adds some to graph g behind value x of extents e, or nothing where x does not suit ----


def window(g, e):
    """Attributes of a window that fits into extents `e` without padding."""
    axes = len(e) - 2
    kernel = [min(g.pick([1, 2, 3, 3]), n) for n in e[2:]]
    dilations = [g.pick([1, 1, 1, 2]) if 2 * (k - 1) < n else 1 for k, n in zip(kernel, e[2:])]
    pads = [g.pick([0, k // 2, k - 1]) for k in kernel] + [g.pick([0, k // 2]) for k in kernel]
    return {"kernel_shape": kernel, "strides": [g.pick([1, 1, 2]) for _ in range(axes)], "dilations": dilations, "pads": pads}


def groups_of(g, channels):
    return g.pick([1, 1, channels, g.pick([n for n in range(1, channels + 1) if channels % n == 0])])


def conv(g, x, e):
    if not 3 <= len(e) <= 5:
        return
    attributes = window(g, e)
    if g.chance(0.15):
        del attributes["pads"]
        attributes["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        attributes["dilations"] = [1] * (len(e) - 2)
    groups = groups_of(g, e[1])
    filters = groups * g.pick([1, 1, 2, 3, 8 // groups or 1])
    span = numpy.sqrt(3 * groups / (e[1] * numpy.prod(attributes["kernel_shape"])))
    inputs = [x, g.numbers((filters, e[1] // groups, *attributes["kernel_shape"]), -span, span)]
    if g.chance(0.5):
        inputs.append(g.numbers((filters,)))
    g.node("Conv", inputs, group=groups, **attributes)


def conv_transpose(g, x, e):
    if not 3 <= len(e) <= 5:
        return
    attributes = window(g, e)
    groups = groups_of(g, e[1])
    filters = g.pick([1, 2, 3])
    attributes["output_padding"] = [g.pick([0, s - 1]) for s in attributes["strides"]]
    inputs = [x, g.numbers((e[1], filters, *attributes["kernel_shape"]), -0.5, 0.5)]
    if g.chance(0.5):
        inputs.append(g.numbers((filters * groups,)))
    g.node("ConvTranspose", inputs, group=groups, **attributes)


def pool(g, x, e):
    if not 3 <= len(e) <= 5:
        return
    attributes = window(g, e)
    attributes["pads"] = [min(p, (k - 1) // 2) for p, k in zip(attributes["pads"], 2 * attributes["kernel_shape"])]
    kind = g.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if kind.startswith("Global"):
        g.node(kind, [x])
    elif kind == "MaxPool":
        g.node(kind, [x], ceil_mode=g.pick([0, 1]), **attributes)
    else:
        g.node(kind, [x], count_include_pad=g.pick([0, 1]), **attributes)


def norm(g, x, e):
    if len(e) < 2:
        return
    kind = g.pick(["BatchNormalization", "BatchNormalization", "InstanceNormalization", "LayerNormalization",
                   "GroupNormalization"])
    channels = [g.numbers((e[1],), 0.5, 1.5), g.numbers((e[1],))]
    if kind == "BatchNormalization":
        g.node(kind, [x, *channels, g.numbers((e[1],)), g.numbers((e[1],), 0.5, 1.5)])
    elif kind == "LayerNormalization":
        axis = int(g.random.integers(1, len(e)))
        g.node(kind, [x, g.numbers(e[axis:], 0.5, 1.5), g.numbers(e[axis:])], axis=axis)
    elif len(e) > 2 and kind == "InstanceNormalization":
        g.node(kind, [x, *channels], epsilon=1e-2)
    elif len(e) > 2:
        g.node(kind, [x, *channels], num_groups=g.pick([n for n in range(1, e[1] + 1) if e[1] % n == 0]), epsilon=1e-2)


def activation(g, x, e):
    kind = g.pick(["Relu", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "HardSwish", "HardSigmoid", "Gelu", "Softplus",
                   "Erf", "Abs", "Neg", "Mish", "Clip", "PRelu", "Exp", "Sqrt", "Selu", "ThresholdedRelu", "Identity"])
    inputs = [x]
    if kind == "Clip":
        inputs += [g.constant(numpy.float32(g.pick([0, -0.5]))), g.pick(["", g.constant(numpy.float32(0.5))])]
    if kind == "PRelu":
        inputs.append(g.numbers((e[1], *[1] * (len(e) - 2)) if len(e) > 1 else e))
    if kind == "Exp":
        inputs = [g.node("Tanh", [x])]
    if kind == "Sqrt":
        inputs = [g.node("Sigmoid", [x])]
    if inputs[0]:
        g.node(kind, inputs)


def arithmetic(g, x, e):
    kind = g.pick(["Add", "Add", "Add", "Mul", "Sub", "Max", "Min", "Mean", "Sum", "Div", "Where"])
    alike = [name for name, own in g.extents.items() if own != () and fits(own, e)]
    other = g.pick(alike)
    if g.chance(0.4) or kind == "Div":
        extents = [n if g.chance(0.5) else 1 for n in e][g.pick([0, 0, len(e) // 2]):]
        other = g.numbers(extents, 0.5, 1.5)
    inputs = [x, other] if g.chance(0.5) or kind == "Div" else [other, x]
    if kind == "Where":
        inputs.insert(0, g.constant(g.random.random([n if g.chance(0.5) else 1 for n in e]) < 0.5))
    if kind in ("Mean", "Sum", "Max") and g.chance(0.3):
        inputs.append(g.pick(alike))
    g.node(kind, inputs)


def fits(own, e):
    """Whether `own` repeats to `e`."""
    return len(own) <= len(e) and all(a in (1, b) for a, b in zip(own[::-1], e[::-1]))


def product(g, x, e):
    if len(e) < 2:
        return
    kind = g.pick(["constant", "constant", "square", "Gemm"])
    columns = g.pick([1, 3, 8, 10])
    span = numpy.sqrt(3 / e[-1])
    if kind == "square" and len(e) <= 4:
        order = [*range(len(e) - 2), len(e) - 1, len(e) - 2]
        other = g.node("Transpose", [x], perm=order)
        scale = g.node("Mul", [x, g.constant(numpy.float32(1 / e[-1]))])
        if other and scale:
            g.node("MatMul", [scale, other])
    elif kind == "Gemm" and len(e) == 2:
        flip = g.pick([0, 1])
        g.node("Gemm", [x, g.numbers((columns, e[1]) if flip else (e[1], columns), -span, span),
                        g.numbers(g.pick([(columns,), (1, columns), (e[0], columns), (e[0], 1), (1,)]))], transB=flip,
               alpha=g.pick([1.0, 0.5]), beta=g.pick([1.0, 2.0]))
    elif g.chance(0.2):
        g.node("MatMul", [g.numbers((columns, e[-2]), -0.5, 0.5), x])
    else:
        y = g.node("MatMul", [x, g.numbers((e[-1], columns), -span, span)])
        if y and g.chance(0.5):
            g.node("Add", [y, g.numbers((columns,))])


def softmax(g, x, e):
    g.node(g.pick(["Softmax", "LogSoftmax"]), [x], axis=int(g.random.integers(-len(e), len(e))))


def reduction(g, x, e):
    kind = g.pick(["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
    axes = sorted(g.random.choice(len(e), g.pick([1, 1, min(2, len(e))]), replace=False).tolist())
    g.node(kind, [x, g.integers(axes)], keepdims=g.pick([0, 1, 1]))


def transpose(g, x, e):
    order = g.random.permutation(len(e)).tolist()
    if len(e) > 2 and g.chance(0.5):
        order = g.pick([[0, *range(2, len(e)), 1], [0, len(e) - 1, *range(1, len(e) - 1)]])
    g.node("Transpose", [x], perm=order)


def factors(g, count):
    """Extents of up to five dimensions that have `count` elements."""
    extents = []
    while count > 1 and len(extents) < 4:
        extents.append(g.pick([n for n in range(1, count + 1) if count % n == 0]))
        count //= extents[-1]
    extents.append(count)
    g.random.shuffle(extents)
    return extents


def reshape(g, x, e):
    kind = g.pick(["keep", "keep", "Reshape", "merge", "split", "Flatten", "Unsqueeze", "Squeeze"])
    if kind == "keep":
        g.node("Reshape", [x, g.integers([*e[:2], -1] if len(e) > 2 else [-1, *e])])
    elif kind == "Reshape":
        g.node("Reshape", [x, g.integers(factors(g, int(numpy.prod(e))))])
    elif kind == "merge" and len(e) > 1:
        g.node("Reshape", [x, g.integers([e[0] * e[1], *e[2:]])])
    elif kind == "split" and len(e) < 5:
        d = int(g.random.integers(len(e)))
        part = g.pick([n for n in range(1, e[d] + 1) if e[d] % n == 0])
        g.node("Reshape", [x, g.integers([*e[:d], part, e[d] // part, *e[d + 1:]])])
    elif kind == "Flatten":
        g.node("Flatten", [x], axis=int(g.random.integers(0, len(e) + 1)))
    elif kind == "Unsqueeze" and len(e) < 5:
        g.node("Unsqueeze", [x, g.integers([int(g.random.integers(len(e) + 1))])])
    elif kind == "Squeeze" and 1 in e[1:]:
        g.node("Squeeze", [x, g.integers([e.index(1, 1)])])


def slices(g, x, e):
    d = int(g.random.integers(len(e)))
    kind = g.pick(["Slice", "Slice", "Split", "Gather"])
    if kind == "Slice":
        step = g.pick([1, 1, 2, -1])
        begin, end = sorted(g.random.integers(0, e[d] + 1, 2).tolist())
        bounds = (begin, end) if step > 0 else (end, begin - e[d] - 1)
        g.node("Slice", [x, *(g.integers([n]) for n in (*bounds, d, step))])
    elif kind == "Gather":
        g.node("Gather", [x, g.integers(g.random.integers(-e[d], e[d], g.pick([(), (1,), (3,)])))], axis=d)
    elif e[d] > 1:
        first = int(g.random.integers(1, e[d]))
        g.node("Split", [x, g.integers([first, e[d] - first])], outputs=2, axis=d)


def concat(g, x, e):
    d = int(g.random.integers(len(e))) if g.chance(0.4) or len(e) < 2 else 1
    alike = [name for name, own in g.extents.items() if len(own) == len(e) and own[:d] == e[:d] and own[d + 1:] == e[d + 1:]]
    parts = [g.pick(alike) for _ in range(g.pick([1, 1, 2]))]
    if g.chance(0.2):
        parts.append(g.numbers((*e[:d], 2, *e[d + 1:])))
    parts.insert(g.pick([0, 1]), x)
    g.node("Concat", parts, axis=d)


def blocks(g, x, e):
    if len(e) != 4:
        return
    if e[1] % 4 == 0 and g.chance(0.7):
        g.node("DepthToSpace", [x], blocksize=2, mode=g.pick(["DCR", "CRD"]))
    elif e[2] % 2 == 0 and e[3] % 2 == 0:
        g.node("SpaceToDepth", [x], blocksize=2)


def larger(g, x, e):
    kind = g.pick(["Pad", "Pad", "Expand", "Tile", "Resize"])
    if kind == "Pad" and len(e) <= 5:
        pads = [g.pick([0, 0, 1, 2]) for _ in range(2 * len(e))]
        mode = g.pick(["constant", "reflect", "edge", "wrap"])
        if mode == "constant" and g.chance(0.2):
            pads = [p - 1 for p in pads]
        if mode in ("reflect", "wrap"):
            pads = [min(p, n - 1) for p, n in zip(pads, 2 * e)]
        inputs = [x, g.integers(pads)]
        if mode == "constant" and g.chance(0.5):
            inputs.append(g.constant(numpy.float32(0.25)))
        g.node("Pad", inputs, mode=mode)
    elif kind == "Expand":
        g.node("Expand", [x, g.integers([2 if n == 1 and g.chance(0.5) else n for n in e])])
    elif kind == "Tile":
        g.node("Tile", [x, g.integers([g.pick([1, 1, 2]) for _ in e])])
    elif kind == "Resize" and len(e) == 4:
        mode, where = g.pick([("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners")])
        scales = g.constant(numpy.array([1, 1, g.pick([1, 2]), 2], numpy.float32))
        g.node("Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=where,
               **({"nearest_mode": "floor"} if mode == "nearest" else {}))


KINDS = [conv] * 6 + [conv_transpose, pool, pool, norm, norm] + [activation] * 4 + [arithmetic] * 4 + [
    product, softmax, reduction, transpose, transpose, reshape, reshape, slices, concat, concat, blocks, larger]


def make(seed):
    """A model, and arrays for its inputs."""
    g = Graph(seed)
    for _ in range(g.pick([3, 5, 8, 11])):
        known = list(g.extents)
        x = known[-1] if g.chance(0.7) else g.pick(known)
        if g.extents[x] != ():
            g.pick(KINDS)(g, x, g.extents[x])
    made = [name for name in g.extents if not name.startswith("in/")]
    if not made:
        return make(seed + 1_000_000)
    used = {name for node in g.nodes for name in node.input}
    outputs = [name for name in made if name not in used or g.chance(0.1)]
    model = g.model(outputs)
    onnx.checker.check_model(model)
    return model, {i.name: g.random.standard_normal(g.extents[i.name]).astype(numpy.float32) for i in g.inputs}


def expected_of(model, inputs):
    """ONNX Runtime's results, without rewriting the graph, and how far each may be missed."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, inputs)
    moved = session.run(None, {name: x * numpy.float32(1 + 1e-6) + numpy.float32(1e-6) for name, x in inputs.items()})
    bounds = [max(1e-4 * numpy.abs(y).max(), 30 * numpy.abs(y - other).max()) for y, other in zip(results, moved)]
    return results, bounds


def differences(path, inputs, expected, bounds, context, options):
    model = kiln.onnx.load(path, context=context, **options)
    results = model(**inputs)
    results = results if isinstance(results, tuple) else (results,)
    for tensor, y, right, bound in zip(model.outputs, results, expected, bounds):
        if y.shape != right.shape:
            return f"'{tensor.name}' is {y.shape}, expected {right.shape}"
        if not numpy.allclose(y, right, rtol=0, atol=bound, equal_nan=True):
            return f"'{tensor.name}' misses by {numpy.abs(y - right).max():.2e}, allowed {bound:.1e}"
    return None


def outcome_of(seed, path, context):
    """"right", "refused", "skipped" (not finite by ONNX Runtime, or not run by it) or "wrong", and a note."""
    model, inputs = make(seed)
    onnx.save(model, path)
    try:
        expected, bounds = expected_of(model, inputs)
    except Exception as error:  # ONNX Runtime has no common class for what it lacks
        return "skipped", str(error).splitlines()[0]
    if not all(numpy.isfinite(y).all() for y in expected):
        return "skipped", "a result is not finite"
    for mode, options in MODES.items():
        try:
            wrong = differences(path, inputs, expected, bounds, context, options)
        except kiln.Unsupported as error:
            return "refused", f"{mode}: {error}"
        except kiln.Error as error:
            return "wrong", f"{mode}: {type(error).__name__}: {error}"
        if wrong:
            return "wrong", f"{mode}: {wrong}"
    return "right", f"{len(model.graph.node)} nodes"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--findings", type=pathlib.Path, default=pathlib.Path("findings"))
    arguments = parser.parse_args()
    context = kiln.Context(driver="emulator", cache="off", tuning=kiln.Tuning("never"))
    outcomes = {"right": 0, "refused": 0, "skipped": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            outcome, note = outcome_of(seed, path, context)
            outcomes[outcome] += 1
            if outcome != "right":
                print(f"{seed:8} {outcome}: {note}", flush=True)
            if outcome == "wrong":
                arguments.findings.mkdir(exist_ok=True)
                path.rename(arguments.findings / f"network-{seed}.onnx")
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    return 1 if outcomes["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
