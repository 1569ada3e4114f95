"""What a column holds as JSON.

`json` is loaded when there is some: it brings `re`, and a start that only asks the store what a folder remembers and
trusts does not wait for that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dumps(value: object) -> str:
    """Return the text of a value."""
    import json

    return json.dumps(value)


def loads(text: str) -> Any:
    """Return the value of a text.

    Raises:
        ValueError: where it is no JSON.
    """
    import json

    return json.loads(text)
