"""Makes kiln/operations.py, its stub and kiln/_definitions.py: a function for each operation, from `kiln describe --json`.

usage: generate.py KILN_PROGRAM OUTPUT_FOLDER
"""

import json
import keyword
import pathlib
import re
import subprocess
import sys
import textwrap

WIDTH = 118
# Arguments of every function, and what they are in Python.
FLAGS = ("tf32", "fast", "deterministic", "batch_invariant")
FRAMEWORK_NAMES = {"f32": "float32", "i32": "int32"}  # of types that a further output has by itself
COMMON = {
    "alpha": "the scale of the result",
    "beta": "the scale of what the result held before, which out then gives",
    "clip_lo": "the least result of the epilogue's clip",
    "clip_hi": "the largest",
    "epilogue": "stages in the order written ({stages}), or an Expression",
    "dynamic_batch": "one kernel serves every batch up to the next power of two",
    "out": "where the result goes; by default a new tensor of the first input's framework and device, "
           "of the type and layout that docs/request-syntax.md says of a result that is left out",
    "stream": "a stream of PyTorch or CuPy, or an address; by default the framework's current one",
    "context": "the Context; by default that of the tensors' device",
}


def python_value(text):
    """A default of a request as Python has it: 0, (0, 2, 3), "max", None."""
    if text is None:
        return None
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


class Operation:
    def __init__(self, data):
        self.name = data["operation"]
        self.summary = data["summary"]
        self.result = data["result"]
        self.inputs = [each for each in data["operands"] if each["role"] == "input"]
        self.outputs = [each for each in data["operands"] if each["role"] != "input"]
        self.numbers = data["numbers"]
        self.integers = data["integers"]
        numbers = {each["name"] for each in self.numbers}
        # An attribute that a number decides is no argument of its own: the class of a scale, smoothing=any.
        self.attributes = [each for each in data["attributes"] if each["name"] not in numbers]
        self.decided = {each["name"]: each["default"] for each in data["attributes"] if each["name"] in numbers}
        words = {each["name"]: each for each in data["words"]}
        self.flags = [words[name] for name in FLAGS if name in words]
        self.has_epilogue = "epilogue" in words
        self.stages = {}
        for operand in self.inputs:
            if found := re.fullmatch(r"read with epilogue=(\w+)", operand["summary"]):
                self.stages[operand["name"]] = found[1]
        stages = words["epilogue"]["values"] if self.has_epilogue else ""
        self.stage_text = stages.partition(";")[0].removesuffix(", joined with +").replace(", ", "+")
        self.result_required = next(each for each in self.outputs if each["name"] == self.result)["left_out"] is None

    def definition(self):
        words = {each["name"]: python_value(each["default"]) for each in self.attributes}
        words |= {name: default for name, default in self.decided.items() if default == "none"}
        words |= {each["name"]: False for each in self.flags} | {"constant_weights": False, "dynamic_batch": False}
        numbers = ["alpha", "beta", "clip_lo", "clip_hi"] + [each["name"] for each in self.numbers]
        return (
            f"    {self.name!r}: Definition(\n"
            f"        {self.name!r},\n"
            f"        {tuple(each['name'] for each in self.inputs)!r},\n"
            f"        {tuple(each['name'] for each in self.inputs if each['left_out'] is None)!r},\n"
            f"        {tuple(each['name'] for each in self.outputs)!r},\n"
            f"        {self.result!r},\n"
            f"        {self.result_required!r},\n"
            f"        {words!r},\n"
            f"        frozenset({numbers!r}),\n"
            f"        frozenset({[each['name'] for each in self.integers]!r}),\n"
            f"        {self.stages!r},\n"
            f"        {self.likenesses()!r},\n"
            "    ),\n"
        )

    def further_outputs(self):
        return [each for each in self.outputs if each["name"] != self.result]

    def likenesses(self):
        """{further output that is allocated where it is True: (the operand it is as, whether 1 along the axes, dtype)}.

        The dtype is that of the operand if the output has no type of its own.
        """
        found = {}
        for each in self.further_outputs():
            match = re.fullmatch(r"as (\w+)(, with 1 along the axes)?", each["extents"])
            if match and each["role"] == "output":
                dtype = FRAMEWORK_NAMES[each["dtypes"][0]] if len(each["dtypes"]) == 1 else None
                like, reduced = found[match[1]][:2] if match[1] in found else (match[1], bool(match[2]))
                found[each["name"]] = (like, reduced, dtype)
        return found

    def parameters(self, first="Array", asked=None, out=""):
        """Lines of the signature. `first`: the type of the first input that has to be given; `asked`: a further output that
        is True; `out`: the type of that."""
        required = [each["name"] for each in self.inputs if each["left_out"] is None]
        for name in required:
            yield f"{name}: {first if name == required[0] else 'Array'}"
        for operand in self.inputs:
            if operand["left_out"] is not None:
                yield f"{operand['name']}: Array | None = None"
        yield "*"
        for each in self.attributes:
            default = python_value(each["default"])
            if each["words"]:
                kind = "Literal[" + ", ".join(map(json.dumps, each["words"])) + "]"
                yield f"{each['name']}: {kind} = {json.dumps(default)}"
            else:
                yield f"{each['name']}: Ints{'' if default is not None else ' | None'} = {default!r}"
        for each in self.numbers:
            yield f"{each['name']}: float | None = None"
        for each in self.integers:
            yield f"{each['name']}: int = 0"
        for each in self.flags:
            yield f"{each['name']}: bool = False"
        yield "alpha: float = 1.0"
        yield "beta: float = 0.0"
        if self.has_epilogue:
            yield "epilogue: str | Expression | None = None"
        if "clip" in self.stage_text:
            yield "clip_lo: float | None = None"
            yield "clip_hi: float | None = None"
        for each in self.further_outputs():
            yield f"{each['name']}: Literal[True]" if each["name"] == asked else f"{each['name']}: Array | None = None"
        yield "dynamic_batch: bool = False"
        yield f"out: {out or 'Array'}" if self.result_required else f"out: {out or 'Array | None = None'}"
        yield "stream: Stream = None"
        yield "context: Context | None = None"

    # The type of the first input, of `out`, and of the result.
    _frameworks = (
        ("TorchTensor", "None = None", "torch.Tensor"),
        ("CudaArray", "None = None", "cupy.ndarray"),
        ("Array", "None = None", "NDArray[Any]"),
        ("Array", "Out", "Out"),
    )

    def overloads(self):
        """Overloads for type checkers: results are of the first input's framework, or `out`; a tuple if an output is
        True."""
        asked = [*self.likenesses(), None]
        frameworks = self._frameworks[-1:] if self.result_required else self._frameworks
        one = "" if len(asked) * len(frameworks) == 1 else "@overload\n"
        for output in asked:
            for first, out, result in frameworks:
                lines = "".join(f"    {parameter},\n" for parameter in self.parameters(first, output, out))
                several = "tuple[Any, ...]" if result == "Out" else f"tuple[{result}, ...]"
                yield f"{one}def {self.name}(\n{lines}) -> {several if output else result}: ...\n"

    def documented(self):
        """(name, text) of each argument."""
        for each in self.inputs:
            left_out = f"left out: {each['left_out']}" if each["left_out"] else ""
            yield each["name"], "; ".join(filter(None, [each["extents"].replace("; ", " or "), left_out, each["summary"]]))
        for each in self.attributes:
            yield each["name"], each["summary"]
        for each in self.numbers:
            default = "by the function" if each["default"] is None else f"{each['default']:.6g}"
            yield each["name"], f"{each['summary']}; by default {default}"
        for each in self.integers + self.flags:
            yield each["name"], each["summary"]
        for name, text in COMMON.items():
            if name.startswith("clip") and "clip" not in self.stage_text:
                continue
            if name == "epilogue" and not self.has_epilogue:
                continue
            if name == "out":
                for each in self.further_outputs():
                    taken = "written if given"
                    if each["name"] in self.likenesses():
                        taken += ", True: a new tensor, which is returned too"
                    yield each["name"], f"{each['extents']}; {taken}" + (f"; {each['summary']}" if each["summary"] else "")
                result = next(each for each in self.outputs if each["name"] == self.result)
                text = f"{result['name']}, {result['extents'].replace('; ', ' or ')}; " + (
                    "has to be given" if self.result_required else text
                )
            yield name, text.format(stages=self.stage_text or "none here")

    def returned(self):
        first = "the first output" if self.decided.get("smoothing") else self.result
        return f"{first}, or a tuple of it and each output that is True" if self.likenesses() else first

    def dtypes(self):
        rows = {}
        for each in self.inputs + self.outputs:
            rows.setdefault(", ".join(each["dtypes"]), []).append(each["name"])
        return "; ".join(f"{', '.join(names)}: {types}" for types, names in rows.items())

    def docstring(self):
        summary = self.summary[0].upper() + self.summary[1:]
        wrap = lambda text, indent="", later="": textwrap.fill(  # noqa: E731
            text, WIDTH - 4, initial_indent=indent, subsequent_indent=later or indent, break_long_words=False
        )
        parts = [wrap(f"{summary}. Returns {self.returned()}.")]
        parts.append("\n".join(wrap(f"{name}: {text}", "  ", "      ") for name, text in self.documented()))
        parts.append(wrap(f"Types: {self.dtypes()}."))
        parts.append(
            wrap(
                "Raises InvalidArgument before anything is enqueued: tensors that do not fit each other or the operation, a "
                "wrong device or dtype, a number out of range; Unsupported, CompileFailed, DriverError, OutOfMemory."
            )
        )
        return textwrap.indent("\n\n".join(parts).replace("\\", "\\\\"), "    ", lambda line: bool(line.strip()))

    def function(self):
        parameters = list(self.parameters())
        names = [parameter.partition(":")[0] for parameter in parameters if parameter != "*"]
        assert not any(keyword.iskeyword(name) for name in names), names
        passed = [name for name in names if name not in ("epilogue", "out", "stream", "context")]
        arguments = "".join(f"            {name!r}: {name},\n" for name in passed)
        signature = "".join(f"    {parameter},\n" for parameter in parameters)
        body = self.docstring().lstrip()
        return (
            f"def {self.name}(\n{signature}) -> Any:\n"
            f'    """{body}\n    """\n'
            f"    return run(\n        DEFINITIONS[{self.name!r}],\n        {{\n{arguments}        }},\n"
            f"        {'epilogue' if self.has_epilogue else 'None'},\n        out,\n        stream,\n        context,\n    )\n"
        )


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    said = subprocess.run([program, "describe", "--json"], check=True, capture_output=True, text=True).stdout
    operations = [Operation(data) for data in json.loads(said)["operations"]]
    made_by = "Made by python/generate.py from `kiln describe --json`."
    (folder / "_definitions.py").write_text(
        f'"""What each operation takes. {made_by}"""\n\n'
        "from ._arguments import Definition\n\nDEFINITIONS = {\n"
        + "".join(operation.definition() for operation in operations)
        + "}\n"
    )
    (folder / "operations.py").write_text(
        f'"""A function for each operation. {made_by}"""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Sequence\nfrom typing import Any, Literal, Union\n\n"
        "from ._arrays import Array, Stream\nfrom ._calls import run\nfrom ._context import Context\n"
        "from ._definitions import DEFINITIONS\nfrom ._kiln import Expression\n\n"
        "Ints = Union[int, Sequence[int]]\n\n"
        "__all__ = [\n"
        + "".join(f"    {operation.name!r},\n" for operation in operations)
        + "]\n\n\n"
        + "\n\n".join(operation.function() for operation in operations)
    )
    (folder / "operations.pyi").write_text(
        f"# The types of operations.py. {made_by}\n"
        "from collections.abc import Sequence\nfrom typing import Any, Literal, TypeVar, Union, overload\n\n"
        "import cupy\nimport torch\nfrom numpy.typing import NDArray\n\n"
        "from ._arrays import Array, CudaArray, Stream, TorchTensor\nfrom ._context import Context\n"
        "from ._kiln import Expression\n\n"
        "Ints = Union[int, Sequence[int]]\nOut = TypeVar(\"Out\")\n\n__all__ = [\n"
        + "".join(f"    {operation.name!r},\n" for operation in operations)
        + "]\n\n"
        + "\n".join("".join(operation.overloads()) for operation in operations)
    )


main()
