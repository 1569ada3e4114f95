"""Options that may be given once, for commands that click reads.

click takes the last of several and drops the others without a word; of `--policy` those may be the one that denies.
`run` reads its own options and refuses the same (run_options.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tidegate.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


def once(name: str, *others: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a click option whose value is a text, empty where it is not given, and which is refused given twice."""

    def taken(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> str:
        if len(values) > 1:
            raise UsageError(f"{name} is given twice", fix="give it once")
        return values[0] if values else ""

    return click.option(name, *others, multiple=True, callback=taken, **more)
