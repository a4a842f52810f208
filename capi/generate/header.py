"""The header of a family."""

import re
import textwrap

from family import Comment, Family, Function, Group, Options, Words

WIDTH = 120
END = "\0*/"  # behind the last word of a comment, in whose line it has to stand


def comment(prose: str, indent: str = "") -> str:
    """A C comment. Its paragraphs are filled, but for one that begins with spaces."""
    lines: list[str] = []
    *others, last = re.split(r"\n\s*\n", prose.strip("\n"))
    for paragraph in [*others, last + END]:
        lines += [""] if lines else []
        if paragraph.startswith("  "):
            lines += paragraph.splitlines()
        else:
            joined = " ".join(paragraph.splitlines())
            lines += textwrap.wrap(joined, WIDTH - 3 - len(indent), break_long_words=False, break_on_hyphens=False)
    starred = [f"{indent}{' *' if number else '/*'} {line}".rstrip() for number, line in enumerate(lines)]
    return "\n".join(starred).replace(END, " */")


def with_remarks(rows: list[tuple[str, str]]) -> str:
    """Lines of code, each with its remark: behind it, or in front of it where it is too long."""

    def fits(code: str, remark: str) -> bool:
        return len(f"{code} /* {remark} */") <= WIDTH

    return "\n".join(
        code if not remark else f"{code} /* {remark} */" if fits(code, remark) else f"{comment(remark, '  ')}\n{code}"
        for code, remark in rows
    )


def commented(prose: str, code: str) -> str:
    return f"{comment(prose)}\n{code}" if prose else code


def enumeration(words: Words) -> str:
    names = words.attribute["words"]
    ends = [","] * (len(names) - 1) + [""]
    rows = [
        (f"  {words.constant(word)} = {value}{end}", words.remarks.get(word, ""))
        for value, (word, end) in enumerate(zip(names, ends))
    ]
    return commented(words.prose, f"typedef int32_t {words.type};\nenum {{\n{with_remarks(rows)}\n}};")


def structure(options: Options) -> str:
    rows = []
    for each in options.fields:
        extent = f"[{each.extent}]" if each.extent else ""
        rows.append((f"  {each.type} {', '.join(each.names)}{extent};", each.remark))
    return commented(options.prose, f"typedef struct {options.type} {{\n{with_remarks(rows)}\n}} {options.type};")


def default_function(options: Options) -> str:
    kind = options.type
    word = options.parameter.rpartition(" ")[2]
    lines = [f"{kind} options;", "memset(&options, 0, sizeof options);", "options.size = (uint32_t)sizeof options;"]
    if word:
        lines.append(f"options.{word} = {word};")
    spatial = [f"options.{each.name}[i]" for each in options.fields if each.is_spatial() and each.default]
    if spatial:
        lines.append(f"for (int i = 0; i < KILN_MAX_SPATIAL; ++i) {' = '.join(spatial)} = 1;")
    for each in options.fields:
        if each.default and each.name != word and not each.is_spatial():
            lines.append(f"options.{each.name}{'[0]' if each.extent else ''} = {each.default};")
    lines += [*options.default_code, "return options;"]
    body = "\n".join(lines)
    return commented(
        options.default_prose, f"static inline {kind} {kind}_default({options.parameter or 'void'}) {{\n{body}\n}}"
    )


def prototype(function: Function) -> str:
    parameters = ["kiln_context* context"]
    for kind, name in function.parameters:
        parameters.append(f"{'const kiln_tensor*' if kind.startswith('tensor') else kind} {name}")
    return f"kiln_status {function.name}({', '.join([*parameters, 'kiln_stream stream'])})"


def text_of(entry: Words | Options | Group | Comment | str) -> str:
    if isinstance(entry, Words):
        return enumeration(entry)
    if isinstance(entry, Options):
        return f"{structure(entry)}\n\n{default_function(entry)}"
    if isinstance(entry, Group):
        return commented(entry.prose, "\n".join(f"KILN_API {prototype(each)};" for each in entry.functions))
    if isinstance(entry, Comment):
        return f"{comment(entry.prose)}\n{entry.declaration}".rstrip()
    return entry


def header(family: Family, origin: str) -> str:
    """Unformatted. `origin`: what it is made from."""
    body = "\n\n".join(map(text_of, family.entries))
    used = {"math.h": "INFINITY", "stdint.h": "int32_t", "string.h": "memset"}
    standard = "".join(f"#include <{name}>\n" for name, word in used.items() if word in body)
    own = "".join(f'#include "kiln/c/{name}.h"\n' for name in sorted(["core", *family.includes]))
    return (
        f"{comment(family.title + '. See kiln/kiln.h.')}\n{comment(origin)}\n#pragma once\n\n{standard}\n{own}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{body}\n\n#ifdef __cplusplus\n}} /* extern "C" */\n#endif\n'
    )
