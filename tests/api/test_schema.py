"""The OpenAPI document against the running server: what it promises is what comes, for good and for bad requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.unit.server.api.running import Whole

if TYPE_CHECKING:
    from pathlib import Path

TOO_LARGE = 413


def bad_data_rejection(context: Any, response: Any, case: Any) -> Any:
    """As schemathesis has it; a body that is bad and too large is refused for the second before it is read.

    Of a query its client leaves out what is None or an empty list: where that was the bad part, nothing bad was sent.
    """
    sent = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    if response.status_code == TOO_LARGE or not set(case.query or ()) <= set(sent):
        return None
    return negative_data_rejection(context, response, case)


CHECKS: list[Any] = [
    not_a_server_error,
    content_type_conformance,
    bad_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]
EXAMPLES = 12


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_what_the_document_says_is_what_the_server_does(tmp_path: Path, mode: GenerationMode) -> None:
    """SRV-1: no 5xx, only promised statuses and bodies, nothing bad let through, and 405 for other methods."""
    with Whole(tmp_path) as whole:
        task = whole.task(name="one")
        whole.open_question(task["id"])
        token = whole.send("POST", "/api/tokens", {"name": "tests", "role": "owner"}).json["secret"]
        url = f"http://127.0.0.1:{whole.port}"
        schema = schemathesis.openapi.from_url(f"{url}/api/openapi.json")
        tried = []
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path == "/api/events":  # it does not end; test_sse.py reads it
                continue

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=EXAMPLES,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def check(case: Any) -> None:
                case.call_and_validate(
                    base_url=url, headers={"Authorization": f"Bearer {token}"}, checks=CHECKS, timeout=20
                )

            check()
            tried.append(operation.label)
        assert len(tried) >= 25
        assert whole.warnings == []
        assert whole.get("/api/health")["ok"]
