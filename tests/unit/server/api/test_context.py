"""What operations work with is one frozen value."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tidegate.server.api.context import Context


def test_it_does_not_change() -> None:
    """The parts of a running server are the same for every request."""
    nothing = cast("Any", None)
    context = Context(
        server=nothing, auth=nothing, codes=nothing, streams=nothing, portal_url="a", phone_url="", fingerprint=""
    )
    with pytest.raises(AttributeError):
        context.portal_url = "b"  # type: ignore[misc]
