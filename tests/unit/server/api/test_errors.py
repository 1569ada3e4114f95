"""The one form of an error."""

from __future__ import annotations

import json

import pytest

from tidegate.model.errors import StartError, TidegateError, UsageError
from tidegate.server.api.errors import ApiError, from_tidegate, safe


def test_an_error_has_a_code_a_sentence_and_a_fix() -> None:
    """SRV-1: the body has exactly these; a question only where there is one."""
    assert json.loads(ApiError(404, "there is no x", fix="see y").body()) == {
        "error": {"code": "not-found", "what": "there is no x", "fix": "see y"}
    }
    assert json.loads(ApiError(409, "a", question={"id": 1}).body())["question"] == {"id": 1}


@pytest.mark.parametrize(
    ("error", "status"), [(UsageError("u", code="rule"), 400), (StartError("s"), 409), (TidegateError("t"), 409)]
)
def test_the_house_s_errors_keep_their_words(error: TidegateError, status: int) -> None:
    """The caller's own mistake is 400, the rest 409; what, fix and code stay."""
    found = from_tidegate(error)
    assert (found.status, found.what, found.fix, found.code) == (status, error.what, error.fix, error.code)


def test_only_printable_text_goes_out() -> None:
    """ASK-6: control and direction characters are escaped, all else stays."""
    assert safe("a\x1b[2J\u202eb\nc ä") == "a\\x1b[2J\\u202eb\\nc ä"
