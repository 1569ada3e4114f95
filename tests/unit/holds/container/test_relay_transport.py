"""The transport `relay`: what it says of a container that cannot connect; the rest is in tests/holds/test_relays.py."""

from __future__ import annotations

import pytest

from tidegate.holds.container import relay_transport
from tidegate.holds.container.engine import Engine
from tidegate.holds.container.relay_transport import RelayTransport


def test_it_captures() -> None:
    """HLD-6: the hold has to know."""
    assert (RelayTransport().name, RelayTransport().captures) == ("relay", True)


@pytest.mark.parametrize("why", ["EACCES", "ENOENT", "ECONNREFUSED"])
def test_on_the_same_kernel_it_is_a_configuration_error(why: str) -> None:
    """HLD-4: exit 78, SELinux named; in a virtual machine the transport for that is named."""
    denied = relay_transport._not_let(Engine("docker"), why)
    assert (denied.exit_status, "SELinux" in denied.fix, why in denied.what) == (78, True, True)
    elsewhere = relay_transport._in_vm(Engine("docker"), why)
    assert (elsewhere.exit_status, elsewhere.fix) == (78, "--transport vm")


def test_without_the_engine_its_probe_says_so(tmp_path: object) -> None:
    """HLD-7: an engine that is not here is no virtual machine."""
    found = RelayTransport().probe(Engine("podman", {"PATH": str(tmp_path)}))
    assert found is not None
    assert found.code == "engine-missing"
