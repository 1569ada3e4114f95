"""tidegate.runtime.task: put together in tests/unit/cli/test_run.py; here what it hands on."""

from __future__ import annotations

import pytest

from tidegate.model.verdict import Phase
from tidegate.policy.layers import command_line, join
from tidegate.runtime.early_hold import spec_of
from tidegate.runtime.task import Order, ports_of

ORDER = Order(
    task="t1",
    phase="runtime",
    command=("true",),
    folder="/srv/project",
    environ={},
    shares=(),
    hidden=("/state",),
    readonly=("/tidegate",),
    selftest=True,
    log="/log",
)


@pytest.mark.parametrize(("folder", "workspace"), [("/srv/project", "/srv/project"), ("/", None)])
def test_the_workspace_is_the_folder_it_is_run_in(folder: str, workspace: str | None) -> None:
    """HLD-14: the workspace is always bound; at the root there is nothing to bind."""
    spec = spec_of(ORDER.replace(folder=folder), {"A": "1"}, None)  # type: ignore[arg-type]
    assert (spec.cwd, spec.workspace) == (folder, workspace)
    assert (spec.hidden, spec.readonly, spec.selftest) == (("/state",), ("/tidegate",), True)
    assert spec.env == {"A": "1"}


def test_ports_are_the_policys() -> None:
    """HLD-7: --capture ports listens on the ports that rules let through or ask about, not on those they deny."""
    policy = join(
        command_line(
            allow=("a.test:8443", "b.test", "[2600:beef::1]:99", "[::1]:98"), ask=("c.test:7",), deny=("d.test:6",)
        )
    )
    assert {99, 7, 8443} <= set(ports_of(policy, Phase.RUNTIME))
    assert not {6, 98} & set(ports_of(policy, Phase.RUNTIME))  # a service of this machine is met without
