#!/usr/bin/env python3
"""Every C, C++ and shell snippet of the pages compiles as it stands, and every requests file in them is read by kiln.

A C or C++ snippet with an #include is a whole file, compiled as it is. Where the sentence before it ends with its path in the
tree (`templates/pool/pool_unpadded.cpp`:), it sees the headers of that room, and those that snippets of its page have put into
the tree. One without is a fragment: it is compiled in a
function of its own, after fragment.h, which declares what the text around fragments has introduced. Of shell snippets the
syntax is checked. A block that names no language and begins with a request, or the expression of one, is a requests file for
`kiln explain`. Other blocks (output, a part of a list) are not checked.

usage: snippets_test.py ROOT CXX CC KILN WORK INCLUDE_FOLDER...
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pages import Block, pages, read


def check(command: list[str], text: str | None = None) -> str:
    """Errors of the command about its input; nothing where all is well."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"{command[0]} ended with {done.returncode}"


def path_of(block: Block, prose: dict[int, str]) -> str | None:
    """The path in the tree that the page gives the block: what its last sentence before the block ends with."""
    number = block.line - 2
    while not prose.get(number, "x").strip():
        number -= 1
    found = re.search(r"`([\w/.]+\.(?:h|c|cpp))`:$", prose.get(number, ""))
    return found.group(1) if found else None


def is_whole(text: str) -> bool:
    return any(line.startswith("#include") for line in text.splitlines())


def is_requests_file(text: str, operations: set[str]) -> bool:
    words = [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(words) and (words[0] in operations or words[0] == "expression")


def main() -> int:
    root, cxx, cc, kiln, work = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5])
    includes = [f"-I{folder}" for folder in sys.argv[6:]]
    one_of_each = (root / "examples/requests/one_of_each.txt").read_text().splitlines()
    operations = {line.split()[0] for line in one_of_each if line.strip() and not line.startswith("#")}
    os.environ.update(KILN_DRIVER="emulator", KILN_CACHE="off", KILN_KERNEL_STORE="off")
    cxx_check = [cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *includes]
    cc_check = [cc, "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *includes]
    work.mkdir(parents=True, exist_ok=True)

    counts = {"whole files": 0, "fragments": 0, "shell snippets": 0, "requests files": 0}
    complaints = []
    fragments = '#include "fragment.h"\n'
    for page in pages(root):
        prose, blocks = read(page)
        lines = dict(prose)
        tree = work / page.stem  # what the page adds to the project's tree
        shutil.rmtree(tree, ignore_errors=True)
        for block in blocks:
            place = f'#line {block.line} "{page}"\n'
            if block.language in ("cpp", "c") and is_whole(block.text):
                path = path_of(block, lines)
                source = tree / (path or f"{block.line}.{block.language}")
                source.parent.mkdir(parents=True, exist_ok=True)
                source.write_text(place + block.text)
                room = Path(path).parts[0] if path else ""
                rooms = [f"-I{base / folder}" for base in (tree, root) for folder in (room, "include", "generator/include")] if room else []
                compiler, *flags = cxx_check if block.language == "cpp" else cc_check
                header = ["-include", str(source), "-x", "c++" if block.language == "cpp" else "c", "/dev/null"]
                complaints.append(check([compiler, *rooms, *flags, *(header if source.suffix == ".h" else [str(source)])]))
                counts["whole files"] += 1
            elif block.language == "cpp":
                fragments += f"void fragment_{counts['fragments']}() {{\n{place}{block.text}}}\n"
                counts["fragments"] += 1
            elif block.language == "sh":
                said = check(["bash", "-n"], block.text)
                complaints.append(f"{page}:{block.line}: {said}" if said else "")
                counts["shell snippets"] += 1
            elif not block.language and is_requests_file(block.text, operations):
                requests = work / f"{page.stem}_{block.line}.txt"
                requests.write_text(block.text)
                said = check([kiln, "explain", str(requests)])
                complaints.append(f"{page}:{block.line}: {said}" if said else "")
                counts["requests files"] += 1
    source = work / "fragments.cpp"
    source.write_text(fragments)
    folder = str(Path(__file__).resolve().parent)
    complaints.append(check([*cxx_check, f"-I{folder}", "-Wno-unused", str(source)]))

    wrong = [complaint for complaint in complaints if complaint]
    print("\n".join(wrong) or "checked " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    if not all(counts.values()):
        print("no snippets of one kind: were the pages read?")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
