#!/usr/bin/env python3
"""The ABI of the C headers is the one of abi.txt: types of functions, layouts and defaults of structures, constants.

usage: abi_test.py [--add] CC WORK INCLUDE_FOLDER...

Each name of the headers has an entry in abi.txt. An entry that differs is a break: compiled programs would fail. With --add
the names that have no entry get one; those that have keep theirs. Padding is an error as well: a byte that belongs to no field
may hold anything, and the field of a later version would be read from it.
"""

import re
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).resolve().with_name("abi.txt")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Werror"]
FIRST_LINES = "# The ABI of the C headers: abi_test.py compares it. An entry of a released version never changes.\n"


def declarations(cc: str, headers: list[str], includes: list[str]) -> str:
    """The C of the headers alone, preprocessed, each declaration in a line."""
    source = "".join(f"#include <{header}>\n" for header in headers)
    said = subprocess.run([cc, "-std=c11", "-E", *includes, "-xc", "-"], input=source, check=True, capture_output=True, text=True)
    kept, ours = [], False
    for line in said.stdout.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            ours = "/kiln/" in marker[1]
        elif ours:
            kept.append(line)
    return " ".join(" ".join(kept).split())


def fields_of(body: str) -> list[tuple[str, str]]:
    """(type, name) of each field; of an array the type is that of an element."""
    fields = []
    for declaration in filter(None, (each.strip() for each in body.split(";"))):
        kind, names = re.fullmatch(r"(.*?[\s*])((?:\w+(?:\[[^]]*\])*(?:, )?)+)", declaration).groups()
        fields += [(kind.strip(), re.sub(r"\[.*", "", name)) for name in names.split(", ")]
    return fields


def parameters_of(text: str) -> str:
    """The types of the parameters, without their names."""
    return ", ".join(re.sub(r"([\s*])\w+$", r"\1", each.strip()).strip() for each in text.split(",")) if text != "void" else text


def probe(text: str, headers: list[str]) -> str:
    """A program that prints an entry for each structure, its default and each constant."""
    lines = [f"#include <{header}>" for header in headers]
    lines += ["#include <stdio.h>", "int main(void) {"]
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", text):
        lines.append(f'  printf("struct {name}: %zu bytes\\n", sizeof({name}));')
        for kind, field in fields_of(body):
            place = f"offsetof({name}, {field}), sizeof((({name}*)0)->{field})"
            lines.append(f'  printf("  %zu: %zu bytes, {kind} {field}\\n", {place});')
    for structure, name, parameters in re.findall(r"static inline (\w+) (\w+_default)\(([^)]*)\)", text):
        # A default that a word decides has an entry for each of its words.
        words = re.findall(f"{parameters.split()[0].upper().rpartition('_')[0]}_\\w+", text) if parameters != "void" else [""]
        for word in sorted(set(words)):
            lines.append(f"  {{ union {{ {structure} value; uint32_t words[sizeof({structure}) / 4]; }} made = {{{name}({word})}};")
            lines.append(f'    printf("default {name}({word}):\\n");')
            lines.append(f"    for (size_t i = 0; i < sizeof({structure}) / 4; ++i)")
            lines.append('      if (made.words[i] != 0) printf("  %zu: 0x%08x\\n", 4 * i, made.words[i]);')
            lines.append(f'    if (made.value.size != sizeof({structure})) puts("  with a wrong size"); }}')
    for body in re.findall(r"enum \{(.*?)\}", text):
        for constant in re.findall(r"KILN_\w+", body):
            lines.append(f'  printf("constant {constant}: %d\\n", (int){constant});')
    return "\n".join([*lines, "  return 0;", "}", ""])


def described(cc: str, work: Path, folders: list[str]) -> dict[str, str]:
    """Each name with its entry."""
    includes = [f"-I{folder}" for folder in folders]
    headers = sorted(str(path.relative_to(folder)) for folder in folders for path in Path(folder).glob("kiln/c/*.h"))
    text = declarations(cc, headers, includes)
    work.mkdir(parents=True, exist_ok=True)
    source, program = work / "abi_probe.c", work / "abi_probe"
    source.write_text(probe(text, headers))
    subprocess.run([cc, *STRICT, *includes, str(source), "-o", str(program)], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    entries = {entry.partition(":")[0]: entry for entry in re.split(r"\n(?! )", said.rstrip("\n"))}
    for kind, name in re.findall(r"typedef (\w+) (\w+);", text):
        entries[f"type {name}"] = f"type {name}: {kind}"
    for result, name, parameters in re.findall(r"typedef ([^;{}]*?)\(\*(\w+)\)\(([^)]*)\);", text):
        entries[f"type {name}"] = f"type {name}: {result.strip()} (*)({parameters_of(parameters)})"
    exported = r'__attribute__\(\(visibility\("default"\)\)\) ([^;(]*?[\s*])(\w+)\(([^)]*)\);'
    for result, name, parameters in re.findall(exported, text):
        entries[f"function {name}"] = f"function {name}: {result.strip()} ({parameters_of(parameters)})"
    return entries


def read(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")] if path.exists() else []
    return {entry.partition(":")[0]: entry for entry in re.split(r"\n(?! )", "\n".join(lines)) if entry}


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--add"]
    if len(arguments) < 3 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    entries, pinned = described(arguments[0], Path(arguments[1]), arguments[2:]), read(PINNED)
    if "--add" in sys.argv:
        pinned = entries | pinned
        PINNED.write_text(FIRST_LINES + "".join(f"{pinned[name]}\n" for name in sorted(pinned)))
    complaints = [f"{name} has no entry: scripts/c-api adds it" for name in entries if name not in pinned]
    complaints += [f"{name} is in no header any more" for name in pinned if name not in entries]
    for name, entry in entries.items():
        if pinned.get(name, entry) != entry:
            complaints.append(f"{name} has changed. It was:\n{pinned[name]}\nIt is:\n{entry}")
    if complaints:
        complaints.append("A change breaks compiled programs. If no version has the name, remove its entry and run scripts/c-api.")
    print("\n".join(complaints) or f"{len(entries)} names are what they were")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
