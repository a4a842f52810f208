"""Families of operations, one for each header of the C API, as the files of capi/operations describe them (docs/c-api.md)."""

import re
import textwrap
from dataclasses import dataclass, field

from definitions import Definitions, number, optional_tensors, prose_of, required_tensors, sentence, has_word

# Fields with an element for each spatial dimension, and their defaults.
SPATIAL = {"pad_begin": 0, "pad_end": 0, "window": 0, "grid": 0, "stride": 1, "dilation": 1}
PERMISSIONS = ("tf32", "fast", "deterministic")
TYPES = {
    "size": "uint32_t",
    "alpha": "float",
    "beta": "float",
    "dynamic_batch": "int32_t",
    "reserved": "int32_t",
    "epilogue": "const kiln_epilogue*",
} | {name: "int32_t" for name in PERMISSIONS}
REMARKS = {
    "alpha": "Default 1.",
    "dynamic_batch": "One kernel for every batch of a power-of-two bucket.",
    "tf32": "f32 products may be rounded to tf32.",
    "fast": "Products, and sums of 32, may be in the storage type.",
    "deterministic": "Equal inputs must give bitwise equal outputs on one device.",
}


@dataclass
class Field:
    type: str  # "float", "int64_t"
    names: list[str]  # several in one declaration have one remark
    extent: str = ""  # "KILN_MAX_SPATIAL"
    default: str = ""  # C text; empty: 0
    member: str = ""  # of the C++ options; empty: none
    remark: str = ""

    @property
    def name(self) -> str:
        return self.names[0]

    def is_spatial(self) -> bool:
        return self.extent == "KILN_MAX_SPATIAL" and self.name in SPATIAL


@dataclass
class Words:
    """An enumeration: the words of an attribute."""

    type: str
    prefix: str
    attribute: dict
    remarks: dict[str, str]
    prose: str = ""

    def constant(self, word: str) -> str:
        return f"{self.prefix}_{word.upper()}"

    def constants(self) -> list[str]:
        return [self.constant(word) for word in self.attribute["words"]]

    def default(self) -> str:
        return self.constant(self.attribute["default"])


@dataclass
class Options:
    type: str
    prose: str = ""
    fields: list[Field] = field(default_factory=list)
    # The default function's parameter ("kiln_activation_mode mode"), comment and last lines; empty: it has none.
    parameter: str = ""
    default_prose: str = ""
    default_code: list[str] = field(default_factory=list)

    def has_window(self) -> bool:
        return any(each.is_spatial() for each in self.fields)


@dataclass
class Function:
    name: str
    parameters: list[tuple[str, str]]  # (type, name) without context and stream; tensors are of type "tensor" or "tensor?"
    options: Options | None
    callee: str  # in C++
    arguments: list[str] | None = None  # of the callee; none: the parameters


@dataclass
class Group:
    """Functions under one comment."""

    functions: list[Function]
    prose: str


@dataclass
class Comment:
    """A comment by itself, or of a declaration that is written by hand."""

    prose: str
    declaration: str = ""


class Family:
    """`text`: its file of capi/operations. `operations`: every operation by its name. `others`: families that were read before."""

    def __init__(self, name: str, text: str, operations: dict[str, dict], others: dict[str, "Family"]):
        self.name, self.all_operations, self.others = name, operations, others
        self.includes: list[str] = []
        self.entries: list[Words | Options | Group | Comment | str] = []
        self.title, second, *lines = text.splitlines()
        self.operations = second.removeprefix("operations ").split()
        if unknown := [each for each in self.operations if each not in operations]:
            raise self.error(f"there is no operation {', '.join(unknown)}")
        self.definitions = Definitions([operations[each] for each in self.operations])
        self._read(lines)

    @staticmethod
    def by_rule(name: str, operations: dict[str, dict]) -> "Family":
        """The family that is one operation, all by its definition."""
        title = sentence(operations[name]["summary"]).removesuffix(".")
        return Family(name, f"{title}\noperations {name}\noptions\nfunction\n", operations, {})

    def error(self, what: str) -> SystemExit:
        return SystemExit(f"capi/operations/{self.name}.txt: {what}")

    def words_of(self, kind: str) -> Words | None:
        """The enumeration that is the type `kind`, here or in a header that is included."""
        known = [*self.entries, *(each for name in self.includes for each in self.others[name].entries)]
        return next((each for each in known if isinstance(each, Words) and each.type == kind), None)

    def options(self) -> list[Options]:
        return [each for each in self.entries if isinstance(each, Options)]

    def functions(self) -> list[Function]:
        return [each for entry in self.entries if isinstance(entry, Group) for each in entry.functions]

    # Reading: blocks begin in the first column, what belongs to them is indented.

    def _read(self, lines: list[str]) -> None:
        blocks: list[tuple[str, list[str]]] = []
        for line in lines:
            if line and not line.startswith(" "):
                blocks.append((line, []))
            elif blocks:
                blocks[-1][1].append(line)
        group: list[Function] = []
        for head, indented in blocks:
            kind, _, rest = head.partition(" ")
            body = textwrap.dedent("\n".join(indented)).strip("\n").splitlines()
            if kind == "function":
                group.append(self._function(rest or f"kiln_{self.name}"))
                if body or not rest:
                    prose = "\n".join(body) or prose_of(self.all_operations[self.name])
                    self.entries.append(Group(group, prose))
                    group = []
            elif kind == "words":
                self._words(rest, body)
            elif kind == "options":
                self._options(rest or f"kiln_{self.name}_options", body)
            elif kind == "default":
                self._default(rest, body)
            elif kind == "includes":
                self.includes = rest.split()
            elif kind == "define":
                self.entries.append(f"#define {rest}")
            elif kind == "comment":
                self.entries.append(Comment("\n".join(body)))
            elif kind == "declare":
                self.entries.append(Comment("\n".join(body), rest))
            else:
                raise self.error(f"'{head}' begins with no word that is known")
        if group:
            raise self.error(f"{group[-1].name} has no comment")

    @staticmethod
    def _rows(body: list[str]) -> tuple[str, list[tuple[str, str]]]:
        """The lines that begin with #, and the rows: what stands before two spaces, and what behind them and in indented lines below."""
        prose = "\n".join(line[2:] for line in body if line.startswith("# "))
        rows: list[tuple[str, str]] = []
        for line in body:
            if line.startswith("  ") and rows:
                rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
            elif line and not line.startswith("# "):
                first, _, remark = line.partition("  ")
                rows.append((first, remark.strip()))
        return prose, rows

    def _words(self, head: str, body: list[str]) -> None:
        kind, _, prefix = head.partition(" as ")
        first, _, name = kind.rpartition("_")
        attribute = self.definitions.words(name)
        if attribute is None:
            raise self.error(f"no attribute is a word and called {name}")
        prose, rows = self._rows(body)
        if unknown := [word for word, _ in rows if word not in attribute["words"]]:
            raise self.error(f"{name} is never {', '.join(unknown)}")
        self.entries.append(Words(kind, prefix or first.upper(), attribute, dict(rows), prose))

    def _options(self, kind: str, body: list[str]) -> None:
        prose, rows = self._rows(body)
        made = Options(kind, prose)
        made.fields = [self._field("size", "-")]
        made.fields += [self._field(*row) for row in rows] if rows else self._fields_by_rule()
        self.entries.append(made)

    def _default(self, parameter: str, body: list[str]) -> None:
        options = self.options()[-1]
        options.parameter = parameter
        options.default_prose = "\n".join(line for line in body if not line.startswith("| "))
        options.default_code = [line[2:] for line in body if line.startswith("| ")]

    def _fields_by_rule(self) -> list[Field]:
        """Fields of 4 bytes, then those of 8, so that nothing but `reserved` fills a gap."""
        (operation,) = self.definitions.operations
        numbers = [each["name"] for each in operation["numbers"]]
        attributes = [each["name"] for each in operation["attributes"] if each["name"] not in numbers]
        names = [name for each in attributes for name in (("pad_begin", "pad_end") if each == "pad" else (each,))]
        names += numbers + [each["name"] for each in operation["integers"]]
        names += [name for name in ("alpha", "beta", *PERMISSIONS) if has_word(operation, name)]
        names += ["dynamic_batch", *optional_tensors(operation)]
        names += ["epilogue"] if has_word(operation, "epilogue") else []
        fields = [self._field(name, "") for name in names]
        wide = [each for each in fields if each.type.endswith("*") or "64" in each.type]
        narrow = [each for each in fields if each not in wide]
        return narrow + ([] if len(narrow) % 2 else [self._field("reserved", "")]) + wide

    def _field(self, text: str, remark: str) -> Field:
        """`text`: NAME, or NAME, NAME, or TYPE NAME[EXTENT]; then perhaps = DEFAULT and -> MEMBER."""
        text, arrow, member = (each.strip() for each in text.partition("->"))
        declared, _, default = (each.strip() for each in text.partition("="))
        kind, names, extent = re.fullmatch(r"([^,]*[\s*])?(\w+(?:, \w+)*)(?:\[(\w+)\])?", declared).groups()
        made = Field((kind or "").strip(), names.split(", "), extent or "", default)
        made.member = member if arrow else made.name
        if not made.type:
            made.type, made.extent = self._type_of(made.name)
        made.default = made.default or self._default_of(made)
        made.remark = "" if remark == "-" else remark or self._remark_of(made)
        return made

    def _type_of(self, name: str) -> tuple[str, str]:
        """The type and the extent that the definitions give to a field."""
        if name in SPATIAL:
            return "int64_t", "KILN_MAX_SPATIAL"
        if name in TYPES:
            return TYPES[name], ""
        if attribute := self.definitions.words(name):
            known = next((each for each in self.entries if isinstance(each, Words) and each.attribute is attribute), None)
            if known is None:
                known = Words(f"kiln_{self.name}_{name}", f"kiln_{self.name}".upper(), attribute, {})
                self.entries.append(known)
            return known.type, ""
        kinds = {"numbers": "float", "integers": "uint64_t", "attributes": "int64_t", "operands": "const kiln_tensor*"}
        for kind, of_kind in kinds.items():
            if self.definitions.find(kind, name):
                return of_kind, ""
        raise self.error(f"no definition knows the field {name}: declare it with its type")

    def _default_of(self, made: Field) -> str:
        """The default of the definition; empty for 0."""
        if made.name == "alpha":
            return "1"
        if made.is_spatial():
            return "1" if SPATIAL[made.name] else ""
        if words := self.words_of(made.type):
            return words.default() if words.default() != words.constants()[0] else ""
        origin = made.member or made.name
        if found := self.definitions.find("numbers", origin):
            return number(found["default"]) if found["default"] else ""
        found = self.definitions.find("attributes", origin)
        return found["default"] if made.type == "int64_t" and found and found["default"] not in (None, "0") else ""

    def _remark_of(self, made: Field) -> str:
        name = made.name
        if name in REMARKS:
            return REMARKS[name]
        if name == "beta":
            return f"Default 0: {self.definitions.result()} is not read."
        if name == "epilogue":
            return "Default NULL: none." if self.definitions.take_stages() else "User code only. Default NULL: none."
        if words := self.words_of(made.type):
            return f"Default {words.default()}."
        if name in SPATIAL:
            return f"Default {SPATIAL[name]}."
        if found := self.definitions.find("operands", name):
            told = "; ".join(filter(None, [found["extents"], found["summary"]]))
            return f"{sentence(told)} Default NULL: {found['left_out']}."
        for kind in ("numbers", "attributes", "integers"):
            if found := self.definitions.find(kind, name):
                default = f"{found['default']:.6g}" if isinstance(found["default"], float) else found["default"]
                return sentence(found["summary"]) + ("" if default is None else f" Default {default}.")
        return ""

    def _function(self, text: str) -> Function:
        """`text`: NAME (PARAMETER, ...) calls NAME(ARGUMENT, ...); the parameters may be left out, and what is called."""
        matched = re.fullmatch(r"(\w+)(?: \((.*?)\))?(?: calls ([\w:]+)(?:\((.*)\))?)?", text)
        if not matched:
            raise self.error(f"'function {text}' is not NAME (PARAMETER, ...) calls NAME(ARGUMENT, ...)")
        name, given, callee, arguments = matched.groups()
        of_type = {each.type: each for each in self.options()}
        made = Function(name, [], None, callee or name.removeprefix("kiln_"))
        for each in self._parameters_by_rule(made.callee) if given is None else given.split(", "):
            if each == "options" or each in of_type:
                made.options = self.options()[-1] if each == "options" else of_type[each]
                made.parameters.append((f"const {made.options.type}*", "options"))
            elif " " in each:
                kind, _, parameter = each.rpartition(" ")
                made.parameters.append((kind, parameter))
            else:
                made.parameters.append(("tensor?" if each.endswith("?") else "tensor", each.removesuffix("?")))
        if arguments is not None:
            made.arguments = re.split(r", (?![^(]*\))", arguments)
        return made

    def _parameters_by_rule(self, operation: str) -> list[str]:
        """The tensors of that operation that its options do not hold, and the options."""
        if operation not in self.all_operations:
            raise self.error(f"{operation} is no operation: name the parameters of its function")
        held = {name for each in self.options()[-1].fields for name in each.names}
        return [each for each in required_tensors(self.all_operations[operation]) if each not in held] + ["options"]
