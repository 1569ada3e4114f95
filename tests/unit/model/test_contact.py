"""tidegate.model.contact."""

from __future__ import annotations

import pytest

from tests.unit.journal.contact_lines import contact
from tidegate.model.verdict import How


@pytest.mark.parametrize("how", list(How))
def test_what_passed_is_what_moved_bytes_outward(how: How) -> None:
    """JRN-7: a refusal did not pass, and a connection to the task's own server is none of the task's."""
    assert contact(how=how).passed is (how not in {How.REFUSED, How.PUBLISHED})
