"""Definitions of operations, as `kiln describe --json` prints them, in the words of C."""

import re


def sentence(text: str) -> str:
    """Words of a definition as a sentence. A name at its begin, such as x, stays as it is."""
    if not text:
        return ""
    begins_with_name = not text[1:2].islower() and text[1:2] != " "
    return (text if begins_with_name else text[0].upper() + text[1:]).removesuffix(".") + "."


def number(value: float) -> str:
    """A float as C has it: 1, 0.5f, 1e-5f."""
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    small = 0 < abs(value) < 1e-3
    text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}" if small else f"{value:.6g}"
    return text if re.fullmatch(r"-?\d+", text) else text + "f"


def is_of_stage(operand: dict) -> bool:
    """Whether it belongs to a stage of an epilogue, which brings it."""
    return operand["summary"].startswith("read with epilogue=")


def optional_tensors(operation: dict) -> list[str]:
    return [each["name"] for each in operation["operands"] if each["optional"] and not is_of_stage(each)]


def required_tensors(operation: dict) -> list[str]:
    return [each["name"] for each in operation["operands"] if not each["optional"]]


def has_word(operation: dict, name: str) -> bool:
    return any(word["name"] == name for word in operation["words"])


def takes_stages(operation: dict) -> bool:
    return any(word["name"] == "epilogue" and "joined with +" in word["values"] for word in operation["words"])


class Definitions:
    """Definitions of a family's operations. Where several know a name, the first counts."""

    def __init__(self, operations: list[dict]):
        self.operations = operations

    def find(self, kind: str, name: str) -> dict | None:
        """`kind`: operands, attributes, numbers or integers."""
        return next((each for operation in self.operations for each in operation[kind] if each["name"] == name), None)

    def words(self, name: str) -> dict | None:
        """The attribute of that name if it is a word."""
        found = self.find("attributes", name)
        return found if found and found["words"] and not self.find("numbers", name) else None

    def result(self) -> str:
        """The name of what the operations compute, if all have one name for it."""
        names = {operation["result"] for operation in self.operations}
        return names.pop() if len(names) == 1 else "the result"

    def take_stages(self) -> bool:
        return any(map(takes_stages, self.operations))


def prose_of(operation: dict) -> str:
    """The comment of an operation's function, from the texts of its definition."""
    result = operation["result"]
    inputs = ", ".join(name for name in required_tensors(operation) if name != result)
    formula = f"{operation['operation']}({inputs})"
    if has_word(operation, "alpha"):
        formula = f"alpha * {formula} + beta * {result}"
    told, types = [], {}
    for each in operation["operands"]:
        types.setdefault(", ".join(each["dtypes"]), []).append(each["name"])
        if each["name"] in required_tensors(operation):
            extents = each["extents"].replace("; ", " or ")
            told.append(f"{each['name']}: {'; '.join(filter(None, [extents, each['summary']]))}")
    of_types = "; ".join(f"{', '.join(names)}: {dtypes}" for dtypes, names in types.items())
    return (
        f"Enqueues {result} = epilogue({formula}) on `stream` and returns: {operation['summary']}.\n\n"
        f"{'   '.join(told)}. Types: {of_types}. Any strides. Otherwise outputs share no element with other operands. "
        "`options` may be NULL. Errors, first call, workspace and threads as for kiln_conv_forward()."
    )
