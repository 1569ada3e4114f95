"""tidegate.model.contact."""

from __future__ import annotations

import pytest

from tests.unit.journal.contact_lines import contact
from tidegate.model.verdict import How


@pytest.mark.parametrize("how", list(How))
def test_what_passed_is_what_moved_bytes_outward(how: How) -> None:
    """JRN-7: a refusal did not pass, and a connection to the task's own server is none of the task's."""
    assert contact(how=how).passed is (how not in {How.REFUSED, How.PUBLISHED})


def test_tools_are_told_by_what_the_gate_alone_writes() -> None:
    """SRV-6: host, port, name and source together; a rule of that name for that host is a policy's own."""
    tools = {"host": "tools.tidegate.internal", "port": 80, "name": "tools", "source": "--tool"}
    assert contact(**tools).of_tools
    for other in ({"port": 443}, {"name": "other"}, {"source": "p.yaml:1:1"}, {"host": "x.tidegate.internal"}):
        assert not contact(**(tools | other)).of_tools
