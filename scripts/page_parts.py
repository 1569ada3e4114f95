"""The generated parts of a page in docs/: what stands between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(path: str, blocks: Mapping[str, Callable[[], str]], *, check: bool) -> int:
    """Make every generated part of the page anew, by the function of its name in `blocks`.

    With `check` the page is only compared. Returns the exit status: 1 where it was to be checked and is stale.
    """
    with open(path, encoding="utf-8") as file:
        page = file.read()
    named = set(re.findall(r"<!-- generated: (\w+) -->", page))
    assert named == set(blocks), f"parts and makers differ: {named ^ set(blocks)}"
    made = _BLOCK.sub(lambda match: f"{match[1]}\n{blocks[match[2]]()}\n\n{match[3]}", page)
    if check:
        if made != page:
            sys.stderr.write(f"{path} is stale: run scripts/docs\n")
        return int(made != page)
    if made != page:
        with open(path, "w", encoding="utf-8") as file:
            file.write(made)
    return 0
