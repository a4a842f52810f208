"""The functions of a family: each reads its arguments and calls its C++ twin."""

import re

from family import PERMISSIONS, Family, Field, Function, Options, Words
from header import prototype


def cpp_type(kind: str) -> str:
    """The C++ type of a C one: kiln_pool_options -> PoolOptions."""
    return "".join(part.capitalize() for part in kind.removeprefix("kiln_").split("_"))


def word_text(words: Words, value: str, name: str) -> str:
    *others, last = words.constants()
    what = name if name.endswith("s") else f"the {name}"
    hint = f"{others[0]} or another of these" if len(others) > 2 else f"{', '.join(others)} or {last}"
    return f'word_of<kiln::{cpp_type(words.type)}>({value}, {last}, function, "{what}", "use {hint}")'


def conversion_head(options: Options) -> str:
    rank = "int rank, " if options.has_window() else ""
    return f"{cpp_type(options.type)} options_of(const {options.type}& given, {rank}const char* function)"


def assignment(family: Family, each: Field, name: str, member: str) -> str:
    """Sets the member of the C++ options that a field stands for."""
    value, option = f"given.{name}", f"options.{member}"
    if each.extent:
        return f"copy_to({option}, {value});"
    if words := family.words_of(each.type):
        return f"{option} = {word_text(words, value, name)};"
    if name in PERMISSIONS:
        option = f"options.arithmetic.{name}"
    converted = {
        "int32_t": f'flag({value}, function, "{name}")',
        "const kiln_epilogue*": f"epilogue_of({value})",
        "const kiln_tensor*": f'optional_of({value}, function, "{name}")',
        "const kiln_activation_options*": f"activation_of({value}, function)",
    }
    return f"{option} = {converted.get(each.type, value)};"


def conversion(family: Family, options: Options) -> str:
    lines = []
    if any(each.name == "reserved" for each in options.fields):
        lines.append('require_zero(given.reserved, function, "reserved");')
    lines.append(f"{cpp_type(options.type)} options;")
    if options.has_window():
        lines.append("set_window(given, rank, options);")
    for each in options.fields:
        if each.member and each.name not in ("size", "reserved") and not each.is_spatial():
            members = [each.member, *each.names[1:]]
            lines += [assignment(family, each, name, member) for name, member in zip(each.names, members)]
    body = "\n".join([*lines, "return options;"])
    return f"{conversion_head(options)} {{\n{body}\n}}"


def default_text(family: Family, options: Options) -> str:
    word = family.words_of(options.parameter.partition(" ")[0])
    return f"{options.type}_default({word.default() if word else ''})"


def definition(family: Family, function: Function) -> str:
    lines = [f'const char* const function = "{function.name}";', 'require(context, function, "context");']
    values: dict[str, str] = {}  # in C++, by the names of the parameters
    optional = [name for kind, name in function.parameters if kind == "tensor?"]
    for kind, name in function.parameters:
        if kind.startswith("tensor"):
            read = "optional_of" if kind == "tensor?" and function.arguments else "tensor_of"
            values[name] = f'{read}({name}, function, "{name}")'
        elif words := family.words_of(kind):
            lines.append(f"const kiln::{cpp_type(words.type)} of_{name} = {word_text(words, name, name)};")
            values[name] = f"of_{name}"
        elif kind == "const kiln_epilogue*":
            values[name] = f"epilogue_of({name})"
    if options := function.options:
        rank = ""
        if options.has_window():
            first = next(name for kind, name in function.parameters if kind == "tensor")
            lines.append(f"const kiln::Tensor of_{first} = {values[first]};")
            values[first] = f"of_{first}"
            rank = f"of_{first}.rank(), "
        lines.append(f"const {options.type} given = read(options, {default_text(family, options)}, function);")
        values["options"] = f"options_of(given, {rank}function)"

    def call(arguments: list[str]) -> str:
        passed = [re.sub(r"\w+", lambda word: values.get(word[0], word[0]), each) for each in arguments]
        return f"kiln::{function.callee}({', '.join(['*context->context', *passed, 'stream'])});"

    arguments = function.arguments or [name for _, name in function.parameters]
    if optional and not function.arguments:
        (name,) = optional
        without = call([each for each in arguments if each != name])
        lines.append(f"if ({name} == nullptr) {{\n{without}\n}} else {{\n{call(arguments)}\n}}")
    else:
        lines.append(call(arguments))
    body = "\n".join(lines)
    many = len(function.parameters) > 6  # besides context and stream: more than .clang-tidy lets a function have
    lint = "// NOLINTNEXTLINE(readability-function-size): the parameters of the C function\n" if many else ""
    return f"{lint}{prototype(function)} {{\nreturn guarded([&] {{\n{body}\n}});\n}}"


def source(family: Family, origin: str, has_helpers: bool) -> str:
    """Unformatted. `has_helpers`: whether there is a header of them, written by hand."""
    checks = "\n".join(
        f"static_assert({each.constants()[-1]} == static_cast<int>({cpp_type(each.type)}::{each.attribute['words'][-1]}), "
        '"the words stand in one order");'
        for each in family.entries
        if isinstance(each, Words)
    )
    includes = ["boundary.h", "fields.h", "generated/options.h", "handles.h", "tensor.h"]
    includes += [f"{family.name}.h"] if has_helpers else []
    includes += ["window.h"] if any(each.has_window() for each in family.options()) else []
    inside = "\n\n".join(filter(None, [checks, *(conversion(family, each) for each in family.options())]))
    outside = "\n\n".join(definition(family, each) for each in family.functions())
    return (
        f'// {origin}\n#include "kiln/{family.name}.h"\n\n'
        + "".join(f'#include "{name}"\n' for name in sorted(includes))
        + f"\nnamespace kiln::capi {{\n\n{inside}\n\n}}  // namespace kiln::capi\n\n"
        + "using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room\n\n"
        + f"{outside}\n"
    )


def options_header(families: list[Family], origin: str) -> str:
    includes = sorted(f'#include "kiln/{each}.h"' for each in ["kiln", *(family.name for family in families)])
    heads = [f"{conversion_head(each)};" for family in families for each in family.options()]
    return (
        f"// The options of C as the C++ API has them. {origin}\n#pragma once\n\n"
        + "\n".join(includes)
        + "\n\nnamespace kiln::capi {\n\n"
        + "// Throw Error(invalid_argument) that names the function and the field: a flag that is neither 0 nor 1, a word\n"
        + "// or a tensor that is none, `reserved` that is not 0.\n"
        + "\n".join(heads)
        + "\n\n}  // namespace kiln::capi\n"
    )
