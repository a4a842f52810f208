#!/usr/bin/env python3
"""Every link of a page leads to a file of the project, or to a heading of a page.

usage: links_test.py ROOT
"""

import re
import sys
from pathlib import Path

from pages import anchors, pages, read

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def dead_links(page: Path) -> list[str]:
    found = []
    for number, line in read(page)[0]:
        for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", link):
                continue  # another site's
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                found.append(f"{page}:{number}: there is no {name}")
            elif anchor and anchor not in anchors(target):
                found.append(f"{page}:{number}: {name or 'this page'} has no heading #{anchor}")
    return found


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    checked = pages(root)
    if root / "README.md" not in checked:
        print(f"{root} has no README.md: is it the project's folder?")
        return 1
    dead = [message for page in checked for message in dead_links(page)]
    print("\n".join(dead) or f"the links of {len(checked)} pages lead somewhere")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
