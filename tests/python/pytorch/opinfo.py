"""Runs PyTorch's own samples (OpInfo) of the operations that kiln.torch has, forward and gradient, beside PyTorch.

    KILN_DRIVER=emulator KILN_CACHE=off python opinfo.py [--types TYPE ...] [OPERATION ...]

Prints a table: samples that passed, that were refused (with the reasons below), and wrong ones. Exits with 1 if any is
wrong. Needs PyTorch with expecttest (2.x is what the counts of docs/pytorch.md are of).
"""

import argparse
import collections
import re
import sys
import warnings

import torch

import kiln
import kiln.torch.functional as K

# PyTorch computes in float64, of the same inputs. The difference is relative to the largest element, as cancellation leaves
# small ones with the errors of the large: sums of some hundred products in float32; in half precision four units in the
# last place, as results are rounded and gradients are computed from rounded results.
TOLERANCES = {torch.float32: 2e-5, torch.float16: 2**-8, torch.bfloat16: 2**-5}
# Gradients of attention take the differences of products with the result, which is rounded; so do PyTorch's.
ROUNDED = {"nn.functional.scaled_dot_product_attention": 4}  # times the tolerance of half precision
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

OPERATIONS = [
    "addmm", "baddbmm", "bmm", "log_softmax", "matmul", "mm", "sigmoid", "softmax", "tanh",
    *(
        f"nn.functional.{name}"
        for name in K.__all__
        if name not in ("addmm", "baddbmm", "bmm", "log_softmax", "matmul", "mm", "sigmoid", "softmax", "tanh", "dropout")
    ),
]  # fmt: skip


def samples_of(name, dtypes):
    """(OpInfo, type, sample) of each variant of the operation."""
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        if info.name != name:
            continue
        for dtype in dtypes:
            for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
                if not sample.kwargs.get("dropout_p"):  # whose mask is Kiln's own
                    yield info, dtype, sample


def tensors_of(values, made):
    """`values`, in which `made` stands for each tensor."""
    if isinstance(values, torch.Tensor):
        return made(values)
    if isinstance(values, (tuple, list)):
        return type(values)(tensors_of(each, made) for each in values)
    if isinstance(values, dict):
        return {name: tensors_of(each, made) for name, each in values.items()}
    return values


class Leaves:
    """Copies of a sample's tensors, which require gradients where they can."""

    def __init__(self, sample, dtype=None):
        self.leaves = []
        self.arguments = tensors_of([sample.input, list(sample.args), sample.kwargs], lambda each: self.copy(each, dtype))

    def copy(self, tensor, dtype):
        copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)
        if not tensor.dtype.is_floating_point:
            return copy
        copy = copy if dtype is None else copy.to(dtype)
        self.leaves.append(copy)
        return copy

    def run(self, function, without_gradient):
        for place, leaf in enumerate(self.leaves):
            leaf.requires_grad_(place not in without_gradient)
        first, args, kwargs = self.arguments
        result = function(first, *args, **kwargs)
        return result if isinstance(result, tuple) else (result,)


def distance(actual, expected):
    """The largest difference over the largest element; infinite where shapes, NaN or infinities differ."""
    if actual.shape != expected.shape:
        return float("inf")
    if not expected.dtype.is_floating_point:
        return 0.0 if torch.equal(actual, expected) else float("inf")
    actual, expected = actual.detach().double(), expected.detach().double()
    finite = expected.isfinite()
    if not torch.equal(actual.isfinite(), finite) or not torch.equal(actual[~finite].nan_to_num(), expected[~finite].nan_to_num()):
        return float("inf")
    if not finite.any():
        return 0.0
    return float((actual - expected)[finite].abs().max() / max(1.0, float(expected[finite].abs().max())))


def without_gradient(name, leaves):
    """The places of tensors that PyTorch has no gradient for: running statistics, weights of classes."""
    if name.endswith("cross_entropy"):
        return set(range(1, len(leaves.leaves)))
    if not name.endswith(("batch_norm", "instance_norm")):
        return set()
    _, args, kwargs = leaves.arguments
    running = [id(each) for each in (*args[:2], kwargs.get("running_mean"), kwargs.get("running_var"))]
    return {place for place, leaf in enumerate(leaves.leaves) if id(leaf) in running}


def run(info, dtype, sample, function):
    """("passed", ""), or ("refused" or "wrong", why); None where PyTorch itself refuses the sample."""
    theirs, ours = Leaves(sample, torch.float64), Leaves(sample)
    without = without_gradient(info.name, theirs)
    try:
        expected = theirs.run(info.op, without)
    except (RuntimeError, ValueError, IndexError):
        return None
    try:
        results = ours.run(function, without)
        tolerance = TOLERANCES[dtype] * (1 if dtype == torch.float32 else ROUNDED.get(info.name, 1))
        for mine, other in zip(results, expected, strict=True):
            if distance(mine, other) > tolerance:
                return "wrong", f"result differs by {distance(mine, other):.2g}"
        if not expected[0].requires_grad:
            return "passed", ""
        dy = torch.randn_like(expected[0]).to(dtype)
        expected[0].backward(dy.to(expected[0].dtype))
        results[0].backward(dy)
    except (kiln.Unsupported, kiln.InvalidArgument) as error:
        return "refused", re.sub(r"\d+", "#", error.message)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    for place, (mine, other) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        mine, other = (torch.zeros_like(each) if each.grad is None else each.grad for each in (mine, other))
        if distance(mine, other) > tolerance:
            return "wrong", f"gradient of input {place}"
    return "passed", ""


def check(names, dtypes):
    """{operation: Counter of outcomes}, and {(operation, outcome, why): count}; prints rows as they come."""
    torch.manual_seed(1)
    counts, reasons = {}, collections.Counter()
    for name in names:
        function = getattr(K, name.removeprefix("nn.functional."))
        if function is K.embedding:  # samples have the table first

            def function(weight, indices, **words):
                return K.embedding(indices, weight, **words)

        of_name = counts[name] = collections.Counter()
        for info, dtype, sample in samples_of(name, dtypes):
            if (outcome := run(info, dtype, sample, function)) is None:
                continue
            of_name[outcome[0]] += 1
            if outcome[1]:
                reasons[name, *outcome] += 1
        print(f"| `{name}` | {of_name['passed']} | {of_name['refused']} | {of_name['wrong']} |", flush=True)
    return counts, reasons


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("operations", nargs="*", metavar="OPERATION")
    given = parser.parse_args()
    names = [name for name in OPERATIONS if not given.operations or name.removeprefix("nn.functional.") in given.operations]
    print(f"PyTorch {torch.__version__}, {', '.join(given.types)}\n")
    print("| operation | passed | refused | wrong |\n| --- | --- | --- | --- |")
    counts, reasons = check(names, [TYPES[name] for name in given.types])
    total = sum(counts.values(), collections.Counter())
    print(f"| all | {total['passed']} | {total['refused']} | {total['wrong']} |\n")
    for (name, outcome, why), count in sorted(reasons.items()):
        print(f"{outcome}: {name}: {why} ({count})")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
