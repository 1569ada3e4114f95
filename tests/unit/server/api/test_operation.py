"""One operation as a value."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from starlette.responses import Response

from tidegate.server.api.app import NOBODY
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import Call, respond


class Thing(msgspec.Struct):
    """An answer."""

    size: int


def _call(**path: str) -> Call:
    return Call(cast("Any", None), NOBODY, path, None, None)


def test_a_number_of_a_path_is_a_number() -> None:
    """SRV-1: an id that is a number is one, and all else is not there (404)."""
    assert _call(id="12").number("id") == 12
    for text in ("", "x", "-1", "+1", "1.0", "\u0661", "9" * 16, "0x1"):
        with pytest.raises(ApiError) as caught:
            _call(id=text).number("id")
        assert caught.value.status == 404


def test_an_operation_answers_with_json_or_by_itself() -> None:
    """A struct or a dictionary becomes JSON with the operation's status; a response stays what it is."""
    for value in (Thing(3), {"size": 3}):
        found = respond(value, 201)
        assert (found.status_code, found.body, found.media_type) == (201, b'{"size":3}', "application/json")
    own = Response(b"x")
    assert respond(own, 201) is own
