"""The table of model services."""

from __future__ import annotations

from tidegate.inspect.model_services import SERVICES


def test_every_service_is_whole() -> None:
    """INS-8: hosts, what is called, what tools run here, and where each list is documented."""
    for service in SERVICES:
        assert service.hosts
        assert service.calls
        assert service.tools or service.tool_keys
        assert all(source.startswith("https://") for source in service.sources)
        assert service.sources
        assert all(call.path.startswith("/v1") and (call.body == (call.method == "POST")) for call in service.calls)


def test_no_host_is_of_two_services() -> None:
    """INS-8: which guard looks at a call is never a matter of order."""
    hosts = [host for service in SERVICES for host in service.hosts]
    assert len(hosts) == len(set(hosts))
