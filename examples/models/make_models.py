#!/usr/bin/env python3
"""Makes the example models: torchvision's networks as its ONNX export gives them, without their weights.

Usage: make_models.py [output folder]        (needs torch, torchvision and onnx: README.md says which were used)

The layers of a model do not depend on the values of its weights, so every initialiser of more than a few elements is
replaced by a ConstantOfShape node: the files shrink from tens of megabytes to some kilobytes and stay valid models,
whose outputs are finite.
"""

import pathlib
import sys

import numpy
import onnx
import torch
import torchvision
from onnx import helper, numpy_helper

OPSET = 13
LARGEST_KEPT = 16  # elements of an initialiser that stays as it is


class Classifier(torch.nn.Module):
    """A network that ends in the softmax that an application applies to its logits."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.softmax = torch.nn.Softmax(dim=1)

    def forward(self, image):
        return self.softmax(self.network(image))


# Name, network, and whether BatchNormalization stays a node of its own. torch.onnx.export folds it into the convolution
# by default, as users of mobilenet_v2 see it; resnet18 keeps it, as exports of models in training mode and of other
# frameworks do, so that both forms are here.
MODELS = [
    ("squeezenet1_1", torchvision.models.squeezenet1_1, False),
    ("resnet18", torchvision.models.resnet18, True),
    ("mobilenet_v2", torchvision.models.mobilenet_v2, False),
]


def with_distinct_parameters(network):
    """Untrained biases and statistics are all equal, and the exporter would share them, which trained ones are not."""
    with torch.no_grad():
        for values in [*network.parameters(), *network.buffers()]:
            if values.dim() == 1:
                values.add_(0.01 * torch.randn_like(values))
    return network


def export(network, path, keep_batch_norm):
    training = torch.onnx.TrainingMode
    torch.onnx.export(
        Classifier(network).eval(),
        torch.zeros(1, 3, 224, 224),
        str(path),
        input_names=["image"],
        output_names=["probabilities"],
        opset_version=OPSET,
        training=training.PRESERVE if keep_batch_norm else training.EVAL,
        do_constant_folding=not keep_batch_norm,
    )


def stand_in(values):
    """One number for all elements: keeps activations near 1 through filters, and normalisation the identity."""
    if values.ndim > 1:
        return 1.0 / numpy.prod(values.shape[1:])
    return float(values.mean())


def without_weights(model):
    nodes, kept = [], []
    for initializer in model.graph.initializer:
        values = numpy_helper.to_array(initializer)
        if values.dtype != numpy.float32 or values.size <= LARGEST_KEPT:
            kept.append(initializer)
            continue
        shape = initializer.name + "_shape"
        kept.append(numpy_helper.from_array(numpy.array(values.shape, dtype=numpy.int64), shape))
        value = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [stand_in(values)])
        nodes.append(helper.make_node("ConstantOfShape", [shape], [initializer.name], value=value))
    nodes.extend(model.graph.node)
    del model.graph.initializer[:]
    del model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)
    return model


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, make, keep_batch_norm in MODELS:
        torch.manual_seed(0)
        path = folder / f"{name}.onnx"
        export(with_distinct_parameters(make(weights=None)), path, keep_batch_norm)
        model = without_weights(onnx.load(path))
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        print(f"{path}: {path.stat().st_size} bytes, {len(model.graph.node)} nodes")


if __name__ == "__main__":
    main()
