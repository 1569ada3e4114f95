"""The table of model services."""

from __future__ import annotations

import pytest

from tidegate.inspect.model_services import LOOK, NONE, PASS, SERVICES
from tidegate.policy.alternatives import path_matcher
from tidegate.policy.model_hosts import MODEL_HOSTS
from tidegate.policy.paths import normal_path


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_whole(name: str) -> None:
    """INS-8: what is called, what becomes of its body, and where each list is documented."""
    service = SERVICES[name]
    assert service.error in {"anthropic", "openai", "google"}
    assert service.sources
    assert all(source.startswith("https://") for source in service.sources)
    for call in service.calls:
        assert (call.body == NONE) == (call.method == "GET")
        assert call.body in {NONE, LOOK, PASS}
        assert (call.shape is not None) == (call.body == LOOK)
        if call.shape is not None:
            assert call.shape.tools or call.shape.tool_keys
        path = normal_path(call.path.replace("*", "x").encode())
        assert path is not None
        assert path_matcher(call.path)(path)


def test_every_host_has_a_service() -> None:
    """INS-8: the names that policies know are those of the table, and no service is without a host."""
    assert set(MODEL_HOSTS.values()) == set(SERVICES)
