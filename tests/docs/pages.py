"""The Markdown pages of the project, as the tests of this folder read them."""

import re
from pathlib import Path
from typing import Iterator, NamedTuple


class Block(NamedTuple):
    """A fenced code block: its language (may be empty), its text, and the line of the page that the text begins at."""

    language: str
    text: str
    line: int


def pages(root: Path) -> list[Path]:
    """Every page of the project: not those of build products, nor of hidden folders."""
    found = []
    for page in sorted(root.rglob("*.md")):
        top = page.relative_to(root).parts[0]
        if top != "build" and not top.startswith("."):
            found.append(page)
    return found


def read(page: Path) -> tuple[list[tuple[int, str]], list[Block]]:
    """The lines outside of code blocks, each with its number, and the code blocks."""
    prose, blocks = [], []
    block_lines: list[str] | None = None
    language, begin = "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"\s*```(.*)", line)
        if block_lines is None:
            if fence:
                block_lines, language, begin = [], fence.group(1).strip(), number + 1
            else:
                prose.append((number, line))
        elif fence:
            blocks.append(Block(language, "\n".join(block_lines) + "\n", begin))
            block_lines = None
        else:
            block_lines.append(line)
    if block_lines is not None:
        raise SystemExit(f"{page}:{begin - 1}: this code block has no end")
    return prose, blocks


def anchors(page: Path) -> Iterator[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    seen: dict[str, int] = {}
    for _, line in read(page)[0]:
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))  # a link shows its text
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield f"{anchor}-{count}" if count else anchor
