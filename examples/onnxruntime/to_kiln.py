"""Gives the nodes of an ONNX model that Kiln covers to Kiln, for ONNX Runtime with libkiln_onnxruntime.so.

A covered node moves to the domain `kiln` and keeps its attributes. A Relu that alone uses a convolution's result becomes
the attribute `activation` of the convolution. All other nodes stay ONNX Runtime's, and so do those of subgraphs; in the
main graph, those of a kind that Kiln has are printed with the reason.

usage: to_kiln.py MODEL.onnx -o OUT.onnx
"""

import argparse
import collections
import sys

import onnx

KINDS = ("Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Softmax", "LogSoftmax")
DOMAIN = "kiln"
TYPES = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


def types_of(graph):
    """The types of the graph's values, as far as they are known."""
    values = [*graph.input, *graph.output, *graph.value_info]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return {**types, **{tensor.name: tensor.data_type for tensor in graph.initializer}}


def reason_against(node, opset, types):
    """Why the node stays ONNX Runtime's; empty if Kiln covers it."""
    if [name for name in node.output[1:] if name]:
        return "it has a second output"
    if node.op_type in ("Softmax", "LogSoftmax") and opset < 13:
        return "before opset 13 it is the softmax of a matrix"
    kind = types.get(node.input[0], 0)
    if kind and kind not in TYPES:
        return f"its tensors are of type {onnx.TensorProto.DataType.Name(kind).lower()}"
    return ""


def reads(node):
    """The names that the node reads, those of its subgraphs too."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for inner in graph.node:
                yield from reads(inner)


def fuse_relu(graph, node, uses):
    """Makes the Relu that alone uses the result of `node`, if there is one, a part of it."""
    outputs = {value.name for value in graph.output}
    users = uses[node.output[0]]
    if len(users) != 1 or users[0].op_type != "Relu" or users[0].domain or node.output[0] in outputs:
        return
    node.attribute.append(onnx.helper.make_attribute("activation", "Relu"))
    node.output[0] = users[0].output[0]
    graph.node.remove(users[0])


def convert(model):
    """Changes `model`. Returns how many nodes are Kiln's, and what stays with the reasons: [(node, reason)]."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    types = types_of(graph)
    uses = collections.defaultdict(list)
    for node in model.graph.node:
        for name in reads(node):
            uses[name].append(node)
    moved, stayed = 0, []
    for node in list(model.graph.node):
        if node.op_type not in KINDS or node.domain not in ("", "ai.onnx"):
            continue
        if reason := reason_against(node, opset, types):
            stayed.append((node, reason))
            continue
        node.domain = DOMAIN
        moved += 1
        if node.op_type == "Conv":
            fuse_relu(model.graph, node, uses)
    if moved and DOMAIN not in {each.domain for each in model.opset_import}:
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return moved, stayed


def main():
    parser = argparse.ArgumentParser(description="Gives the nodes of an ONNX model that Kiln covers to Kiln.")
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", required=True)
    arguments = parser.parse_args()
    model = onnx.load(arguments.model)
    moved, stayed = convert(model)
    onnx.save(model, arguments.output)
    for node, reason in stayed:
        print(f"{node.op_type} '{node.name or node.output[0]}' stays: {reason}")
    print(f"{moved} nodes of {len(model.graph.node)} run on Kiln: {arguments.output}")
    return 0 if moved else 1


if __name__ == "__main__":
    sys.exit(main())
