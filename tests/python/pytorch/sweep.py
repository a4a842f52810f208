"""Runs PyTorch's own samples of modules and functions in modes, tracers and transforms, with Kiln and without.

    KILN_DRIVER=emulator KILN_CACHE=off python sweep.py [--types TYPE ...] [--modes MODE ...] [--limit N] [NAME ...]

Prints a row for each mode: samples that are equal to PyTorch's, or end in PyTorch's own error, and wrong ones. Exits with 1
if any is wrong. Needs PyTorch with expecttest (2.x is what the counts of docs/pytorch.md are of).
"""

import argparse
import collections
import contextlib
import copy
import sys
import warnings

import torch
import torch.autograd.forward_ad as forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import kiln.torch
from kiln.torch._mode import TABLE

try:  # functorch until PyTorch 2.0
    from torch.func import functionalize, grad, jvp, vmap
except ImportError:
    from functorch import functionalize, grad, jvp, vmap

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
HALVES = (torch.float16, torch.bfloat16)
# Relative to the largest element. Both sum in float32, in orders of their own; float64 is PyTorch's. Halves are rounded
# after each function by PyTorch, and some of its sums are of halves. Gradients of gradients have the errors of both
# passes; under autocast results are rounded to bfloat16.
TOLERANCES = {"f32": 1e-4, "f64": 1e-12, "f16": 2**-8, "bf16": 2**-5, "second": 1e-3, "autocast": 2**-5}
SECOND_OF_HALVES = 2  # times the tolerance of the type
# PyTorch's own errors that Kiln need not have: it has deterministic kernels of these, halves on the CPU, and gradients of
# attention's gradients.
LACKING = ("deterministic implementation", "not implemented for 'Half'", "not implemented for 'BFloat16'", "attention_for_cpu_backward")
RANDOM = ("dropout", "Dropout")  # whose mask is Kiln's own
RANDOM_IN = {"make_fx": ("ctc_loss", "CTCLoss")}  # PyTorch's differs from run to run


def leaves_of(value, made):
    """`value`, in which made(tensor) stands for each tensor."""
    if isinstance(value, torch.Tensor):
        return made(value)
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(leaves_of(each, made) for each in value)
    if isinstance(value, dict):
        return {name: leaves_of(each, made) for name, each in value.items()}
    return value


class Place(int):
    """Stands for a tensor of floats by its number."""


class Sample:
    """A call with its tensors of floats taken out, and parameters of what is called."""

    def __init__(self, call, arguments, keywords, parameters=()):
        self.call, self.parameters = call, list(parameters)
        self.floats = []
        self.words = leaves_of((list(arguments), dict(keywords)), self._take)

    def _take(self, tensor):
        if not tensor.dtype.is_floating_point:
            return tensor
        self.floats.append(tensor.detach())
        return Place(len(self.floats) - 1)

    def run(self, *floats):
        """The tensors of floats of the result."""

        def given(value):
            if type(value) is Place:
                return floats[value]
            if type(value) in (tuple, list):
                return type(value)(given(each) for each in value)
            if isinstance(value, dict):
                return {name: given(each) for name, each in value.items()}
            return value

        arguments, keywords = given(self.words[0]), given(self.words[1])
        found = []
        leaves_of(self.call(*arguments, **keywords), found.append)
        return tuple(each for each in found if each.dtype.is_floating_point)

    def leaves(self):
        return [each.clone().requires_grad_() for each in self.floats]


class Passes(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def loss_of(results):
    """Sines keep derivatives of any order alive; their arguments are about 1."""
    results = [each for each in results if each is not None]
    return sum((each / (1 + each.detach().square().mean().sqrt())).sin().sum() for each in results)


def within(context):
    def mode(sample):
        with context():
            return sample.run(*(each.clone() for each in sample.floats))

    return mode


def gradients(sample, *, twice=False, context=contextlib.nullcontext):
    leaves = sample.leaves()
    of = [*leaves, *sample.parameters]
    with context():
        results = sample.run(*leaves)
        loss = loss_of(results)
        first = torch.autograd.grad(loss, of, create_graph=twice, allow_unused=True)
        if not twice:
            return (*results, *first)
        return (*first, *torch.autograd.grad(loss_of(first), of, allow_unused=True))


def scalar(sample):
    return lambda *floats: loss_of(sample.run(*floats))


def tangents(sample):
    with torch.no_grad(), forward_ad.dual_level():
        results = sample.run(*(forward_ad.make_dual(each.clone(), each.cos()) for each in sample.floats))
        return tuple(part for each in results for part in forward_ad.unpack_dual(each))


def traced(sample):
    for each in sample.parameters:  # which a trace of a function takes for constants
        each.requires_grad_(False)
    with torch.no_grad():
        return torch.jit.trace(sample.run, tuple(sample.floats), check_trace=False)(*(each + 0 for each in sample.floats))


def recorded(sample):
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        return make_fx(sample.run)(*sample.floats)(*sample.floats)


def compiled(sample):
    torch._dynamo.reset()
    leaves = sample.leaves()
    results = torch.compile(sample.run, backend="aot_eager")(*leaves)
    of = [*leaves, *sample.parameters]
    return (*results, *torch.autograd.grad(loss_of(results), of, allow_unused=True))


def fake(sample):
    mode = torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    with torch.no_grad(), mode:
        results = sample.run(*(mode.from_tensor(each) for each in sample.floats))
    return tuple(torch.zeros(each.shape, dtype=each.dtype) for each in results)


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each)


MODES = {
    "gradients": gradients,
    "no_grad": within(torch.no_grad),
    "inference_mode": within(torch.inference_mode),
    "second": lambda sample: gradients(sample, twice=True),
    "autocast": within(lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
    "anomaly mode": lambda sample: gradients(sample, context=torch.autograd.detect_anomaly),
    "saved-tensor hooks": lambda sample: gradients(sample, context=hooks),
    "deterministic mode": lambda sample: gradients(sample, context=deterministic),
    "dispatch mode": within(Passes),
    "forward_ad": tangents,
    "jvp": lambda sample: jvp(sample.run, tuple(sample.floats), tuple(each.cos() for each in sample.floats)),
    "grad": lambda sample: grad(scalar(sample), argnums=tuple(range(len(sample.floats))))(*sample.floats),
    "vmap": lambda sample: vmap(sample.run)(*(torch.stack([each, each.cos()]) for each in sample.floats)),
    "functionalize": lambda sample: functionalize(sample.run)(*sample.floats),
    "make_fx": recorded,
    "fake tensors": fake,
    "jit.trace": traced,
    **({"compile": compiled} if hasattr(torch, "compile") else {}),
}


def outcome(sample, mode):
    """Tensors of floats, or the type of an error."""
    torch.manual_seed(2)
    try:
        found = []
        leaves_of(MODES[mode](sample), found.append)
        return [each.detach().clone() for each in found]
    except Exception as error:
        return error


def distance(actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    actual, expected = actual.double(), expected.double()
    actual, expected = (each.to_dense() if each.is_sparse else each for each in (actual, expected))  # of an embedding
    finite = expected.isfinite()
    if not torch.equal(actual.isfinite(), finite):
        return float("inf")
    if not finite.any():
        return 0.0
    return float((actual - expected)[finite].abs().max() / max(1.0, float(expected[finite].abs().max())))


def judged(actual, expected, tolerance):
    """("equal", "error" or "wrong", why)."""
    if isinstance(expected, Exception):
        is_its = isinstance(actual, Exception) and isinstance(expected, type(actual)) and type(actual) is not Exception
        if is_its or any(each in str(expected) for each in LACKING):
            return "error", ""
        return "wrong", f"{actual!r:.150} where PyTorch raises {expected!r:.150}"
    if isinstance(actual, Exception):
        return "wrong", f"raises {actual!r:.300}"
    if len(actual) != len(expected):
        return "wrong", f"{len(actual)} tensors instead of {len(expected)}"
    largest = max((distance(a, b) for a, b in zip(actual, expected, strict=True)), default=0.0)
    return ("equal", "") if largest <= tolerance else ("wrong", f"differs by {largest:.2g}")


def spread(samples, limit):
    samples = list(samples)
    return samples if len(samples) <= limit else [samples[i * len(samples) // limit] for i in range(limit)]


def functions(dtype, limit):
    """(name, sample of PyTorch, sample of Kiln) of functions that Kiln has."""
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        name = info.name.removeprefix("nn.functional.")
        call = getattr(torch.nn.functional if "nn." in info.name else torch, name, None)
        if call not in TABLE or name in RANDOM or not info.supports_dtype(dtype, "cpu"):
            continue

        def on_kiln(*arguments, call=info.op, **keywords):
            with kiln.torch.enabled():
                return call(*arguments, **keywords)

        torch.manual_seed(3)  # the same samples whatever ran before
        for sample in spread(info.sample_inputs("cpu", dtype, requires_grad=False), limit):
            if sample.kwargs.get("max_norm") is not None:  # which writes the table: the next run is of another one
                continue
            if sample.kwargs.get("dropout_p"):  # whose mask is Kiln's own
                continue
            words = ((sample.input, *sample.args), sample.kwargs)
            yield name, Sample(info.op, *words), Sample(on_kiln, *words)


def modules(dtype, limit):
    """The same of all modules of PyTorch, in training and evaluation."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        name = info.module_cls.__name__
        known = dtype in info.dtypes or dtype in HALVES  # PyTorch's own tests have no halves on the CPU
        if any(each in name for each in RANDOM) or not known:
            continue
        for training in (False, True):
            try:
                inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training)
            except RuntimeError as error:
                if dtype not in HALVES or "not implemented for" not in str(error):
                    raise
                continue  # PyTorch cannot make the samples themselves
            for given in spread(inputs, limit):
                torch.manual_seed(1)
                words = given.constructor_input
                plain = info.module_cls(*words.args, **words.kwargs).to(dtype).train(training)
                if given.forward_input is None or isinstance(plain, torch.nn.modules.lazy.LazyModuleMixin):
                    continue
                net = kiln.torch.optimize(copy.deepcopy(plain), fold=True)
                forward = given.forward_input.args, given.forward_input.kwargs
                yield name, Sample(plain, *forward, plain.parameters()), Sample(net, *forward, net.parameters())


def tolerance_of(dtype, mode):
    if dtype == "f64" and mode != "autocast":
        return TOLERANCES["f64"]
    if mode == "second" and TYPES[dtype] in HALVES:
        return SECOND_OF_HALVES * TOLERANCES[dtype]
    return max(TOLERANCES[dtype], TOLERANCES.get(mode, 0))


def check(kind, dtypes, modes, limit, names=()):
    """{mode: Counter of outcomes}, and what is wrong."""
    counts, wrong = collections.defaultdict(collections.Counter), []
    for dtype in dtypes:
        for name, plain, net in kind(TYPES[dtype], limit):
            if names and name not in names:
                continue
            for mode in modes:
                if name in RANDOM_IN.get(mode, ()):
                    continue
                tolerance = tolerance_of(dtype, mode)
                result, why = judged(outcome(net, mode), outcome(plain, mode), tolerance)
                counts[mode][result] += 1
                if why:
                    wrong.append(f"{name} ({dtype}, {mode}): {why}")
    return counts, wrong


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["f32", "f64"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--kinds", nargs="+", choices=("functions", "modules"), default=("functions", "modules"))
    parser.add_argument("--limit", type=int, default=8, help="samples of each function or module, spread over all")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    failed = False
    for kind in given.kinds:
        counts, wrong = check(globals()[kind], given.types, given.modes, given.limit, given.names)
        print(f"\nPyTorch {torch.__version__}, {', '.join(given.types)}\n\n| {kind} | equal | PyTorch's error | wrong |")
        print("| --- | --- | --- | --- |")
        total = sum(counts.values(), collections.Counter())
        for mode, each in (*counts.items(), ("all", total)):
            print(f"| {mode} | {each['equal']} | {each['error']} | {each['wrong']} |")
        print("\n".join(wrong), flush=True)
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
